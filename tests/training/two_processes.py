"""Trains the same model in one process and in two; run by test_training.py as a program.

usage: two_processes.py FOLDER PROCESSES [TABLE]

With a table, images are read from their files, and ahead.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from foveate.datasets import MajorityTask, Manifest, Splits
from foveate.training import Hardware, settings_for, train


def composed() -> Splits:
    labels = torch.arange(40) % 10
    pixels = (20 * (labels + 1)).byte()[:, None, None].expand(40, 12, 12).contiguous()
    task = MajorityTask(size=(96, 96), noise=2)
    counts = (24, 11, 13)  # neither eleven nor thirteen can be dealt out evenly
    made = [task.make(pixels.numpy(), labels.numpy(), n, seed) for seed, n in enumerate(counts)]
    return Splits(*made)


def train_in(folder: Path, processes: int, table: Path | None = None) -> None:
    options: dict[str, Any] = {  # all of it drawn for the combined batch
        "sampler": "systematic",
        "augment": True,
        "jitter": 0.2,
    }
    splits = composed()
    if table is not None:
        splits = Manifest(table).load((24, 24), memory=0)
        options = {"attention": "pooled"}  # four cells, and all of them are drawn
    settings = settings_for(
        "digits",
        epochs=2,
        batch_size=(8 if table is None else 4) // processes,
        n_patches=4,
        patch_size=(16, 16),
        overview_size=(24, 24),
        feature="lenet",  # batch norm would see each process's own images only
        **options,
    )
    strategy = "auto" if processes == 1 else "ddp_spawn"
    hardware = Hardware("cpu", str(processes), strategy=strategy)
    run = train(settings, folder, hardware, progress=False, splits=splits)
    (folder / "error.txt").write_text(str(run.metrics["test/error"]))


if __name__ == "__main__":
    train_in(Path(sys.argv[1]), int(sys.argv[2]), *map(Path, sys.argv[3:]))
