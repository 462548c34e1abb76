"""The errors that foveate raises on purpose, so that callers can tell them from bugs.

Each message says in one sentence what was asked, what arrived and what to do.
"""


class FoveateError(Exception):
    """Every error that foveate raises on purpose."""


class InputError(FoveateError, ValueError):
    """An argument has a shape, type or value that can not be used."""


class MissingExtraError(FoveateError, ImportError):
    """An optional dependency is needed and not installed."""


class DataError(FoveateError):
    """Data is missing or damaged."""


class RunError(FoveateError):
    """Runs failed, and the others were made."""
