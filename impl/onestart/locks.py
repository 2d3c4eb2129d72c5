"""A lock of a file: one holder among all processes and threads of one machine."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
import weakref
from collections.abc import Callable
from types import TracebackType


class FileLock:
    """`flock`, with a descriptor that stays open between uses. What raises OSError has locked nothing.

    A descriptor that a forked child has inherited is the parent's lock, so the child opens one of its own.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._turn = threading.Lock()  # one descriptor is one holder, whichever thread asks
        self._descriptor = -1
        self._process = 0
        self._close: Callable[[], object] | None = None

    @property
    def descriptor(self) -> int:
        """Of the locked file, for who holds the lock."""
        return self._descriptor

    def __enter__(self) -> FileLock:
        if self._process not in (0, os.getpid()):
            self._turn = threading.Lock()  # the fork may have come while another thread held the lock
        self._turn.acquire()
        try:
            while not self._taken():
                self._open()
        except BaseException:
            self._turn.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Let go of the lock."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        finally:
            self._turn.release()

    def _open(self) -> None:
        self._let_go()
        descriptor = open_file(self.path, os.O_RDWR | os.O_CREAT)
        self._descriptor, self._process = descriptor, os.getpid()
        self._close = weakref.finalize(self, os.close, descriptor)

    def _taken(self) -> bool:
        """Whether it is locked, and the file that is at the path: the one that was open may have been replaced."""
        if self._process != os.getpid():
            return False
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            held, there = os.fstat(self._descriptor), file_status(self.path)
        except BaseException:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            raise
        return there is not None and (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)

    def _let_go(self) -> None:
        if self._close is not None:
            self._close()
        self._descriptor, self._process, self._close = -1, 0, None


def open_file(path: str, flags: int) -> int:
    """A file is its owner's alone, and never one that a link leads to: who can write a link could not write there."""
    try:
        return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _linked(path) if error.errno == errno.ELOOP else error from None


def file_status(path: str) -> os.stat_result | None:
    """None if there is no file. Raises OSError for what is no regular file."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISREG(found.st_mode):
        return found
    raise _linked(path) if stat.S_ISLNK(found.st_mode) else OSError(None, "it is not a regular file", path)


def _linked(path: str) -> OSError:
    return OSError(errno.ELOOP, f"{os.path.basename(path)} is a symbolic link; name the file itself", path)
