"""The command `foveate`: one file for each of its commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.markup import escape

from foveate.cli import bench, convert, evaluate, predict, report, reproduce, train
from foveate.cli.console import app
from foveate.errors import FoveateError

__all__ = ["app", "bench", "convert", "evaluate", "main", "predict", "report", "reproduce", "train"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command; what the user can mend is one line and exit code 2."""
    run: Callable[..., Any] = app
    try:
        run(arguments)
    except FoveateError as error:
        what = escape(str(error))  # brackets in a path are no markup
        Console(stderr=True, highlight=False).print(f"[red]error:[/red] {what}", soft_wrap=True)
        sys.exit(2)
