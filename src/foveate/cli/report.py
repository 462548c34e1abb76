"""`foveate report`: a run as one page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from foveate import __version__
from foveate.cli.console import app, console
from foveate.errors import InputError

if TYPE_CHECKING:
    import torch

    from foveate.datasets import ImageDataset
    from foveate.reports import Example
    from foveate.training import Classifier


@app.command("report")
def report_command(
    run: Annotated[Path, typer.Argument(help="the folder of a run that `foveate train` wrote")],
    out: Annotated[
        Path | None, typer.Option(help="the page to write", show_default="RUN/report.html")
    ] = None,
    root: Annotated[Path | None, typer.Option(help="where the data set lies now")] = None,
    part: Annotated[str, typer.Option(help="train, validation or test")] = "test",
    draws: Annotated[
        int, typer.Option(help="random draws to average over; 0 draws without chance")
    ] = 0,
    examples: Annotated[int, typer.Option(help="images to show of the right and the wrong")] = 6,
) -> None:
    """Write a page about a run: settings, curves, figures, and where the model looked.

    The page is one file that loads nothing else, to be sent and kept as it is.
    """
    from foveate.reports import Report, write_page
    from foveate.training import (
        Settings,
        evaluate,
        load_classifier,
        load_splits,
        read_log,
    )

    if examples < 0:
        raise InputError(f"--examples must be 0 or more, but is {examples}")
    page = out or run / "report.html"
    if not page.parent.is_dir():
        raise InputError(f"cannot write {page}: there is no folder {page.parent}; create it")
    checkpoint = run / f"{Settings.load(run / 'settings.json').keep}.ckpt"
    classifier = load_classifier(checkpoint)
    with console.status("loading the data"):
        moved = {"root": None if root is None else str(root)}
        splits = load_splits(classifier, moved)
    with console.status(f"measuring {checkpoint} on its {part} images"):
        figures = evaluate(checkpoint, part=part, draws=draws, splits=splits)
        parts = {"train": splits.train, "validation": splits.validation, "test": splits.test}
        data = parts[part]
    with console.status("drawing"):
        wrong, right = _choose(figures.probabilities, data.labels, examples)
        log = run / "metrics.csv"
        report = Report(
            title=f"foveate · {run.resolve().name}",
            settings=classifier.settings.as_dict(),
            log=read_log(log) if log.is_file() else [],
            part=part,
            summary=figures.summary,
            spread=figures.spread,
            classes=figures.classes,
            confusion=figures.confusion,
            count=len(data),
            wrong=[_example(classifier, data, index) for index in wrong],
            right=[_example(classifier, data, index) for index in right],
            notes=[f"{checkpoint}, by foveate {__version__}", *_unread(data)],
        )
        write_page(report, page)
    console.print(f"error {figures.summary['error']:.2%} on {len(data)} {part} images")
    console.print(f"page  {escape(str(page))}")


def _choose(
    probabilities: torch.Tensor, labels: torch.Tensor, count: int
) -> tuple[list[int], list[int]]:
    """The wrong images that the model is surest of, and right ones from unsure to sure."""
    sure, said = probabilities.max(-1)
    order = sure.argsort(descending=True, stable=True).tolist()
    wrong = [index for index in order if said[index] != labels[index]]
    right = [index for index in reversed(order) if said[index] == labels[index]]
    if len(right) > count:
        steps = max(count - 1, 1)
        right = [right[step * (len(right) - 1) // steps] for step in range(count)]
    return wrong[:count], right


def _unread(data: ImageDataset) -> list[str]:
    """A note on files that could not be read, if the data is of files."""
    whole = getattr(data, "whole", data)
    names: list[str] = whole.failures() if hasattr(whole, "failures") else []
    note = f"{len(names)} images could not be read and were taken as black, such as "
    return [note + names[0]] if names else []


def _example(classifier: Classifier, data: ImageDataset, index: int) -> Example:
    import torch

    from foveate.reports import example_of

    batch = data.gather([index])
    with torch.inference_mode():
        out = classifier(batch.images.to(classifier.device))
    return example_of(
        batch.images,
        out,
        0,
        data.classes,
        data.classes[int(batch.labels[0])],
        data.name(index),
        data.truth(index),
        getattr(classifier.model, "border", (0.0, 0.0)),
    )
