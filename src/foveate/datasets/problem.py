"""What is wrong with a user's data, one record for each thing that is wrong."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Problem:
    """Something in a table, or a file that it names, that is not as it should be.

    Attributes:
        kind: what it is in two or three words, such as "missing file".
        where: the file, line or label.
        what: what was found there.
        left_out: whether it is left out; what is not left out is only worth knowing.
    """

    kind: str
    where: str
    what: str
    left_out: bool = True

    def __str__(self) -> str:
        return f"{self.where}: {self.kind}, {self.what}"


def write_problems(problems: Iterable[Problem], path: Path) -> None:
    """Write problems as CSV, for whoever mends the data."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["where", "problem", "what", "left out"])
        for problem in problems:
            left_out = "yes" if problem.left_out else "no"
            writer.writerow([problem.where, problem.kind, problem.what, left_out])
