"""Images in one tensor, and how rectangles of them become a network's inputs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.images.memory.device_reads import keep_until_read, kernels_for
from foveate.images.memory.form import Form
from foveate.images.memory.gather import gather_patches
from foveate.images.memory.variation import Lens, Variation, check_square
from foveate.types import Extents, Float, Int64, Num, Size

_WRITTEN = (torch.float32, torch.bfloat16, torch.float16)
"""What the kernel writes."""


@dataclass(frozen=True)
class Stack:
    """Some of the images in a tensor.

    Attributes:
        pixels: the tensor; it may be in pinned host memory.
        index: which of them, where they are looked at; all of them in turn by default.
        address: where each lies in memory, if images that are like these are to be read instead.
        extent: (height, width) of each image, where the index is. Those that are smaller than the
            tensor lie in its first rows and columns, and the rest is 0. None if none is smaller.
    """

    pixels: Num[Tensor, "N c H W"]
    index: Int64[Tensor, " b"] | None = None
    address: Int64[Tensor, " b"] | None = None
    extent: Int64[Tensor, "N 2"] | None = None

    @property
    def size(self) -> Size:
        """(height, width) of every image, or what there is room for."""
        height, width = self.pixels.shape[2:]
        return height, width

    def whole(self) -> Num[Tensor, "b c H W"]:
        """The images themselves."""
        return self.pixels if self.index is None else self.pixels[self._index()]

    def image(self, number: int) -> Num[Tensor, "c H W"]:
        """One of them, not copied."""
        return self.pixels[number if self.index is None else self.index[number]]

    def read(self, yx_level0: Int64[Tensor, "b n 2"], size: Size) -> Num[Tensor, "b n c p q"]:
        """Rectangles of them, 0 outside."""
        return gather_patches(self.pixels, yx_level0.to(self.pixels.device), size, self._index())

    def inputs(
        self,
        yx_level0: Int64[Tensor, "b n 2"],
        size: Size,
        form: Form,
        lens: Lens | None = None,
    ) -> tuple[Num[Tensor, "b n c p q"], Float[Tensor, "m c p q"]]:
        """Rectangles, and the same as a network takes them, both where the network is.

        Those that are seen through a lens are floats from 0 to 1.
        """
        raw, inputs = self._inputs(yx_level0, size, form, lens)
        return (raw if raw.numel() else inputs.unflatten(0, yx_level0.shape[:2])), inputs

    def whole_inputs(self, form: Form, lens: Lens | None = None) -> Float[Tensor, "b c H W"]:
        """The images as a network takes them."""
        return self._inputs(None, self.size, form, lens)[1]

    def _inputs(
        self, yx: Tensor | None, size: Size, form: Form, lens: Lens | None
    ) -> tuple[Num[Tensor, "..."], Float[Tensor, "m c p q"]]:
        if lens is not None and lens.turns:
            check_square("patches and overviews", size)
        if self.pixels.dtype != torch.uint8 or form.dtype not in _WRITTEN:
            return self._reference(yx, size, form, lens)
        raw, inputs = _gather_inputs(
            self.pixels,
            self.index,
            self.address,
            self.extent,
            yx,
            list(size),
            form.device,
            form.dtype,
            form.channels_last,
            [] if lens is None else list(lens.variation.tensors),
            [1, 1] if lens is None else list(lens.overview_size),
            lens is not None and lens.turns,
        )
        return raw, inputs

    def _reference(
        self, yx: Tensor | None, size: Size, form: Form, lens: Lens | None
    ) -> tuple[Num[Tensor, "..."], Float[Tensor, "m c p q"]]:
        """What the kernel does, in PyTorch."""
        if lens is None and yx is None:
            return torch.empty(0, dtype=torch.uint8, device=form.device), form.cast(self.whole())
        corners = self._corners(form.device) if yx is None else yx
        if lens is None:
            patches = self.read(corners, size).to(form.device, non_blocking=True)
            return patches, form.cast(patches.flatten(0, 1))
        corners = lens.locate(corners, self._extents(form.device), size)
        patches = lens.alter(self.read(corners, size).to(form.device, non_blocking=True))
        return torch.empty(0, dtype=torch.uint8, device=form.device), form.cast(
            patches.flatten(0, 1)
        )

    def _extents(self, device: torch.device) -> Extents:
        if self.extent is None:
            return [self.size]
        extents = self.extent if self.index is None else self.extent[self.index]
        return extents.to(device)

    def _index(self) -> Tensor | None:
        return None if self.index is None else self.index.to(self.pixels.device)

    def _corners(self, device: torch.device) -> Int64[Tensor, "b 1 2"]:
        count = len(self.pixels) if self.index is None else len(self.index)
        return torch.zeros(count, 1, 2, dtype=torch.int64, device=device)


@torch.library.custom_op(
    "foveate::gather_inputs",
    mutates_args=(),
    schema=(
        "(Tensor images, Tensor? index, Tensor? address, Tensor? extent, Tensor? yx, int[2] size, "
        "Device device, ScalarType dtype, bool channels_last, Tensor[] variation, "
        "int[2] overview_size, bool turns) -> (Tensor, Tensor)"
    ),
)
def _gather_inputs(
    images: Tensor,
    index: Tensor | None,
    address: Tensor | None,
    extent: Tensor | None,
    yx: Tensor | None,
    size: list[int],
    device: torch.device,
    dtype: torch.dtype,
    channels_last: bool,
    variation: list[Tensor],
    overview_size: list[int],
    turns: bool,
) -> tuple[Tensor, Tensor]:
    form = Form(device, dtype, channels_last)
    unit, sides = (overview_size[0], overview_size[1]), (size[0], size[1])
    lens = Lens(Variation(*variation), unit, turns) if variation else None
    if not kernels_for(images, device):
        return Stack(images, index, extent=extent)._reference(yx, sides, form, lens)
    from foveate.images.memory.gather_kernel import gather_inputs

    corners = None if yx is None else yx.to(device)
    written = gather_inputs(images, corners, sides, form, lens, index, address, extent)
    if images.device.type != device.type:
        keep_until_read(images)
    return written


@_gather_inputs.register_fake
def _(
    images: Tensor,
    index: Tensor | None,
    address: Tensor | None,
    extent: Tensor | None,
    yx: Tensor | None,
    size: list[int],
    device: torch.device,
    dtype: torch.dtype,
    channels_last: bool,
    variation: list[Tensor],
    overview_size: list[int],
    turns: bool,
) -> tuple[Tensor, Tensor]:
    form = Form(device, dtype, channels_last)
    count = next((given for given in (index, yx) if given is not None), images).shape[0]
    n = 1 if yx is None else yx.shape[1]
    shape = (images.shape[1], *size)
    out = torch.empty(
        (count * n, *shape), dtype=dtype, device=device, memory_format=form.memory_format
    )
    raw = (0,) if yx is None or variation else (count, n, *shape)
    return torch.empty(raw, dtype=torch.uint8, device=device), out
