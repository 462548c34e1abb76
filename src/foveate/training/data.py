"""A data set's parts as loaders, whose order is a function of seed and epoch alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import lightning as L
import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import DataLoader, Sampler

from foveate.datasets import Batch, ImageDataset, Splits
from foveate.training.settings import STEPS_AHEAD


class Order(Sampler[list[int]]):
    """Batches of indices, shuffled anew each epoch or in their own order.

    Under several processes each takes its own slice of every combined batch, so that together they
    see what one process would. In training the last, incomplete combined batch is left out; in
    evaluation every image comes exactly once.

    Args:
        count: how many images there are.
        batch_size: images of one process in a step.
        seed: decides the order; None keeps the images' own.
        passes: how often an epoch goes through the images.
    """

    def __init__(self, count: int, batch_size: int, seed: int | None, passes: int = 1) -> None:
        self.passes = passes
        self.count = count
        self.batch_size = batch_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Called by Lightning before each epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        combined = self.batch_size * processes()
        if self.seed is None:
            return -(-self.count // combined)
        return self.passes * max(1, self.count // combined)

    def __iter__(self) -> Iterator[list[int]]:
        size = self.batch_size
        combined = size * processes()
        for number in range(self.passes):
            order = self._order(self.epoch * self.passes + number)
            for start in range(0, len(self) // self.passes * combined, combined):
                mine = order[start:][rank() * size : (rank() + 1) * size]
                if len(mine):
                    yield mine.tolist()

    def _order(self, number: int) -> Tensor:
        if self.seed is None:
            return torch.arange(self.count)
        generator = torch.Generator().manual_seed(1_000_003 * self.seed + number)
        return torch.randperm(self.count, generator=generator)

    @property
    def sampler(self) -> Order:
        """Where Lightning looks for `set_epoch`."""
        return self


def processes() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this is."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


@dataclass(frozen=True)
class Upcoming:
    """A batch and those after it, so that they can be made ready while it is trained on.

    Attributes:
        batch: what comes now.
        following: what comes next in the same epoch, in order; fewer at its end.
    """

    batch: Batch
    following: tuple[Batch, ...]

    def to(self, device: torch.device | str) -> Upcoming:
        """Itself: Lightning would move now what may have been moved a step ago (`ReadAhead`)."""
        return self


class LookaheadLoader(DataLoader[Batch]):
    """A loader that gives each batch together with those that follow it."""

    lookahead = 1
    """How many."""

    def __iter__(self) -> Iterator[Upcoming]:  # type: ignore[override]
        waiting: deque[Batch] = deque()
        for batch in super().__iter__():
            waiting.append(batch)
            if len(waiting) > self.lookahead:
                yield Upcoming(waiting.popleft(), tuple(waiting))
        while waiting:
            yield Upcoming(waiting.popleft(), tuple(waiting))


class ImageData(L.LightningDataModule):
    """Loaders over the parts of a data set.

    Args:
        splits: the parts.
        batch_size: images of one process in a step.
        seed: decides the order of training.
        workers: processes that read images; 0 reads in this one.
        passes: how often a training epoch goes through the images.
        steps_ahead: how many steps before theirs the patches of training images are read.
    """

    def __init__(
        self,
        splits: Splits,
        batch_size: int,
        seed: int = 0,
        workers: int = 0,
        passes: int = 1,
        steps_ahead: int = STEPS_AHEAD,
    ) -> None:
        super().__init__()
        self.steps_ahead = steps_ahead
        self.passes = passes
        self.splits = splits
        self.batch_size = batch_size
        self.seed = seed
        self.workers = workers

    def train_dataloader(self) -> LookaheadLoader:
        """Training images in a new order each epoch, as `Upcoming`."""
        order = Order(len(self.splits.train), self.batch_size, self.seed, self.passes)
        loader = LookaheadLoader(**self._options(self.splits.train, order))
        # One more, since the overviews of a batch must be there before its patches can be chosen.
        loader.lookahead = self.steps_ahead + 1
        return loader

    def val_dataloader(self) -> DataLoader[Batch]:
        """Validation images, each once."""
        return self._in_order(self.splits.validation)

    def test_dataloader(self) -> DataLoader[Batch]:
        """Test images, each once."""
        return self._in_order(self.splits.test)

    def _in_order(self, part: ImageDataset) -> DataLoader[Batch]:
        return DataLoader(**self._options(part, Order(len(part), self.batch_size, None)))

    def _options(self, part: ImageDataset, order: Order) -> dict[str, Any]:
        return {
            "dataset": range(len(part)),
            "batch_sampler": order,
            "collate_fn": part.gather,
            "num_workers": self.workers,
            "persistent_workers": self.workers > 0,
        }
