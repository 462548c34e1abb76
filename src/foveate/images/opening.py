"""One way in: whatever holds an image becomes an `Image`."""

from __future__ import annotations

import warnings
from os import PathLike

import numpy as np
import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.images.image import Image
from foveate.images.tensor_image import TensorImage

_TYPES = (torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64)

Openable = Image | Tensor | np.ndarray | str | PathLike[str]
"""What `open_image` takes."""


def open_image(source: Openable) -> Image:
    """Open an image.

    Args:
        source: a (c, H, W) tensor or a (H, W, c) or (H, W) array, of uint8 or floats. An `Image`
            comes back as it is.

    Returns:
        An image that views its source and copies nothing.

    Raises:
        InputError: for another shape or type.

    Example:
        >>> open_image(np.zeros((600, 800, 3), np.uint8)).size
        (600, 800)
    """
    if isinstance(source, Image):
        return source
    if isinstance(source, Tensor):
        return TensorImage(check_pixels(source, "c", "H", "W"))
    if isinstance(source, np.ndarray):
        pixels = tensor_of(source)
        pixels = pixels[..., None] if pixels.ndim == 2 else pixels
        return TensorImage(check_pixels(pixels, "H", "W", "c").permute(2, 0, 1))
    if isinstance(source, str | PathLike):
        raise InputError(
            f"cannot open {str(source)!r}: this version of foveate works on images in memory; "
            "load the file and pass a (c, H, W) tensor or a (H, W, c) array"
        )
    raise InputError(
        f"cannot open a {type(source).__name__} as an image; "
        "pass a (c, H, W) tensor or a (H, W, c) array"
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
