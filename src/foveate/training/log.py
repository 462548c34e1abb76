"""One line of CSV for each epoch, which goes on where it was when a run is resumed."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import lightning as L

COLUMNS = (
    "epoch",
    "step",
    "seconds",
    "train/loss",
    "train/error",
    "train/entropy",
    "validation/loss",
    "validation/error",
)


class EpochLog(L.Callback):
    """Writes what was measured in each epoch, and the seconds of training so far.

    Args:
        path: the CSV file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, str]] = []
        self.started = 0.0
        self.seconds = 0.0

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Keeps the lines of the epochs that a resumed run has behind it."""
        self.rows, self.seconds = [], 0.0
        if self.path.is_file() and trainer.current_epoch > 0:
            rows = read_log(self.path)
            self.rows = [row for row in rows if int(row["epoch"]) <= trainer.current_epoch]
            self.seconds = float(self.rows[-1]["seconds"]) if self.rows else 0.0
        self.started = time.perf_counter()

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Adds a line."""
        seconds = self.seconds + time.perf_counter() - self.started
        values = {name: f"{float(value):.6g}" for name, value in trainer.callback_metrics.items()}
        values |= {
            "epoch": str(trainer.current_epoch + 1),
            "step": str(trainer.global_step),
            "seconds": f"{seconds:.2f}",
        }
        self.rows.append({name: values.get(name, "") for name in COLUMNS})
        if trainer.is_global_zero:
            with self.path.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS)
                writer.writeheader()
                writer.writerows(self.rows)


def read_log(path: Path) -> list[dict[str, str]]:
    """The lines of a log."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
