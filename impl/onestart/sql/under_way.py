"""A mark that a transaction is under way in a SQLite file. Whoever finds it knows that one was broken off.

What such a transaction has put into the log is not seen by connections that are open, and would come to light when all
of them are gone and the log is read anew: somebody may have found by then that it is not there. So the next transaction
after it writes, whatever it is for, and what is in the way is overwritten. The mark is for processes that are killed or
meet an error; when the power fails, nobody has seen anything that is not in the log, so it needs not be durable.
"""

from __future__ import annotations

import os


class UnderWay:
    """Kept in the lock's own file; to be used by who holds the lock. All methods raise OSError."""

    def __init__(self, path: str) -> None:
        self._path = path

    def found(self) -> bool:
        """Whether a transaction was broken off."""
        return os.stat(self._path).st_size > 0

    def begin(self) -> None:
        self._put(b"!")

    def end(self) -> None:
        self._put(b"")

    def _put(self, data: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
