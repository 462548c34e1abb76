from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from foveate import Draw, Prediction
from foveate.errors import InputError
from foveate.images import as_batch
from foveate.reports import draw_attention, draw_curves
from reports.planted import planted_model, planted_prediction


def prediction(n: int = 3) -> Prediction:
    log_attention = torch.full((2, 5, 6), -20.0)
    log_attention[:, 2, 3] = 0.0
    return Prediction(
        logits=torch.zeros(2, 2),
        log_attention=log_attention.flatten(1).log_softmax(-1).view(2, 5, 6),
        draw=Draw(torch.full((2, n), 15), torch.full((2, n), 1 / n)),
        yx_level0=torch.tensor([[[40, 60]] * n] * 2),
        patches=torch.full((2, n, 3, 16, 16), 99, dtype=torch.uint8),
    )


def pixels_of(path: Path) -> torch.Tensor:
    with Image.open(path) as picture:
        return torch.from_numpy(np.array(picture.convert("RGB")).astype(int)).view(-1, 3)


def coloured_share(path: Path, colour: tuple[int, int, int]) -> float:
    """How much of a picture is nearly of a colour."""
    pixels = pixels_of(path)
    return ((pixels - torch.tensor(colour)).abs().amax(-1) < 30).float().mean().item()


@pytest.mark.parametrize("n", [1, 12, 30])
def test_patches_and_truth_are_outlined(tmp_path: Path, n: int) -> None:
    images = as_batch(torch.zeros(2, 3, 100, 120, dtype=torch.uint8))
    truth = torch.tensor([[40.0, 60.0, 56.0, 76.0]], dtype=torch.float64)
    draw_attention(images, prediction(n), 1, tmp_path / "a.png", "a title", truth)
    assert coloured_share(tmp_path / "a.png", (50, 205, 50)) > 1e-4  # the truth, in green
    draw_attention(images, prediction(n), 1, tmp_path / "b.png")
    assert coloured_share(tmp_path / "b.png", (50, 205, 50)) == 0
    assert coloured_share(tmp_path / "b.png", (0, 191, 255)) > 1e-4  # the patches, in blue


@pytest.mark.parametrize("channels", [1, 4])
def test_any_number_of_channels_is_shown(tmp_path: Path, channels: int) -> None:
    out = prediction()
    images = as_batch(torch.rand(2, channels, 100, 120))
    patches = torch.rand(2, 3, channels, 16, 16)
    shown = Prediction(out.logits, out.log_attention, out.draw, out.yx_level0, patches)
    draw_attention(images, shown, 0, tmp_path / "a.png")
    assert pixels_of(tmp_path / "a.png").unique().numel() > 100


def test_a_model_without_attention_has_no_such_picture(tmp_path: Path) -> None:
    images = as_batch(torch.rand(2, 3, 100, 120))
    with pytest.raises(InputError, match="cannot draw the attention of a model that has none"):
        draw_attention(images, Prediction(torch.zeros(2, 2)), 0, tmp_path / "a.png")


def panels_of(path: Path) -> list[np.ndarray]:
    """The parts of a picture that stand side by side on white, without the text above them."""
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    dark = (pixels[60:300] < 200).any((0, 2))
    starts = (np.diff(dark.astype(int), prepend=0) == 1).nonzero()[0]
    top = int((pixels[:60, starts[0]] == 255).all(-1).nonzero()[0].max()) + 1
    return [pixels[top:, start:] for start in starts]


@pytest.mark.parametrize(("row", "column"), [(20, 7), (2, 2), (31, 41)])
def test_the_target_is_outlined_and_hot_where_it_is(tmp_path: Path, row: int, column: int) -> None:
    images, out = planted_prediction(row, column)
    border = planted_model().border
    draw_attention(as_batch(images), out, 0, tmp_path / "a.png", border=border)
    plain, seen = panels_of(tmp_path / "a.png")[:2]
    scale_y, scale_x = 464 / 680, 600 / 880  # the size of the views
    y0, x0 = round(20 * row * scale_y), round(20 * column * scale_x)
    y1, x1 = round(20 * (row + 1) * scale_y), round(20 * (column + 1) * scale_x)

    inside = slice(y0 + 1, y1 - 1), slice(x0 + 1, x1 - 1)
    assert (plain[inside] > 240).all()
    assert (plain[y0 - 3, x0:x1] < 60).all()
    ring = [seen[y0 - 1, x0:x1], seen[y1, x0:x1], seen[y0:y1, x0 - 1], seen[y0:y1, x1]]
    for side in ring:
        assert (side == (0, 191, 255)).all()
    # Hot is brightest; beside it attention is next to nothing, and in the border there is none.
    assert (seen[inside].sum(-1) > 600).all()
    assert (seen[100:300, 300:500] < 60).all()


def test_patches_are_shown_in_full_resolution(tmp_path: Path) -> None:
    images, out = planted_prediction(20, 7)
    assert out.patches is not None
    pixels = torch.randint(0, 200, out.patches.shape, dtype=torch.uint8)
    shown = Prediction(out.logits, out.log_attention, out.draw, out.yx_level0, pixels)
    draw_attention(as_batch(images), shown, 0, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        whole = np.asarray(picture.convert("RGB"))
    enlarged = pixels[0, 0].permute(1, 2, 0).numpy().repeat(4, 0).repeat(4, 1)
    tiles = np.lib.stride_tricks.sliding_window_view(whole[:, 1240:], (80, 80), axis=(0, 1))
    found = (tiles == enlarged.transpose(2, 0, 1)).all((2, 3, 4))
    assert found.sum() == 1


def test_a_picture_may_be_a_jpeg(tmp_path: Path) -> None:
    images = as_batch(torch.zeros(2, 3, 100, 120, dtype=torch.uint8))
    draw_attention(images, prediction(), 0, tmp_path / "a.jpg", "x" * 500)
    with Image.open(tmp_path / "a.jpg") as picture:
        assert picture.format == "JPEG"


@pytest.mark.parametrize("size", [(3, 5000), (5000, 3), (7, 9)])
def test_images_of_odd_shapes_are_drawn(tmp_path: Path, size: tuple[int, int]) -> None:
    images = as_batch(torch.zeros(2, 3, *size, dtype=torch.uint8))
    draw_attention(images, prediction(), 0, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_curves_leave_out_what_was_not_measured(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "seconds": str(10 * epoch),
            "train/loss": str(1 / epoch),
            "train/error": "0.5",
            "train/entropy": "",
            "validation/loss": "0.7",
            "validation/error": "0.4",
        }
        for epoch in (1, 2, 3)
    ]
    draw_curves(rows, tmp_path / "curves.png")
    assert pixels_of(tmp_path / "curves.png").unique().numel() > 100
