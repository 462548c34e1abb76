from __future__ import annotations

import pytest
import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.images import AugmentedBatch, TensorBatch, Variation, as_batch


def varied(
    shift: tuple[int, int] = (0, 0),
    gain: float = 1.0,
    bias: float = 0.0,
    mirror: tuple[bool, bool] = (False, False),
    turn: bool = False,
) -> Variation:
    return Variation(
        torch.tensor([shift]),
        torch.tensor([[gain]]),
        torch.tensor([[bias]]),
        torch.tensor([mirror]),
        torch.tensor([turn]),
    )


def test_a_shift_is_the_shifted_image_in_overview_and_patches() -> None:
    image = torch.rand(1, 3, 80, 60)
    moved = torch.zeros_like(image)
    moved[..., 20:, :-10] = image[..., :-20, 10:]  # 2 overview pixels down, 1 left
    augmented = AugmentedBatch(as_batch(image), varied((2, -1)), (8, 6))
    inner = (..., slice(3, -1), slice(1, -2))  # where the filter does not reach over a border
    torch.testing.assert_close(
        augmented.overviews((8, 6))[inner], as_batch(moved).overviews((8, 6))[inner]
    )
    corners = torch.tensor([[[0, 0], [25, 30], [70, 50]]])
    torch.testing.assert_close(
        augmented.read_patches(corners, (20, 20)), as_batch(moved).read_patches(corners, (20, 20))
    )


def test_colours_change_alike_in_overview_and_patches() -> None:
    image = torch.full((1, 1, 40, 40), 100, dtype=torch.uint8)
    augmented = AugmentedBatch(as_batch(image), varied(gain=1.2, bias=-0.1), (8, 8))
    expected = 1.2 * 100 / 255 - 0.1
    torch.testing.assert_close(augmented.overviews((8, 8)), torch.full((1, 1, 8, 8), expected))
    patch = augmented.read_patches(torch.tensor([[[5, 5]]]), (4, 4))
    torch.testing.assert_close(patch, torch.full((1, 1, 1, 4, 4), expected))


def test_each_image_has_its_own_variation_from_the_generator() -> None:
    draws = [
        Variation.draw(50, (100, 200), torch.Generator().manual_seed(3), shift=0.1) for _ in "ab"
    ]
    assert torch.equal(draws[0].shift, draws[1].shift)
    assert (draws[0].shift.abs().amax(0) <= torch.tensor([10, 20])).all()
    assert draws[0].shift.unique(dim=0).shape[0] > 25
    assert ((draws[0].gain - 1).abs() <= 0.2).all()
    assert (draws[0].bias.abs() <= 0.1).all()


@pytest.mark.parametrize("mirror", [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize("turn", [False, True])
def test_mirrored_and_turned_images_are_so_in_overview_and_patches(
    mirror: tuple[bool, bool], turn: bool
) -> None:
    image = torch.rand(1, 3, 60, 60)
    other = image.mT if turn else image
    other = other.flip(
        [axis for axis, is_mirrored in zip((2, 3), mirror, strict=True) if is_mirrored]
    )
    moved = torch.zeros_like(other)
    moved[..., 20:, :-10] = other[..., :-20, 10:]
    variation = varied((2, -1), mirror=mirror, turn=turn)
    augmented = AugmentedBatch(as_batch(image), variation, (6, 6), turns=True)
    inner = (..., slice(3, -1), slice(1, -2))
    torch.testing.assert_close(
        augmented.overviews((6, 6))[inner], as_batch(moved).overviews((6, 6))[inner]
    )
    corners = torch.tensor([[[0, 0], [25, 30], [40, 40], [-5, 7]]])
    torch.testing.assert_close(
        augmented.read_patches(corners, (20, 20)), as_batch(moved).read_patches(corners, (20, 20))
    )


class Hinted(TensorBatch):
    """An image of which it is known where its bright rectangle is."""

    @property
    def hints(self) -> Tensor:
        return torch.tensor([[[10.0, 25.0, 14.0, 32.0], [torch.nan] * 4]])


@pytest.mark.parametrize("mirror", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("turn", [False, True])
def test_hints_go_where_their_pixels_go(mirror: tuple[bool, bool], turn: bool) -> None:
    image = torch.zeros(1, 1, 60, 60)
    image[..., 10:14, 25:32] = 1
    variation = varied((2, -1), mirror=mirror, turn=turn)
    augmented = AugmentedBatch(Hinted(image), variation, (6, 6), turns=True)
    hints = augmented.hints
    assert hints is not None
    assert hints[0, 1].isnan().all()
    y0, x0, y1, x1 = (int(value) for value in hints[0, 0])
    everything = augmented.read_patches(torch.zeros(1, 1, 2, dtype=torch.int64), (60, 60))[0, 0, 0]
    expected = torch.zeros(60, 60)
    expected[y0:y1, x0:x1] = 1
    assert (y1 - y0) * (x1 - x0) == 28
    assert torch.equal(everything, expected)


def test_images_of_many_sizes_are_mirrored_each_by_its_own() -> None:
    images = [torch.rand(1, 40, 30), torch.rand(1, 20, 50)]
    variation = Variation(
        torch.zeros(2, 2, dtype=torch.int64),
        torch.ones(2, 1),
        torch.zeros(2, 1),
        torch.tensor([[True, True]] * 2),
        torch.tensor([False] * 2),
    )
    augmented = AugmentedBatch(as_batch(images), variation, (8, 6))
    patches = augmented.read_patches(torch.tensor([[[3, 4]]] * 2), (9, 8))
    for patch, image in zip(patches, images, strict=True):
        torch.testing.assert_close(patch[0], image.flip(1, 2)[:, 3:12, 4:12])


def test_only_square_images_are_turned() -> None:
    with pytest.raises(InputError, match="only square images can be turned, but one is 40x30"):
        AugmentedBatch(as_batch(torch.rand(1, 1, 40, 30)), varied(turn=True), (8, 8), turns=True)


def test_a_tint_changes_the_channels_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    variation = Variation.draw(30, (10, 10), generator, tint=0.1)
    apart = variation.gain - variation.gain.mean(-1, keepdim=True)
    assert variation.gain.shape == (30, 3)
    assert 0 < apart.abs().max() <= 0.2
