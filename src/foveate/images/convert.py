"""Any large flat image as a tiled pyramid, in memory that does not grow with it, by libvips."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from foveate.errors import DataError, InputError
from foveate.extras import require
from foveate.images.formats.damage import damaged
from foveate.images.formats.quiet import quiet
from foveate.images.formats.tiff_colours import maximum_of
from foveate.images.sources.location import Location, locate

_PLAIN = ("srgb", "rgb", "rgb16", "b-w", "grey16", "multiband")
"""What libvips calls samples that are red, green and blue or grey."""


def convert_image(
    source: str | PathLike[str],
    target: str | PathLike[str],
    *,
    tile: int = 512,
    quality: int = 90,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Make a tiled pyramid, of which any part is read fast, of a large flat file.

    Works on what libvips opens: stripped TIFF, PNG, JPEG and many others. Colours follow the rule
    of `open_image`. The result is a BigTIFF with JPEG tiles; it appears under its name only when it
    is complete.

    Args:
        source: the file.
        target: the file to make; one that exists is replaced.
        tile: the side of the tiles, a multiple of 16.
        quality: JPEG quality, from 1 to 100; from 90 on, colours keep their full resolution.
        progress: is told the share that is done, from 0 to 1.

    Returns:
        The path of the file that was made.

    Raises:
        InputError: for a tile size, quality or target that can not be.
        DataError: for a file that is missing, damaged or no image, or if the disk is full.
        MissingExtraError: without pyvips.
    """
    location, made = locate(source), Path(target)
    _check(location, made, tile, quality)
    # Loaded here and nowhere else: libvips' threads do not survive a fork.
    pyvips = require("pyvips", "to convert images", "foveate[convert]")
    partial = made.with_name(f".{made.name}.{os.getpid()}.partial")
    try:
        with quiet("pyvips"):
            image = pyvips.Image.new_from_file(
                location.path, access="sequential", fail_on="error", revalidate=True
            )
            image = _coloured(image, location)
            report = _Report(image, progress)
            try:
                image.tiffsave(
                    str(partial),
                    compression="jpeg",
                    Q=quality,
                    tile=True,
                    tile_width=tile,
                    tile_height=tile,
                    pyramid=True,
                    bigtiff=True,
                    keep="icc",  # what other programs wrote would be about the source
                )
            finally:
                report.raise_error()
        os.replace(partial, made)
    except (pyvips.Error, OSError) as error:
        raise damaged(location.name, error) from error
    finally:
        partial.unlink(missing_ok=True)
    if progress is not None:
        progress(1.0)
    return made


def _check(location: Location, target: Path, tile: int, quality: int) -> None:
    if location.is_remote:
        raise InputError(f"cannot convert {location.name} where it is; download it first")
    if tile < 16 or tile % 16:
        raise InputError(
            f"tiles must have a side that is a multiple of 16, but {tile} was asked for"
        )
    if not 1 <= quality <= 100:
        raise InputError(f"JPEG quality goes from 1 to 100, but {quality} was asked for")
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: there is no folder {target.parent}; create it")
    if target.is_dir() or target.resolve() == Path(location.path).resolve():
        what = "a folder" if target.is_dir() else "the file to convert"
        raise InputError(f"cannot write {target}: it is {what}; choose another name")


class _Report:
    """Passes on how far libvips is; an error in it ends the conversion and is raised."""

    def __init__(self, image: Any, progress: Callable[[float], None] | None) -> None:
        self._image, self._progress = image, progress
        self._error: BaseException | None = None
        if progress is not None:
            image.set_progress(True)
            image.signal_connect("eval", self._evaluated)

    def _evaluated(self, image: Any, state: Any) -> None:
        if self._progress is None or self._error is not None:
            return
        try:
            self._progress(min(state.percent / 100, 1.0))
        except BaseException as error:  # libvips would print it and go on
            self._error = error
            self._image.set_kill(True)

    def raise_error(self) -> None:
        if self._error is not None:
            raise self._error


def _coloured(image: Any, location: Location) -> Any:
    """The image in 8-bit grey or colour, by the rule of `colours`."""
    if image.format in ("float", "double", "complex", "dpcomplex"):
        raise DataError(
            f"cannot convert {location.name}: its samples are floats, for which there is no "
            "white; scale them to 8 or 16 bits"
        )
    if image.interpretation not in (*_PLAIN, "cmyk"):
        image = image.colourspace("srgb")
    if image.format != "uchar":
        image = (image * (255 / _maximum(image, location))).rint().cast("uchar")
    if image.interpretation == "cmyk" and image.bands >= 4:
        light = 255 - image
        image = ((light.extract_band(0, n=3) * light.extract_band(3)) / 255).rint().cast("uchar")
    elif image.hasalpha() and image.bands in (2, 4):
        image = image.flatten(background=255)
    if image.bands not in (1, 3):
        raise DataError(
            f"cannot convert {location.name}: its pixels have {image.bands} samples, and grey and "
            "colour are understood; convert it to one of them"
        )
    image = image.copy(interpretation="b-w" if image.bands == 1 else "srgb")
    if image.get_typeof("orientation"):
        image.remove("orientation")  # pixels are kept as they are stored
    return image


def _maximum(image: Any, location: Location) -> int:
    """The sample that means full brightness."""
    if image.get("vips-loader").startswith("tiff"):
        tifffile = require("tifffile", "to read TIFF files", "tifffile")
        with quiet("tifffile"), tifffile.TiffFile(location.path) as tiff:
            return maximum_of(tiff.pages[0])
    return {"ushort": 65535, "short": 32767, "char": 127, "uint": 2**32 - 1}.get(
        image.format, 2**31 - 1
    )
