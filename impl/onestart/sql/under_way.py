"""A mark that a transaction is under way in a SQLite file. Whoever finds it knows that one was broken off.

What such a transaction has put into the log is not seen by connections that are open, and would come to light when all
of them are gone and the log is read anew: somebody may have found by then that it is not there. So the next transaction
after it writes, whatever it is for, and what is in the way is overwritten. The mark is for processes that are killed or
meet an error; when the power fails, nobody has seen anything that is not in the log, so it needs not be durable.
"""

from __future__ import annotations

import os

from onestart.locks import FileLock

_MARK, _NONE = b"!", b" "


class UnderWay:
    """Kept in the lock's own file; to be used by who holds the lock. All methods raise OSError.

    The file keeps its length: a file system may take one that is emptied and written anew for a file that is replaced,
    and put it on the disk at once, which takes as long as a commit.
    """

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock

    def found(self) -> bool:
        """Whether a transaction was broken off."""
        return os.pread(self._lock.descriptor, 1, 0) not in (b"", _NONE)

    def begin(self) -> None:
        os.pwrite(self._lock.descriptor, _MARK, 0)

    def end(self) -> None:
        os.pwrite(self._lock.descriptor, _NONE, 0)
