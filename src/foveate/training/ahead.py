"""The data path of training: coming batches are made ready while the current one is trained on.

When step t begins,

    batch t + s + 1  begins to have its overviews read and moved,
    batch t + s      is looked at with the weights of now; patches it asks for begin to be read,
    batch t          is taken: its overviews and patches are there, or waited for,

and then step t computes. So patches are chosen by attention that is s steps old, three unless asked
otherwise, and the weights of the draw are corrected for it (see `carry_over`). Chance is that of
the step which uses a batch, and nothing is read across an epoch: a run that stops and goes on is
the run that never stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor

from foveate.datasets import Batch
from foveate.images import AheadBatch, Choice, ImageBatch, Pending, TensorBatch
from foveate.training.settings import STEPS_AHEAD
from foveate.types import Int64, Size


@dataclass(frozen=True)
class Ready:
    """A batch that can be trained on.

    Attributes:
        images: as they will be seen, on the device.
        labels: the class of each.
    """

    images: ImageBatch
    labels: Int64[Tensor, " b"]


@dataclass(frozen=True)
class _Coming:
    """A batch that is being made ready."""

    batch: Batch
    images: AheadBatch | Pending
    labels: Int64[Tensor, " b"]


class ReadAhead:
    """Makes batches ready, those to come in the background.

    Images in files are read ahead if there is a way to look at them first; one tensor of whole
    images is copied ahead to a GPU. All others are where they should be, and are only moved.

    Args:
        overview_size: height and width of the overviews that will be asked for.
        patch_size: height and width of the patches.
        vary: images as they will be seen in a step, on the host or wherever they are.
        look: decides where to look in a step's images; None reads no file ahead.
        steps: how many steps before theirs patches are read.
    """

    def __init__(
        self,
        overview_size: Size,
        patch_size: Size,
        vary: Callable[[ImageBatch, int], ImageBatch],
        look: Callable[[AheadBatch, int], Choice] | None = None,
        steps: int = STEPS_AHEAD,
    ) -> None:
        self.overview_size = overview_size
        self.patch_size = patch_size
        self.vary = vary
        self.look = look
        self.steps = steps
        self._coming: dict[int, _Coming] = {}

    def forget(self) -> None:
        """Start anew, as at the start of an epoch."""
        self._coming = {}

    def settle(self) -> None:
        """Wait until nothing happens in the background."""
        for coming in self._coming.values():
            coming.images.settle()

    def take(self, batch: Batch, step: int, device: torch.device) -> Ready:
        """The batch of a step, as it was made ready, or at once if it was not.

        Waits for what is still being read of it; so what follows should have begun.
        """
        coming = self._coming.pop(step, None)
        if coming is None or coming.batch is not batch:
            images = self.vary(batch.images, step).to(device, non_blocking=True)
            return Ready(images, batch.labels.to(device, non_blocking=True))
        if isinstance(coming.images, AheadBatch):
            return Ready(coming.images.seen(), coming.labels)
        images = self.vary(TensorBatch(coming.images.get()), step)
        return Ready(images.to(device, non_blocking=True), coming.labels)

    def begin(self, following: Sequence[Batch], step: int, device: torch.device) -> None:
        """Make ready what follows.

        Args:
            following: the batches to come, in order.
            step: that of the first of them.
            device: where they will be trained on.
        """
        for number, batch in enumerate(following, start=step):
            known = self._coming.get(number)
            if known is None or known.batch is not batch:
                coming = self._start(batch, number, device, is_next=number == step)
                if coming is not None:
                    self._coming[number] = coming
        # After the overviews of all: the next look must not wait for the patches of this one.
        for number in range(step, step + self.steps):
            if number in self._coming:
                self._choose(self._coming[number].images, number)

    def _choose(self, images: AheadBatch | Pending, step: int) -> None:
        """Decide where to look, and begin to read there, unless that has been done."""
        if isinstance(images, AheadBatch) and not images.is_chosen and self.look is not None:
            images.begin_patches(self.look(images, step), self.patch_size)

    def _start(
        self, batch: Batch, step: int, device: torch.device, is_next: bool
    ) -> _Coming | None:
        images: AheadBatch | Pending
        if batch.images.in_files:
            if self.look is None or device.type not in ("cpu", "cuda"):
                return None
            images = AheadBatch(self.vary(batch.images, step), device, self.overview_size)
        elif _is_whole(batch.images) and device.type == "cuda" and is_next:
            images = _copied(batch.images.pixels, device)
        else:
            return None
        return _Coming(batch, images, batch.labels.to(device, non_blocking=True))


def _is_whole(images: ImageBatch) -> TypeGuard[TensorBatch]:
    """Whether images must be copied as they are: without overviews, all of them is needed."""
    return isinstance(images, TensorBatch) and images.known is None


def _copied(tensor: Tensor, device: torch.device) -> Pending:
    """A tensor that is copied in the background; to a GPU, from memory that it can read."""

    def copy() -> Tensor:
        pins = device.type == "cuda" and tensor.device.type == "cpu"
        return (tensor.pin_memory() if pins else tensor).to(device, non_blocking=True)

    return Pending(copy, device, waits=False)
