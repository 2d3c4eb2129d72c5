"""What the ledger asks of a file system. Nothing here can change bytes that are written, truncate, rename or delete, so
nothing that uses it can.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from onestart.locks import FileLock, file_status, open_file

_CHUNK = 1 << 20
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone does not reach the medium


class Files(Protocol):
    """Synchronous access to files by path. All methods raise OSError if the system refuses."""

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Hold a lock of this file, which is made if it is not there: one holder among all processes and threads."""

    def make_folder(self, path: str) -> None:
        """Make the folder, and those above it, if they are not there."""

    def list(self, path: str) -> list[str]:
        """The names in a folder; none if it is not there."""

    def identity(self, path: str) -> Hashable | None:
        """What tells this file from another that may take its place; None if it is not there."""

    def size(self, path: str) -> int:
        """Its length in bytes; 0 if it is not there."""

    def read(self, path: str, offset: int, length: int) -> bytes:
        """The bytes from offset on, fewer than length only at the end of the file."""

    def append(self, path: str, data: bytes) -> None:
        """Write all of data behind the end of the file, which is made if it is not there. Not durable yet."""

    def write_again(self, path: str, offset: int, length: int) -> None:
        """Write these bytes once more, as they are in their place, so that the next sync has them to write.

        After a sync that failed, a system may take what it could not write for written; whoever opens the file later
        sees it, and has no other way to learn whether it is on the disk (A. Rebello et al., ATC 2020).
        """

    def sync(self, path: str) -> None:
        """Make what the file holds durable."""

    def sync_folder(self, path: str) -> None:
        """Make the names in the folder durable."""

    def write_new(self, path: str, data: bytes) -> None:
        """Make a file that is not there yet, with this content, and make the content durable."""


class LocalFiles:
    """The files of this machine. Needs a POSIX system: locks are `flock`, which works between processes and threads.

    What a thread reads while it holds a lock stays open until it lets go of it.
    """

    def __init__(self) -> None:
        self._kept = threading.local()
        self._locks: dict[str, FileLock] = {}

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        if path not in self._locks:
            self._locks[path] = FileLock(path)
        with self._locks[path]:
            kept: dict[tuple[str, int], int] = {}
            before = getattr(self._kept, "open", None)
            self._kept.open = kept
            try:
                yield
            finally:
                self._kept.open = before
                for other in kept.values():
                    os.close(other)

    def make_folder(self, path: str) -> None:
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
        except FileNotFoundError:
            above = os.path.dirname(path)
            if above in ("", path):
                raise
            self.make_folder(above)
            self.sync_folder(os.path.dirname(above) or ".")
            self.make_folder(path)

    def list(self, path: str) -> list[str]:
        try:
            return os.listdir(path)
        except FileNotFoundError:
            return []

    def identity(self, path: str) -> Hashable | None:
        found = file_status(path)
        return (found.st_dev, found.st_ino) if found else None

    def size(self, path: str) -> int:
        found = file_status(path)
        return found.st_size if found else 0

    def read(self, path: str, offset: int, length: int) -> bytes:
        with self._descriptor(path, os.O_RDONLY) as descriptor:
            return _read(descriptor, offset, length)

    def append(self, path: str, data: bytes) -> None:
        with self._descriptor(path, _APPENDING) as descriptor:
            _write(descriptor, data)

    def write_again(self, path: str, offset: int, length: int) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            _write_again(descriptor, offset, offset + length)
        finally:
            os.close(descriptor)

    def sync(self, path: str) -> None:
        with self._descriptor(path, os.O_RDONLY, _APPENDING) as descriptor:
            _flush(descriptor)

    def sync_folder(self, path: str) -> None:
        descriptor = open_file(os.path.join(path, ""), os.O_RDONLY | os.O_DIRECTORY)
        try:
            _flush(descriptor)
        finally:
            os.close(descriptor)

    def write_new(self, path: str, data: bytes) -> None:
        descriptor = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            _write(descriptor, data)
            _flush(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _descriptor(self, path: str, flags: int, *others: int) -> Iterator[int]:
        """The file, open in this way, or in another one that does as well if it is open in that one already."""
        kept: dict[tuple[str, int], int] | None = getattr(self._kept, "open", None)
        if kept is None:
            descriptor = open_file(path, flags)
            try:
                yield descriptor
            finally:
                os.close(descriptor)
            return
        known = next((kept[path, other] for other in others if (path, other) in kept), None)
        if known is None:
            known = kept.get((path, flags))
        if known is None:
            known = kept[path, flags] = open_file(path, flags)
        yield known


def _read(descriptor: int, offset: int, length: int) -> bytes:
    data = os.pread(descriptor, length, offset)
    while len(data) < length:
        more = os.pread(descriptor, length - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _write_again(descriptor: int, start: int, end: int) -> None:
    while start < end:
        data = _read(descriptor, start, min(_CHUNK, end - start))
        if not data:
            return
        start += os.pwrite(descriptor, data, start)


def _flush(descriptor: int) -> None:
    if _FULL_SYNC is None:
        os.fsync(descriptor)
    else:
        fcntl.fcntl(descriptor, _FULL_SYNC)
