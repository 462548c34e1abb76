"""The folder that predictions are written to, so that nothing is lost and nothing done twice.

    predictions.csv    a line for each image: path, label, and the probability of each class
    failed.csv         the images of the last run that could not be predicted, and why
    about.json         which checkpoint, and how it drew
    predictions/       for each image its record (.json) and whatever else was asked for

An image's files are complete before its line is written, and a line counts only if it is whole. So
a run that is killed at any moment goes on where it stopped.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from foveate.errors import InputError
from foveate.reports.record import Record

TABLE, FAILED, ABOUT, FILES = "predictions.csv", "failed.csv", "about.json", "predictions"

_FREE = {"checkpoint", "foveate"}
"""What of `about` may differ: where a checkpoint lies now, and the version that reads it."""
_TEXT: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""}
"""How tables are opened; names of files that are no UTF-8 come back as they were."""


class PredictionFolder:
    """Predictions of one model, which grow from run to run.

    Args:
        folder: where; it is created.
        classes: the name of each class.
        about: what all predictions in the folder share, such as the checkpoint's fingerprint.

    Raises:
        InputError: for a folder that holds something else, or predictions that differ in `about`.
    """

    def __init__(self, folder: Path, classes: Sequence[str], about: dict[str, Any]) -> None:
        self.folder = folder
        self.table = folder / TABLE
        self.failed: dict[str, str] = {}
        self._header = ["path", "label", *classes]
        self._check(about)
        (folder / FILES).mkdir(parents=True, exist_ok=True)
        _write_whole(folder / ABOUT, json.dumps(about, indent=2) + "\n")
        (folder / FAILED).unlink(missing_ok=True)

    def file(self, path: str, ending: str) -> Path:
        """The file with this ending that belongs to an image, and to no other.

        Args:
            path: the image.
            ending: such as ".json".
        """
        return self.folder / FILES / f"{_name_of(path)}{ending}"

    def missing(self, paths: Iterable[str], endings: Sequence[str] = (".json",)) -> list[str]:
        """The images that have no whole line or not all of their files; what they had is dropped.

        Args:
            paths: the images that are asked for.
            endings: of the files that each is to have.
        """
        asked = dict.fromkeys(paths)
        there = {
            path
            for path, *_ in self._lines()
            if path in asked and all(self.file(path, ending).is_file() for ending in endings)
        }
        kept = (line for line in self._lines() if line[0] not in asked or line[0] in there)
        _write_table(self.table, [self._header], kept)
        return [path for path in asked if path not in there]

    def add(self, record: Record) -> None:
        """Write the record of an image, and then its line."""
        text = json.dumps(record.as_dict(), indent=1) + "\n"
        _write_whole(self.file(record.path, ".json"), text)
        shares = [f"{share:.6g}" for share in record.probabilities.values()]
        _append(self.table, [record.path, record.label, *shares])

    def fail(self, path: str, reason: str) -> None:
        """Note an image that could not be predicted."""
        if not self.failed:
            _append(self.folder / FAILED, ["path", "reason"])
        self.failed[path] = reason
        _append(self.folder / FAILED, [path, reason])

    def _check(self, about: dict[str, Any]) -> None:
        if not (self.folder / ABOUT).exists():
            if self.folder.is_file() or self.table.exists():
                raise InputError(
                    f"cannot write predictions to {self.folder}: it is a file, or holds a {TABLE} "
                    "that `foveate predict` did not write; choose another --out"
                )
            return
        try:
            before = dict(json.loads((self.folder / ABOUT).read_text(encoding="utf-8")))
        except ValueError as error:
            raise InputError(
                f"cannot go on in {self.folder}: its {ABOUT} is damaged ({error}); "
                "choose another --out"
            ) from error
        for name in sorted({*before, *about} - _FREE):
            old, new = (_short(values.get(name)) for values in (before, about))
            if before.get(name) != about.get(name) and not self._is_empty():
                raise InputError(
                    f"{self.folder} holds predictions of {before.get('checkpoint')} with {name} "
                    f"{old}, and those of {about.get('checkpoint')} with {name} {new} do not "
                    "belong with them; choose another --out"
                )

    def _is_empty(self) -> bool:
        """Whether there is no line yet, so that the folder may be begun anew."""
        if not self.table.is_file():
            return True
        with self.table.open(**_TEXT) as file:
            return len(list(itertools.islice(csv.reader(file), 2))) < 2

    def _lines(self) -> Iterator[list[str]]:
        """The whole lines of the table; one that was cut off is left out."""
        if not self.table.is_file():
            return
        with self.table.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 1))
            is_whole = file.read() == b"\n"
        with self.table.open(**_TEXT) as file:
            lines = csv.reader(file)
            next(lines, None)
            last: list[str] = []
            for line in lines:
                if len(last) == len(self._header):
                    yield last
                last = line
            if is_whole and len(last) == len(self._header):
                yield last


def fingerprint(path: Path) -> str:
    """What tells the content of a file from any other."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _name_of(path: str) -> str:
    """A name for an image's files: its own, and a part of a hash of where it lies."""
    where = path if "://" in path else os.path.abspath(path)
    stem = re.sub(r"[^\w.-]+", "_", Path(path).stem)[:80]
    return f"{stem}-{hashlib.sha256(os.fsencode(where)).hexdigest()[:10]}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:12] + "…"


def _append(path: Path, line: list[str]) -> None:
    with path.open("a", **_TEXT) as file:
        csv.writer(file).writerow(line)


def _write_table(path: Path, *parts: Iterable[list[str]]) -> None:
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", **_TEXT) as file:
        for part in parts:
            csv.writer(file).writerows(part)
    os.replace(partial, path)


def _write_whole(path: Path, text: str) -> None:
    """Write a file that appears only when it is complete."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
