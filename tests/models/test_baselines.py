from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from foveate import CNN, DeepMIL
from foveate.coordinates import Grid
from foveate.errors import InputError
from foveate.images import as_batch, read_patches
from foveate.models import ConvFeature, LeNetFeature, MILAttention, resnet8_cnn


def mil(gated: bool = False, grid: tuple[int, int] = (3, 4)) -> Any:
    return DeepMIL(
        MILAttention(32, hidden=8, gated=gated),
        LeNetFeature(3),
        nn.Linear(32, 2),
        patch_size=(20, 20),
        grid=grid,
    )


@pytest.mark.parametrize("gated", [False, True])
def test_deep_mil_is_the_sum_over_all_patches(gated: bool) -> None:
    model, images = mil(gated), torch.rand(2, 3, 90, 100)
    out = model(images)
    grid = Grid((3, 4), (3, 4))
    corners = grid.patch_corner(grid.cell_of(torch.arange(12)), (90, 100), (20, 20))
    for row in (0, 1):
        features = model.feature(read_patches(images[row : row + 1], corners[None], (20, 20))[0])
        value = torch.tanh(features @ model.attention.value.weight.T + model.attention.value.bias)
        if gated:
            gate = model.attention.gate
            value = value * torch.sigmoid(features @ gate.weight.T + gate.bias)
        attention = (value @ model.attention.score.weight.T).softmax(0)
        torch.testing.assert_close(out.logits[row], model.head((attention * features).sum(0)))
        torch.testing.assert_close(out.log_attention[row].exp().flatten(), attention[:, 0])
        torch.testing.assert_close(out.draw.weight[row], attention[:, 0].detach())
    assert out.draw.index.tolist() == [list(range(12))] * 2
    assert out.patches.shape == (2, 12, 3, 20, 20)


def test_deep_mil_takes_images_of_different_sizes_and_bytes() -> None:
    model = mil().eval()
    images = [
        torch.randint(0, 256, (3, height, width), dtype=torch.uint8)
        for height, width in [(90, 100), (64, 200)]
    ]
    listed = model(images)
    for row, image in enumerate(images):
        torch.testing.assert_close(listed.logits[row], model(image[None]).logits[0])


def test_deep_mil_takes_many_patches_in_turn_where_it_learns_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, images = mil().eval(), torch.rand(2, 3, 90, 100)
    seen: list[int] = []
    model.feature.register_forward_hook(lambda _, given, __: seen.append(len(given[0])))
    whole = model(images)
    monkeypatch.setattr("foveate.models.mil._AT_ONCE", 10)
    with torch.no_grad():
        in_turn = model(images)
    assert seen == [24, 10, 10, 4]
    torch.testing.assert_close(in_turn.logits, whole.logits)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_deep_mil_keeps_attention_in_float32() -> None:
    model = mil(gated=True).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = model(torch.rand(2, 3, 90, 100, device="cuda"))
    assert out.log_attention.dtype == torch.float32
    out.logits.float().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_the_paper_s_grid_covers_the_image() -> None:
    model = DeepMIL(
        MILAttention(8),
        ConvFeature(3, (8,), (3,), (4,), (1,)),
        nn.Linear(8, 2),
        patch_size=(100, 100),
        grid=(12, 16),
    )
    corners = model(torch.rand(1, 3, 960, 1280)).yx_level0[0]
    assert len(corners) == 192
    assert corners.min(0).values.tolist() == [-10, -10]
    assert corners.max(0).values.tolist() == [870, 1190]


@pytest.mark.parametrize(("scale", "size"), [(1.0, (60, 80)), (0.5, (30, 40)), (0.3, (18, 24))])
def test_cnn_sees_the_whole_image_at_its_scale(scale: float, size: tuple[int, int]) -> None:
    model = CNN(resnet8_cnn(3), nn.Linear(32, 4), scale=scale).eval()
    images = torch.rand(2, 3, 60, 80)
    out = model(images)
    assert out.log_attention is None
    assert out.draw is None
    expected = model.head(model.feature(as_batch(images).overviews(size)))
    torch.testing.assert_close(out.logits, expected)


def test_cnn_takes_images_of_different_sizes_at_one_size() -> None:
    images = [torch.rand(3, 60, 80), torch.rand(3, 90, 30)]
    assert CNN(resnet8_cnn(3), nn.Linear(32, 4), size=(32, 32))(images).logits.shape == (2, 4)
    with pytest.raises(InputError, match=r"of 2 different sizes .* give CNN a size"):
        CNN(resnet8_cnn(3), nn.Linear(32, 4))(images)
    with pytest.raises(InputError, match="scale must be above 0"):
        CNN(resnet8_cnn(3), nn.Linear(32, 4), scale=0.0)
