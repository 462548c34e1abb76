from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from foveate import open_image
from foveate.images import as_batch
from foveate.images.memory import resample

sides = st.integers(1, 60)


def reference(images: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    return F.interpolate(images, size, mode="bilinear", antialias=True)


@given(height=sides, width=sides, size=st.tuples(sides, sides))
def test_equals_torch_s_antialiased_filter(height: int, width: int, size: tuple[int, int]) -> None:
    images = torch.rand(2, 3, height, width, dtype=torch.float64)
    torch.testing.assert_close(resample.resample(images, size), reference(images, size))


def test_tiles_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    images = torch.rand(3, 2, 61, 83, dtype=torch.float64)
    for tile in (50, 1000, 20_000, 40_000):
        monkeypatch.setattr(resample, "_TILE", tile)
        got = resample.resample(images, (9, 14))
        torch.testing.assert_close(got, reference(images, (9, 14)))


def test_bytes_are_rounded_to_the_nearest(device: torch.device) -> None:
    images = torch.randint(0, 256, (2, 3, 200, 300), dtype=torch.uint8, device=device)
    got = resample.resample(images, (20, 31))
    assert got.dtype == torch.uint8
    expected = reference(images.cpu().double(), (20, 31))
    assert (got.cpu() - expected).abs().max() <= 0.5 + 1e-3


def test_black_and_white_stay_so() -> None:
    for value in (0, 255):
        images = torch.full((1, 1, 97, 101), value, dtype=torch.uint8)
        assert (resample.resample(images, (13, 7)) == value).all()


def test_stripes_finer_than_the_overview_become_grey() -> None:
    stripes = torch.zeros(1, 1, 400, 400)
    stripes[..., ::2] = 1.0
    grey = resample.resample(stripes, (40, 40))
    assert (grey - 0.5).abs().max() < 0.06  # the outermost pixels see one stripe more


def test_mixed_precision_does_not_round_the_overview(device: torch.device) -> None:
    images = torch.rand(1, 3, 100, 100, device=device)
    plain = resample.resample(images, (10, 10))
    with torch.autocast(device.type, dtype=torch.bfloat16):
        assert torch.equal(resample.resample(images, (10, 10)), plain)


def test_the_operator_is_well_formed(device: torch.device) -> None:
    images = torch.randint(0, 256, (2, 3, 40, 30), dtype=torch.uint8, device=device)
    checks = torch.library.opcheck(torch.ops.foveate.resample.default, (images, [8, 6]))
    assert set(checks.values()) == {"SUCCESS"}


def test_a_batch_and_a_list_have_the_same_overviews() -> None:
    images = torch.randint(0, 256, (2, 3, 64, 48), dtype=torch.uint8)
    together = as_batch(images).overviews((8, 6))
    assert torch.equal(as_batch(list(images)).overviews((8, 6)), together)
    assert torch.equal(open_image(images[1]).overview((8, 6)), together[1])


def test_images_of_different_sizes_and_strides() -> None:
    images = [torch.rand(1, 64, 48), torch.rand(1, 100, 30), torch.rand(48, 64, 1).permute(2, 1, 0)]
    overviews = as_batch(images).overviews((8, 6))
    for image, overview in zip(images, overviews, strict=True):
        torch.testing.assert_close(overview, reference(image[None], (8, 6))[0])
