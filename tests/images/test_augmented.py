from __future__ import annotations

import torch

from foveate.images import AugmentedBatch, Variation, as_batch


def varied(shift: list[int], gain: float = 1.0, bias: float = 0.0) -> Variation:
    return Variation(torch.tensor([shift]), torch.tensor([gain]), torch.tensor([bias]))


def test_a_shift_is_the_shifted_image_in_overview_and_patches() -> None:
    image = torch.rand(1, 3, 80, 60)
    moved = torch.zeros_like(image)
    moved[..., 20:, :-10] = image[..., :-20, 10:]  # 2 overview pixels down, 1 left
    augmented = AugmentedBatch(as_batch(image), varied([2, -1]), (8, 6))
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
    augmented = AugmentedBatch(as_batch(image), varied([0, 0], 1.2, -0.1), (8, 8))
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
