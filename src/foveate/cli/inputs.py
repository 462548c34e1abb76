"""The images that a command's arguments name: files, folders, addresses, and CSV files of them."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from foveate.datasets.class_folder import ENDINGS
from foveate.errors import DataError


def find_images(sources: Sequence[str], leave_out: Path | None = None) -> list[str]:
    """The images that some sources name, each once, in order.

    A folder means the files in it, however deep, whose names end as images' do and are not hidden.
    A CSV file means the files in its column `path`, from its own folder on. Anything else is taken
    for an image, and whether it is one shows when it is opened.

    Args:
        sources: images, addresses, folders and CSV files.
        leave_out: a folder inside others whose files are not meant, such as that of results.

    Raises:
        DataError: for a CSV file that can not be read, or where no image is found.
    """
    found: dict[str, None] = {}
    for source in sources:
        found |= dict.fromkeys(_images_of(source, leave_out))
    if not found:
        raise DataError(
            f"found no images in {', '.join(sources)}; name image files, a folder with files that "
            f"end in {', '.join(ENDINGS[:3])} and so on, or a CSV file with the column path"
        )
    return list(found)


def _images_of(source: str, leave_out: Path | None) -> Iterable[str]:
    if "://" in source:
        return [source]
    if os.path.isdir(source):
        return _in_folder(source, None if leave_out is None else leave_out.resolve())
    if source.lower().endswith((".csv", ".tsv")):
        return _in_table(Path(source))
    return [source]


def _in_folder(folder: str, leave_out: Path | None) -> Iterator[str]:
    for inner, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and Path(inner, name).resolve() != leave_out
        )
        for name in sorted(names):
            if not name.startswith(".") and name.lower().endswith(ENDINGS):
                yield os.path.join(inner, name)


def _in_table(table: Path) -> list[str]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            divider = max(",;\t", key=head.count)
            columns = [name.strip().lower() for name in next(csv.reader([head], delimiter=divider))]
            if "path" not in columns:
                raise DataError(
                    f"{table} must have the column path in its first line, but has "
                    f"{', '.join(columns)[:100] or 'none'}; add it"
                )
            rows = csv.DictReader(file, columns, delimiter=divider)
            names = [str(row["path"] or "").strip() for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"cannot read {table} as a CSV file ({error}); check the path, and "
            "that it is text in UTF-8"
        ) from error
    return [
        name if "://" in name else os.path.join(table.parent, os.path.expanduser(name))
        for name in names
        if name
    ]
