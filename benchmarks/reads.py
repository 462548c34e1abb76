"""Random reads from a large JPEG-tiled pyramid, side by side with the readers that others use.

    python benchmarks/reads.py [--size 20000] [--reads 200] [--json FILE]

All readers are in one process and use one thread. Each patch is read by every reader in turn, in an
order that changes, so that none of them finds the file's pages warmer than the others; the file is
read once before. Times are medians, in milliseconds. Readers that are not installed are left out:

    pip install zarr && pip install --no-deps cucim-cu13 numpy lazy_loader click

Without a cache, every tile is decoded anew, as in training on many slides. foveate's cache and
OpenSlide's are then switched off, and cuCIM and tifffile have none. With caches, as they are when
first installed, foveate and OpenSlide keep what they decode (cuCIM does not), and patches are drawn
from a region that fits.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

import foveate as fv
from foveate.images import convert_image, set_cache_limit, set_threads

Read = Callable[[int, int, int], Any]
"""Reads a square of a side from a corner (y, x)."""

SIDES = (100, 512)


def generate(folder: Path, size: int, quality: int) -> Path:
    """Write a pyramid with 256x256 tiles whose texture compresses like tissue."""

    def rows() -> Any:
        chance = np.random.default_rng(0)
        for top in range(0, size, 256):
            small = chance.integers(0, 256, (17, size // 16 + 2, 3), dtype=np.uint8)
            band = np.kron(small, np.ones((16, 16, 1)))[: min(256, size - top), :size]
            for axis in (0, 1):  # soft edges
                band = (band + np.roll(band, 5, axis) + np.roll(band, 10, axis)) / 3
            yield band.astype(np.uint8)

    flat = folder / "flat.tif"
    tifffile.imwrite(
        flat,
        rows(),
        shape=(size, size, 3),
        dtype=np.uint8,
        rowsperstrip=256,
        photometric="rgb",
        bigtiff=True,
    )
    made = convert_image(flat, folder / "tiled.tif", tile=256, quality=quality)
    flat.unlink()
    return made


def foveate_reader(path: Path) -> Read:
    """This package: `Image.read`."""
    image = fv.open_image(path)
    return lambda y, x, side: image.read((y, x), (side, side))


def openslide_reader(path: Path, cached: bool) -> Read:
    """OpenSlide, to an array."""
    openslide = import_module("openslide")
    slide = openslide.OpenSlide(path)
    if not cached:
        slide.set_cache(openslide.OpenSlideCache(0))
    return lambda y, x, side: np.asarray(slide.read_region((x, y), 0, (side, side)))


def zarr_reader(path: Path) -> Read:
    """Tifffile's store, through zarr."""
    store = tifffile.imread(path, aszarr=True, level=0)
    array = import_module("zarr").open(store, mode="r")
    return lambda y, x, side: array[y : y + side, x : x + side]


def cucim_reader(path: Path) -> Read:
    """CuCIM, on the CPU, to an array."""
    image = import_module("cucim").CuImage(str(path))
    return lambda y, x, side: np.asarray(image.read_region((x, y), (side, side)))


def installed(path: Path, cached: bool) -> dict[str, Read]:
    """The readers that can be compared here."""
    readers = {"foveate": foveate_reader(path)}
    if find_spec("cucim"):
        readers["cuCIM"] = cucim_reader(path)
    if find_spec("openslide"):
        readers["OpenSlide"] = openslide_reader(path, cached)
    if find_spec("zarr"):
        readers["tifffile + zarr"] = zarr_reader(path)
    return readers


def measure(readers: dict[str, Read], side: int, reads: int, extent: int) -> dict[str, float]:
    """The median milliseconds of each reader, over the same random patches."""
    chance = np.random.default_rng(side)
    times: dict[str, list[float]] = {name: [] for name in readers}
    names = list(readers)
    for i in range(reads):
        y, x = (int(place) for place in chance.integers(0, extent - side, 2))
        for k in range(len(names)):
            name = names[(i + k) % len(names)]
            start = time.perf_counter()
            readers[name](y, x, side)
            times[name].append(1000 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def check(readers: dict[str, Read], size: int) -> None:
    """Raise unless all readers see the same pixels, up to the rounding of their decoders."""
    expected = np.asarray(readers["foveate"](size // 3, size // 5, 300)).transpose(1, 2, 0)
    for name, read in readers.items():
        if name != "foveate":
            got = np.asarray(read(size // 3, size // 5, 300))[..., :3].astype(int)
            assert np.abs(got - expected).max() <= 3, name


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=20_000, help="side of the image, in pixels")
    parser.add_argument("--quality", type=int, default=80, help="JPEG quality of the tiles")
    parser.add_argument("--reads", type=int, default=200, help="patches of each size")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    args = parser.parse_args()
    set_threads(1)
    results: dict[str, Any] = {"size": args.size, "quality": args.quality, "reads": args.reads}
    results["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    with tempfile.TemporaryDirectory() as folder:
        path = generate(Path(folder), args.size, args.quality)
        path.read_bytes()  # the disk is not what is measured
        for cached in (False, True):
            set_cache_limit(256 if cached else 0)
            readers = installed(path, cached)
            check(readers, args.size)
            extent = min(args.size, 2048) if cached else args.size
            key = "cached" if cached else "uncached"
            results[key] = {
                f"{side}x{side}": measure(readers, side, args.reads, extent) for side in SIDES
            }
            print(table(results[key], "with caches" if cached else "without a cache"), flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


def table(figures: dict[str, dict[str, float]], title: str) -> str:
    """The figures as Markdown, with the ratio of each to foveate's."""
    heads = [f"{patch}, ms | to foveate" for patch in figures]
    lines = [f"| {title} | " + " | ".join(heads) + " |", "|---" * (1 + 2 * len(heads)) + "|"]
    for name in next(iter(figures.values())):
        cells = [
            f"{values[name]:.2f} | {values[name] / values['foveate']:.2f}"
            for values in figures.values()
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
