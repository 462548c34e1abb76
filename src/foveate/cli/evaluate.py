"""`foveate evaluate`: how good a trained model is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from foveate.cli.console import app, console
from foveate.cli.names import find_dataset


@app.command("evaluate")
def evaluate_command(
    checkpoint: Annotated[Path, typer.Argument(help="a best.ckpt that `foveate train` wrote")],
    dataset: Annotated[
        str | None,
        typer.Argument(help="another data set than its own, of its classes: a name or a path"),
    ] = None,
    root: Annotated[Path | None, typer.Option(help="where the data set lies now")] = None,
    part: Annotated[str, typer.Option(help="train, validation or test")] = "test",
    draws: Annotated[
        int, typer.Option(help="random draws to average over; 0 draws without chance")
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="also write the figures to this file")] = None,
) -> None:
    """Measure a trained model: error, balanced accuracy, AUROC, confusion matrix."""
    from foveate.training import evaluate

    moved = {"root": None if root is None else str(root)}
    if dataset is not None:
        other = find_dataset(dataset)
        moved |= {"dataset": "manifest" if isinstance(other, Path) else other.value}
        moved |= {"root": str(other)} if isinstance(other, Path) else {}
    figures = evaluate(checkpoint, part=part, draws=draws, moved=moved)
    table = Table("", part, title=str(checkpoint), title_justify="left")
    for name, value in figures.summary.items():
        spread = figures.spread.get(name)
        table.add_row(name, f"{value:.4f}" + ("" if spread is None else f" ± {spread:.4f}"))
    console.print(table)
    confusion = Table("true \\ said", *figures.classes, title="confusion", title_justify="left")
    for name, row in zip(figures.classes, figures.confusion, strict=True):
        confusion.add_row(name, *(str(count) for count in row))
    console.print(confusion)
    if out is not None:
        out.write_text(json.dumps(figures.as_dict(), indent=2) + "\n")
