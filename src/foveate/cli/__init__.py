"""The command `foveate`: one file for each of its commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

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
        _complain(str(error))
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # torch's, which may not be imported
            raise
        _complain(
            "the GPU's memory is full; lower --batch-size, --n-patches or --patch-size, or end "
            f"what else runs on it ({str(error).splitlines()[0]})"
        )


def _complain(what: str) -> NoReturn:
    # Brackets in a path are no markup.
    line = f"[red]error:[/red] {escape(what)}"
    Console(stderr=True, highlight=False).print(line, soft_wrap=True)
    sys.exit(2)
