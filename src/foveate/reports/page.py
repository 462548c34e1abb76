"""A run as one page of HTML that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from foveate.extras import require
from foveate.reports.chart import line_chart
from foveate.reports.example import Example

_CURVES = {
    "cross-entropy": ("train/loss", "validation/loss"),
    "error": ("train/error", "validation/error"),
    "entropy of the attention, nats": ("train/entropy",),
}
"""The charts, and the columns of the training log in each."""


@dataclass(frozen=True)
class Report:
    """What a page says of a run.

    Attributes:
        title: what the run is called.
        settings: all that decided it, by name.
        log: a row for each epoch, with the columns of the training log.
        part: the part of the data that was measured.
        summary: each figure, such as the error.
        spread: the standard deviation of each over draws, if there were any.
        classes: the name of each class.
        confusion: how often each true class (row) was called each class (column).
        count: how many images were measured.
        wrong: images that the model got wrong.
        right: images that it got right.
        notes: lines for the foot of the page.
    """

    title: str
    settings: Mapping[str, Any]
    log: Sequence[Mapping[str, str]]
    part: str
    summary: Mapping[str, float]
    spread: Mapping[str, float]
    classes: Sequence[str]
    confusion: Sequence[Sequence[int]]
    count: int
    wrong: Sequence[Example] = ()
    right: Sequence[Example] = ()
    notes: Sequence[str] = field(default_factory=tuple)


def write_page(report: Report, path: Path) -> None:
    """Write a report as HTML; pictures are in the page itself, and it loads nothing.

    Args:
        report: what it says.
        path: the file to write.
    """
    jinja2 = require("jinja2", "to write reports", "jinja2")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"percent": lambda share: f"{100 * share:.1f} %", "plain": _plain}
    template = environment.from_string(
        files("foveate.reports").joinpath("page.html").read_text(encoding="utf-8")
    )
    examples = [*report.wrong, *report.right]
    text = template.render(
        report=report,
        attends=any(example.heat for example in examples),
        truth_known=any(example.truth for example in examples),
        figures=_figures(report),
        charts=_charts(report.log),
        rows=_confusion_rows(report),
        now=f"{datetime.now():%Y-%m-%d %H:%M}",
    )
    path.write_text(text, encoding="utf-8")


def _figures(report: Report) -> list[tuple[str, str, str]]:
    """The name, value and small print of each figure."""
    figures = []
    for name, value in report.summary.items():
        text = f"{value:.4f}" if name == "AUROC" else f"{100 * value:.2f} %"
        spread = report.spread.get(name)
        small = ""
        if spread is not None:
            digits = f"{spread:.4f}" if name == "AUROC" else f"{100 * spread:.2f} %"
            small = f"± {digits} over draws"
        elif name == "error":
            low, high = error_interval(value, report.count)
            small = f"95 % interval {100 * low:.2f} to {100 * high:.2f} %"
        figures.append((name, text, small))
    figures.append((f"{report.part} images", f"{report.count:,}", f"{len(report.classes)} classes"))
    if report.log:
        last = report.log[-1]
        seconds = f"{float(last['seconds']):,.0f} s of training"
        figures.append(("epochs", last["epoch"], seconds))
    return figures


def error_interval(error: float, count: int) -> tuple[float, float]:
    """Wilson's interval that holds the true error in 95 of 100 such measurements.

    Example:
        >>> low, high = error_interval(0.1, 100)
        >>> round(low, 3), round(high, 3)
        (0.055, 0.174)
    """
    z = 1.959964
    centre = (error + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count)
    half *= (error * (1 - error) / count + z * z / (4 * count * count)) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def _charts(log: Sequence[Mapping[str, str]]) -> list[tuple[str, list[str], str]]:
    """The title, the names of the lines, and the drawing of each chart that has any."""
    charts = []
    for title, columns in _CURVES.items():
        series = {
            column.split("/")[0]: [
                (float(row["seconds"]), float(row[column])) for row in log if row.get(column)
            ]
            for column in columns
        }
        series = {name: points for name, points in series.items() if points}
        if series:
            drawing = line_chart(series, f"{title} over the seconds of training", "seconds")
            charts.append((title, list(series), drawing))
    return charts


def _confusion_rows(report: Report) -> list[tuple[str, list[tuple[int, float, bool]], float]]:
    """Each class, its counts with their share of the row and whether they are right, its recall."""
    rows = []
    for true, (name, counts) in enumerate(zip(report.classes, report.confusion, strict=True)):
        total = max(sum(counts), 1)
        cells = [(count, count / total, said == true) for said, count in enumerate(counts)]
        rows.append((name, cells, counts[true] / total))
    return rows


def _plain(value: object) -> str:
    """A setting as people write it."""
    if isinstance(value, list | tuple):
        return " x ".join(str(part) for part in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)
