"""Which labels of a user's images can be learnt, and in which order their classes come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from foveate.datasets.problem import Problem
from foveate.datasets.table import Row


def repeated_labels(rows: Sequence[Row]) -> tuple[set[str], list[Problem]]:
    """The labels of two images or more, and those of one, which can not be trained and tested."""
    count = Counter(row.label for row in rows)
    problems = [
        Problem("one image", f"label {row.label}", f"only {row.name} has it; two are needed")
        for row in rows
        if count[row.label] == 1
    ]
    return {label for label in count if count[label] > 1}, problems


def known_labels(rows: Sequence[Row], classes: Iterable[str]) -> tuple[set[str], list[Problem]]:
    """The labels that a model knows, and those that it does not."""
    known = set(classes)
    count = Counter(row.label for row in rows if row.label not in known)
    problems = [
        Problem(
            "unknown label",
            f"label {label}",
            f"{number} images have it, and the model does not know it",
        )
        for label, number in count.items()
    ]
    return known, problems


def learnt_classes(
    labels: Iterable[str], training_labels: Iterable[str]
) -> tuple[tuple[str, ...], list[Problem]]:
    """The labels that training images have, in order, and those that none has.

    Args:
        labels: the label of every image.
        training_labels: those of the images to train on.

    Example:
        >>> learnt_classes(["100", "none", "50"], ["none", "100", "50"])[0]
        ('50', '100', 'none')
    """
    learnt = set(training_labels)
    count = Counter(label for label in labels if label not in learnt)
    problems = [
        Problem(
            "nothing to learn from",
            f"label {label}",
            f"none of its {number} images is for training and can be read",
        )
        for label, number in count.items()
    ]
    return tuple(sorted(learnt, key=_by_number)), problems


def _by_number(label: str) -> tuple[bool, int, str]:
    """Numbers by their value, before words."""
    number = label.isdecimal()
    return not number, int(label) if number else 0, label
