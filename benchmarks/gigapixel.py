"""Time and memory of predicting one image, from 1 megapixel to 1 gigapixel.

    python benchmarks/gigapixel.py [--quick] [--folder DIR] [--json FILE]

Images are pyramidal TIFF files with JPEG tiles of 512x512. They are put together of a few textured
tiles that are encoded once, on every level: what they show is nonsense, but what it takes to find,
read and decode them is that of a slide. The model has the sizes that foveate chooses for gigapixel
images (overview 512x512, 10 patches of 128x128) and is not trained: the time is the same.

Each size is predicted in a process of its own, by what `foveate predict` runs. Seconds are the
median of nine predictions after two for warming up, each with the file opened and its tiles decoded
anew; the operating system has the file in memory. "Reading" is what of it goes to opening the file
and decoding overview and patches, measured by itself. Memory is the peak of the process less what
it has after `import foveate`, so all that predicting imports is in it.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SIDES = [1024, 2048, 4096, 8192, 16384, 32768]
TILE = 512
OVERVIEW, PATCH = (512, 512), (128, 128)
WARM_UP, TIMES = 2, 9
SECONDS_TARGET, MEMORY_TARGET = 3.0, 600.0


def write_image(path: Path, side: int) -> None:
    """Write a square image, tile by tile."""
    import tifffile

    tiles = _encoded_tiles()
    sides = [side >> level for level in range(20) if side >> level >= TILE // 2]
    options: dict[str, Any] = {
        "dtype": "uint8",
        "tile": (TILE, TILE),
        "photometric": "ycbcr",
        "subsampling": (2, 2),
        "compression": "jpeg",
        "metadata": None,
    }

    def chosen(level: int, length: int) -> Iterator[bytes]:
        count = -(-length // TILE)
        for number in range(count * count):
            yield tiles[(7 * number + number // count + level) % len(tiles)]

    with tifffile.TiffWriter(path, bigtiff=True) as tiff:
        for level, length in enumerate(sides):
            tiff.write(
                chosen(level, length),
                shape=(length, length, 3),
                subfiletype=0 if level == 0 else 1,
                **options,
            )


def _encoded_tiles() -> list[bytes]:
    """Sixteen tiles with structure at every scale, as JPEG."""
    import numpy as np
    from PIL import Image

    chance = np.random.default_rng(0)
    tiles = []
    for _ in range(16):
        texture = np.zeros((TILE, TILE, 3))
        for step in (4, 16, 64, 128):
            coarse = chance.normal(0, 20, (TILE // step, TILE // step, 3))
            texture += coarse.repeat(step, 0).repeat(step, 1)
        colour = np.array([200.0, 150.0, 190.0])
        pixels = np.clip(colour + texture, 0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=80, subsampling="4:2:0")
        tiles.append(file.getvalue())
    return tiles


def write_checkpoint(path: Path) -> None:
    """An untrained model, as `foveate train` would have left it."""
    import torch

    from foveate.training import Classifier, build_model, settings_for

    torch.manual_seed(0)
    settings = settings_for(
        "manifest",
        overview_size=OVERVIEW,
        patch_size=PATCH,
        n_patches=10,
        attention="pooled",
    )
    classifier = Classifier(build_model(settings, 3, 2), settings, ("no", "yes"), 3)
    content = {"hyper_parameters": dict(classifier.hparams), "state_dict": classifier.state_dict()}
    torch.save(content, path)


def measure(checkpoint: Path, image: Path) -> dict[str, float]:
    """Seconds and megabytes of a prediction, in this process."""
    import foveate

    before = resident("VmRSS")
    from foveate.training import Predicted, load_classifier, predict_images

    classifier = load_classifier(checkpoint)
    seconds, reading = [], []
    for _ in range(WARM_UP + TIMES):
        start = time.perf_counter()
        (seen,) = predict_images(classifier, [str(image)], device="cpu")
        seconds.append(time.perf_counter() - start)
        if not isinstance(seen, Predicted) or seen.out.yx_level0 is None:
            raise SystemExit(f"{image} could not be predicted: {seen}")
        start = time.perf_counter()
        with foveate.open_image(image, channels=3) as opened:
            opened.overview(OVERVIEW)
            opened.read_patches(seen.out.yx_level0[0], PATCH)
        reading.append(time.perf_counter() - start)
    return {
        "seconds": statistics.median(seconds[WARM_UP:]),
        "reading": statistics.median(reading[WARM_UP:]),
        "imported": before,
        "memory": resident("VmHWM") - before,
    }


def resident(field: str) -> float:
    """A line of this process's status, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(field))
    return int(kilobytes) / 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the largest")
    parser.add_argument("--folder", type=Path, help="keep the images here, and use those there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--one", nargs=2, type=Path, metavar="FILE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(*args.one)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        rows = measure_all(folder, SIDES[:-1] if args.quick else SIDES)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")
    ratio, memory = rows[-1]["ratio"], max(row["memory"] for row in rows)
    print(
        f"\n{ratio:.2f} times the seconds of the first (target: at most {SECONDS_TARGET:g}), "
        f"{memory:.0f} MB at most (target: {MEMORY_TARGET:g})"
    )


def measure_all(folder: Path, sides: list[int]) -> list[dict[str, float]]:
    """Measure each size in a process of its own, and print a row for each."""
    checkpoint = folder / "untrained.ckpt"
    write_checkpoint(checkpoint)
    print("| megapixels | file, MB | seconds | to the first | reading, s | memory, MB |")
    print("|---|---|---|---|---|---|")
    rows: list[dict[str, float]] = []
    for side in sides:
        image = folder / f"{side}.tif"
        if not image.is_file():
            write_image(image, side)
        command = [sys.executable, __file__, "--one", str(checkpoint), str(image)]
        row = json.loads(subprocess.check_output(command))
        row |= {"side": side, "megapixels": side * side / 1e6, "file": image.stat().st_size / 1e6}
        row["ratio"] = row["seconds"] / (rows[0] if rows else row)["seconds"]
        rows.append(row)
        print(
            f"| {row['megapixels']:,.0f} | {row['file']:,.1f} | {row['seconds']:.3f} "
            f"| {row['ratio']:.2f} | {row['reading']:.3f} | {row['memory']:.0f} |",
            flush=True,
        )
    return rows


if __name__ == "__main__":
    main()
