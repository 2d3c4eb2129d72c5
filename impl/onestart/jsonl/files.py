"""What the ledger asks of a file system. Nothing here can change bytes of a record that is written, truncate, rename or
delete, so nothing that uses it can.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, Protocol

from onestart.jsonl.descriptors import Descriptors
from onestart.locks import FileLock, file_status, open_file

_CHUNK = 1 << 20
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone does not reach the medium


class Status(NamedTuple):
    """identity: what tells this file from another that may take its place. size: its length in bytes."""

    identity: Hashable
    size: int


class Files(Protocol):
    """Synchronous access to files by path. All methods raise OSError if the system refuses."""

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Hold a lock of this file, which is made if it is not there: one holder among all processes and threads."""

    def note(self, path: str, length: int) -> bytes:
        """The first bytes of a lock's file, fewer than length if it has no more; none if it is not there."""

    def leave_note(self, path: str, data: bytes) -> None:
        """For who holds the lock: write this over the first bytes of its file. It is never made durable."""

    def make_folder(self, path: str) -> None:
        """Make the folder, and those above it, if they are not there."""

    def list(self, path: str) -> list[str]:
        """The names in a folder; none if it is not there."""

    def status(self, path: str) -> Status | None:
        """Which file is there, and how long it is; None if there is none."""

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

    What a thread uses while it holds a lock stays open for whoever holds it next.
    """

    def __init__(self) -> None:
        self._holding = _Holding()
        self._locks: dict[str, tuple[FileLock, Descriptors]] = {}

    def lock(self, path: str) -> AbstractContextManager[None]:
        if path not in self._locks:
            self._locks.setdefault(path, (FileLock(path), Descriptors()))
        return _Held(*self._locks[path], self._holding)

    def note(self, path: str, length: int) -> bytes:
        held = self._holding.lock
        if held is not None and held.path == path:
            return _read(held.descriptor, 0, length)
        if file_status(path) is None:
            return b""
        with _opened(path, os.O_RDONLY) as descriptor:
            return _read(descriptor, 0, length)

    def leave_note(self, path: str, data: bytes) -> None:
        held = self._holding.lock
        if held is None or held.path != path:
            raise OSError(None, "the lock is not held", path)
        os.pwrite(held.descriptor, data, 0)

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

    def status(self, path: str) -> Status | None:
        found = file_status(path)
        if self._holding.kept is not None:
            self._holding.kept.looked(path, found)
        return None if found is None else Status((found.st_dev, found.st_ino), found.st_size)

    def read(self, path: str, offset: int, length: int) -> bytes:
        kept = self._holding.kept
        if kept is not None:
            return _read(kept.get(path, os.O_RDONLY), offset, length)
        with _opened(path, os.O_RDONLY) as descriptor:
            return _read(descriptor, offset, length)

    def append(self, path: str, data: bytes) -> None:
        kept = self._holding.kept
        if kept is not None:
            _write(kept.get(path, _APPENDING), data)
            return
        with _opened(path, _APPENDING) as descriptor:
            _write(descriptor, data)

    def write_again(self, path: str, offset: int, length: int) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            _write_again(descriptor, offset, offset + length)
        finally:
            os.close(descriptor)

    def sync(self, path: str) -> None:
        kept = self._holding.kept
        if kept is not None:
            _flush(kept.get(path, os.O_RDONLY, _APPENDING))
            return
        with _opened(path, os.O_RDONLY) as descriptor:
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


class _Holding(threading.local):
    """The lock that this thread holds, and what it keeps open; None if it holds none."""

    lock: FileLock | None = None
    kept: Descriptors | None = None


class _Held:
    """A lock as one thread holds it, once."""

    __slots__ = ("_before", "_holding", "_kept", "_lock")

    def __init__(self, lock: FileLock, kept: Descriptors, holding: _Holding) -> None:
        self._lock, self._kept, self._holding = lock, kept, holding
        self._before: tuple[FileLock | None, Descriptors | None] = (None, None)

    def __enter__(self) -> None:
        self._lock.__enter__()
        self._kept.begin()
        holding = self._holding
        self._before = holding.lock, holding.kept
        holding.lock, holding.kept = self._lock, self._kept

    def __exit__(self, *raised: object) -> None:
        self._holding.lock, self._holding.kept = self._before
        self._lock.release()


@contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    descriptor = open_file(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


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
