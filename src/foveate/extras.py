"""Packages that are imported where they are used, with an error that says what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from foveate.errors import MissingExtraError


def require(package: str, purpose: str, install: str) -> Any:
    """Import a package, now that it is needed.

    Args:
        package: its name in Python.
        purpose: what it is needed for, as in "to read TIFF files".
        install: what pip is asked for.

    Raises:
        MissingExtraError: if it is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:  # also where the library that it wraps can not be loaded
        raise MissingExtraError(
            f"{package} is needed {purpose} and can not be imported ({_line(error)}); "
            f"run: pip install {install!r}"
        ) from error


def _line(error: ImportError) -> str:
    return " ".join(str(error).split())[:200]
