"""Data sets whose images are files: each is decoded as a whole, when somebody first asks for it.

Made for images that fit into memory one batch at a time, up to some tens of megapixels.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image as PillowImage
from torch import Tensor
from torch.utils.data import get_worker_info

from foveate.datasets.dataset import ImageDataset
from foveate.errors import DataError, InputError
from foveate.images import (
    ImageBatch,
    ImagePool,
    ListBatch,
    PooledBatch,
    TensorBatch,
    TensorImage,
)
from foveate.types import Float64, UInt8

_COLOURS = {1: "L", 3: "RGB"}
_DAMAGE = (  # what Pillow's decoders raise on bytes that they do not understand
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    struct.error,
    PillowImage.DecompressionBombError,
)


def decode_image(path: str | PathLike[str], channels: int = 3) -> UInt8[Tensor, "c H W"]:
    """Decode a file in any format that Pillow reads.

    Args:
        path: the file.
        channels: 3 for colour or 1 for grey; files that have others are converted.

    Returns:
        The pixels as they are stored, whatever orientation their metadata asks for, since that is
        the frame in which boxes are marked.

    Raises:
        InputError: for other channels.
        DataError: for a file that is missing or damaged, or that has more than 8 bits per channel.
    """
    colours = _colours_of(channels)
    try:
        with PillowImage.open(path) as image:
            if image.mode[0] in "IF":
                raise DataError(
                    f"cannot decode {path}: its pixels are of mode {image.mode}, which does not "
                    "fit into 8 bits per channel; convert the file"
                )
            pixels = np.array(image.convert(colours))
    except FileNotFoundError:
        raise DataError(
            f"cannot decode {path}: there is no such file; restore it or leave it out"
        ) from None
    except _DAMAGE as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise DataError(
            f"cannot decode {path}: it is damaged or no image ({reason}); "
            "replace it or leave it out"
        ) from error
    return (
        torch.from_numpy(pixels.reshape(*pixels.shape[:2], channels)).permute(2, 0, 1).contiguous()
    )


def check_present(paths: Sequence[Path], source: str) -> None:
    """Raise unless every one of these files is there.

    Args:
        paths: the files.
        source: where a user gets them.

    Raises:
        DataError: that names the first missing file and counts them.
    """
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise DataError(
            f"cannot find {missing[0]} ({len(missing)} of {len(paths)} files are missing); "
            f"get the data set from {source}"
        )


class FileDataset(ImageDataset):
    """Labelled image files, decoded when they are asked for.

    Args:
        paths: the files.
        labels: the class of each.
        classes: the name of each class.
        boxes: the truth (y0, x0, y1, x1) of each image; none known if left out.
        channels: 3 for colour or 1 for grey; files that have others are converted.
        keep: whether decoded images stay in memory. Then all are decoded at the first look, and if
            they are of one size a GPU gets them once and for all. A loader's workers decode for
            themselves.

    Raises:
        InputError: for no images, labels, classes or boxes that do not fit them, or other channels.
    """

    def __init__(
        self,
        paths: Sequence[str | PathLike[str]],
        labels: Sequence[int],
        classes: Sequence[str],
        boxes: Sequence[Float64[Tensor, "_ 4"]] | None = None,
        channels: int = 3,
        keep: bool = False,
    ) -> None:
        truths = len(paths if boxes is None else boxes)
        if not len(paths) == len(labels) == truths > 0:
            raise InputError(
                "a data set needs an image or more, and a label and the boxes of each, but got "
                f"{len(paths)} images, {len(labels)} labels and boxes of {truths}"
            )
        if min(labels) < 0 or max(labels) >= len(classes):
            raise InputError(
                f"labels must count the {len(classes)} classes from 0, "
                f"but go from {min(labels)} to {max(labels)}"
            )
        _colours_of(channels)
        self.paths = [Path(path) for path in paths]
        self.labels = torch.tensor(list(labels), dtype=torch.int64)
        self.classes = tuple(classes)
        self.boxes = None if boxes is None else list(boxes)
        self.channels = channels
        self.keep = keep
        self._kept: list[Tensor] | ImagePool | None = None

    def images(self, index: Sequence[int]) -> ImageBatch:
        """See `ImageDataset.images`; one tensor where the images are of one size.

        Raises:
            DataError: for a file that is missing or damaged.
        """
        if not index:
            raise InputError("a batch needs at least one image, but the index is empty")
        kept = self._keep() if self.keep and get_worker_info() is None else None
        if isinstance(kept, ImagePool):
            where = torch.tensor(list(index), dtype=torch.int64)
            return PooledBatch(kept, where, where)
        pixels = [self._decode(i) if kept is None else kept[i] for i in index]
        if len({image.shape for image in pixels}) == 1:
            return TensorBatch(torch.stack(pixels))
        return ListBatch([TensorImage(image) for image in pixels])

    def truth(self, index: int) -> Float64[Tensor, "m 4"]:
        """See `ImageDataset.truth`."""
        return super().truth(index) if self.boxes is None else self.boxes[index]

    def name(self, index: int) -> str:
        """The file's name."""
        return self.paths[index].name

    def _decode(self, index: int) -> UInt8[Tensor, "c H W"]:
        return decode_image(self.paths[index], self.channels)

    def _keep(self) -> list[Tensor] | ImagePool:
        """All the images, decoded once, in one pool if they are of one size."""
        if self._kept is None:
            with ThreadPoolExecutor() as threads:  # decoders release the interpreter
                images = list(threads.map(self._decode, range(len(self))))
            alike = len({image.shape for image in images}) == 1
            self._kept = ImagePool(torch.stack(images)) if alike else images
        return self._kept

    def __getstate__(self) -> dict[str, Any]:
        # Spawned workers decode for themselves: sending every image costs one open file for each.
        return {**self.__dict__, "_kept": None}


def _colours_of(channels: int) -> str:
    """Pillow's name for images with so many channels."""
    if channels not in _COLOURS:
        raise InputError(f"images are decoded to 3 channels or 1, but {channels} were asked for")
    return _COLOURS[channels]
