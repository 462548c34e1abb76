"""Which backend reads a file: its content decides, never its name."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec

from foveate.errors import DataError, MissingExtraError
from foveate.images.formats.damage import damaged
from foveate.images.formats.jpeg_reader import JpegReader
from foveate.images.formats.openslide_reader import OpenSlideReader, require_openslide
from foveate.images.formats.pillow_reader import PillowReader
from foveate.images.formats.reader import Reader
from foveate.images.formats.tiff_reader import TiffReader
from foveate.images.sources.location import Location
from foveate.images.sources.remote import RemoteSource
from foveate.images.sources.source import LocalSource, Source

_HEAD = 256
"""Bytes that tell what a file is."""
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_JPEG = b"\xff\xd8\xff"
_WHOLE = (b"\x89PNG", b"BM", b"GIF8", b"RIFF", b"\0\0\0\x0cjP", b"\xff\x4f\xff\x51")
"""PNG, BMP, GIF, WebP, JPEG 2000 and its bare codestream."""

_SLIDES = ((128, b"DICM"), (0, b"ZISRAWFILE"), (0, b"SQLite format 3"))
"""DICOM, Zeiss and Sakura."""

_PLAIN = ("generic-tiff", "aperio")
"""What OpenSlide knows and our own reader reads as exactly, and several times as fast."""


def open_reader(location: Location, backend: str) -> Reader:
    """Open a file with a backend.

    Raises:
        Exception: of any kind that the backend's library has, if it can not.
    """
    source = _source_of(location)
    try:
        return _open(source, backend)
    except BaseException:
        source.close()
        raise


def choose_backend(location: Location) -> tuple[str, Reader]:
    """Open a file with the first backend that can.

    Vendors' slides go to OpenSlide, but Aperio's with JPEG tiles and all other TIFF files to our
    own reader; JPEG goes to simplejpeg and all else to Pillow. Where one can not, the next tries.

    Returns:
        The backend's name, and the open file.

    Raises:
        DataError: if none can.
        MissingExtraError: if the one that could is not installed.
    """
    source = _source_of(location)
    try:
        return _first_of(_candidates(source), source)
    except BaseException:
        source.close()
        raise


def _first_of(backends: list[str], source: Source) -> tuple[str, Reader]:
    errors = []
    for backend in backends:
        try:
            return backend, _open(source, backend)
        except (DataError, MemoryError):
            raise
        except Exception as error:  # each library has its own
            errors.append(error)
    missing = [error for error in errors if isinstance(error, MissingExtraError)]
    raise missing[0] if missing else damaged(source.name, errors[0]) from errors[0]


def _open(source: Source, backend: str) -> Reader:
    """Hand a file to a backend, which closes it; if it can not open it, the caller does."""
    if backend != "openslide":
        return _READERS[backend](source)
    reader = OpenSlideReader(source.location)
    source.close()  # OpenSlide opens it by itself
    return reader


def _source_of(location: Location) -> Source:
    return RemoteSource(location) if location.is_remote else LocalSource(location)


_READERS: dict[str, Callable[[Source], Reader]] = {
    "tiff": TiffReader,
    "jpeg": JpegReader,
    "pillow": PillowReader,
}


def _candidates(source: Source) -> list[str]:
    """The backends that may read a file, the likeliest first."""
    location = source.location
    head = source.read(0, min(_HEAD, source.size))
    is_picture = head.startswith((_JPEG, *_WHOLE))
    asks = not location.is_remote and (not is_picture or _has_folder(location))
    vendor = _vendor_of(location) if asks else None
    slides = [] if vendor is None else ["openslide"]
    if head.startswith(_TIFF):
        ours = ["tiff"]
        return [*ours, *slides, "pillow"] if vendor in _PLAIN else [*slides, *ours, "pillow"]
    if head.startswith(_JPEG) and find_spec("simplejpeg"):
        return [*slides, "jpeg", "pillow"]
    if any(head[start:].startswith(magic) for start, magic in _SLIDES):
        slides = ["openslide"]
    return [*slides, "pillow"]


def _has_folder(location: Location) -> bool:
    """Whether a folder of the file's name lies beside it, as with MRXS, whose file is a JPEG."""
    return not location.is_remote and os.path.isdir(os.path.splitext(location.path)[0])


def _vendor_of(location: Location) -> str | None:
    """Whose slide a file is, by OpenSlide; None if it is no slide or OpenSlide is missing."""
    try:
        openslide = require_openslide()
    except MissingExtraError:
        return None
    vendor: str | None = openslide.OpenSlide.detect_format(location.path)
    return vendor
