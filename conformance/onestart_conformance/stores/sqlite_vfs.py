"""A file system for SQLite over a medium: the engine works on real files in a folder that nobody else has.

Locks and the memory that connections share are the machine's own. What is written goes onto the medium's tape as well,
and nothing is ever really synced.
"""

from __future__ import annotations

import os
from typing import Any

import apsw

from onestart_conformance.stores.medium import Medium, TroubleError

_NEW_NAMES_ARE_SYNCED = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL


class MediumVfs(apsw.VFS):
    """SQLite's file system, as the one of the machine, with a tape."""

    def __init__(self, name: str, medium: Medium) -> None:
        self.name, self.medium = name, medium
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if name is None:
            return apsw.VFSFile("", name, flags)
        return MediumFile(self.medium, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        _told(lambda: self.medium.delete(os.path.basename(filename), durable=syncdir))
        super().xDelete(filename, syncdir)


class MediumFile(apsw.VFSFile):
    """A file that SQLite has open. The names of logs and journals become durable with their first sync, as on Unix."""

    def __init__(self, medium: Medium, name: str | apsw.URIFilename, flags: list[int]) -> None:
        path = name if isinstance(name, str) else name.filename()
        self._medium, self._path = medium, os.path.basename(path)
        if self._path not in medium.state.files and (flags[0] & apsw.SQLITE_OPEN_CREATE or os.path.exists(path)):
            _told(lambda: medium.make(self._path))
        self._fresh = bool(flags[0] & _NEW_NAMES_ARE_SYNCED and flags[0] & apsw.SQLITE_OPEN_CREATE)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        medium, before = self._medium, len(self._medium.tape)
        try:
            _told(lambda: medium.write(self._path, offset, bytes(data)))
        finally:
            for done in medium.tape[before:]:
                if done.data and done.path == self._path:
                    super().xWrite(done.data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        _told(lambda: self._medium.cut(self._path, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        _told(lambda: self._medium.sync(self._path))
        if self._fresh:
            self._fresh = False
            _told(self._medium.sync_names)


def _told(work: Any) -> None:
    """An operation of the medium, with its errors as SQLite's own."""
    try:
        work()
    except TroubleError as error:
        raise (apsw.FullError if error.errno == 28 else apsw.IOError)(str(error)) from None
