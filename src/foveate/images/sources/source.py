"""The bytes of a file, read in ranges from any thread."""

from __future__ import annotations

import io
import os
import threading
from abc import ABC, abstractmethod

from foveate.errors import DataError
from foveate.images.sources.location import Location


class Source(ABC):
    """An open file.

    Attributes:
        location: where it is.
        size: how many bytes it has.
    """

    location: Location
    size: int

    @property
    def name(self) -> str:
        """The file as the user wrote it."""
        return self.location.name

    @abstractmethod
    def read(self, offset: int, count: int) -> bytes:
        """Some bytes; all of them, or an error.

        Raises:
            DataError: if the file ends before.
        """

    @abstractmethod
    def file(self) -> io.BufferedReader:
        """The file as libraries want it, to be closed by the caller."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""

    def _check(self, data: bytes, offset: int, count: int) -> bytes:
        if len(data) == count:
            return data
        raise DataError(
            f"cannot read {self.name}: bytes {offset} to {offset + count} were asked for and "
            f"{len(data)} of them are there, so it is cut off; replace it or leave it out"
        )


class LocalSource(Source):
    """A file on a file system."""

    def __init__(self, location: Location) -> None:
        self.location = location
        try:
            self._descriptor = os.open(location.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            raise DataError(
                f"cannot open {location.name}: there is no such file any more; restore it"
            ) from None
        except OSError as error:
            raise DataError(
                f"cannot open {location.name}: {error.strerror or error}; check that it may be read"
            ) from error
        self.size = os.fstat(self._descriptor).st_size
        self._turn = threading.Lock()

    def read(self, offset: int, count: int) -> bytes:
        """See `Source.read`."""
        try:
            data = self._read(offset, count)
        except OSError as error:
            raise DataError(
                f"cannot read {self.name}: {error.strerror or error}; check the disk it is on"
            ) from error
        return self._check(data, offset, count)

    def _read(self, offset: int, count: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._descriptor, count, offset)
        with self._turn:  # Windows has one position for all threads
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            return os.read(self._descriptor, count)

    def file(self) -> io.BufferedReader:
        """See `Source.file`."""
        return open(self.location.path, "rb")

    def close(self) -> None:
        """See `Source.close`."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:  # a second time, its number may be another file's
            os.close(descriptor)
