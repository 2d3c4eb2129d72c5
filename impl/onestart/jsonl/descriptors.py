"""Open files that stay open from one use to the next, as long as their paths lead to them."""

from __future__ import annotations

import os
import weakref

from onestart.locks import file_status, open_file


class Descriptors:
    """For one holder of a lock at a time. A path is looked at once after `begin`, whoever looks: see `looked`.

    A forked child has the same files open, which is as good: nothing here has a position of its own.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], int] = {}
        self._files: dict[str, tuple[int, int]] = {}
        self._looked: set[str] = set()
        weakref.finalize(self, _close_all, self._open)

    def begin(self) -> None:
        """Another holder has begun: paths may lead elsewhere by now."""
        self._looked.clear()

    def looked(self, path: str, found: os.stat_result | None) -> None:
        """This is what is there now."""
        self._looked.add(path)
        if path not in self._files:
            return
        if found is None or (found.st_dev, found.st_ino) != self._files[path]:
            del self._files[path]
            for known in [known for known in self._open if known[0] == path]:
                os.close(self._open.pop(known))

    def get(self, path: str, flags: int, others: int | None = None) -> int:
        """The file that is there, open in this way, or in another one if that is open. Raises OSError."""
        if path not in self._looked:
            self.looked(path, file_status(path))
        found = self._open.get((path, others)) if others is not None else None
        if found is None:
            found = self._open.get((path, flags))
        return self._opened(path, flags) if found is None else found

    def _opened(self, path: str, flags: int) -> int:
        descriptor = self._open[path, flags] = open_file(path, flags)
        status = os.fstat(descriptor)
        known = self._files.setdefault(path, (status.st_dev, status.st_ino))
        if known != (status.st_dev, status.st_ino):
            del self._open[path, flags]
            os.close(descriptor)
            raise OSError(None, "it was replaced while it was in use", path)
        return descriptor


def _close_all(descriptors: dict[tuple[str, int], int]) -> None:
    while descriptors:
        os.close(descriptors.popitem()[1])
