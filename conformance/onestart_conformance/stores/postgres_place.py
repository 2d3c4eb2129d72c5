"""Where a ledger in PostgreSQL is kept while it is probed: a schema of its own, which is dropped afterwards."""

from __future__ import annotations

import itertools
import os
from typing import Any

import psycopg
from psycopg import sql

from onestart.ports import Ledger
from onestart.records import STORES
from onestart.sql.postgres import PostgresLedger
from onestart_conformance.stores.places import Contents, Place

_NUMBERS = itertools.count(1)


class PostgresPlace(Place):
    """conninfo: of a database in which schemas may be made."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._schema = f"onestart_probe_{os.getpid()}_{next(_NUMBERS)}"
        self._opened: list[PostgresLedger] = []

    def open(self) -> Ledger:
        self._opened.append(PostgresLedger(self._conninfo, schema=self._schema))
        return self._opened[-1]

    async def contents(self) -> Contents:
        if not self._ask("SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", [self._schema]):
            return {store: [] for store in STORES}
        return {store: [bytes(line) for (line,) in self._ask(_LINES, store=store)] for store in STORES}

    async def lose(self, store: str) -> None:
        self._ask("DELETE FROM {schema}.{store}", store=store)

    async def reopen(self) -> None:
        self._let_go()
        await super().reopen()

    async def close(self) -> None:
        self._let_go()
        self._ask("DROP SCHEMA IF EXISTS {schema} CASCADE")

    def _let_go(self) -> None:
        for ledger in self._opened:
            ledger.close()
        self._opened.clear()

    def _ask(self, text: str, parameters: list[Any] | None = None, *, store: str = "") -> list[tuple[Any, ...]]:
        names = {"schema": sql.Identifier(self._schema), "store": sql.Identifier(store)}
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            cursor = connection.execute(sql.SQL(text).format(**names), parameters or [])
            return cursor.fetchall() if cursor.description else []


_LINES = 'SELECT "line" FROM {schema}.{store} ORDER BY "order"'
