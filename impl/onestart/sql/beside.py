"""What is kept beside a SQLite file, in its lock's own file: whether a transaction is under way, and how many records
there are.

Whoever finds the mark of a transaction knows that one was broken off. What it has put into the log is not seen by
connections that are open, and would come to light when all of them are gone and the log is read anew: somebody may have
found by then that it is not there. So the next transaction after it writes, whatever it is for, and what is in the way
is overwritten. The mark is for processes that are killed or meet an error; when the power fails, nobody has seen
anything that is not in the log, so it needs not be durable.

The number is written when a transaction is durable. If the file has fewer records, it has lost some: an older copy was
put in its place, or its log was damaged, which SQLite reads up to the first place where something is wrong. The number
needs not be durable either: after a power failure it may be an older one and notice less, and is never too large.
"""

from __future__ import annotations

import os
from zlib import crc32

from onestart.locks import FileLock, open_file

_MARK, _NONE = b"!", b" "
_NUMBER = slice(1, 21)
_SUM = slice(21, 29)


class Beside:
    """To be used by who holds the lock. path: of the SQLite file. All methods raise OSError.

    The lock's file keeps its length: a file system may take one that is emptied and written anew for a file that is
    replaced, and put it on the disk at once, which takes as long as a commit.
    """

    def __init__(self, lock: FileLock, path: str) -> None:
        self._lock = lock
        self._name = os.path.basename(path)

    def found(self) -> bool:
        """Whether a transaction was broken off."""
        return os.pread(self._lock.descriptor, 1, 0) not in (b"", _NONE)

    def records(self) -> int:
        """How many records there have been at least."""
        return _number(os.pread(self._lock.descriptor, _SUM.stop, 0), self._name)

    def begin(self) -> None:
        os.pwrite(self._lock.descriptor, _MARK, 0)

    def end(self, records: int) -> None:
        """records: so many are durable now."""
        text = f"{records:020d}"
        os.pwrite(self._lock.descriptor, _NONE + f"{text}{_sum(text, self._name):08x}\n".encode(), 0)


def records_beside(lock: str, path: str) -> int:
    """How many records a SQLite file has had at least, for who does not hold the lock. lock: the path of its file."""
    try:
        descriptor = open_file(lock, os.O_RDONLY)
    except OSError:
        return 0
    try:
        return _number(os.pread(descriptor, _SUM.stop, 0), os.path.basename(path))
    finally:
        os.close(descriptor)


def _number(data: bytes, name: str) -> int:
    """None is known if it is another generation's, or cannot be read."""
    text = data[_NUMBER].decode("ascii", "replace")
    known = text.isdecimal() and data[_SUM] == f"{_sum(text, name):08x}".encode()
    return int(text) if known else 0


def _sum(text: str, name: str) -> int:
    return crc32(text.encode() + os.fsencode(name))
