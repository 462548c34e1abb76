"""The memory that a forward pass needs beside the image, from 1 to 100 megapixels, at batch 1.

    python benchmarks/memory.py [--device cpu|cuda]

The speed-limit setting of the paper: overview 288x384, five patches of 100x100. On the CPU it is
the rise of the process's peak resident memory, each size in a process of its own; on a GPU, of
torch's peak allocation. Each size is the median of five runs.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

import foveate as fv
from foveate.models import PooledAttention, resnet8

MEGAPIXELS = [1, 4, 16, 36, 64, 100]
EXACT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
"""Makes glibc give freed memory back at once, so that resident memory is what is in use."""


def measure(megapixels: int, device: str) -> float:
    """Megabytes that one forward and backward pass adds to the image."""
    side = round(math.sqrt(megapixels) * 1000)
    model = fv.AttentionSampling(
        PooledAttention(3),
        resnet8(3),
        nn.Linear(32, 4),
        patch_size=(100, 100),
        n_patches=5,
        overview_size=(288, 384),
    ).to(device)
    small = torch.randint(0, 256, (1, 3, 1000, 1000), dtype=torch.uint8, device=device)
    for _ in range(3):  # what is loaded and kept for good is not the image's
        model(small).logits.sum().backward()
    del small
    image = torch.randint(0, 256, (1, 3, side, side), dtype=torch.uint8, device=device)
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        allocated = torch.cuda.memory_allocated()
        model(image).logits.sum().backward()
        return (torch.cuda.max_memory_allocated() - allocated) / 2**20
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    before = resident("VmRSS")
    model(image).logits.sum().backward()
    return resident("VmHWM") - before


def resident(field: str) -> float:
    """A line of this process's status, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(field))
    return int(kilobytes) / 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--one", type=int, metavar="MP", help="measure one size and print it")
    args = parser.parse_args()
    if args.one:
        print(measure(args.one, args.device))
        return
    print("| megapixels | image, MB | beside it, MB | to 1 megapixel |")
    print("|---|---|---|---|")
    first = None
    for megapixels in MEGAPIXELS:
        command = [sys.executable, __file__, "--device", args.device, "--one", str(megapixels)]
        runs = [float(subprocess.check_output(command, env=os.environ | EXACT)) for _ in range(5)]
        extra = statistics.median(runs)
        first = first or extra
        print(
            f"| {megapixels} | {3 * megapixels} | {extra:.1f} | {extra / first:.2f} |", flush=True
        )


if __name__ == "__main__":
    main()
