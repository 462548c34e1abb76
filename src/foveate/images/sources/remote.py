"""Files in object stores and on web servers, of which only the needed ranges are fetched."""

from __future__ import annotations

import io
from typing import Any

from foveate.errors import DataError, MissingExtraError
from foveate.extras import require
from foveate.images.sources.location import Location
from foveate.images.sources.source import Source

_BLOCK = 2**16
"""Bytes that are fetched at once while a file's directories are read: one covers most of them."""

_INSTALL = "foveate[remote]"


class RemoteSource(Source):
    """A file that fsspec reaches: "s3://", "https://" and many others.

    Raises:
        MissingExtraError: without fsspec or what it needs for this kind of address.
        DataError: if there is no such file, or its server does not say how large it is.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        fsspec = require("fsspec", f"to read {location.name}", _INSTALL)
        try:
            self._files, self._path = fsspec.url_to_fs(location.path, **location.storage)
        except ImportError as error:
            raise MissingExtraError(
                f"cannot open {location.name}: {error}; run: pip install {_INSTALL!r}"
            ) from error
        except ValueError as error:
            raise DataError(f"cannot open {location.name}: {error}; check the address") from error
        self.size = self._size()

    def _size(self) -> int:
        try:
            size = self._files.info(self._path)["size"]
        except FileNotFoundError as error:
            cause = error.__cause__
            if not _is_missing(cause):
                raise self._unreachable(cause or error) from error
            raise DataError(
                f"cannot open {self.name}: there is no such file; check the address"
            ) from None
        except Exception as error:
            raise self._unreachable(error) from error
        if size is None:
            raise DataError(
                f"cannot open {self.name}: its server does not say how large it is, so parts of it "
                "can not be asked for; download it"
            )
        if size == 0:
            raise DataError(
                f"cannot open {self.name}: the file is empty, 0 bytes; replace it or leave it out"
            )
        return int(size)

    def read(self, offset: int, count: int) -> bytes:
        """See `Source.read`."""
        end = min(offset + count, self.size)
        if offset >= end:
            return self._check(b"", offset, count)
        try:
            data: bytes = self._files.cat_file(self._path, start=offset, end=end)
        except Exception as error:
            raise self._unreachable(error) from error
        if len(data) > end - offset:
            raise DataError(
                f"cannot read {self.name}: its server sends more than the range that was asked "
                "for; download it"
            )
        return self._check(data, offset, count)

    def file(self) -> io.BufferedReader:
        """See `Source.file`."""
        return io.BufferedReader(_Ranges(self), buffer_size=_BLOCK)

    def close(self) -> None:
        """See `Source.close`; connections belong to fsspec, which shares them."""

    def _unreachable(self, error: BaseException) -> DataError:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        return DataError(
            f"cannot read {self.name}: {reason}; check the address, the network and your access"
        )


def _is_missing(cause: BaseException | None) -> bool:
    """Whether fsspec's "not found", which it says of every failure, is what it means."""
    refused = isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError)
    return not refused and getattr(cause, "status", 404) == 404


class _Ranges(io.RawIOBase):
    """A remote file to seek and read in, of which whole blocks are fetched and kept."""

    def __init__(self, source: RemoteSource) -> None:
        super().__init__()
        self._source = source
        self._blocks: dict[int, bytes] = {}
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._source.size}
        self._position = start[whence] + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        index, start = divmod(self._position, _BLOCK)
        if self._position >= self._source.size:
            return 0
        if index not in self._blocks:
            count = min(_BLOCK, self._source.size - index * _BLOCK)
            self._blocks[index] = self._source.read(index * _BLOCK, count)
        piece = self._blocks[index][start : start + len(buffer)]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)
