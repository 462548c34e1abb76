"""Image files whose colours encode their coordinates, in every format that is read."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from PIL import Image as PillowImage

from foveate.images import FileImage, open_image
from foveate.images.files.tiled_file import TiledFile
from foveate.images.formats.backends import open_reader
from foveate.images.sources.location import locate

SIZE = (296, 400)
"""Divided by 4 without rest, as OpenSlide's coordinates are exact then, and not by the tiles."""


def coloured(height: int, width: int, level: int = 0) -> np.ndarray:
    """Colours that tell every pixel and level from the others; never 0, which means outside."""
    y, x = np.mgrid[:height, :width]
    third = (y // 251 * 7 + x // 241 * 3 + 50 * level) % 255
    return np.stack([y % 251 + 1, x % 241 + 1, third + 1], axis=-1).astype(np.uint8)


def smooth(height: int, width: int) -> np.ndarray:
    """The same for formats that blur: the more to the right or below, the brighter."""
    y, x = np.mgrid[:height, :width]
    return np.stack([40 + 200 * y / height, 40 + 200 * x / width, 0 * y + 128], -1).astype(np.uint8)


def pyramid(height: int, width: int, levels: int = 3) -> list[np.ndarray]:
    return [coloured(height >> i, width >> i, i) for i in range(levels)]


@dataclass(frozen=True)
class Case:
    """A file, and what it holds.

    Attributes:
        image: the file, opened.
        levels: the (H, W, c) colours of each level.
        error: how far colours may be off.
        backend: who reads it.
    """

    image: FileImage
    levels: list[np.ndarray]
    error: int = 0
    backend: str = "tiff"


def write_pyramid(path: Path, levels: list[np.ndarray], subifds: bool, **options: Any) -> None:
    options = {"photometric": "rgb", "metadata": None, **options}
    with tifffile.TiffWriter(path, bigtiff=options.pop("bigtiff", False)) as tiff:
        tiff.write(levels[0], subifds=len(levels) - 1 if subifds else 0, **options)
        for level in levels[1:]:
            tiff.write(level, subfiletype=1, **options)


def bare_tiff(path: Path, height: int, width: int, bits: int, data: bytes) -> Path:
    """A TIFF file of one strip of grey, as its tags say and whatever its data is."""
    tags = [(256, width), (257, height), (258, bits), (259, 1), (262, 1), (273, 0), (277, 1)]
    tags += [(278, height), (279, len(data))]
    start = 8 + 2 + 12 * len(tags) + 4
    entries = [
        struct.pack("<HHII", code, 4, 1, start if code == 273 else value) for code, value in tags
    ]
    head = struct.pack("<2sHIH", b"II", 42, 8, len(tags))
    path.write_bytes(head + b"".join(entries) + bytes(4) + data)
    return path


def _flat(**options: Any) -> Callable[[Path], Case]:
    def write(path: Path) -> Case:
        pixels = coloured(*SIZE)
        byteorder = options.get("byteorder")
        rest = {name: value for name, value in options.items() if name != "byteorder"}
        if rest.get("planarconfig") == "separate":
            stored = np.ascontiguousarray(pixels.transpose(2, 0, 1))
        else:
            stored = pixels
        with tifffile.TiffWriter(path, byteorder=byteorder) as tiff:
            tiff.write(stored, photometric="rgb", metadata=None, **rest)
        return _opened(path, [pixels])

    return write


def _opened(path: Path, levels: list[np.ndarray], *rest: Any) -> Case:
    image = open_image(path)
    assert isinstance(image, FileImage)
    return Case(image, levels, *rest)


def _pyramid(subifds: bool, **options: Any) -> Callable[[Path], Case]:
    def write(path: Path) -> Case:
        levels = pyramid(*SIZE)
        write_pyramid(path, levels, subifds, **options)
        return _opened(path, levels)

    return write


def _unmarked(path: Path) -> Case:
    levels = pyramid(*SIZE)
    with tifffile.TiffWriter(path) as tiff:
        for level in levels:
            tiff.write(level, photometric="rgb", tile=(64, 64), metadata=None)
    return _opened(path, levels)


def _ome(path: Path) -> Case:
    levels = pyramid(*SIZE)
    options: dict[str, Any] = {"photometric": "rgb", "tile": (64, 64), "compression": "zlib"}
    with tifffile.TiffWriter(path, ome=True) as tiff:
        size = {"axes": "YXS", "PhysicalSizeX": 250, "PhysicalSizeXUnit": "nm"}
        tiff.write(levels[0], subifds=2, metadata=size, **options)
        for level in levels[1:]:
            tiff.write(level, subfiletype=1, **options)
    case = _opened(path, levels)
    assert case.image.microns_per_pixel == 0.25
    return case


def _ome_planes(path: Path) -> Case:
    pixels = coloured(*SIZE)
    planes = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    tifffile.imwrite(
        path, planes, ome=True, photometric="minisblack", tile=(64, 64), metadata={"axes": "CYX"}
    )
    return _opened(path, [pixels])


def _grey(path: Path) -> Case:
    pixels = coloured(*SIZE)[..., 1:2]
    tifffile.imwrite(
        path, pixels[..., 0], photometric="minisblack", tile=(64, 64), compression="zlib"
    )
    return _opened(path, [pixels])


def _jpeg_tiles(path: Path) -> Case:
    pixels = smooth(*SIZE)
    tifffile.imwrite(
        path,
        pixels,
        photometric="rgb",
        tile=(64, 96),
        compression="jpeg",
        compressionargs={"level": 97},
        subsampling=(1, 1),  # or else the black beyond the edge would show
    )
    return _opened(path, [pixels], 4)


def _pillow(form: str, error: int = 0, **options: Any) -> Callable[[Path], Case]:
    def write(path: Path) -> Case:
        pixels = smooth(*SIZE) if error else coloured(*SIZE)
        PillowImage.fromarray(pixels).save(path, form, **options)
        return _opened(path, [pixels], error, "jpeg" if form == "JPEG" else "pillow")

    return write


def _openslide(path: Path) -> Case:
    levels = pyramid(*SIZE)
    write_pyramid(path, levels, subifds=False, tile=(64, 96), compression="lzw")
    location = locate(path)
    reader = open_reader(location, "openslide")
    reader.close()
    image = FileImage(TiledFile(location, "openslide", reader.layout, 3))
    return Case(image, levels, backend="openslide")


CASES: dict[str, Callable[[Path], Case]] = {
    "tiles": _flat(tile=(64, 96), compression="zlib"),
    "tiles of the whole": _flat(tile=(304, 400), compression="zlib"),
    "raw tiles": _flat(tile=(96, 64)),
    "big-endian tiles": _flat(tile=(64, 64), compression="zlib", predictor=True, byteorder=">"),
    "planar tiles": _flat(tile=(64, 96), compression="zlib", planarconfig="separate"),
    "rows": _flat(rowsperstrip=7),
    "planar rows": _flat(planarconfig="separate"),
    "one strip": _flat(rowsperstrip=SIZE[0], compression="zlib"),
    "short strips": _flat(rowsperstrip=5, compression="lzw", predictor=True),
    "planar strips": _flat(rowsperstrip=90, compression="zlib", planarconfig="separate"),
    "JPEG tiles": _jpeg_tiles,
    "pyramid": _pyramid(subifds=False, tile=(64, 96), compression="lzw", predictor=True),
    "SubIFDs": _pyramid(subifds=True, tile=(96, 64), compression="zstd", bigtiff=True),
    "unmarked pyramid": _unmarked,
    "OME": _ome,
    "OME planes": _ome_planes,
    "grey": _grey,
    "JPEG": _pillow("JPEG", 4, quality=97),
    "PNG": _pillow("PNG"),
    "BMP": _pillow("BMP"),
    "WebP": _pillow("WEBP", lossless=True),
    "JPEG 2000": _pillow("JPEG2000"),
    "OpenSlide": _openslide,
}
"""Each writes a file to a path, and says what it holds. The files have no endings."""
