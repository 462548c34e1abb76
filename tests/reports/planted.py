"""A model whose attention is known: it looks where an image is bright. Nothing is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image as PillowImage
from torch import Tensor, nn

import foveate as fv
from foveate.models import ConvFeature
from foveate.training import Classifier, Settings

SIZE = (680, 880)
"""An overview pixel, a cell and a patch are 20 pixels high and wide."""
CLASSES = ("dark", "bright")


class BrightAttention(nn.Module):
    """Attends to brightness, and loses two overview pixels on each side."""

    margin = 2

    def forward(self, overview: Tensor) -> Tensor:
        return 40 * overview.mean(1)[:, 2:-2, 2:-2]


def planted_model(n_patches: int = 1) -> fv.AttentionSampling:
    return fv.AttentionSampling(
        BrightAttention(),
        ConvFeature(3, (4, 8), (3, 3), strides=(2, 2), pools=(1, 1)),
        nn.Linear(8, 2),
        patch_size=(20, 20),
        n_patches=n_patches,
        overview_size=(34, 44),
    ).eval()


def planted_classifier(n_patches: int = 1) -> Classifier:
    return Classifier(planted_model(n_patches), Settings(), CLASSES, channels=3)


def planted_pixels(row: int, column: int, size: tuple[int, int] = SIZE) -> np.ndarray:
    """Dark, but for one overview pixel."""
    pixels = np.full((*size, 3), 30, np.uint8)
    pixels[20 * row : 20 * row + 20, 20 * column : 20 * column + 20] = 255
    return pixels


def planted_file(path: Path, row: int, column: int, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    PillowImage.fromarray(planted_pixels(row, column)).save(path, **options)
    return path


def planted_prediction(row: int, column: int, n_patches: int = 1) -> tuple[Tensor, fv.Prediction]:
    """The image as a batch of one, and what the model makes of it."""
    images = torch.from_numpy(planted_pixels(row, column)).permute(2, 0, 1)[None]
    with torch.no_grad():
        return images, planted_model(n_patches)(images)
