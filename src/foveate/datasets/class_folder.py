"""Class folders: one subfolder for each class, with its images somewhere inside."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from foveate.datasets.table import Row, Table, check_rows, part_of
from foveate.errors import DataError

ENDINGS = (
    *(".bif", ".bmp", ".czi", ".gif", ".j2k", ".jp2", ".jpeg", ".jpg", ".mrxs", ".ndpi", ".pbm"),
    *(".pgm", ".png", ".pnm", ".ppm", ".scn", ".svs", ".svslide", ".tif", ".tiff", ".vms", ".webp"),
)
"""How the names of files end that are taken for images; a CSV file may name any others."""


def read_folder(folder: str | PathLike[str]) -> Table:
    """Read class folders.

    Each subfolder is a class, and the image files in it, however deep, are its images. Where all
    subfolders are called train, validation (or val) and test, they are the parts and the classes
    are one level further down. What is hidden, or does not end like an image, is passed over.

    Args:
        folder: where the class folders lie.

    Raises:
        DataError: where there are none with images.
    """
    top = Path(folder).absolute()
    folders = _folders(top)
    classes = [("", inner) for inner in folders]
    if folders and all(part_of(inner.name) for inner in folders):
        classes = [
            (part_of(part.name) or "", inner) for part in folders for inner in _folders(part)
        ]
    rows = [
        Row(f"class {inner.name}", path.relative_to(top).as_posix(), str(path), inner.name, part)
        for part, inner in classes
        for path in _images(inner)
    ]
    if not rows:
        raise DataError(
            f"{folder} has no class folders with images in them; lay them out as "
            "FOLDER/CLASS/IMAGE, or name a CSV file with the columns path,label"
        )
    return check_rows(top, rows)


def _folders(folder: Path) -> list[Path]:
    try:
        inner = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DataError(f"cannot look into {folder}: {reason}; check the path") from error
    return [path for path in inner if not path.name.startswith(".")]


def _images(folder: Path) -> list[Path]:
    """The image files in a folder, however deep, in the order of their names."""
    found = []
    for inner, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            Path(inner, name)
            for name in names
            if not name.startswith(".") and name.lower().endswith(ENDINGS)
        ]
    return sorted(found)
