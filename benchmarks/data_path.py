"""Steps per second of training on images in files, beside those of the same images in memory.

    python benchmarks/data_path.py [--format jpeg|tiff|raw] [--device auto] [--quick] [--json FILE]

A folder of image files is trained on as `foveate train FOLDER` does, with the sizes it chooses:
with all images in memory (the step's own rate), with patches read from the files when a step needs
them, and with those of coming steps read while the current one computes (`--read-ahead`). The
three take turns, and each figure is the median of their rounds. Overviews are known, as they are by
default; decoded images and tiles are not kept (no cache), as in training on more than fits.

JPEG files are decoded as a whole for any patch; TIFF files have tiles of 256x256, deflated or, if
raw, as they are.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import lightning as L
import numpy as np
import torch
from PIL import Image

from foveate.datasets import Manifest, Splits
from foveate.images import reading_processes, set_cache_limit
from foveate.images.files.helpers import helpers
from foveate.training import Hardware, ImageData, Settings, new_classifier, settings_for_manifest
from foveate.training.settings import STEPS_AHEAD
from foveate.training.trainer import make_trainer, quieten_lightning, speed_up

WARM_UP = 4
WAYS = {"in memory": True, "from files": False, "from files, read ahead": True}
"""What is compared, and its setting `read_ahead`; of images in memory none is read."""
GOAL = 0.8


def generate(folder: Path, images: int, size: int, kind: str) -> Path:
    """Write images of soft blots in two colours, which compress like photographs, and a table."""
    chance = np.random.default_rng(0)
    lines = ["path,label,split"]
    for i in range(images + 8):
        small = chance.integers(0, 256, (size // 16 + 1, size // 16 + 1, 3), dtype=np.uint8)
        small[..., i % 2] //= 2
        picture = Image.fromarray(small).resize((size, size), Image.Resampling.BICUBIC)
        if kind == "jpeg":
            name = f"{i}.jpg"
            picture.save(folder / name, quality=90)
        else:
            import tifffile

            name = f"{i}.tif"
            pixels = np.asarray(picture)
            packed = "zlib" if kind == "tiff" else None
            tifffile.imwrite(
                folder / name, pixels, tile=(256, 256), compression=packed, photometric="rgb"
            )
        part = "train" if i < images else ("validation", "test")[i // 2 % 2]
        lines.append(f"{name},{'ab'[i % 2]},{part}")
    (folder / "labels.csv").write_text("\n".join(lines))
    return folder / "labels.csv"


class Clock(L.Callback):
    """Times the steps of an epoch after the first few."""

    def __init__(self) -> None:
        self.rate = 0.0
        self._start = 0.0

    def on_train_batch_end(self, trainer: L.Trainer, *args: Any) -> None:
        """Starts, or stops at the last step."""
        step = trainer.global_step
        if step == WARM_UP or trainer.is_last_batch:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if step == WARM_UP:
                self._start = time.perf_counter()
            else:
                self.rate = (step - WARM_UP) / (time.perf_counter() - self._start)


def steps_per_second(settings: Settings, splits: Splits, folder: Path, hardware: Hardware) -> float:
    """Train for an epoch and time its steps."""
    clock = Clock()
    L.seed_everything(0, verbose=False)
    classifier = new_classifier(settings, splits)
    data = ImageData(
        splits,
        settings.batch_size,
        workers=hardware.workers,
        passes=settings.passes,
        steps_ahead=settings.steps_ahead,
    )
    with warnings.catch_warnings():
        quieten_lightning()
        trainer = make_trainer(settings, folder, hardware, progress=False)
        trainer.callbacks.append(clock)  # type: ignore[attr-defined]
        speed_up(classifier, trainer, hardware)
        trainer.fit(classifier, datamodule=data)
    return clock.rate


def measure(args: argparse.Namespace, folder: Path) -> dict[str, float]:
    """The median steps per second of each way."""
    table = generate(folder, args.images, args.size, args.format)
    manifest = Manifest(table)
    per_pass = args.images // args.batch_size
    settings = settings_for_manifest(
        manifest,
        epochs=1,
        batch_size=args.batch_size,
        passes=-(-(WARM_UP + args.steps) // per_pass),
        augment=not args.plain,
        steps_ahead=args.steps_ahead,
    )
    height, width = settings.overview_size
    overviews = len(manifest.images) * 3 * height * width
    in_files = manifest.load(settings.overview_size, memory=overviews)
    in_memory = Manifest(table).load(settings.overview_size, memory=2**40)
    hardware = Hardware(args.device, "1", workers=args.workers, readers=args.readers)
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    with reading_processes(hardware.chosen_readers):
        while hardware.chosen_readers and helpers() is None:
            time.sleep(0.1)  # until all have started
        for number in range(args.rounds):
            for way, ahead in WAYS.items():
                splits = in_memory if way == "in memory" else in_files
                chosen = dataclasses.replace(settings, read_ahead=ahead)
                out = folder / f"{number}-{way}"
                rates[way].append(steps_per_second(chosen, splits, out, hardware))
    return {way: statistics.median(values) for way, values in rates.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=["jpeg", "tiff", "raw"], default="jpeg")
    parser.add_argument("--device", default="auto", help="cpu, gpu or auto")
    parser.add_argument("--images", type=int, default=48, help="to train on")
    parser.add_argument("--size", type=int, default=1000, help="side of an image, in pixels")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=60, help="that are timed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0, help="processes that read overviews")
    parser.add_argument("--readers", type=int, help="processes that read patches of files")
    parser.add_argument(
        "--steps-ahead", type=int, default=STEPS_AHEAD, help="that patches are read before"
    )
    parser.add_argument("--plain", action="store_true", help="without augmentation")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller, in a minute")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    args = parser.parse_args()
    if args.quick:
        args.images, args.size, args.batch_size, args.steps, args.rounds = 16, 640, 4, 8, 3
    set_cache_limit(0)
    with tempfile.TemporaryDirectory() as folder:
        rates = measure(args, Path(folder))
    own = rates["in memory"]
    print(
        f"| {args.format}, {args.images} images of {args.size}x{args.size}, batch "
        f"{args.batch_size} | steps/s | share of the step's own rate |\n|---|---|---|"
    )
    for way, rate in rates.items():
        print(f"| {way} | {rate:.2f} | {rate / own:.0%} |")
    # What `foveate train` does unless asked otherwise.
    usual = "from files, read ahead" if Hardware(args.device).on_gpu else "from files"
    reached = rates[usual] >= GOAL * own
    print(f"\nthe goal of {GOAL:.0%} is {'reached' if reached else 'missed'} {usual}")
    if args.json:
        machine = f"{platform.machine()}, {os.cpu_count()} cores"
        device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
        options = {name: str(value) for name, value in vars(args).items()}
        figures = {"machine": machine, "device": device, "options": options, "steps/s": rates}
        args.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
