"""Where all commands hang, and how they talk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar

if TYPE_CHECKING:
    from foveate.datasets import Progress

app = typer.Typer(
    name="foveate",
    help="Learn from very large images with one label each, by looking only where it matters.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)
console = Console(highlight=False)


@app.callback()
def options() -> None:
    """Learn from very large images with one label each, by looking only where it matters."""


def parse_size(option: str, text: str | None) -> tuple[int, int] | None:
    """HEIGHTxWIDTH as two numbers; None stays None."""
    if text is None:
        return None
    height, _, width = text.partition("x")
    if not (height.isdigit() and width.isdigit()):
        raise typer.BadParameter(f"{option} must be HEIGHTxWIDTH, such as 50x50, but is {text!r}")
    return int(height), int(width)


@contextmanager
def show_progress() -> Iterator[Progress]:
    """A bar for each thing that is done to all images."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with ProgressBar(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        yield tell
