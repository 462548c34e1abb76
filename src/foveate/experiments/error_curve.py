"""The test error of a model while it is trained, as the paper draws it against time.

Nothing is chosen by it. The seconds that it takes are counted, so that they can be taken off.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path

from foveate.training import Classifier, logits_of

MOMENTS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Shares of a run's epochs after which its model is tested."""
_COLUMNS = ("epoch", "error", "seconds")


class ErrorCurve:
    """Tests a model after some of its epochs and writes down what came out.

    Args:
        path: the CSV file it goes to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def look(self, epochs: int, classifier: Classifier) -> None:
        """Test the model as it is after so many epochs."""
        of_all = classifier.settings.epochs
        if epochs not in {max(1, round(of_all * share)) for share in MOMENTS}:
            return
        start = time.perf_counter()
        data = classifier.trainer.datamodule  # type: ignore[attr-defined]
        called = logits_of(classifier, data).argmax(-1).cpu()
        error = (called != data.splits.test.labels).float().mean().item()
        rows = [row for row in read_error_curve(self.path) if row["epoch"] < epochs]
        rows.append(
            {"epoch": float(epochs), "error": error, "seconds": time.perf_counter() - start}
        )
        with self.path.open("w", newline="") as file:
            writer = csv.DictWriter(file, _COLUMNS)
            writer.writeheader()
            writer.writerows(rows)


def read_error_curve(path: Path) -> list[dict[str, float]]:
    """What was written down; nothing where there is no file."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def with_tests(
    curve: list[dict[str, float]], tests: list[dict[str, float]]
) -> list[dict[str, float]]:
    """A training curve with test errors, and without the seconds that they took.

    Example:
        >>> curve = [{"epoch": 1.0, "seconds": 5.0}, {"epoch": 2.0, "seconds": 12.0}]
        >>> with_tests(curve, [{"epoch": 1.0, "error": 0.5, "seconds": 2.0}])
        [{'epoch': 1.0, 'seconds': 5.0, 'test/error': 0.5}, {'epoch': 2.0, 'seconds': 10.0}]
    """
    found = {test["epoch"]: test for test in tests}
    spent = 0.0
    merged = []
    for point in curve:
        own = point | {"seconds": round(point["seconds"] - spent, 2)}
        if point["epoch"] in found:  # tested once the line was written
            own["test/error"] = found[point["epoch"]]["error"]
            spent += found[point["epoch"]]["seconds"]
        merged.append(own)
    return merged
