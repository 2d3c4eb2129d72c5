"""A SQLite file that is a ledger: how it is made, opened and told from others, and its generations."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from onestart.ports import LedgerUnavailableError, NotALedgerError
from onestart.sql.beside import records_beside
from onestart.sql.rows import SCHEMA_VERSION
from onestart.sql.sqlite_rows import SqliteRows, unavailable
from onestart.sql.statements import schema

APPLICATION = 0x6F6E6531  # "one1", where SQLite keeps what a file is for
_SCHEMA = schema(number="INTEGER", blob="BLOB", primary="INTEGER")
_CHUNK = 1 << 16  # SQLite writes less than 128 KiB at once
_LEAST = 512  # bytes: of SQLite's smallest page
_BUSY = 10_000  # milliseconds that a foreign transaction is waited for; ours wait at the lock


def lock_of(path: str) -> str:
    """The file that is locked while somebody is at a ledger."""
    return f"{path}-lock"


def in_force(path: str) -> str:
    """The newest generation of a ledger's file: repairs number them without a gap."""
    newest, number = path, 2
    while os.path.exists(following := f"{path}-generation-{number}"):
        newest, number = following, number + 1
    return newest


def connected(path: str, vfs: str) -> apsw.Connection:
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
    return connection


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
    lock = lock_of(os.path.abspath(path))
    path = in_force(os.path.abspath(path))
    refuse_symlink(path)
    had = records_beside(lock, path)  # before the moment, since there may be more of them by then
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
        rows = SqliteRows(connection, had)
        rows.begin()
        yield rows
    except apsw.Error as error:
        raise unavailable(error) from error
    finally:
        connection.close(True)


def identity(path: str) -> tuple[int, int] | None:
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
