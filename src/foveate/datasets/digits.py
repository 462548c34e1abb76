"""Megapixel digits: the task of Megapixel MNIST on scikit-learn's handwritten digits, no download.

1,797 digits of 8x8 are scaled to 28x28 and laid into 1000x1000 images with 20 patches of noise.
Training, validation and test images are made from different digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from foveate.datasets.dataset import Splits
from foveate.datasets.majority import Bytes, Integers, MajorityTask
from foveate.datasets.splits import stratified_split

TASK = MajorityTask(size=(1000, 1000), noise=20)


@dataclass(frozen=True)
class Digits:
    """How many images of what kind.

    Attributes:
        task: sizes and counts within an image.
        train: training images.
        validation: validation images.
        test: test images.
        seed: fixes every image.
    """

    task: MajorityTask = TASK
    train: int = 1500
    validation: int = 200
    test: int = 500
    seed: int = 0

    def splits(self) -> Splits:
        """Make the images."""
        digits, labels = load_digits()
        rest, test = stratified_split(torch.from_numpy(labels), 0.25)
        keep, validation = stratified_split(torch.from_numpy(labels[rest]), 0.15)
        rest_array = np.array(rest)
        parts = [rest_array[keep], rest_array[validation], np.array(test)]
        counts = [self.train, self.validation, self.test]
        made = [
            self.task.make(digits[part], labels[part], count, 3 * self.seed + number)
            for number, (part, count) in enumerate(zip(parts, counts, strict=True))
        ]
        return Splits(*made)


def load_digits(side: int = 28) -> tuple[Bytes, Integers]:
    """Scikit-learn's digits as (N, side, side) bytes, and what each shows."""
    from sklearn.datasets import load_digits as load

    bundle = load()
    small = torch.from_numpy(bundle.images)[:, None] / 16
    large = F.interpolate(small, (side, side), mode="bicubic", align_corners=False)
    pixels = (255 * large[:, 0].clamp(0, 1)).round().to(torch.uint8)
    return pixels.numpy(), bundle.target.astype(np.int64)
