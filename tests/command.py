"""The command `foveate` as tests run it."""

from __future__ import annotations

import pytest

from foveate import cli


def foveate(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Runs the command in this process; its exit code and what it printed, on one line."""
    code = 0
    try:
        cli.main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = int(stop.code or 0)
    printed = capsys.readouterr()
    return code, " ".join((printed.out + printed.err).replace("│", " ").split())
