"""Where a ledger is in PostgreSQL, how long one waits there, and what is said when that fails: never a password."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import ceil
from typing import Any, TypeAlias

import psycopg
from attrs import field, frozen
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from onestart.ports import LedgerUnavailableError, NotALedgerError

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_PORTS = re.compile(r"[0-9]{0,5}(,[0-9]{0,5})*")
_SECRETS = ("password", "sslpassword", "oauth_client_secret")
_MANGLED = "the connection string is none of PostgreSQL's; in a URL, special characters of a password are %-encoded"
_NEVER_BY_ITSELF = 1 << 62  # executions after which psycopg prepares what it was not asked to prepare
_OLDEST = 130_000  # the first with the functions that tell transactions apart

# What it would write to standard error when a connection is lost is raised here; whoever sets up logging still gets it.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class LostError(LedgerUnavailableError):
    """The connection is gone. What was asked for last was carried out or not."""


@frozen
class Limits:
    """How long things are waited for, in seconds.

    lock: for other processes' transactions. idle: how long a process that has the ledger may stand still before the
    server ends its transaction. connect: for a server, unless the connection string says so. doubt: the pauses between
    the attempts to find out whether a transaction was committed when the answer was lost.
    """

    lock: float = 30.0
    idle: float = 10.0
    connect: int = 10
    doubt: tuple[float, ...] = (0.0, 0.1, 0.4, 1.0, 2.0, 4.0, 8.0)

    @property
    def milliseconds(self) -> dict[str, int]:
        """What the server is told."""
        return {"lock": ceil(self.lock * 1000), "idle": ceil(self.idle * 1000)}


@frozen
class Server:
    """A schema of a database, and how to get there. The connection string may hold a password, so it is not shown.

    prepared: whether sessions are trusted to keep statements, which one behind a pooler may not.
    """

    conninfo: str = field(repr=False)
    schema: str
    limits: Limits = Limits()
    prepared: bool = False

    @property
    def prefix(self) -> str:
        """What stands before the name of a table."""
        return f"{sql.Identifier(self.schema).as_string()}."

    def connect(self) -> Connection:
        """A connection without a transaction. Unless prepared, it keeps nothing that the next one would rely on."""
        if not _NAME.fullmatch(self.schema):
            raise NotALedgerError(f"{self.schema!r} is no name for a schema: letters, digits and underscores are")
        known = _parsed(self.conninfo)
        more: dict[str, Any] = {} if "connect_timeout" in known else {"connect_timeout": self.limits.connect}
        never = None if not self.prepared else _NEVER_BY_ITSELF
        try:
            connection = psycopg.connect(self.conninfo, autocommit=True, prepare_threshold=never, **more)
        except psycopg.Error as error:
            raise LostError("ledger", _concealed(_said(error), known)) from None
        if connection.info.server_version < _OLDEST:
            connection.close()
            raise NotALedgerError(f"the server is older than PostgreSQL {_OLDEST // 10_000}")
        return connection


@contextmanager
def translated(connection: Connection) -> Iterator[None]:
    """Raises LedgerUnavailableError for what the server says, LostError if it is gone."""
    try:
        yield
    except psycopg.Error as error:
        raise _unavailable(error, connection) from error


def _unavailable(error: psycopg.Error, connection: Connection) -> LedgerUnavailableError:
    if connection.closed:
        return LostError("ledger", f"the connection was lost: {_said(error)}")
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return LedgerUnavailableError("ledger", "it was locked by another process for too long")
    if isinstance(error, psycopg.errors.NotNullViolation):  # of the number that a row gets if the ledger is as it was
        return LedgerUnavailableError("ledger", "it is not as it was when this was decided; nothing was written")
    return LedgerUnavailableError("ledger", _said(error))


def _said(error: psycopg.Error) -> str:
    return " ".join((error.diag.message_primary or str(error)).split()) or type(error).__name__


def _parsed(conninfo: str) -> Mapping[str, Any]:
    """The parts of a connection string. Raises NotALedgerError for one whose errors could show parts of a password."""
    try:
        parts = conninfo_to_dict(conninfo)
    except (psycopg.Error, ValueError):
        raise NotALedgerError(_MANGLED) from None
    host, port = str(parts.get("host", "")), str(parts.get("port", ""))
    if "@" in host[1:] or not _PORTS.fullmatch(port):
        raise NotALedgerError(_MANGLED)
    return parts


def _concealed(text: str, parts: Mapping[str, Any]) -> str:
    for name in _SECRETS:
        if parts.get(name):
            text = text.replace(str(parts[name]), "***")
    return text
