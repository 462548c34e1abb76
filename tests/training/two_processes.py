"""Trains the same model in one process and in two; run by test_training.py as a program.

usage: two_processes.py FOLDER PROCESSES
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from foveate.datasets import MajorityTask, Splits
from foveate.training import Hardware, settings_for, train


def main() -> None:
    folder, processes = Path(sys.argv[1]), int(sys.argv[2])
    labels = torch.arange(40) % 10
    pixels = (20 * (labels + 1)).byte()[:, None, None].expand(40, 12, 12).contiguous()
    task = MajorityTask(size=(96, 96), noise=2)
    counts = (24, 11, 13)  # neither eleven nor thirteen can be dealt out evenly
    made = [task.make(pixels.numpy(), labels.numpy(), n, seed) for seed, n in enumerate(counts)]
    settings = settings_for(
        "digits",
        epochs=2,
        batch_size=8 // processes,
        n_patches=4,
        patch_size=(16, 16),
        overview_size=(24, 24),
        feature="lenet",  # batch norm would see each process's own images only
        sampler="topk",  # and so would chance
    )
    strategy = "auto" if processes == 1 else "ddp_spawn"
    hardware = Hardware("cpu", str(processes), strategy=strategy)
    run = train(settings, folder, hardware, progress=False, splits=Splits(*made))
    (folder / "error.txt").write_text(str(run.metrics["test/error"]))


if __name__ == "__main__":
    main()
