"""Small tiled pyramids and tables of them, as a user's own data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tifffile


def write_slide(path: Path, value: int, size: int = 128, noise: bool = False) -> None:
    """A tiled pyramid of one colour, or of noise below it."""
    chance = np.random.default_rng(value)
    with tifffile.TiffWriter(path) as tiff:
        options: dict[str, Any] = {"tile": (32, 32), "photometric": "rgb", "compression": "zlib"}
        pixels = np.full((size, size, 3), value, np.uint8)
        if noise:
            pixels = chance.integers(0, value, (size, size, 3), dtype=np.uint8)
        for level in range(3):
            shrunk = pixels[:: 2**level, :: 2**level]
            tiff.write(shrunk, subfiletype=int(level > 0), metadata=None, **options)


def damage(path: Path) -> None:
    """Break every tile of the full resolution; the overview is made of another level."""
    with tifffile.TiffFile(path) as tiff:
        page = tiff.pages[0]
        assert isinstance(page, tifffile.TiffPage)
        places = list(zip(page.dataoffsets, page.databytecounts, strict=True))
    content = bytearray(path.read_bytes())
    for offset, count in places:
        content[offset : offset + count] = bytes(count)
    path.write_bytes(content)


def slides(folder: Path, count: int = 6, alike: bool = True, noise: bool = False) -> Path:
    """A table of 2 x `count` slides to train on, and `count` to validate and to test on."""
    lines = ["path,label,split"]
    for i in range(count):
        for number, part in enumerate(["train", "train", "validation", "test"]):
            name = f"{part}{number}-{i}.tif"
            size = 128 if alike or i else 96
            write_slide(folder / name, 10 + 10 * i + number, size, noise)
            lines.append(f"{name},{'ab'[i % 2]},{part}")
    (folder / "labels.csv").write_text("\n".join(lines))
    return folder / "labels.csv"
