"""What a user says of their images: which file has which label, in a CSV file or class folders.

A CSV file has the columns `path` and `label`, and perhaps `split` and `group`, in any order and
beside any others. Fields are divided by commas, semicolons or tabs. Paths start at the file's own
folder; absolute ones, and addresses such as s3://bucket/slide.tif, are taken as they are.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from foveate.datasets.problem import Problem
from foveate.errors import DataError

PARTS = ("train", "validation", "test")
_PARTS = {part: part for part in PARTS} | {
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "testing": "test",
}


@dataclass(frozen=True)
class Row:
    """A labelled image.

    Attributes:
        where: where it is said, such as "line 7".
        name: the path as it is written there.
        path: the file, or its address.
        label: what it shows.
        part: train, validation or test; empty where nobody says.
        group: what must stay on one side of a split, such as a patient; empty for nothing.
    """

    where: str
    name: str
    path: str
    label: str
    part: str = ""
    group: str = ""

    @property
    def is_remote(self) -> bool:
        """Whether it is read from afar."""
        return "://" in self.path


@dataclass(frozen=True)
class Table:
    """Labelled images, and what was wrong with others.

    Attributes:
        source: the CSV file or folder.
        rows: the images that can be used as far as the table goes; no file has been opened.
        problems: why others can not.
    """

    source: Path
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]

    @property
    def fingerprint(self) -> str:
        """The same for the same rows, in whatever order and wherever their folder lies."""
        lines = sorted("\t".join((r.name, r.label, r.part, r.group)) for r in self.rows)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def part_of(text: str) -> str | None:
    """The part that a word names; "" for no word, None for another.

    Example:
        >>> part_of("Val"), part_of(""), part_of("holdout")
        ('validation', '', None)
    """
    word = text.strip().lower()
    return _PARTS.get(word) if word else ""


def read_csv(path: str | PathLike[str]) -> Table:
    """Read a table of labelled images.

    Args:
        path: a CSV file with the columns path and label, and perhaps split (train, validation or
            val, test) and group.

    Raises:
        DataError: where there is no such file, or it has no such columns.
    """
    source = Path(path)
    lines = _read_lines(source)
    rows: list[Row] = []
    problems: list[Problem] = []
    for number, fields in lines:
        read = _read_row(source.parent, number, fields)
        if isinstance(read, Row):
            rows.append(read)
        else:
            problems.append(read)
    return check_rows(source, rows, problems)


def check_rows(source: Path, rows: Sequence[Row], problems: Iterable[Problem] = ()) -> Table:
    """Leave out what can not be used: files named twice, and rows without a part among others."""
    found = list(problems)
    by_path: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_path[row.path].append(row)
    divided = any(row.part for row in rows)
    good = []
    for first, *others in by_path.values():
        labels = sorted({row.label for row in (first, *others)})
        if len(labels) > 1:
            said = " and ".join(repr(label) for label in labels)
            places = ", ".join(row.where for row in (first, *others))
            found.append(Problem("two labels", f"{places}: {first.name}", f"is said to be {said}"))
            continue
        for other in others:
            what = f"is in {first.where} already"
            found.append(Problem("named twice", f"{other.where}: {other.name}", what))
        if divided and not first.part:
            what = "has an empty split, though other rows have one"
            found.append(Problem("no split", f"{first.where}: {first.name}", what))
            continue
        good.append(first)
    return Table(source, tuple(good), tuple(found))


def file_of(folder: Path, name: str) -> str:
    """The file that a path written in a folder's table means; addresses stay as they are."""
    return name if "://" in name else os.path.abspath(folder / Path(name).expanduser())


def _read_lines(source: Path) -> list[tuple[int, dict[str | None, str | list[str] | None]]]:
    """The number and fields of each line; fields beyond the columns are a list under None."""
    try:
        with source.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            divider = max(",;\t", key=head.count)
            names = next(csv.reader([head], delimiter=divider), [])
            columns = [name.strip().lower() for name in names]
            if not {"path", "label"} <= set(columns):
                raise DataError(
                    f"{source} must have the columns path,label in its first line, but has "
                    f"{','.join(columns)[:100] or 'none'}; add them"
                )
            reader = csv.DictReader(file, columns, delimiter=divider)
            return [(reader.line_num + 1, row) for row in reader]
    except UnicodeDecodeError:
        raise DataError(
            f"{source} is no CSV file, as it is not text in UTF-8; name one with the columns "
            "path,label, or a folder of classes"
        ) from None
    except csv.Error as error:
        raise DataError(f"cannot read {source} as CSV: {error}; correct it") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DataError(f"cannot read {source}: {reason}; check the path") from error


def _read_row(
    folder: Path, number: int, fields: dict[str | None, str | list[str] | None]
) -> Row | Problem:
    def field(column: str) -> str:
        return str(fields.get(column) or "").strip()

    name, label, where = field("path"), field("label"), f"line {number}"
    if None in fields:
        what = "has more fields than there are columns; quote what contains a comma"
        return Problem("too many fields", where, what)
    if not name:
        return Problem("no path", where, "names no file")
    place = f"{where}: {name}"
    if not label:
        return Problem("no label", place, "says no label")
    part = part_of(field("split"))
    if part is None:
        what = f"says {field('split')!r} instead of train, validation or test"
        return Problem("unknown split", place, what)
    return Row(where, name, file_of(folder, name), label, part, field("group"))
