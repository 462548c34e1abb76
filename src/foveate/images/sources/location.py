"""Where an image file is: a path, or the address of a remote file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from foveate.errors import DataError


@dataclass(frozen=True)
class Location:
    """A file, by name; this is what travels to other processes.

    Attributes:
        name: the file as the user wrote it.
        path: its absolute path, or its address.
        storage: what fsspec is told of the place, such as {"anon": True}.
        stamp: when a local file was last changed and its size, so that a file which is written
            anew is read anew.
    """

    name: str
    path: str
    storage: Mapping[str, Any] = field(default_factory=dict)
    stamp: tuple[int, int] = (0, 0)

    @property
    def is_remote(self) -> bool:
        """Whether the file is reached through fsspec."""
        return "://" in self.path

    @property
    def key(self) -> str:
        """What tells this file, and this state of it, from every other."""
        return f"{self.path}|{self.stamp}|{sorted(self.storage.items())}"


def locate(source: str | PathLike[str], storage: Mapping[str, Any] | None = None) -> Location:
    """Look for a file.

    Args:
        source: a path, or an address such as "s3://bucket/slide.tif".
        storage: what fsspec is told of the place.

    Raises:
        DataError: for a local file that is missing, a folder, or empty.
    """
    name = os.fspath(source)
    if "://" in name:
        return Location(name, name, dict(storage or {}))
    path = os.path.abspath(name)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise DataError(f"cannot open {name}: there is no such file; check the path") from None
    except (OSError, ValueError) as error:  # not allowed, a name too long, a null byte
        raise DataError(f"cannot open {name}: {error}; check the path") from error
    if os.path.isdir(path):
        raise DataError(f"cannot open {name}: it is a folder; pass one of the files in it")
    if status.st_size == 0:
        raise DataError(
            f"cannot open {name}: the file is empty, 0 bytes; replace it or leave it out"
        )
    return Location(name, path, {}, (status.st_mtime_ns, status.st_size))
