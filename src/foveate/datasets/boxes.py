"""Boxes around what decides a label, which some users have: to check a model, never to train it."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from foveate.datasets.problem import Problem
from foveate.datasets.table import Row, file_of
from foveate.types import Float64

_COLUMNS = ("path", "label", "x0", "y0", "x1", "y1")


def read_boxes(
    path: Path, rows: Sequence[Row]
) -> tuple[dict[int, Float64[Tensor, "_ 4"]], list[Problem]]:
    """Read the boxes that carry their image's own label.

    Args:
        path: a CSV file with the columns path,label,x0,y0,x1,y1; there need not be one.
        rows: the images.

    Returns:
        The boxes (y0, x0, y1, x1) of each image that has any, by the number of its row, and what is
        wrong with the file, if anything.
    """
    if not path.is_file():
        return {}, []
    number_of = {(row.path, row.label): number for number, row in enumerate(rows)}
    boxes: dict[int, list[list[float]]] = defaultdict(list)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line in csv.DictReader(file):
                name, label, *sides = (line[column] or "" for column in _COLUMNS)
                x0, y0, x1, y1 = map(float, sides)
                number = number_of.get((file_of(path.parent, name.strip()), label.strip()))
                if number is not None:
                    boxes[number].append([y0, x0, y1, x1])
    except (OSError, KeyError, ValueError, csv.Error) as error:
        reason = f"no column {error}" if isinstance(error, KeyError) else str(error)
        what = f"is not read, as boxes are rows of {','.join(_COLUMNS)} ({reason})"
        return {}, [Problem("boxes", path.name, what, left_out=False)]
    return {n: torch.tensor(found, dtype=torch.float64) for n, found in boxes.items()}, []
