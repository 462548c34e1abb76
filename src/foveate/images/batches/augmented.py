"""Varied images: moved, mirrored, turned, of other colours, and none of them touched."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.images.batches.batch import ImageBatch
from foveate.images.batches.stacked import StackedBatch
from foveate.images.memory.form import Form
from foveate.images.memory.variation import Lens, Variation, check_square
from foveate.types import Extents, Float, Int64, Num, Size


class AugmentedBatch(ImageBatch):
    """A batch seen through a variation.

    Args:
        batch: the images.
        variation: how each is changed.
        overview_size: the overview in whose pixels shifts are counted; shifts of whole overview
            pixels are exact in overview and patches alike.
        turns: whether the variation turns any image; says so without a look at it.

    Raises:
        InputError: for images that are turned but not square.
    """

    def __init__(
        self,
        batch: ImageBatch,
        variation: Variation,
        overview_size: Size,
        turns: bool = False,
    ) -> None:
        self.batch = batch
        self.lens = Lens(variation, overview_size, turns)
        if turns:
            check_square("images", *batch.sizes)

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return self.batch.sizes

    @property
    def extents(self) -> Extents:
        """See `ImageBatch.extents`."""
        return self.batch.extents

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`; floats from 0 to 1."""
        return self.lens.view(self.batch.overviews(size))

    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_patches`; floats from 0 to 1."""
        corners = self.lens.locate(yx_level0, self.extents, size)
        return self.lens.alter(self.batch.read_patches(corners, size))

    def read_inputs(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size, form: Form
    ) -> tuple[Num[Tensor, "b n c p q"], Float[Tensor, "m c p q"]]:
        """See `ImageBatch.read_inputs`."""
        if isinstance(self.batch, StackedBatch):
            return self.batch.stack.inputs(yx_level0, size, form, self.lens)
        return super().read_inputs(yx_level0, size, form)

    def overview_inputs(self, size: Size, form: Form) -> Float[Tensor, "b c h w"]:
        """See `ImageBatch.overview_inputs`."""
        if isinstance(self.batch, StackedBatch):
            return self.batch.overview_stack(size).whole_inputs(form, self.lens)
        return super().overview_inputs(size, form)

    def prefetch(self, overview_size: Size) -> AugmentedBatch:
        """See `ImageBatch.prefetch`: the overviews that are varied."""
        return self._seen(self.batch.prefetch(overview_size), self.lens.variation)

    @property
    def hints(self) -> Float[Tensor, "b m 4"] | None:
        """See `ImageBatch.hints`: where they lie in the varied images."""
        boxes = self.batch.hints
        return None if boxes is None else self.lens.carry(boxes, self.extents)

    @property
    def in_files(self) -> bool:
        """See `ImageBatch.in_files`."""
        return self.batch.in_files

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`: those of the images, and the variation."""
        inner = self.batch.sources
        return (*inner, *self.lens.variation.tensors) if inner else ()

    def with_sources(self, sources: tuple[Tensor, ...]) -> AugmentedBatch:
        """See `ImageBatch.with_sources`."""
        inner = len(self.batch.sources)
        return self._seen(self.batch.with_sources(sources[:inner]), Variation(*sources[inner:]))

    @property
    def kind(self) -> tuple[object, ...]:
        """See `ImageBatch.kind`."""
        return (type(self), *self.batch.kind, self.lens.overview_size, self.lens.turns)

    @property
    def reads_host(self) -> bool:
        """See `ImageBatch.reads_host`."""
        return self.batch.reads_host

    def to(self, device: torch.device | str, non_blocking: bool = False) -> AugmentedBatch:
        """See `ImageBatch.to`."""
        moved = self.batch.to(device, non_blocking=non_blocking)
        return self._seen(moved, self.lens.variation.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> AugmentedBatch:
        """See `ImageBatch.pin_memory`."""
        return self._seen(self.batch.pin_memory(), self.lens.variation)

    def _seen(self, batch: ImageBatch, variation: Variation) -> AugmentedBatch:
        return AugmentedBatch(batch, variation, self.lens.overview_size, self.lens.turns)
