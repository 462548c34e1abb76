"""Speed limits on photographs of roads: which limit does the scene show, if any?

Two sets: the Swedish traffic signs (Larsson & Felsberg 2011) with the four classes of
Katharopoulos & Fleuret (2019), and the German Traffic Sign Detection Benchmark (Houben et al. 2013)
with one label per scene.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import torch
from torch import Tensor

from foveate.datasets.dataset import Splits, Subset
from foveate.datasets.folder import FileDataset, check_present
from foveate.datasets.splits import stratified_split
from foveate.errors import DataError, InputError

_SWEDISH = "the Computer Vision Laboratory, Linköping University (Swedish traffic signs)"
_GERMAN = "the German Traffic Sign Detection Benchmark"
_SETS = {"train": "Set1", "test": "Set2"}
_LIMITS = {"50_SIGN": "50", "70_SIGN": "70", "80_SIGN": "80"}

Box = tuple[float, float, float, float]
"""(y0, x0, y1, x1) at level 0."""


class SpeedLimits(FileDataset):
    """Swedish roads: 960x1280 photographs of the classes none, 50, 70 and 80.

    A photograph without signs is `none`. Any other has the limit of the largest of its visible
    50, 70 and 80 signs, and is left out if it has none of them. The truth is the visible signs of
    that limit.

    Args:
        root: the folder in which `Set1` and `Set2` lie, each with its `annotations.txt`.
        part: "train" for Set1 or "test" for Set2.
        keep: whether decoded images stay in memory, 3.7 MB each.

    Raises:
        InputError: for another part.
        DataError: where the data is missing or damaged.
    """

    def __init__(self, root: str | PathLike[str], part: str, keep: bool = False) -> None:
        if part not in _SETS:
            raise InputError(f"the parts of SpeedLimits are 'train' and 'test', not {part!r}")
        folder = Path(root) / _SETS[part]
        annotations = folder / "annotations.txt"
        check_present([annotations], _SWEDISH)
        classes = ("none", *_LIMITS.values())
        names: list[str] = []
        labels: list[int] = []
        boxes: list[Tensor] = []
        for name, signs in _read_annotations(annotations):
            limit = _limit_of(signs)
            if limit is not None:
                names.append(name)
                labels.append(classes.index(limit))
                boxes.append(_boxes([sign.box for sign in signs if sign.shows(limit)]))
        if not names:
            raise DataError(
                f"{annotations} names no image of any class ({', '.join(classes)}); "
                f"get the data set from {_SWEDISH}"
            )
        # The archives of the data set unpack to either place, depending on who unpacks them.
        inner = folder / f"{folder.name}Part0"
        paths = [inner / name if (inner / name).is_file() else folder / name for name in names]
        check_present(paths, _SWEDISH)
        super().__init__(paths, labels, classes, boxes, keep=keep)


def speed_limits_splits(root: str | PathLike[str], seed: int = 0, keep: bool = False) -> Splits:
    """Set1 for training, less 15 % of each class for validation, and Set2 for the test.

    Args:
        root: as for `SpeedLimits`.
        seed: decides which image goes where.
        keep: whether decoded images stay in memory.

    Raises:
        DataError: where the data is missing or damaged.
    """
    whole = SpeedLimits(root, "train", keep)
    train, validation = stratified_split(whole.labels, share=0.15, seed=seed)
    return Splits(Subset(whole, train), Subset(whole, validation), SpeedLimits(root, "test", keep))


class GtsdbSpeedLimits(FileDataset):
    """German roads: 800x1360 photographs labelled with the limit that they show, or none.

    The classes are `none` and then the limits that occur, rising. The truth is the boxes of
    `boxes.csv` with the image's own limit; without that file it is not known.

    Args:
        root: the folder with `labels.csv` (path,label), whose paths start there, and perhaps
            `boxes.csv` (path,label,x0,y0,x1,y1).
        keep: whether decoded images stay in memory, 3.3 MB each.

    Raises:
        DataError: where the data is missing or damaged.
    """

    def __init__(self, root: str | PathLike[str], keep: bool = False) -> None:
        root = Path(root)
        label_of: dict[str, str] = {}
        for where, path, label in _read_table(root / "labels.csv", "path", "label"):
            if path in label_of or not (label == "none" or label.isdecimal()):
                raise DataError(
                    f"{where} must give a new path the label none or a speed limit, "
                    f"but says {path!r}, {label!r}; correct the line"
                )
            label_of[path] = label
        if not label_of:
            raise DataError(f"{root / 'labels.csv'} names no image; add lines of path,label")
        paths = [root / path for path in label_of]
        check_present(paths, _GERMAN)
        limits = sorted(set(label_of.values()) - {"none"}, key=int)
        classes = ("none", *limits)
        super().__init__(
            paths,
            labels=[classes.index(label) for label in label_of.values()],
            classes=classes,
            boxes=_read_boxes(root / "boxes.csv", label_of),
            keep=keep,
        )


def gtsdb_speed_limits_splits(
    root: str | PathLike[str], seed: int = 0, keep: bool = False
) -> Splits:
    """70 % of each class for training, 15 % for validation, 15 % for the test.

    Args:
        root: as for `GtsdbSpeedLimits`.
        seed: decides which image goes where.
        keep: whether decoded images stay in memory.

    Raises:
        DataError: where the data is missing or damaged.
    """
    whole = GtsdbSpeedLimits(root, keep)
    train, rest = stratified_split(whole.labels, share=0.3, seed=seed)
    labels = whole.labels[torch.tensor(rest, dtype=torch.int64)]
    validation, test = stratified_split(labels, share=0.5, seed=seed)
    return Splits(
        train=Subset(whole, train),
        validation=Subset(whole, [rest[i] for i in validation]),
        test=Subset(whole, [rest[i] for i in test]),
    )


@dataclass(frozen=True)
class _Sign:
    name: str
    visibility: str
    box: Box

    def shows(self, limit: str) -> bool:
        return self.visibility == "VISIBLE" and _LIMITS.get(self.name) == limit

    def area(self) -> float:
        y0, x0, y1, x1 = self.box
        return (y1 - y0) * (x1 - x0)


def _limit_of(signs: list[_Sign]) -> str | None:
    """The class of a photograph with these signs; None where it is left out."""
    if not signs:
        return "none"
    # The paper ranks signs that are blurred, in a side road or covered too, but then leaves out
    # every photograph whose best sign is one of them: so only those in plain sight matter.
    clear = [sign for sign in signs if any(map(sign.shows, _LIMITS.values()))]
    return _LIMITS[max(clear, key=_Sign.area).name] if clear else None


def _read_annotations(path: Path) -> Iterator[tuple[str, list[_Sign]]]:
    """Each image's name and signs, from lines `name:sign;sign;`."""
    # Stray bytes stand behind some numbers, where they are dropped: they do not stop the reading.
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        name, colon, rest = line.partition(":")
        # An entry MISC_SIGNS says that there are signs nobody marked, and nothing more.
        entries = [[field.strip() for field in entry.split(",")] for entry in rest.split(";")]
        try:
            if not (colon and name.strip()):
                raise ValueError("no name before a colon")
            signs = [_parse_sign(entry) for entry in entries if entry[0] not in ("", "MISC_SIGNS")]
        except ValueError as error:
            raise DataError(
                f"cannot read line {number} of {path}: {error} in {line!r}; "
                f"get the data set again from {_SWEDISH}"
            ) from None
        yield name.strip(), signs


def _parse_sign(fields: list[str]) -> _Sign:
    if len(fields) < 7:
        raise ValueError(f"a sign of {len(fields)} fields, not 7,")
    visibility, *sides, _, name = fields[:7]
    x1, y1, x0, y0 = map(_leading_number, sides)
    return _Sign(name, visibility, (y0, x0, y1, x1))


def _leading_number(text: str) -> float:
    found = re.match(r"[-+]?\d+(\.\d*)?", text)
    if found is None:
        raise ValueError(f"{text!r} instead of a number")
    return float(found[0])


def _read_table(path: Path, *columns: str) -> Iterator[tuple[str, ...]]:
    """For each line of a CSV file: where it stands, and its fields of these columns."""
    check_present([path], _GERMAN)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = csv.DictReader(file)
        if not set(columns) <= set(rows.fieldnames or ()):
            raise DataError(
                f"{path} must have the columns {','.join(columns)} in its first line, "
                f"but has {','.join(rows.fieldnames or ()) or 'none'}; add them"
            )
        for row in rows:
            yield f"line {rows.line_num} of {path}", *(row[column] or "" for column in columns)


def _read_boxes(path: Path, label_of: dict[str, str]) -> list[Tensor] | None:
    """The boxes of each image that carry its own label; None where there is no such file."""
    if not path.is_file():
        return None
    boxes: dict[str, list[Box]] = defaultdict(list)
    for where, image, label, *sides in _read_table(path, "path", "label", "x0", "y0", "x1", "y1"):
        try:
            x0, y0, x1, y1 = (float(side) for side in sides)
        except ValueError:
            raise DataError(
                f"{where} must give a box in numbers, but says {', '.join(sides)}; correct the line"
            ) from None
        if label_of.get(image) == label:
            boxes[image].append((y0, x0, y1, x1))
    return [_boxes(boxes[image]) for image in label_of]


def _boxes(boxes: list[Box]) -> Tensor:
    return torch.tensor(boxes, dtype=torch.float64).reshape(-1, 4)
