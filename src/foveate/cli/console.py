"""Where all commands hang, and how they talk."""

from __future__ import annotations

import typer
from rich.console import Console

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
