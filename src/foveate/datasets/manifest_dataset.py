"""A user's images as a data set, in memory or in their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from foveate.datasets.dataset import Batch, ImageDataset, Subset
from foveate.datasets.file_batch import FileBatch
from foveate.datasets.files import Kept
from foveate.errors import InputError
from foveate.images import Image, ImageBatch, ListBatch, PooledBatch, TensorImage
from foveate.types import Bool, Float64, Int64


class ManifestDataset(ImageDataset):
    """Labelled image files of any sizes.

    Images that are kept in memory are read from there; a loader's workers that were not forked read
    the files.

    Args:
        names: what to call each image.
        images: the images.
        labels: the class of each.
        classes: the name of each class.
        kept: what of the images is in memory.
        boxes: the truth (y0, x0, y1, x1) of some images.
        strict: whether a file that fails ends the run, rather than being left out.
    """

    def __init__(
        self,
        names: Sequence[str],
        images: Sequence[Image],
        labels: Int64[Tensor, " N"],
        classes: tuple[str, ...],
        kept: Kept,
        boxes: Mapping[int, Float64[Tensor, "_ 4"]] | None = None,
        strict: bool = False,
    ) -> None:
        self.names = list(names)
        self.files = list(images)
        self.labels = labels
        self.classes = classes
        self.channels = images[0].channels
        self.kept: Kept = kept
        self.boxes = dict(boxes or {})
        # Shared, so that what fails in one process is left out in all.
        failed = torch.zeros(len(self.files), dtype=torch.bool).share_memory_()
        self.failed: Bool[Tensor, " N"] | None = None if strict else failed

    def images(self, index: Sequence[int]) -> ImageBatch:
        """See `ImageDataset.images`.

        Raises:
            DataError: for a file that fails, where that ends the run.
        """
        if not index:
            raise InputError("a batch needs at least one image, but the index is empty")
        kept, rows = self.kept, list(index)
        where = torch.tensor(rows, dtype=torch.int64)
        in_worker = get_worker_info() is not None
        if kept.pool is not None and not in_worker:
            return PooledBatch(kept.pool, where, where)
        images = [self._image(i, in_worker) for i in rows]
        batch = FileBatch(ListBatch(images), rows, self.failed, kept.given)
        # An error in a worker would reach the user with its whole traceback; nor may the overviews
        # of all images travel.
        ahead = in_worker and (self.failed is not None or kept.given is not None)
        return batch.prefetch(kept.overview_size) if ahead else batch

    def truth(self, index: int) -> Float64[Tensor, "m 4"]:
        """See `ImageDataset.truth`."""
        return self.boxes[index] if index in self.boxes else super().truth(index)

    def name(self, index: int) -> str:
        """The path as it was written."""
        return self.names[index]

    def failures(self) -> list[str]:
        """The images that failed after they had been checked, by name."""
        if self.failed is None:
            return []
        return [self.names[i] for i in self.failed.nonzero()[:, 0].tolist()]

    def _image(self, index: int, travels: bool) -> Image:
        if self.kept.pool is not None:
            pixels = self.kept.pool.image(index)
        elif self.kept.pixels is not None:
            pixels = self.kept.pixels[index]
        else:
            return self.files[index]
        # A worker would give its own copy away, and hold on to an open file for each image.
        return TensorImage(pixels.clone() if travels else pixels)

    def __getstate__(self) -> dict[str, Any]:
        # Spawned workers read for themselves: what is in memory does not travel.
        return self.__dict__ | {"kept": Kept(None, None, None, self.kept.overview_size)}


class TrainingPart(Subset):
    """The images to learn from, less those that have failed.

    Evaluation is another matter: there each image is asked for once, and its answer has a place in
    a row of answers, so that one that failed stays and is black.
    """

    def __init__(self, whole: ManifestDataset, index: Sequence[int]) -> None:
        super().__init__(whole, index)
        self.failed = whole.failed

    def gather(self, index: Sequence[int]) -> Batch:
        """See `ImageDataset.gather`."""
        rows = list(index)
        if self.failed is not None and self.failed.any():
            rows = [i for i in rows if not self.failed[self.index[i]]] or rows
        return super().gather(rows)
