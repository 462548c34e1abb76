from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from foveate import Draw, Prediction
from foveate.errors import InputError
from foveate.images import as_batch
from foveate.reports import draw_attention, draw_curves


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
        return torch.tensor(list(picture.convert("RGB").tobytes())).view(-1, 3)


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
    assert len(pixels_of(tmp_path / "a.png").unique(dim=0)) > 100


def test_a_model_without_attention_has_no_such_picture(tmp_path: Path) -> None:
    images = as_batch(torch.rand(2, 3, 100, 120))
    with pytest.raises(InputError, match="cannot draw the attention of a model that has none"):
        draw_attention(images, Prediction(torch.zeros(2, 2)), 0, tmp_path / "a.png")


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
    assert len(pixels_of(tmp_path / "curves.png").unique(dim=0)) > 100
