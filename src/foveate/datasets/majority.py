"""The task of Megapixel MNIST: which digit appears most often among a few small ones?

Each image holds five digits that do not overlap each other, three of the target class and two of
others, and patches of noise of the same size, which may cover anything. The rules are those of the
paper's data set (Katharopoulos & Fleuret 2019), with its sizes and counts as options.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from foveate.datasets.placed import PlacedDataset, Placements
from foveate.errors import InputError
from foveate.types import Size

Bytes = np.ndarray
Integers = np.ndarray


@dataclass(frozen=True)
class MajorityTask:
    """How images are made.

    Attributes:
        size: height and width of an image.
        noise: patches of noise in each.
        same: digits of the target class in each.
        others: digits of other classes in each.
    """

    size: Size = (1500, 1500)
    noise: int = 50
    same: int = 3
    others: int = 2

    def make(self, digits: Bytes, labels: Integers, count: int, seed: int) -> PlacedDataset:
        """Make a data set; the seed fixes every image.

        Args:
            digits: (N, s, s) small pictures of digits.
            labels: (N,) the digit that each shows.
            count: how many images.
            seed: where all chance comes from.
        """
        side = digits.shape[-1]
        if min(self.size) < 4 * side or count < 1:
            raise InputError(
                f"cannot make {count} images of {self.size} from digits of {side}x{side}; "
                f"make at least one, and each at least {4 * side} pixels high and wide"
            )
        chance = np.random.default_rng(seed)
        target = chance.integers(0, 10, count)
        chosen = self._choose_digits(labels, target, chance)
        places = _scatter_apart((count, self.same + self.others), self.size, side, chance)
        patterns = make_noise(side, chance)
        noise = len(digits) + chance.integers(0, len(patterns), (count, self.noise))
        inner = np.array(self.size) - 2 * side
        noise_places = side + (chance.random((count, self.noise, 2)) * inner).astype(np.int64)
        return PlacedDataset(
            glyphs=torch.from_numpy(np.concatenate([digits, patterns])),
            placements=Placements(
                torch.from_numpy(np.concatenate([chosen, noise], axis=1)),
                torch.from_numpy(np.concatenate([places, noise_places], axis=1)),
            ),
            labels=torch.from_numpy(target),
            classes=tuple(str(digit) for digit in range(10)),
            size=self.size,
            decisive=self.same + self.others,
        )

    def _choose_digits(
        self, labels: Integers, target: Integers, chance: np.random.Generator
    ) -> Integers:
        """Which digits each image shows, those of its target class first."""
        chosen = np.empty((len(target), self.same + self.others), dtype=np.int64)
        for digit in range(10):
            rows = (target == digit).nonzero()[0]
            same, others = (labels == digit).nonzero()[0], (labels != digit).nonzero()[0]
            chosen[rows, : self.same] = chance.choice(same, (len(rows), self.same))
            chosen[rows, self.same :] = chance.choice(others, (len(rows), self.others))
        return chosen


def _scatter_apart(
    shape: tuple[int, int], size: Size, side: int, chance: np.random.Generator
) -> Integers:
    """Corners in each image whose squares do not overlap, uniform among all such."""
    count, each = shape
    places = np.empty((count, each, 2), dtype=np.int64)
    todo = np.arange(count)
    while len(todo):
        tries = chance.integers(0, np.array(size) - side + 1, (len(todo), each, 2))
        near = (np.abs(tries[:, :, None] - tries[:, None]) < side).all(-1)
        near[:, np.arange(each), np.arange(each)] = False
        apart = ~near.any((1, 2))
        places[todo[apart]] = tries[apart]
        todo = todo[~apart]
    return places


def make_noise(side: int, chance: np.random.Generator, patterns: int = 50) -> Bytes:
    """Patterns of two straight strokes through a square, of uneven brightness."""
    slope = np.tan(chance.random(patterns) * np.pi / 2.5)
    end = side - 0.51
    strokes = np.zeros((patterns, side, side), dtype=bool)
    for pattern in range(patterns):
        x = np.linspace(0, min(end, end / slope[pattern]), 2 * side)
        y = slope[pattern] * x
        strokes[pattern, np.round(x).astype(int), np.round(y).astype(int)] = True
    second = strokes[chance.permutation(patterns)]
    flipped = chance.random(patterns) < 0.55
    second[flipped] = second[flipped, :, ::-1]
    brightness = 0.8 + 0.2 * chance.random((patterns, side, side))
    return np.asarray(255 * ((strokes | second) * brightness), dtype=np.uint8)
