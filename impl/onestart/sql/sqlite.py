"""The ledger in one SQLite file: a transaction for each promise, shared by the processes of one machine.

The engine is the one that `apsw` brings. It writes ahead (WAL) with synchronous FULL: one fsync makes a transaction
durable, a rollback journal takes three. Of a log that is damaged: see `beside`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import apsw

from onestart.group_commit import GroupCommit, Run, Step, Take
from onestart.jsonl.files import LocalFiles
from onestart.locks import FileLock
from onestart.ports import LedgerUnavailableError, NotALedgerError, View
from onestart.records import Record
from onestart.sql.beside import Beside
from onestart.sql.sqlite_file import connected, identity, in_force, lock_of, refuse_symlink
from onestart.sql.sqlite_rows import SqliteRows, unavailable
from onestart.sql.view import RowsView

T = TypeVar("T")


class SqliteLedger:
    """A `Ledger` in a file, shared by any number of processes of one machine. A missing or empty file becomes one.

    Steps that come while another is made durable share the next transaction. After an error nobody knows what it has
    written; the next step opens the file anew, which makes durable what is there, and reads.

    vfs: the name of the SQLite file system, that of the machine if empty. run, thread: see `GroupCommit`.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, vfs: str = "", run: Run | None = None, thread: Run | None = None
    ) -> None:
        self._path = os.path.abspath(path)
        self._vfs = vfs
        self._files = LocalFiles()
        self._open: _Open | None = None
        self._group = GroupCommit(self._carry_out, run, thread)
        self._lock = FileLock(lock_of(self._path))

    async def step(self, decide: Callable[[View], tuple[Record | None, T]]) -> T:
        """See `Ledger.step`. Raises NotALedgerError if the file holds something else."""
        return await self._group.step(decide)

    def close(self) -> None:
        """Close the file, all of it in one; a later step opens it again."""
        opened, self._open = self._open, None
        if opened is not None:
            with suppress(apsw.Error, LedgerUnavailableError), locked(self._lock):
                if opened.path == in_force(self._path):
                    opened.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            opened.connection.close(True)

    def _carry_out(self, take: Take) -> None:
        if self._open is None:
            self._make_room()
        with locked(self._lock):
            self._together(take())

    def _together(self, steps: list[Step[Any]]) -> None:
        try:
            opened = self._opened()
            with opened.rows.transaction(opened.beside):
                RowsView(opened.rows).decide(steps)
        except apsw.Error as error:
            self._abandon()
            raise unavailable(error) from error
        except OSError as error:
            self._abandon()
            raise LedgerUnavailableError("lock", error.strerror or str(error)) from error
        except BaseException:
            self._abandon()
            raise
        for step in steps:
            step.done()

    def _abandon(self) -> None:
        """After an error: what is on the disk is for the next one who opens the file to find out."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.connection.close(True)

    def _make_room(self) -> None:
        """Make the folder, and an empty file that nobody else can read."""
        refuse_symlink(self._path)
        folder = os.path.dirname(self._path)
        try:
            self._files.make_folder(folder)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise LedgerUnavailableError("ledger", error.strerror or str(error)) from error

    def _opened(self) -> _Open:
        """The file of the generation in force: a repair may have put a new one there."""
        opened, path = self._open, in_force(self._path)
        if opened is not None and opened.path != path:
            self._abandon()
            opened = None
        if opened is not None and (opened.process != os.getpid() or opened.identity != identity(path)):
            raise NotALedgerError(f"{path} was removed or replaced while it was open, or this process has forked")
        if opened is None:
            opened = self._open = _Open(connected(path, self._vfs), path, Beside(self._lock, path))
        return opened


class _Open:
    """A connection, and by what it is known that the file is still the same."""

    def __init__(self, connection: apsw.Connection, path: str, beside: Beside) -> None:
        self.connection = connection
        self.path = path
        self.rows = SqliteRows(connection)
        self.beside = beside
        self.process = os.getpid()
        self.identity = identity(path)


@contextmanager
def locked(lock: FileLock) -> Iterator[None]:
    """One process at a time: SQLite itself would have those that wait sleep and try again."""
    try:
        lock.__enter__()
    except OSError as error:
        raise LedgerUnavailableError("lock", error.strerror or str(error)) from error
    try:
        yield
    finally:
        lock.__exit__(None, None, None)
