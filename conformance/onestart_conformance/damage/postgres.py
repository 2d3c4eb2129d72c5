"""The ledger in PostgreSQL as a medium: a schema of its own on a real server, edited by hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, TypeVar
from weakref import finalize

import psycopg

from onestart.ledgers import Address
from onestart.ports import Ledger, View
from onestart.records import Record
from onestart.sql.postgres import PostgresLedger
from onestart.sql.rows import COLUMNS
from onestart_conformance.damage.rows import OfRows
from onestart_conformance.storage import at_once

T = TypeVar("T")

_NUMBERS = count()
_EVERY = 100  # times that all rows are replaced; then the server gets rid of the old ones


class Clockless:
    """A ledger by whose clock no lease ends, so that time stands still where a trial says so."""

    def __init__(self, ledger: PostgresLedger) -> None:
        self._ledger = ledger

    async def step(self, decide: Callable[[View], tuple[Record | None, T]]) -> T:
        """See `Ledger.step`."""
        return await self._ledger.step(lambda view: decide(_ClocklessView(view)))


class _ClocklessView:
    now = None

    def __init__(self, view: View) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


class PostgresMedium(OfRows):
    """server: as psycopg takes it. The schema goes when the medium does."""

    name = "postgres"

    def __init__(self, server: str) -> None:
        self._server = server
        self._schema = f"onestart_damage_{os.getpid()}_{next(_NUMBERS)}"
        self.prefix = f'"{self._schema}".'
        self._connection = psycopg.connect(server, autocommit=True)
        self._ledgers: list[PostgresLedger] = []
        self._restored = 0
        self._leave = finalize(self, _leave, self._connection, self._ledgers, self._schema)

    @property
    def address(self) -> Address:
        return Address("postgresql", self._server, self._schema)

    def ledger(self) -> Ledger:
        ledger = PostgresLedger(self._server, schema=self._schema, run=at_once)
        self._ledgers.append(ledger)
        return Clockless(ledger)

    def close(self) -> None:
        """Leave nothing on the server."""
        self._leave()

    def refuse(self, store: str) -> None:
        """Under another name nobody finds it; a superuser cannot be refused anything."""
        self.run(f'ALTER TABLE {self.prefix}"{store}" RENAME TO "elsewhere"')
        self.readable = False

    def keep(self) -> object:
        self._close()
        tables = {store: self.ask(f'SELECT {COLUMNS} FROM {self.prefix}"{store}"') for store in self.stores}
        return {**tables, "ledger": self.ask(f'SELECT "version", "records" FROM {self.prefix}"ledger"')}

    def restore(self, kept: object) -> None:
        assert isinstance(kept, Mapping)
        self._close()
        if not self.readable:
            self.run(f"DROP SCHEMA {self.prefix[:-1]} CASCADE")
            self.readable = True
            self._begin()
        self._restored += 1
        if self._restored % _EVERY == 0:
            self.run(f"VACUUM {', '.join(self._table(store) for store in (*self.stores, 'ledger'))}")
        with self._connection.transaction(), self._connection.cursor() as cursor:
            for table, rows in kept.items():
                cursor.execute(f"DELETE FROM {self._table(table)}")  # to empty it otherwise makes files anew
                marks = ", ".join(["%s"] * len(rows[0])) if rows else ""
                if rows:
                    cursor.executemany(f"INSERT INTO {self._table(table)} VALUES ({marks})", rows)

    def run(self, sql: str, *values: Any) -> None:
        with suppress(psycopg.DataError, psycopg.ProgrammingError, psycopg.IntegrityError):
            self._connection.execute(sql.replace("?", "%s"), values)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with suppress(psycopg.ProgrammingError):
            return self._connection.execute(sql).fetchall()
        return []

    def _begin(self) -> None:
        """Make the tables."""
        ledger = PostgresLedger(self._server, schema=self._schema, run=at_once)
        with suppress(StopIteration):
            ledger.step(lambda view: (None, None)).send(None)
        ledger.close()

    def _close(self) -> None:
        for ledger in self._ledgers:
            ledger.close()
        self._ledgers.clear()


def _leave(connection: psycopg.Connection[Any], ledgers: list[PostgresLedger], schema: str) -> None:
    for ledger in ledgers:
        ledger.close()
    with suppress(psycopg.Error):
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
    connection.close()
