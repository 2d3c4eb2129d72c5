"""The ledger in one SQLite file: a transaction for each promise, shared by the processes of one machine.

The engine is the one that `apsw` brings. It writes ahead (WAL) with synchronous FULL: one fsync makes a transaction
durable, a rollback journal takes three. What a log that was cut off or damaged costs is in `SqliteLedger`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import apsw

from onestart.group_commit import GroupCommit, Run, Step, Take
from onestart.jsonl.files import LocalFiles
from onestart.locks import FileLock
from onestart.ports import LedgerUnavailableError, NotALedgerError, View
from onestart.records import KINDS, Record, store_of
from onestart.sql.rows import COLUMNS, SCHEMA_VERSION, Row, number
from onestart.sql.statements import SELECT_LEDGER, Statements, schema
from onestart.sql.under_way import UnderWay
from onestart.sql.view import RowsView
from onestart.verification import MOST

T = TypeVar("T")

APPLICATION = 0x6F6E6531  # "one1", where SQLite keeps what a file is for
_SCHEMA = schema(number="INTEGER", blob="BLOB", primary="INTEGER")
_CHUNK = 1 << 16  # SQLite writes less than 128 KiB at once
_LEAST = 512  # bytes: of SQLite's smallest page
_BUSY = 10_000  # milliseconds that a foreign transaction is waited for; ours wait at the lock
_VALUES = ", ".join("?" * len(Row._fields))
_INSERT = {kind: f'INSERT INTO "{store_of(kind)}" ({COLUMNS}) VALUES ({_VALUES})' for kind in KINDS}


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
        self._under_way = UnderWay(self._lock)

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
            rows = self._opened().rows
            with rows.transaction(self._under_way):
                RowsView(rows).decide(steps)
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
        if opened is not None and (opened.process != os.getpid() or opened.identity != _identity(path)):
            raise NotALedgerError(f"{path} was removed or replaced while it was open, or this process has forked")
        if opened is None:
            opened = self._open = _opened(path, self._vfs)
        return opened


class _Open:
    """A connection, and by what it is known that the file is still the same."""

    def __init__(self, connection: apsw.Connection, path: str) -> None:
        self.connection = connection
        self.path = path
        self.rows = SqliteRows(connection)
        self.process = os.getpid()
        self.identity = _identity(path)


class SqliteRows(Statements):
    """The rows of a SQLite file."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.order = 0

    @contextmanager
    def transaction(self, under_way: UnderWay | None = None) -> Iterator[None]:
        """Durable when it is left, and nothing of it otherwise. under_way: None if nobody else knows the file."""
        self._connection.execute("BEGIN IMMEDIATE")
        self.begin()
        before, broken_off = self.order, under_way is not None and under_way.found()
        yield
        if broken_off:
            times = self._connection.pragma("user_version")
            self._connection.execute(f"PRAGMA user_version = {(times + 1) % (1 << 30)}")  # so that something is written
        if self.order != before:
            self._connection.execute('UPDATE "ledger" SET "records" = ?', (self.order,))
        writes = self.order != before or broken_off
        if under_way is not None and writes:
            under_way.begin()
        self._connection.execute("COMMIT")
        if under_way is not None and writes:
            under_way.end()

    def begin(self) -> None:
        """Take note of how much there is. Raises NotALedgerError for another version."""
        found = list(self.run(SELECT_LEDGER))
        if len(found) != 1:
            raise NotALedgerError(f"the table of the ledger's state has {len(found)} rows")
        version, order = found[0]
        if version != SCHEMA_VERSION:
            raise NotALedgerError(f"the ledger is of version {version}; this program knows version {SCHEMA_VERSION}")
        self.order = number(order)

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> Iterable[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise unavailable(error) from error

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._connection.execute(sql)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise unavailable(error) from error

    def integrity(self) -> tuple[str, ...]:
        try:
            found = [str(text) for (text,) in self.run(f"PRAGMA integrity_check({MOST})")]
        except LedgerUnavailableError as error:
            return (error.reason,)
        return () if found == ["ok"] else tuple(text for part in found for text in part.splitlines())

    def insert(self, row: Row) -> None:
        self.run(_INSERT[row.kind], row)
        self.order = row.order


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


def lock_of(path: str) -> str:
    """The file that is locked while somebody is at a ledger."""
    return f"{path}-lock"


def in_force(path: str) -> str:
    """The newest generation of a ledger's file: repairs number them without a gap."""
    newest, number = path, 2
    while os.path.exists(following := f"{path}-generation-{number}"):
        newest, number = following, number + 1
    return newest


def unavailable(error: apsw.Error | UnicodeDecodeError) -> LedgerUnavailableError:
    """What SQLite said; or that a text which it returned is none."""
    if isinstance(error, apsw.NotADBError):
        return NotALedgerError("the file is no SQLite database")
    return LedgerUnavailableError("ledger", str(error) or type(error).__name__)


def _opened(path: str, vfs: str) -> _Open:
    """Open the file, which becomes a ledger if it is missing or empty, and make durable what it holds."""
    refuse_symlink(path)
    try:
        _write_log_again(path, vfs)
        connection = apsw.Connection(path, vfs=vfs or None)
    except apsw.Error as error:
        raise unavailable(error) from error
    try:
        _distrust(connection)
        connection.set_busy_timeout(_BUSY)
        _prepare(connection, path)
        _make_durable(connection)
    except BaseException:
        connection.close(True)
        raise
    return _Open(connection, path)


def _write_log_again(path: str, vfs: str) -> None:
    """Give the next sync of a log that was left over something to write.

    If a sync of it has failed, the system may take what it could not write for written. SQLite would then believe that
    the log is durable, and a crash while it goes into the database would leave neither.
    """
    name = f"{path}-wal"
    if not os.path.exists(name):
        return
    log = apsw.VFSFile(vfs, name, [apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        size = log.xFileSize()
        for offset in range(0, size, _CHUNK):
            log.xWrite(log.xRead(min(_CHUNK, size - offset), offset), offset)
    finally:
        log.xClose()


def _make_durable(connection: apsw.Connection) -> None:
    """Put what the log holds into the database, before anybody relies on it.

    A log that a crash has left can be read, and was perhaps never made durable.
    """
    connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()


def created(path: str) -> apsw.Connection:
    """A new ledger's file, open."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = apsw.Connection(path)
    _distrust(connection)
    _prepare(connection, path)
    return connection


def _prepare(connection: apsw.Connection, path: str) -> None:
    """Set the file up if it is new. Raises NotALedgerError, having changed nothing, if it is something else."""
    application, objects = _what(connection)
    if application != APPLICATION and (application or objects):
        raise NotALedgerError(f"{path} is a database of something else")
    if (application and not objects) or 0 < os.path.getsize(path) < _LEAST:
        # What is made in one transaction is there wholly or not at all, and SQLite takes a few bytes for none.
        raise NotALedgerError(f"{path} is cut off: the tables of a ledger are gone")
    if objects:
        _check_schema(connection, path)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON; PRAGMA cell_size_check = ON")
    if not objects:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        with connection:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute('INSERT INTO "ledger" VALUES (?, 0)', (SCHEMA_VERSION,))


def _distrust(connection: apsw.Connection) -> None:
    """A file may come from a stranger: nothing in it is executed."""
    for what, value in (
        (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
        (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
        # A generation that a repair has sealed keeps its bytes, whoever had it open and lets go of it.
        (apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1),
        # Otherwise a statement is planned anew for each value of a parameter, at five times the cost of running it.
        (apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1),
    ):
        connection.config(what, value)


def _check_schema(connection: apsw.Connection, path: str) -> None:
    """Raises NotALedgerError unless the tables are those that this program makes."""
    try:
        found = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    except UnicodeDecodeError:  # a page that is damaged
        found = []
    if {sql for (sql,) in found} != set(_SCHEMA):
        raise NotALedgerError(f"{path} has other tables than a ledger of version {SCHEMA_VERSION}")


def _what(connection: apsw.Connection) -> tuple[int, int]:
    """What the file says it is for, and how many tables and indexes it has."""
    application = connection.pragma("application_id")
    objects = connection.execute("SELECT count(*) FROM sqlite_schema").get
    return int(application), int(objects)


def check(path: str | os.PathLike[str]) -> None:
    """Raises NotALedgerError unless the file is a ledger or may become one. Changes nothing."""
    path = os.path.abspath(path)
    refuse_symlink(path)
    if os.path.isdir(path):
        raise NotALedgerError(f"{path} is a folder, and no ledger of JSON lines")
    if os.path.exists(path) and os.path.getsize(path):
        with reading(path):
            pass


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[SqliteRows]:
    """The rows as they are at one moment, of a file that nothing is written to.

    Raises NotALedgerError if there is none, LedgerUnavailableError if it cannot be read.
    """
    path = in_force(os.path.abspath(path))
    refuse_symlink(path)
    if not os.path.isfile(path):
        raise NotALedgerError(f"{path} holds no ledger")
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error as error:
        raise unavailable(error) from error
    try:
        _distrust(connection)
        if _what(connection)[0] != APPLICATION:
            raise NotALedgerError(f"{path} is no ledger")
        _check_schema(connection, path)
        connection.execute("BEGIN")
        rows = SqliteRows(connection)
        rows.begin()
        yield rows
    except apsw.Error as error:
        raise unavailable(error) from error
    finally:
        connection.close(True)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def refuse_symlink(path: str) -> None:
    """Raises NotALedgerError for a symbolic link: who can write a link could not write what it leads to."""
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise NotALedgerError(f"{path} is a symbolic link; name the file itself")
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise NotALedgerError(f"{os.path.dirname(path)} is no folder") from None
    except OSError as error:
        raise LedgerUnavailableError("ledger", error.strerror or str(error)) from error
