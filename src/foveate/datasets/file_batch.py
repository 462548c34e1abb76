"""Some images of a user's data, in files of which one may fail at any time."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from foveate.datasets.given_overviews import GivenOverviews
from foveate.errors import DataError
from foveate.images import ImageBatch, ListBatch
from foveate.types import Bool, Int64, Num, Size

_log = logging.getLogger(__name__)


class FileBatch(ImageBatch):
    """Images of any sizes whose overviews may be known, and of which a failing one is black.

    A file can open and have a good overview, and still end in the middle of a tile that is first
    read hours later. That shows only here, in the middle of a step, when the other images of the
    batch are read already and their number can not change any more. So the image is black for this
    one step, the failure is logged and marked in `failed`, which all processes share, and whoever
    gathers the next batch leaves the image out.

    Args:
        batch: the images.
        index: which images of their data set they are.
        failed: for each image of the data set whether it has failed; None lets a failure end the
            run.
        given: the overviews of all images of the data set, if they are known.
        overviews: these images' overviews, if they are there already.
    """

    def __init__(
        self,
        batch: ListBatch,
        index: list[int],
        failed: Bool[Tensor, " N"] | None = None,
        given: GivenOverviews | None = None,
        overviews: Num[Tensor, "b c h w"] | None = None,
    ) -> None:
        self.batch = batch
        self.index = index
        self.failed = failed
        self.given = given
        self._overviews = overviews

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return self.batch.sizes

    @property
    def in_files(self) -> bool:
        """See `ImageBatch.in_files`."""
        return self.batch.in_files

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`."""
        if self._overviews is not None and self._overviews.shape[2:] == size:
            return self._overviews
        if self.given is not None and self.given.size == size:
            kept = self.given.on(torch.device("cpu"))
            return self.batch.moved(_rows(kept, self.index, self.batch.pins))
        blank = (1, self.batch.images[0].channels, *size)
        return self._read(lambda some, _: some.overviews(size), blank)

    def resident_overviews(
        self, size: Size, device: torch.device
    ) -> tuple[Num[Tensor, "N c h w"], Int64[Tensor, " b"]] | None:
        """See `ImageBatch.resident_overviews`."""
        if self.given is None or self.given.size != size or not self.given.fit(device):
            return None
        return self.given.on(device), torch.tensor(self.index, dtype=torch.int64)

    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_patches`."""
        blank = (1, yx_level0.shape[1], self.batch.images[0].channels, *size)
        return self._read(lambda some, rows: some.read_patches(yx_level0[rows], size), blank)

    def prefetch(self, overview_size: Size) -> FileBatch:
        """See `ImageBatch.prefetch`."""
        known = self.overviews(overview_size)
        return FileBatch(self.batch, self.index, self.failed, overviews=known)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> FileBatch:
        """See `ImageBatch.to`."""
        known = self._overviews
        known = None if known is None else known.to(device, non_blocking=non_blocking)
        moved = self.batch.to(device, non_blocking)
        return FileBatch(moved, self.index, self.failed, self.given, known)

    def pin_memory(self) -> FileBatch:
        """See `ImageBatch.pin_memory`."""
        known = None if self._overviews is None else self._overviews.pin_memory()
        pinned = self.batch.pin_memory()
        return FileBatch(pinned, self.index, self.failed, self.given, known)

    def _read(
        self, read: Callable[[ListBatch, slice], Tensor], blank: tuple[int, ...]
    ) -> Num[Tensor, "..."]:
        """Read all images together, or one by one where one of them fails."""
        if self.failed is None:
            return read(self.batch, slice(None))
        if not self.failed[self.index].any():
            try:
                return read(self.batch, slice(None))
            except DataError:
                pass  # whose it is shows below
        return torch.cat([self._read_one(row, read, blank) for row in range(len(self.index))])

    def _read_one(
        self, row: int, read: Callable[[ListBatch, slice], Tensor], blank: tuple[int, ...]
    ) -> Num[Tensor, "..."]:
        assert self.failed is not None
        black = torch.zeros(blank, dtype=torch.uint8, device=self.batch.device)
        if self.failed[self.index[row]]:
            return black
        try:
            alone = ListBatch([self.batch.images[row]], self.batch.device)
            return read(alone, slice(row, row + 1))
        except DataError as error:
            self.failed[self.index[row]] = True
            _log.warning("%s (it is left out of the rest of the run)", error)
            return black


def _rows(table: Num[Tensor, "N *_"], index: list[int], pinned: bool) -> Num[Tensor, "b *_"]:
    """Some rows of a table, copied by this thread alone.

    Torch would share the copying out among as many threads as there are cores. Where others read
    files on these cores, the slowest of the threads takes ten times as long as all the copying.
    """
    shape = (len(index), *table.shape[1:])
    rows = torch.empty(shape, dtype=table.dtype, pin_memory=pinned)
    # Any mode but `raise` copies straight to where it is wanted.
    np.take(table.numpy(), index, axis=0, out=rows.numpy(), mode="wrap")
    return rows
