"""Loss, error and attention entropy over the seconds of training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure


def draw_curves(rows: Sequence[dict[str, str]], path: Path) -> None:
    """Draw a run's log as a picture.

    Args:
        rows: one for each epoch, with the columns of the training log.
        path: where to write the picture.
    """
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    axes = figure.subplots(1, 3)
    panels = [
        ("cross-entropy", ("train/loss", "validation/loss")),
        ("error", ("train/error", "validation/error")),
        ("entropy of the attention, nats", ("train/entropy",)),
    ]
    for axis, (title, columns) in zip(axes, panels, strict=True):
        for column in columns:
            points = [(float(row["seconds"]), float(row[column])) for row in rows if row[column]]
            if points:
                axis.plot(*zip(*points, strict=True), marker=".", label=column.split("/")[0])
        axis.set(title=title, xlabel="seconds of training")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        if axis.lines:
            axis.legend(frameon=False)
    figure.savefig(path, dpi=150)
