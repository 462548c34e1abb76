"""Which pages of a TIFF file are the image, and at which resolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foveate.errors import DataError
from foveate.types import Size

_FOREIGN = ("scn", "bif", "philips")
"""Slides whose pages must be put together in ways that OpenSlide knows."""

_APERIO_JPEG2000 = (33003, 33004, 33005)
_MASK = 4


@dataclass(frozen=True)
class Pages:
    """One resolution: a page of tifffile, or one for each channel.

    Attributes:
        key: the page that says how all of them are stored.
        planes: the pages whose samples are put together.
    """

    key: Any
    planes: tuple[Any, ...]

    @property
    def size(self) -> Size:
        """(height, width)."""
        return int(self.key.imagelength), int(self.key.imagewidth)


def find_levels(tiff: Any, name: str) -> list[Pages]:
    """The levels of the first image in a TIFF file, finest first.

    Levels may be stored as SubIFDs, as pages that are marked as reduced, or as unmarked tiled pages
    of the same shape.

    Args:
        tiff: an open `tifffile.TiffFile`.
        name: what to call it.

    Raises:
        DataError: for stacks, and for slides that only OpenSlide puts together.
        NotImplementedError: for slides that OpenSlide reads better.
    """
    for vendor in _FOREIGN:
        if getattr(tiff, f"is_{vendor}"):
            raise DataError(
                f"cannot open {name}: it is a {vendor.upper()} slide, which needs OpenSlide and a "
                "local file; run: pip install openslide-python openslide-bin"
            )
    levels = [_pages_of(level, tiff, name) for level in tiff.series[0].levels]
    if tiff.is_svs and not all(_is_plain_aperio(level) for level in levels):
        raise NotImplementedError("Aperio's JPEG 2000 and the tiles it left out need OpenSlide")
    if len(levels) == 1:
        levels += _unmarked(tiff, levels[0])
    return sorted(levels, key=lambda level: -level.size[0] * level.size[1])


def _pages_of(series: Any, tiff: Any, name: str) -> Pages:
    """The pages of one level: the first, or three if they are the colours of an image."""
    stacked = {
        axis: length
        for axis, length in zip(series.axes, series.shape, strict=True)
        if axis not in "YXS" and length > 1
    }
    key = series.keyframe
    if stacked == {"C": 3} and key.samplesperpixel == 1 and len(series.pages) == 3:
        planes = tuple(series.pages)
    elif set(stacked) <= set("IQR"):  # pages of one size: a document, of which the first is taken
        planes = (series.pages[0],)
    else:
        axes = ", ".join(f"{axis} = {length}" for axis, length in stacked.items())
        raise DataError(
            f"cannot open {name}: it is a stack of planes ({axes}), and an image has one, or three "
            "channels; save the plane to look at as a file of its own"
        )
    if any(page is None or page.parent is not tiff for page in planes):
        raise DataError(
            f"cannot open {name}: its planes are spread over several files; join them into one"
        )
    return Pages(key, planes)


def _is_plain_aperio(level: Pages) -> bool:
    """Whether a level's tiles are there and not JPEG 2000; OpenSlide fills in missing ones."""
    page = level.planes[0]
    return int(level.key.compression) not in _APERIO_JPEG2000 and 0 not in page.databytecounts


def _unmarked(tiff: Any, first: Pages) -> list[Pages]:
    """Further tiled pages that show the same image smaller, though the file does not say so."""
    if not first.key.is_tiled or len(first.planes) > 1:
        return []
    found = [first]
    for page in tiff.pages[1:]:
        level = Pages(page.keyframe, (page,))
        if not level.key.is_tiled or level.key.subfiletype & _MASK:
            continue
        same = ("dtype", "photometric", "samplesperpixel", "planarconfig")
        alike = all(getattr(level.key, field) == getattr(first.key, field) for field in same)
        if alike and _is_shrunk(found[-1].size, level.size):
            found.append(level)
    return found[1:]


def _is_shrunk(large: Size, small: Size) -> bool:
    """Whether one size is a smaller version of another, up to the rounding of its sides."""
    factor = large[0] / small[0]
    return factor > 1.01 and abs(large[1] / factor - small[1]) <= 1
