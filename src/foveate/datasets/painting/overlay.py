"""Small pictures with soft edges that lie over large ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foveate.types import Float, Int64, UInt8

Box = tuple[float, float, float, float]
"""(y0, x0, y1, x1) at level 0."""


@dataclass(frozen=True)
class Laid:
    """A small picture, and where it lies.

    Attributes:
        pixels: red, green, blue and how much of them covers what is below.
        yx_level0: its top-left corner.
    """

    pixels: NDArray[np.uint8]
    yx_level0: tuple[int, int]


class Overlay:
    """What lies over each of many images, in the order in which it is laid down.

    Args:
        laid: for each image what lies over it, wholly inside.
        boxes: for each image (y0, x0, y1, x1) around what of it decides.
    """

    def __init__(self, laid: list[list[Laid]], boxes: list[list[Box]]) -> None:
        flat = [np.zeros((1, 4), np.uint8)]
        # Where its pixels start, height, width and corner: nothing is of no height.
        rows = np.zeros((len(laid), max(map(len, laid)), 5), np.int64)
        start = 1
        for image, pictures in enumerate(laid):
            for place, picture in enumerate(pictures):
                height, width = picture.pixels.shape[:2]
                rows[image, place] = (start, height, width, *picture.yx_level0)
                flat.append(picture.pixels.reshape(-1, 4))
                start += height * width
        self.window = (int(rows[..., 1].max(initial=0)), int(rows[..., 2].max(initial=0)))
        decisive = np.full((len(boxes), max(1, *map(len, boxes)), 4), np.nan, np.float32)
        for image, around in enumerate(boxes):
            decisive[image, : len(around)] = np.reshape(around, (-1, 4))
        tensors = np.concatenate(flat), rows, decisive
        self._on_device = {torch.device("cpu"): tuple(map(torch.from_numpy, tensors))}

    def lay(
        self, images: UInt8[Tensor, "b 3 H W"], index: Int64[Tensor, " b"]
    ) -> UInt8[Tensor, "b 3 H W"]:
        """Lay over images what belongs there, in place.

        Args:
            images: the images.
            index: which they are, on the same device.
        """
        if images.device.type == "cpu":
            self._lay_one_by_one(images, index)
        else:
            self._lay_windows(images, index)
        return images

    def _lay_one_by_one(self, images: Tensor, index: Tensor) -> None:
        """Only what is there, which is little."""
        pixels, table, _ = self._tensors(images.device)
        for image, rows in zip(images, table[index].tolist(), strict=True):
            for start, height, width, top, left in rows:
                if height == 0:
                    continue
                picture = pixels[start : start + height * width].view(height, width, 4)
                colours, cover = picture.permute(2, 0, 1).int().split((3, 1))
                below = image[:, top : top + height, left : left + width]
                below.copy_(_mix(below.int(), colours, cover))

    def _lay_windows(self, images: Tensor, index: Tensor) -> None:
        """In as many launches for any images, without a look at what is where."""
        pixels, table, _ = self._tensors(images.device)
        (rows, columns), (height, width) = self.window, images.shape[2:]
        flat = images.view(len(images), 3, height * width)
        y = torch.arange(rows, device=images.device)[:, None]
        x = torch.arange(columns, device=images.device)
        for place in range(table.shape[1]):
            start, h, w, top, left = table[index, place, :, None, None].unbind(1)
            # All windows are of one size and inside their images; a picture lies anywhere in its.
            window_y, window_x = top.clamp(max=height - rows), left.clamp(max=width - columns)
            down, right = y + window_y - top, x + window_x - left
            inside = (down >= 0) & (down < h) & (right >= 0) & (right < w)
            picture = pixels[torch.where(inside, start + down * w + right, 0).flatten(1)]
            colours, cover = picture.mT.int().split((3, 1), dim=1)
            where = ((y + window_y) * width + x + window_x).flatten(1)[:, None].expand(-1, 3, -1)
            mixed = _mix(flat.gather(2, where).int(), colours, cover)
            flat.scatter_(2, where, mixed.to(torch.uint8))

    def boxes_of(self, index: Int64[Tensor, " b"]) -> Float[Tensor, "b m 4"]:
        """The boxes of images, and NaN where there are no more of them."""
        return self._tensors(index.device)[2][index]

    def _tensors(self, device: torch.device) -> tuple[Tensor, ...]:
        if device not in self._on_device:
            tensors = self._on_device[torch.device("cpu")]
            self._on_device[device] = tuple(tensor.to(device) for tensor in tensors)
        return self._on_device[device]

    def __getstate__(self) -> dict[str, object]:
        # Copies on a device do not travel to other processes.
        cpu = torch.device("cpu")
        return self.__dict__ | {"_on_device": {cpu: self._on_device[cpu]}}


def _mix(below: Tensor, colours: Tensor, cover: Tensor) -> Tensor:
    return (below * (255 - cover) + colours * cover + 127) // 255
