"""Where the time of a training step goes, operation by operation.

    python benchmarks/step_profile.py [--batch-size 16] [--plain]

Both of the paper's settings; `--plain` is PyTorch as it comes. On a GPU the operations are its
kernels, of replayed steps; on a CPU they are PyTorch's own.
"""

from __future__ import annotations

import argparse

import torch
from torch.profiler import ProfilerActivity, profile

from foveate.experiments.bench import SETTINGS, settings_of
from foveate.experiments.cost import PLAIN, Options, Shape, prepare_step

STEPS = 10


def main() -> None:
    """Print a table for each setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    on_gpu = torch.cuda.is_available()
    parser.add_argument("--batch-size", type=int, default=16 if on_gpu else 1)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--rows", type=int, default=25)
    args = parser.parse_args()
    device = torch.device("cuda" if on_gpu else "cpu")
    options = PLAIN if args.plain else Options(half=on_gpu)
    for setting in SETTINGS:
        method = next(iter(setting.methods))
        shape = Shape(setting.size, 3, setting.classes, args.batch_size)
        step = prepare_step(settings_of(setting, method), shape, device, options)
        for _ in range(3):
            step()
        kind = ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU
        with profile(activities=[kind]) as profiler:
            for _ in range(STEPS):
                step()
            if on_gpu:
                torch.cuda.synchronize()
        own = "self_device_time_total" if on_gpu else "self_cpu_time_total"
        spans = sorted(profiler.key_averages(), key=lambda span: -getattr(span, own))
        total = sum(getattr(span, own) for span in spans) / STEPS
        print(f"\n{setting.name}, {method}, batch {args.batch_size}: {total / 1000:.2f} ms a step")
        for span in spans[: args.rows]:
            times = span.count / STEPS
            print(f"{getattr(span, own) / STEPS:10.1f} us  {times:6.1f} x  {span.key[:90]}")


if __name__ == "__main__":
    main()
