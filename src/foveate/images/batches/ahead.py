"""Batches of files that are read while something else computes, and what is there of them then."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.images.batches.augmented import AugmentedBatch
from foveate.images.batches.batch import ImageBatch
from foveate.images.batches.pending import Pending
from foveate.images.memory.form import Form
from foveate.images.memory.packed import Packed
from foveate.images.memory.stack import Stack
from foveate.images.memory.variation import Lens, Variation
from foveate.types import Draw, Extents, Float, Glance, Int64, Num, Size


@dataclass(frozen=True)
class Choice:
    """Where to look in a batch; copied as one, because it is small and has many parts.

    Attributes:
        packed: all of it.
    """

    packed: Packed

    @staticmethod
    def of(glance: Glance, corners: Int64[Tensor, "b n 2"]) -> Choice:
        """Put it together.

        Args:
            glance: where to look in the images as they are seen.
            corners: where that is in the images as they are: `SeenBatch.locate`.
        """
        draw = glance.draw
        parts = [glance.log_attention, draw.index, draw.weight, glance.yx_level0, corners]
        return Choice(Packed.of(parts))

    @property
    def glance(self) -> Glance:
        """Where to look in the images as they are seen."""
        log_attention, index, weight, yx_level0, _ = self.packed.tensors
        return Glance(log_attention, Draw(index, weight), yx_level0)

    @property
    def corners(self) -> Int64[Tensor, "b n 2"]:
        """Where that is in the images as they are."""
        return self.packed.tensors[-1]

    def holding(self, data: Tensor) -> Choice:
        """Another, for as many images."""
        return Choice(self.packed.holding(data))


class AheadBatch:
    """Images in files whose overviews and patches are read in the background.

    Overviews begin to be read at once, unless the device has them already, and patches when it is
    known where: `begin_patches`. They are read as they are in the files; how they are varied is
    left to whoever sees them, so that it can be part of what is recorded and replayed.

    Args:
        batch: the images, in files, perhaps varied.
        device: where overviews and patches go.
        overview_size: height and width of the overviews.

    Example:
        >>> from foveate.images import as_batch
        >>> images = as_batch([torch.zeros(3, 50, 40), torch.ones(3, 60, 30)])
        >>> ahead = AheadBatch(images, torch.device("cpu"), overview_size=(8, 6))
        >>> seen = ahead.overviewed()  # enough to decide where to look
        >>> corners = torch.zeros(2, 4, 2, dtype=torch.int64)
        >>> draw = Draw(corners[..., 0], torch.full((2, 4), 0.25))
        >>> glance = Glance(torch.zeros(2, 1, 1), draw, corners)
        >>> ahead.begin_patches(Choice.of(glance, seen.locate(corners, (5, 5))), (5, 5))
        >>> ahead.seen().patches.shape  # ... and something else meanwhile
        torch.Size([2, 4, 3, 5, 5])
    """

    def __init__(self, batch: ImageBatch, device: torch.device, overview_size: Size) -> None:
        self.sizes = batch.sizes
        self.device = device
        self.overview_size = overview_size
        self._files, self._lens = batch, None
        if isinstance(batch, AugmentedBatch):
            self._files, self._lens = batch.batch, batch.lens
        small = [torch.tensor(self.sizes, dtype=torch.int64)]
        resident = self._files.resident_overviews(overview_size, device)
        self._known: Tensor | Pending
        if resident is None:
            self._known = Pending(self._read_overviews, device, waits=False)
        else:
            self._known, which = resident
            self._moved = self._files.to(device)
            small.append(which)
        if self._lens is not None:
            small += self._lens.variation.tensors
        self._small = Packed.of(small).to(device, non_blocking=True)
        self._patches: tuple[Choice, Pending] | None = None

    @property
    def is_chosen(self) -> bool:
        """Whether it is known where to look, and patches have begun to be read."""
        return self._patches is not None

    def overviewed(self) -> SeenBatch:
        """The images as far as it takes to decide where to look; waits for their overviews."""
        resident = isinstance(self._known, Tensor)
        known = self._known if isinstance(self._known, Tensor) else self._known.get()
        return SeenBatch(known, self._small, self.sizes, resident, self._lens)

    def begin_patches(self, choice: Choice, size: Size) -> None:
        """Read patches in the background.

        Args:
            choice: where to look.
            size: height and width of the patches.
        """

        def read() -> Tensor:
            self._settle_overviews()  # until then, nothing is moved
            return self._moved.read_patches(choice.corners, size)

        self._patches = (choice, Pending(read, self.device))

    def seen(self) -> SeenBatch:
        """The images as far as a step needs them; waits for their patches.

        Raises:
            InputError: if none are being read.
        """
        if self._patches is None:
            raise InputError("no patches are being read: begin_patches says which")
        choice, patches = self._patches
        return self.overviewed().at(choice, patches.get())

    def settle(self) -> None:
        """Wait until nothing is read in the background any more."""
        self._settle_overviews()
        if self._patches is not None:
            self._patches[-1].settle()

    def _settle_overviews(self) -> None:
        if isinstance(self._known, Pending):
            self._known.settle()

    def _read_overviews(self) -> Tensor:
        batch = self._files.pin_memory() if self.device.type == "cuda" else self._files
        self._moved = batch.to(self.device, non_blocking=True)
        return self._moved.overviews(self.overview_size)


class SeenBatch(ImageBatch):
    """Images of which no more is there than was read: overviews, and patches where somebody looks.

    It is read from tensors, whatever they were read from, so that a look or a step can be replayed.

    Args:
        known: the overviews, of the images as they are.
        small: the height and width of each image; which of the overviews is its own; how it is
            varied.
        sizes: the height and width of each image, as the host knows them.
        resident: whether there are the overviews of other images, too.
        lens: how images are varied, if they are: all but the variation itself, which is in `small`.
        choice: where to look, once that is decided.
        patches: what is there, in the images as they are.
    """

    def __init__(
        self,
        known: Num[Tensor, "N c h w"],
        small: Packed,
        sizes: list[Size],
        resident: bool = False,
        lens: Lens | None = None,
        choice: Choice | None = None,
        patches: Num[Tensor, "b n c p q"] | None = None,
    ) -> None:
        self.known = known
        self.small = small
        self.choice = choice
        self.patches = patches
        self._sizes = sizes
        self._resident = resident
        self._lens = lens

    def at(self, choice: Choice, patches: Num[Tensor, "b n c p q"]) -> SeenBatch:
        """The same images, with patches where somebody chose to look."""
        return SeenBatch(
            self.known, self.small, self._sizes, self._resident, self._lens, choice, patches
        )

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return self._sizes

    @property
    def extents(self) -> Extents:
        """See `ImageBatch.extents`."""
        return self._extents

    @functools.cached_property
    def glance(self) -> Glance | None:
        """Where to look, if that is decided."""
        return None if self.choice is None else self.choice.glance

    @functools.cached_property
    def lens(self) -> Lens | None:
        """How the images are varied, if they are."""
        if self._lens is None:
            return None
        variation = Variation(*self._parts[2 if self._resident else 1 :])
        return Lens(variation, self._lens.overview_size, self._lens.turns)

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`; of one size only."""
        overviews = self._stack(size).whole()
        return overviews if self.lens is None else self.lens.view(overviews)

    def overview_inputs(self, size: Size, form: Form) -> Float[Tensor, "b c h w"]:
        """See `ImageBatch.overview_inputs`."""
        return self._stack(size).whole_inputs(form, self.lens)

    def locate(self, yx_level0: Int64[Tensor, "b n 2"], size: Size) -> Int64[Tensor, "b n 2"]:
        """Where patches of the images, as they are seen, lie in the images as they are."""
        return yx_level0 if self.lens is None else self.lens.locate(yx_level0, self._extents, size)

    def read_patches(
        self, yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_patches`; those of the glance only."""
        patches, glance = self.patches, self.glance
        chosen = glance is not None and yx_level0 is glance.yx_level0
        if patches is None or not chosen or size != tuple(patches.shape[-2:]):
            raise InputError("only the patches that were chosen are kept: pass the glance, too")
        return patches if self.lens is None else self.lens.alter(patches)

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`; overviews that stay where they are, are none."""
        known = () if self._resident else (self.known,)
        if self.choice is None or self.patches is None:
            return (self.small.data, *known)
        return (self.small.data, *known, self.choice.packed.data, self.patches)

    def with_sources(self, sources: tuple[Tensor, ...]) -> SeenBatch:
        """See `ImageBatch.with_sources`."""
        data, *others = sources
        known = self.known if self._resident else others.pop(0)
        small = self.small.holding(data)
        seen = SeenBatch(known, small, self._sizes, self._resident, self._lens)
        if self.choice is None:
            return seen
        chosen, patches = others
        return seen.at(self.choice.holding(chosen), patches)

    @property
    def kind(self) -> tuple[object, ...]:
        """See `ImageBatch.kind`: how large the images are is one of the sources."""
        lens = () if self._lens is None else (self._lens.overview_size, self._lens.turns)
        choice = () if self.choice is None else self.choice.packed.layout
        kept = self.known.data_ptr() if self._resident else None
        return (type(self), kept, self.small.layout, choice, *lens)

    @property
    def reads_host(self) -> bool:
        """See `ImageBatch.reads_host`."""
        return False

    @functools.cached_property
    def _parts(self) -> list[Tensor]:
        return self.small.tensors

    @property
    def _extents(self) -> Int64[Tensor, "b 2"]:
        return self._parts[0]

    def _stack(self, size: Size) -> Stack:
        kept = tuple(self.known.shape[-2:])
        if size != kept:
            raise InputError(f"only overviews of {kept} are kept, but {size} was asked for")
        return Stack(self.known, self._parts[1] if self._resident else None)
