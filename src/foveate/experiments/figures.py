"""Results as pictures: curves over time, ablations, evolving attention, MIL beside ATS."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter
from torch import Tensor

from foveate.datasets import ImageDataset
from foveate.experiments.plans import Plan, Rows
from foveate.experiments.results import RESULTS
from foveate.experiments.snapshots import Snapshots
from foveate.experiments.trial import Outcome
from foveate.training import Classifier, build_splits, load_classifier

Outcomes = dict[str, Outcome]
_COMPARED = 4
"""Images whose attention is drawn beside the truth."""


def draw_figures(plan: Plan, outcomes: Outcomes, folder: Path) -> list[Path]:
    """Draw all that a plan's results allow.

    Args:
        plan: the plan.
        outcomes: what its runs came to.
        folder: where `results.json` and the runs are; figures go there too.

    Returns:
        The pictures. Those that need a run's weights are left out where they are gone.
    """
    assert (folder / RESULTS).is_file()
    drawn = []
    if plan.curves:
        drawn.append(draw_training(plan.curves, outcomes, folder / "curves.png"))
    for name, rows in (("entropy", plan.entropy), ("patches", plan.patches)):
        if rows:
            drawn.append(draw_training(rows, outcomes, folder / f"{name}.png"))
    looked = {row: names for row, names in plan.table.items() if outcomes[names[0]].pointing}
    if looked:
        drawn.append(draw_pointing(looked, outcomes, folder / "pointing.png"))
    drawn += _draw_evolution(plan, folder)
    drawn += _draw_compared(plan, folder)
    return drawn


def draw_training(rows: Rows, outcomes: Outcomes, path: Path) -> Path:
    """Training loss and test error against seconds, the first run of each row."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for row, names in rows.items():
        curve = outcomes[names[0]].curve
        seconds = [point["seconds"] for point in curve]
        marker = "." if len(curve) < 40 else ""
        left.plot(seconds, [point["train/loss"] for point in curve], marker=marker, label=row)
        tested = [point for point in curve if "test/error" in point]
        right.plot(
            [point["seconds"] for point in tested],
            [100 * point["test/error"] for point in tested],
            marker=".",
            label=row,
        )
    left.set(title="training loss", xlabel="seconds of training", yscale="log")
    right.set(title="test error, %", xlabel="seconds of training", ylim=(0, None))
    for axis in (left, right):
        axis.set_xscale("log")
        axis.grid(alpha=0.3)
    for scale in (left.xaxis, right.xaxis, left.yaxis):
        scale.set_major_locator(LogLocator(subs=(1, 2, 5)))
        scale.set_major_formatter("{x:g}")
        scale.set_minor_formatter(NullFormatter())
    right.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=150)
    return path


def draw_pointing(rows: Rows, outcomes: Outcomes, path: Path) -> Path:
    """How much of the attention and of the patches lies on the truth."""
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axis = figure.subplots()
    kinds = {"mass": "attention on the truth", "patches": "patches on it", "found": "images found"}
    width = 0.8 / len(kinds)
    for number, (key, label) in enumerate(kinds.items()):
        heights = [_mean_pointing(outcomes, names, key) for names in rows.values()]
        places = np.arange(len(rows)) + (number - 1) * width
        axis.bar(places, [100 * height for height in heights], width, label=label)
    even = [100 * _mean_pointing(outcomes, names, "chance") for names in rows.values()]
    axis.plot(np.arange(len(rows)), even, "k_", markersize=24, label="even attention")
    axis.set_xticks(np.arange(len(rows)), list(rows), rotation=20, ha="right")
    axis.set(ylabel="%", ylim=(0, 105))
    axis.legend(
        frameon=False, fontsize="small", ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1)
    )
    figure.savefig(path, dpi=150)
    return path


def _mean_pointing(outcomes: Outcomes, names: list[str], key: str) -> float:
    return statistics.mean(outcomes[name].pointing[key] for name in names)


def _draw_evolution(plan: Plan, folder: Path) -> list[Path]:
    for name, trial in plan.trials.items():
        looks = Snapshots.load(folder / "runs" / name / "snapshots") if trial.snapshots else {}
        if len(looks) < 2:
            continue
        data = build_splits(trial.settings).test
        count = len(next(iter(looks.values())))
        figure = _figure_of(data, rows=count, columns=len(looks) + 1, inches=2.4)
        axes = figure.subplots(count, len(looks) + 1, squeeze=False)
        for row in range(count):
            _show_image(axes[row, 0], data, row)
            for column, (epochs, attention) in enumerate(looks.items(), start=1):
                axes[row, column].imshow(np.sqrt(attention[row]), cmap="inferno")
                axes[row, column].set_axis_off()
                if row == 0:
                    axes[row, column].set_title(f"after {epochs} epochs")
        figure.savefig(folder / "evolution.png", dpi=150)
        return [folder / "evolution.png"]
    return []


def _draw_compared(plan: Plan, folder: Path) -> list[Path]:
    models: dict[str, Classifier] = {}
    for row, names in plan.compared.items():
        settings = plan.trials[names[0]].settings
        checkpoint = folder / "runs" / names[0] / f"{settings.keep}.ckpt"
        if checkpoint.is_file():
            models[row] = load_classifier(checkpoint)
    if len(models) < 2:
        return []
    data = build_splits(plan.trials[plan.compared["ATS"][0]].settings).test
    known = [index for index in range(len(data)) if len(data.truth(index))][:_COMPARED]
    shown = known or list(range(min(_COMPARED, len(data))))
    figure = _figure_of(data, rows=len(shown), columns=len(models) + 1, inches=3.0)
    axes = figure.subplots(len(shown), len(models) + 1, squeeze=False)
    for line, index in enumerate(shown):
        _show_image(axes[line, 0], data, index)
        for column, (row, classifier) in enumerate(models.items(), start=1):
            _show_attention(axes[line, column], classifier, data, index)
            if line == 0:
                axes[line, column].set_title(row)
    axes[0, 0].set_title("image and truth")
    figure.savefig(folder / "attention.png", dpi=150)
    return [folder / "attention.png"]


def _figure_of(data: ImageDataset, rows: int, columns: int, inches: float) -> Figure:
    """Room for rows of images that are so many inches wide."""
    height, width = data.images([0]).sizes[0]
    size = inches * columns, (inches * height / width + 0.2) * rows
    return Figure(figsize=size, layout="constrained")


def _show_image(axis: Axes, data: ImageDataset, index: int) -> None:
    images = data.images([index])
    height, width = images.sizes[0]
    scale = 400 / max(height, width)
    view = images.overviews((round(height * scale), round(width * scale)))[0]
    axis.imshow(_picture(view), extent=(0, width, height, 0), cmap="gray")
    for y0, x0, y1, x1 in data.truth(index).tolist():
        axis.add_patch(
            Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor="limegreen", lw=0.8)
        )
    axis.set_axis_off()


@torch.no_grad()
def _show_attention(axis: Axes, classifier: Classifier, data: ImageDataset, index: int) -> None:
    images = data.images([index])
    out = classifier(images)
    height, width = images.sizes[0]
    assert out.log_attention is not None
    border: tuple[float, float] = getattr(classifier.model, "border", (0.0, 0.0))
    top, left = border[0] * height, border[1] * width
    axis.set_facecolor("black")
    axis.imshow(
        out.log_attention[0].exp().sqrt().numpy(),
        extent=(left, width - left, height - top, top),
        cmap="inferno",
    )
    for y0, x0, y1, x1 in data.truth(index).tolist():
        axis.add_patch(
            Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor="limegreen", lw=0.6)
        )
    if classifier.draws and out.yx_level0 is not None:
        p, q = classifier.settings.patch_size
        for y, x in out.yx_level0[0].tolist():
            axis.add_patch(Rectangle((x, y), q, p, fill=False, edgecolor="deepskyblue", lw=0.8))
    axis.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])


def _picture(view: Tensor) -> Any:
    picture = view.permute(1, 2, 0).numpy()
    return picture[..., 0] if picture.shape[-1] == 1 else picture
