"""One run of a plan, and what came out of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from foveate.training import Settings


@dataclass(frozen=True)
class Trial:
    """A run to be made.

    Attributes:
        name: what to call it; no two trials of a plan have the same.
        settings: everything about it.
        snapshots: whether to keep pictures of its attention as it evolves.
        drawn: whether its test error is drawn against time, and so measured on the way.
    """

    name: str
    settings: Settings
    snapshots: bool = False
    drawn: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came out of a trial.

    Attributes:
        name: the trial's.
        settings: its settings, as plain values.
        machine: what it ran on.
        date: when it ended.
        seconds: how long training took.
        train_loss: cross-entropy of the last epoch's steps.
        test_loss: cross-entropy of the test images.
        test_error: share of the test images that were called wrong.
        balanced_error: the mean over classes of that share.
        pointing: where the model looked, against the truth; empty where that is not known.
        cost: milliseconds and megabytes of a training step for each image; empty if not measured.
        curve: loss and error after each epoch, with the seconds until then.
    """

    name: str
    settings: dict[str, Any]
    machine: str
    date: str
    seconds: float
    train_loss: float
    test_loss: float
    test_error: float
    balanced_error: float
    pointing: dict[str, float] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)
    curve: list[dict[str, float]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The outcome as plain values."""
        return dataclasses.asdict(self)
