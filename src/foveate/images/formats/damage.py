"""One line for every file that can not be read, whatever its decoder raised."""

from __future__ import annotations

from foveate.errors import DataError
from foveate.types import Size

PIXEL_LIMIT = 2**29
"""Pixels that are decoded at once at most: half a gigapixel, 1.5 GB of colours."""


def damaged(name: str, error: BaseException, part: str = "") -> DataError:
    """The error for a file whose decoder failed.

    Args:
        name: the file.
        error: what the decoder raised.
        part: what of the file was read, if not all of it.
    """
    reason = " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
    return DataError(
        f"cannot read {f'{part} of ' if part else ''}{name}: it is damaged or no image that is "
        f"understood ({reason}); replace it or leave it out"
    )


def check_not_empty(name: str, size: Size) -> None:
    """Raise if an image has no pixels.

    Raises:
        DataError: that says so.
    """
    if min(size) < 1:
        raise DataError(
            f"cannot open {name}: it has {size[0]} x {size[1]} pixels; replace it or leave it out"
        )


def check_decodable(name: str, size: Size, part: str) -> None:
    """Raise if what must be decoded as a whole is too large for it.

    Args:
        name: the file.
        size: height and width of what must be decoded.
        part: what it is.

    Raises:
        DataError: for more than `PIXEL_LIMIT` pixels.
    """
    if size[0] * size[1] > PIXEL_LIMIT:
        raise DataError(
            f"cannot open {name}: {part} has {size[0]} x {size[1]} pixels that must be decoded at "
            f"once, and {PIXEL_LIMIT} are the limit; make a tiled pyramid of it with: "
            f"foveate convert {name} tiled.tif"
        )
