"""The rows of a SQLite file, within a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from onestart.ports import LedgerUnavailableError, NotALedgerError
from onestart.records import KINDS, store_of
from onestart.sql.beside import Beside
from onestart.sql.rows import COLUMNS, SCHEMA_VERSION, Row, number
from onestart.sql.statements import SELECT_LEDGER, Statements
from onestart.verification import MOST

_VALUES = ", ".join("?" * len(Row._fields))
_INSERT = {kind: f'INSERT INTO "{store_of(kind)}" ({COLUMNS}) VALUES ({_VALUES})' for kind in KINDS}


class SqliteRows(Statements):
    """The rows of a SQLite file."""

    def __init__(self, connection: apsw.Connection, had: int = 0) -> None:
        """had: how many records there have been at least."""
        self._connection = connection
        self._had = had
        self.order = 0

    @contextmanager
    def transaction(self, beside: Beside | None = None) -> Iterator[None]:
        """Durable when it is left, and nothing of it otherwise. beside: None if nobody else knows the file.

        Raises NotALedgerError if records are gone that there have been.
        """
        self._connection.execute("BEGIN IMMEDIATE")
        self.begin()
        if beside is not None:
            self._had = beside.records()
            if self.gone:
                raise NotALedgerError(f"{self.gone}; `onestart ledger repair` goes on with what is left")
        before, broken_off = self.order, beside is not None and beside.found()
        yield
        if broken_off:
            times = self._connection.pragma("user_version")
            self._connection.execute(f"PRAGMA user_version = {(times + 1) % (1 << 30)}")  # so that something is written
        if self.order != before:
            self._connection.execute('UPDATE "ledger" SET "records" = ?', (self.order,))
        writes = self.order != before or broken_off
        if beside is not None and writes:
            beside.begin()
        self._connection.execute("COMMIT")
        if beside is not None and writes:
            beside.end(self.order)

    @property
    def gone(self) -> str:
        """What is to be said if there are fewer records than there have been."""
        if self.order >= self._had:
            return ""
        why = "its log is damaged, it was deleted, or an older copy was put in its place"
        return f"it had {self._had} records and has {self.order}: {why}"

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
        wrong = () if found == ["ok"] else tuple(text for part in found for text in part.splitlines())
        return (self.gone, *wrong) if self.gone else wrong

    def insert(self, row: Row) -> None:
        self.run(_INSERT[row.kind], row)
        self.order = row.order


def unavailable(error: apsw.Error | UnicodeDecodeError) -> LedgerUnavailableError:
    """What SQLite said; or that a text which it returned is none."""
    if isinstance(error, apsw.NotADBError):
        return NotALedgerError("the file is no SQLite database")
    return LedgerUnavailableError("ledger", str(error) or type(error).__name__)
