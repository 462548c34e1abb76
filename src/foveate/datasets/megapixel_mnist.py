"""Megapixel MNIST, exactly the paper's: 1500x1500, 5 digits, 50 patches of noise, 5000/1000 images.

Training images are made from MNIST's training digits but the last 5000, validation images from
those, test images from its test digits: no digit is seen in two parts. Reads the four original idx
files, compressed or not, from a folder.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foveate.datasets.dataset import Splits
from foveate.datasets.majority import Bytes, Integers, MajorityTask
from foveate.errors import DataError

PAPER = MajorityTask(size=(1500, 1500), noise=50, same=3, others=2)
HELD_BACK = 5000
"""Training digits that only validation images show."""


@dataclass(frozen=True)
class MegapixelMNIST:
    """How many images of what kind.

    Attributes:
        root: the folder with the idx files.
        task: sizes and counts within an image.
        train: training images.
        validation: validation images.
        test: test images.
        seed: fixes every image.
    """

    root: Path
    task: MajorityTask = PAPER
    train: int = 5000
    validation: int = 1000
    test: int = 1000
    seed: int = 0

    def splits(self) -> Splits:
        """Make the images."""
        digits, labels = load_mnist(self.root, "train")
        seen = max(len(digits) - HELD_BACK, len(digits) // 2)
        return Splits(
            self.task.make(digits[:seen], labels[:seen], self.train, 3 * self.seed),
            self.task.make(digits[seen:], labels[seen:], self.validation, 3 * self.seed + 1),
            self.task.make(*load_mnist(self.root, "t10k"), self.test, 3 * self.seed + 2),
        )


def load_mnist(root: Path, part: str) -> tuple[Bytes, Integers]:
    """The digits of one part of MNIST, "train" or "t10k", and what each shows.

    Raises:
        DataError: where a file is missing or damaged.
    """
    digits = read_idx(root, f"{part}-images-idx3-ubyte")
    labels = read_idx(root, f"{part}-labels-idx1-ubyte")
    if digits.ndim != 3 or labels.shape != digits.shape[:1]:
        raise DataError(
            f"the MNIST files of part {part!r} in {root} do not belong together: "
            f"{digits.shape} digits and {labels.shape} labels; get all four files anew"
        )
    return digits, labels.astype(np.int64)


def read_idx(root: Path, name: str) -> np.ndarray:
    """An array in MNIST's idx format: two zeros, the type (8 is bytes), axes, sizes, values."""
    plain, packed = root / name, root / f"{name}.gz"
    path = plain if plain.is_file() else packed
    if not path.is_file():
        raise DataError(
            f"MNIST's file {name} (or {name}.gz) is not in {root}; put the four original idx "
            "files of MNIST there, or name their folder with --root"
        )
    try:
        content = gzip.decompress(path.read_bytes()) if path == packed else path.read_bytes()
        zeros, kind, axes = struct.unpack(">HBB", content[:4])
        shape = struct.unpack(f">{axes}I", content[4 : 4 + 4 * axes])
    except (OSError, EOFError, struct.error, zlib.error) as error:
        raise DataError(f"{path} is damaged ({error}); get it anew") from error
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * axes)
    if (zeros, kind) != (0, 8) or len(values) != math.prod(shape):
        raise DataError(f"{path} is damaged: not an idx file of bytes, or cut off; get it anew")
    return values.reshape(shape)
