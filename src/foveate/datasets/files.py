"""Opening and reading many image files at once, any of which may be missing or damaged."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from foveate.datasets.given_overviews import GivenOverviews
from foveate.datasets.problem import Problem
from foveate.datasets.table import Row
from foveate.errors import DataError, MissingExtraError
from foveate.images import Image, ImagePool, open_image
from foveate.images.files.threads import thread_count
from foveate.types import Size

_OPENING = 16
"""Threads that open files: to open is to wait for a disk or a network."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many files are done, and of how many."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Kept:
    """What of the images stays in memory.

    Attributes:
        pool: the images themselves, where room for the largest can be had for each.
        pixels: the images themselves, where it can not.
        given: their overviews, as their files give them. So training sees what prediction on
            a single file will see, whether its images are in memory or not.
        overview_size: height and width of the overviews.
        spare: bytes that are left, for images in files.
    """

    pool: ImagePool | None
    pixels: list[Tensor] | None
    given: GivenOverviews | None
    overview_size: Size
    spare: int = 0

    @property
    def in_memory(self) -> bool:
        """Whether no file is read any more."""
        return self.pool is not None or self.pixels is not None


def open_files(
    rows: Sequence[Row], channels: int | None = None, progress: Progress | None = None
) -> list[Image | Problem]:
    """Open the file of each row, without a look at its pixels.

    Args:
        rows: the images.
        channels: 3 for colour or 1 for grey; None is colour, or grey if all of them are.
        progress: is told how far it is.

    Returns:
        An image for each row, or why there is none.
    """
    opened = _each("opening", lambda row: _open(row, channels), rows, _OPENING, progress)
    found = {image.channels for image in opened if isinstance(image, Image)}
    if len(found) < 2:
        return opened
    return [
        _open(row, 3) if isinstance(image, Image) and image.channels != 3 else image
        for row, image in zip(rows, opened, strict=True)
    ]


def read_files(
    rows: Sequence[Row],
    images: Sequence[Image],
    overview_size: Size,
    memory: int,
    progress: Progress | None = None,
) -> tuple[Kept, list[Problem | None]]:
    """Read each image's overview, and all of it if that fits into memory, and keep what fits.

    If all the images decoded fit, they are kept, in one pool if as much as the largest takes can be
    had for each. Overviews are kept if those fit. What does not fit is read all the same: who
    trains for hours wants to know of damage before.

    Args:
        rows: where the images come from.
        images: the images, of as many channels.
        overview_size: height and width of the overviews.
        memory: how many bytes may be kept.
        progress: is told how far it is.

    Returns:
        What is kept, and what is wrong with each image, if anything.
    """
    kept = _make_room(images, overview_size, memory)

    def read(i: int) -> Problem | None:
        try:
            _read(images[i], i, kept)
        except DataError as error:
            return _damaged(rows[i], error)
        return None

    return kept, _each("reading", read, range(len(images)), thread_count(), progress)


def _make_room(images: Sequence[Image], overview_size: Size, memory: int) -> Kept:
    count, channels = len(images), images[0].channels
    pool = pixels = given = None
    left = memory
    if decoded_bytes(images) <= memory:
        sizes = [image.size for image in images]
        height, width = (max(size[axis] for size in sizes) for axis in (0, 1))
        if count * channels * height * width <= memory:
            room = torch.zeros(count, channels, height, width, dtype=torch.uint8)
            pool = ImagePool(room, sizes=sizes if len(set(sizes)) > 1 else None)
        else:
            pixels = [torch.zeros(channels, 1, 1, dtype=torch.uint8)] * count
    if count * channels * overview_size[0] * overview_size[1] <= memory:
        overviews = torch.zeros(count, channels, *overview_size, dtype=torch.uint8)
        given, left = GivenOverviews(overviews), memory - overviews.nbytes
        if pool is not None:
            pool.kept = given
    in_memory = pool is not None or pixels is not None
    return Kept(pool, pixels, given, overview_size, 0 if in_memory else left)


def _read(image: Image, i: int, kept: Kept) -> None:
    """Read image number i to where it is kept."""
    overview = image.overview(kept.overview_size)
    if kept.given is not None:
        kept.given.on(overview.device)[i] = overview
    if kept.in_memory:
        pixels = image.read((0, 0), image.size).contiguous()
        image.close()
        if kept.pool is not None:
            kept.pool.image(i)[...] = pixels
        elif kept.pixels is not None:
            kept.pixels[i] = pixels


def decoded_bytes(images: Sequence[Image]) -> int:
    """What images take in memory once they are decoded."""
    return sum(image.channels * image.size[0] * image.size[1] for image in images)


def _open(row: Row, channels: int | None) -> Image | Problem:
    if not row.is_remote and not os.path.exists(row.path):
        return Problem("missing file", f"{row.where}: {row.name}", f"there is no {row.path}")
    try:
        return open_image(row.path, channels)
    except (DataError, MissingExtraError) as error:
        return _damaged(row, error)


def _damaged(row: Row, error: Exception) -> Problem:
    what = str(error).replace(row.path, os.path.basename(row.path))
    return Problem("unreadable file", f"{row.where}: {row.name}", what)


def _each(
    what: str,
    function: Callable[[T], R],
    items: Sequence[T],
    threads: int,
    progress: Progress | None,
) -> list[R]:
    """The results of a function in threads; decoders let go of Python's lock."""
    results: list[R] = []
    with ThreadPoolExecutor(threads) as pool:
        for result in pool.map(function, items):
            results.append(result)
            if progress is not None:
                progress(what, len(results), len(items))
    return results
