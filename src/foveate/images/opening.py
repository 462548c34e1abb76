"""One way in: whatever holds an image becomes an `Image`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.images.files.file_image import FileImage
from foveate.images.files.forks import UNDISTURBED
from foveate.images.files.tiled_file import TiledFile
from foveate.images.formats.backends import choose_backend
from foveate.images.image import Image
from foveate.images.memory.tensor_image import TensorImage
from foveate.images.sources.location import locate

_TYPES = (torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64)

Openable = Image | Tensor | np.ndarray | str | PathLike[str]
"""What `open_image` takes."""


def open_image(
    source: Openable,
    channels: int | None = None,
    *,
    storage: Mapping[str, Any] | None = None,
) -> Image:
    """Open an image.

    A file is read in parts: a patch touches the tiles it needs, and an overview the coarsest level
    that has as many pixels. Its content says what it is, not its name: slides of any vendor that
    OpenSlide knows, TIFF of any kind, JPEG, and what Pillow opens. JPEG, PNG and the like must be
    decoded as a whole for a patch; `convert_image` makes tiled files of large ones.

    Files become uint8 by one rule. Grey is 1 channel; all else (palettes, CMYK) is 3. Samples of
    more or fewer than 8 bits are round(255 v / maximum), where the maximum is what the file states
    (WhiteLevel, SMaxSampleValue, MaxSampleValue, significant bits) or else the largest that its
    samples can hold; floats are refused. What is transparent shows white. Colour profiles and
    orientation tags are left alone: pixels are as they are stored. Of several pages the first is
    taken.

    Args:
        source: a path; an address such as "s3://bucket/slide.tif" or "https://..." (with
            foveate[remote]; of TIFF only the needed ranges are fetched); a (c, H, W) tensor or a
            (H, W, c) or (H, W) array, of uint8 or floats. An `Image` comes back as it is.
        channels: 3 for colour or 1 for grey, for files: those that have others are converted, by
            repetition or as (299 r + 587 g + 114 b) / 1000. None keeps what the file has.
        storage: what fsspec is told of an address, such as {"anon": True} for a public bucket.

    Returns:
        An image that copies nothing of its source until it is read.

    Raises:
        InputError: for another shape or type, or channels that do not fit.
        DataError: for a file that is missing, damaged or no image.
        MissingExtraError: for a file that needs a package which is not installed.

    Example:
        >>> open_image(np.zeros((600, 800, 3), np.uint8)).size
        (600, 800)
    """
    if isinstance(source, str | PathLike):
        return _open_file(source, channels, storage)
    image = _view(source)
    if channels not in (None, image.channels):
        raise InputError(
            f"an image in memory is not converted, but it has {image.channels} channels and "
            f"{channels} were asked for; convert it first"
        )
    return image


def _open_file(
    source: str | PathLike[str], channels: int | None, storage: Mapping[str, Any] | None
) -> FileImage:
    if channels not in (None, 1, 3):
        raise InputError(
            f"files are opened with 3 channels or 1, but {channels} were asked for; "
            "leave channels out to keep what the file has"
        )
    location = locate(source, storage)
    with UNDISTURBED:
        backend, reader = choose_backend(location)
        file = TiledFile(location, backend, reader.layout, channels or reader.layout.channels)
        file.keep_open(reader)
    return FileImage(file)


def _view(source: Image | Tensor | np.ndarray) -> Image:
    if isinstance(source, Image):
        return source
    if isinstance(source, Tensor):
        return TensorImage(check_pixels(source, "c", "H", "W"))
    if isinstance(source, np.ndarray):
        pixels = tensor_of(source)
        pixels = pixels[..., None] if pixels.ndim == 2 else pixels
        return TensorImage(check_pixels(pixels, "H", "W", "c").permute(2, 0, 1))
    raise InputError(
        f"cannot open a {type(source).__name__} as an image; "
        "pass a path, a (c, H, W) tensor or a (H, W, c) array"
    )


def tensor_of(array: np.ndarray) -> Tensor:
    """The tensor that shares an array's memory."""
    if any(stride < 0 for stride in array.strides):
        raise InputError(
            "cannot view an array with a flipped axis; pass np.ascontiguousarray(image)"
        )
    with warnings.catch_warnings():
        # Torch warns that a read-only array could be written to; nothing here writes to images.
        warnings.filterwarnings("ignore", message=".*not writable.*")
        try:
            return torch.from_numpy(array)
        except TypeError:
            raise InputError(_wrong_type(array.dtype)) from None


def check_pixels(pixels: Tensor, *axes: str) -> Tensor:
    """Raise unless pixels have these axes, some of each, and a type that is understood."""
    if pixels.ndim != len(axes) or 0 in pixels.shape:
        raise InputError(
            f"an image must be ({', '.join(axes)}) and not empty, but its shape is "
            f"{tuple(pixels.shape)}"
        )
    if pixels.dtype not in _TYPES:
        raise InputError(_wrong_type(pixels.dtype))
    return pixels


def _wrong_type(dtype: object) -> str:
    return f"an image must be uint8 (0 to 255) or float (0 to 1), but is {dtype}; convert it first"
