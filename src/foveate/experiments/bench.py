"""The benchmark: time and memory of a training step, for every method, side by side in one run.

Two settings of the paper: speed limits (960x1280 photographs, five patches of 100x100) and
histopathology (500x500 tissue, ten patches of 27x27). Each method is measured as PyTorch comes and
with all options that training turns on; ratios are taken within the run.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from foveate.experiments.cost import PLAIN, Cost, Options, Shape, measure_cost
from foveate.training import Settings, settings_for
from foveate.types import Size


@dataclass(frozen=True)
class Setting:
    """A task to measure on.

    Attributes:
        name: what to call it.
        dataset: whose preset the models have.
        size: height and width of the images.
        classes: how many classes.
        methods: what differs from the preset, by name.
    """

    name: str
    dataset: str
    size: Size
    classes: int
    methods: dict[str, dict[str, Any]]


TISSUE: dict[str, Any] = {
    "patch_size": (27, 27),
    "feature": "ilse",
    "attention": "conv",
    "jitter": 0.0,
}
"""The paper's networks and patches, whatever the data set's preset has become."""
SETTINGS = (
    Setting(
        "speed limits",
        "speed-limits",
        (960, 1280),
        4,
        {
            "ATS-5": {"n_patches": 5},
            "ATS-10": {"n_patches": 10},
            "U-5": {"method": "uniform", "n_patches": 5},
            "CNN": {"method": "cnn"},
            "MIL": {"method": "mil"},
        },
    ),
    Setting(
        "histopathology",
        "colon-cancer",
        (500, 500),
        2,
        {
            "ATS-10": TISSUE | {"n_patches": 10},
            "ATS-50": TISSUE | {"n_patches": 50},
            "U-10": TISSUE | {"method": "uniform", "n_patches": 10},
            "CNN": {"method": "cnn"},
            "MIL": TISSUE | {"method": "mil"},
        },
    ),
)
MEGAPIXELS = (1, 4, 16, 36, 64, 100)


@dataclass(frozen=True)
class Measured:
    """One line of the benchmark.

    Attributes:
        setting: of which task.
        method: of which model.
        batch_size: images in a step.
        megapixels: of an image.
        options: plain, or fast: all that training turns on.
        cost: what came out.
    """

    setting: str
    method: str
    batch_size: int
    megapixels: float
    options: str
    cost: Cost

    def as_dict(self) -> dict[str, Any]:
        """The line as plain values."""
        return dataclasses.asdict(self)


Told = Callable[[str], None]


def run_bench(
    device: torch.device, *, quick: bool = False, tell: Told | None = None
) -> list[Measured]:
    """Measure every method, at two batch sizes, and attention sampling at growing sizes.

    Args:
        device: where.
        quick: fewer repetitions, batch sizes and image sizes.
        tell: told before each measurement.
    """
    repeat = 3 if quick else 20
    lines = []
    for setting, method, batch_size, size, name in _cases(device, quick):
        if tell is not None:
            tell(f"{setting.name}, {method}, batch {batch_size}, {size[0]}x{size[1]}, {name}")
        options = PLAIN if name == "plain" else _fast(device)
        shape = Shape(size, 3, setting.classes, batch_size)
        settings = settings_of(setting, method)
        cost = measure_cost(settings, shape, device, options, repeat)
        megapixels = size[0] * size[1] / 1e6
        lines.append(Measured(setting.name, method, batch_size, megapixels, name, cost))
    return lines


def _fast(device: torch.device) -> Options:
    return Options(half=device.type == "cuda")


def settings_of(setting: Setting, method: str) -> Settings:
    """What a method of a setting is."""
    return settings_for(setting.dataset, **{"augment": False} | setting.methods[method])


def _cases(device: torch.device, quick: bool) -> Iterator[tuple[Setting, str, int, Size, str]]:
    # A CPU has nothing to gain from a large batch.
    batches = (1, 16) if device.type == "cuda" and not quick else (1,)
    for setting in SETTINGS[:1] if quick else SETTINGS:
        for method in setting.methods:
            if quick and method in ("ATS-10", "U-5"):
                continue
            for batch_size in batches:
                # Patience is short, and a CPU takes seconds for a step of plain PyTorch.
                alone = quick and (method == "CNN" or device.type == "cpu")
                for name in ("fast",) if alone else ("plain", "fast"):
                    yield setting, method, batch_size, setting.size, name
    roads = SETTINGS[0]
    for megapixels in MEGAPIXELS[: 2 if quick else None]:
        side = round(math.sqrt(megapixels * 1e6))
        yield roads, "ATS-5", 1, (side, side), "fast"


def bench_table(lines: list[Measured]) -> str:
    """The benchmark as Markdown: costs, and how many times those of attention sampling."""
    rows = [
        "| setting | method | batch | megapixels | options | ms / image | ± | MB / image "
        "| time, to ATS | memory, to ATS |",
        "|---" * 10 + "|",
    ]
    for line in lines:
        base = next(
            (
                other
                for other in lines
                if other.method.startswith("ATS")
                and (other.setting, other.batch_size, other.options, other.megapixels)
                == (line.setting, line.batch_size, line.options, line.megapixels)
            ),
            line,
        )
        cost = line.cost
        rows.append(
            f"| {line.setting} | {line.method} | {line.batch_size} | {line.megapixels:.3g} "
            f"| {line.options} | {cost.milliseconds:.3f} | {cost.spread:.3f} "
            f"| {cost.megabytes:.1f} | {cost.milliseconds / base.cost.milliseconds:.1f}x "
            f"| {_ratio(cost.megabytes, base.cost.megabytes)} |"
        )
    return "\n".join(rows) + "\n"


def _ratio(value: float, base: float) -> str:
    return f"{value / base:.1f}x" if base > 0 else ""


def draw_bench(lines: list[Measured], path: Path) -> Path:
    """Time and memory of every method as bars, and their growth with the image."""
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    time_axis, memory_axis, growth_axis = figure.subplots(1, 3)
    largest = max(line.batch_size for line in lines)
    usual = {setting.name: setting.size[0] * setting.size[1] / 1e6 for setting in SETTINGS}
    shown = [
        line
        for line in lines
        if line.batch_size == largest and line.megapixels == usual.get(line.setting)
    ]
    names = [f"{line.setting}, {line.method}, {line.options}" for line in shown]
    colours = ["tab:blue" if line.method.startswith("ATS") else "tab:gray" for line in shown]
    time_axis.barh(names, [line.cost.milliseconds for line in shown], color=colours)
    memory_axis.barh(names, [line.cost.megabytes for line in shown], color=colours)
    time_axis.set(title=f"ms per image, batch {largest}", xscale="log")
    memory_axis.set(title=f"MB per image, batch {largest}", xscale="log", yticks=[])
    time_axis.tick_params(axis="y", labelsize=7)
    time_axis.invert_yaxis()
    memory_axis.invert_yaxis()
    grown = [line for line in lines if line.batch_size == 1 and line.method == "ATS-5"]
    grown = sorted((line for line in grown if line.options == "fast"), key=lambda g: g.megapixels)
    if grown:
        base = grown[0].cost
        sizes = [line.megapixels for line in grown]
        times = [line.cost.milliseconds / base.milliseconds for line in grown]
        growth_axis.plot(sizes, times, marker="o", label="time")
        if base.megabytes > 0:
            memory = [line.cost.megabytes / base.megabytes for line in grown]
            growth_axis.plot(sizes, memory, marker="o", label="memory")
        growth_axis.legend(frameon=False)
    growth_axis.set(title="ATS-5, relative to the smallest", xlabel="megapixels")
    growth_axis.set_ylim(0, max(1.5, growth_axis.get_ylim()[1]))
    figure.savefig(path, dpi=150)
    return path
