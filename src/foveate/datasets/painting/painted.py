"""Photographs of roads with painted signs: more to learn from, with nothing but labels.

A photograph that shows no limit becomes one of any limit when a sign is painted into it. What is
kept of it is the sign alone; the photograph is copied and the sign laid over it when somebody
looks, on the device that asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from foveate.datasets.dataset import ImageDataset
from foveate.datasets.files import Progress
from foveate.datasets.painting.overlay import Box, Laid, Overlay
from foveate.datasets.painting.scene import Scene, plan_scene
from foveate.datasets.painting.signs import Style
from foveate.errors import InputError
from foveate.images import ImageBatch, Stack, StackedBatch, TensorBatch
from foveate.types import Float, Float64, Int64, Size, UInt8

NONE = "none"
"""The class of photographs without a limit."""


class PaintedDataset(ImageDataset):
    """Photographs, and after them copies of those of the class `none` with painted signs.

    The painted classes come in turn. Those of `none` show other signs; so do some of the rest. All
    signs are painted when an image is first asked for, a hundred in a second; they take some ten
    kilobytes each.

    Args:
        photos: the photographs, in colour and of one size; the classes beside `none` are limits.
        count: how many painted images there are.
        style: what signs look like.
        seed: decides every one of them.

    Raises:
        InputError: where no photograph is of the class `none`, or a count below 0.
    """

    def __init__(self, photos: ImageDataset, count: int, style: Style, seed: int = 0) -> None:
        if count < 0:
            raise InputError(f"the number of painted images must be 0 or more, but is {count}")
        bare = [i for i in range(len(photos)) if photos.classes[int(photos.labels[i])] == NONE]
        if not bare:
            raise InputError(
                "signs are painted into photographs of the class none, but there is none of it; "
                "leave --painted away"
            )
        self.photos = photos
        self.style = style
        self.seed = seed
        self.classes = photos.classes
        self.channels = photos.channels
        painted = torch.arange(count) % len(photos.classes)
        self.labels = torch.cat([photos.labels, painted])
        chosen = np.random.default_rng(seed).choice(bare, count)
        self.photo_of = [*range(len(photos)), *map(int, chosen)]
        self._signs: Overlay | None = None

    def images(self, index: Sequence[int]) -> PaintedBatch:
        """See `ImageDataset.images`.

        Raises:
            InputError: for photographs of different sizes.
        """
        photos = self._photos([self.photo_of[i] for i in index])
        return PaintedBatch(photos, self._overlay, torch.tensor(list(index), dtype=torch.int64))

    def truth(self, index: int) -> Float64[Tensor, "m 4"]:
        """See `ImageDataset.truth`; of a painted image, the painted signs of its limit."""
        if index < len(self.photos):
            return self.photos.truth(index)
        return torch.tensor(self._scene(index).truth, dtype=torch.float64).reshape(-1, 4)

    def name(self, index: int) -> str:
        """The photograph's name, and which painting on it this is."""
        name = self.photos.name(self.photo_of[index])
        return name if index < len(self.photos) else f"{name}, painted {index - len(self.photos)}"

    def paint(self, progress: Progress | None = None) -> None:
        """Paint all signs now, if they are not yet.

        Args:
            progress: is told how far it is.
        """
        if self._signs is not None:
            return
        # Of the photographs nothing is known but their labels.
        laid: list[list[Laid]] = [[] for _ in range(len(self.photos))]
        boxes: list[list[Box]] = [[] for _ in range(len(self.photos))]
        count = len(self) - len(self.photos)
        # One after the other: there is so much Python in it that threads wait for each other.
        for number in range(count):
            signs, truth = self._paint(len(self.photos) + number)
            laid.append(signs)
            boxes.append(truth)
            if progress is not None:
                progress("painting signs", number + 1, count)
        self._signs = Overlay(laid, boxes)

    @property
    def _overlay(self) -> Overlay:
        self.paint()
        assert self._signs is not None
        return self._signs

    def _paint(self, index: int) -> tuple[list[Laid], list[Box]]:
        scene = self._scene(index)
        photo = self._photos([self.photo_of[index]]).stack.image(0).cpu().numpy()
        return scene.paint(photo), scene.truth

    def _scene(self, index: int) -> Scene:
        size = self._photos([self.photo_of[index]]).stack.size
        label = self.classes[int(self.labels[index])]
        limits = tuple(name for name in self.classes if name != NONE)
        chance = np.random.default_rng((self.seed, index))
        return plan_scene(None if label == NONE else label, limits, size, self.style, chance)

    def _photos(self, index: list[int]) -> StackedBatch:
        photos = self.photos.images(index)
        if not isinstance(photos, StackedBatch):
            raise InputError(
                "signs are painted into photographs of one size, but these are of "
                f"{', '.join(f'{h}x{w}' for h, w in sorted(set(photos.sizes)))}; "
                "leave --painted away"
            )
        return photos


class PaintedBatch(StackedBatch):
    """Photographs with signs that are laid over them at the first look at their pixels.

    Args:
        photos: the photographs.
        overlay: the signs.
        index: whose signs each photograph gets, where it is looked at.
    """

    def __init__(self, photos: ImageBatch, overlay: Overlay, index: Int64[Tensor, " b"]) -> None:
        assert isinstance(photos, StackedBatch)
        self.photos = photos
        self.overlay = overlay
        self.index = index

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return self.photos.sizes

    @cached_property
    def stack(self) -> Stack:
        """See `StackedBatch.stack`: the images themselves, in full."""
        return Stack(self._compose())

    def overview_stack(self, size: Size) -> Stack:
        """See `StackedBatch.overview_stack`."""
        return TensorBatch(self.stack.pixels).overview_stack(size)

    @property
    def hints(self) -> Float[Tensor, "b m 4"]:
        """See `ImageBatch.hints`: the painted signs of the limit; nothing of the photographs."""
        return self.overlay.boxes_of(self.index)

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`: those of the photographs, and which signs."""
        return (*self.photos.sources, self.index)

    def with_sources(self, sources: tuple[Tensor, ...]) -> PaintedBatch:
        """See `ImageBatch.with_sources`."""
        return PaintedBatch(self.photos.with_sources(sources[:-1]), self.overlay, sources[-1])

    @property
    def kind(self) -> tuple[object, ...]:
        """See `ImageBatch.kind`: with the same signs."""
        return (*super().kind, *self.photos.kind, self.overlay)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> PaintedBatch:
        """See `ImageBatch.to`."""
        photos = self.photos.to(device, non_blocking=non_blocking)
        return PaintedBatch(photos, self.overlay, self.index.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> PaintedBatch:
        """See `ImageBatch.pin_memory`."""
        return PaintedBatch(self.photos.pin_memory(), self.overlay, self.index)

    def _compose(self) -> UInt8[Tensor, "b 3 H W"]:
        stack = self.photos.stack
        photos = stack.whole().to(self.index.device)
        return self.overlay.lay(photos.clone() if stack.index is None else photos, self.index)
