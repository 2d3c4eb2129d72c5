"""The side of a server that workers' ledgers are on: a schema of their own, and backends that are ended under way."""

from __future__ import annotations

from typing import Any

import psycopg
from attrs import define, field
from psycopg import sql
from psycopg.conninfo import make_conninfo

from onestart.ports import Ledger
from onestart.sql.postgres import PostgresLedger

_END = """
SELECT pg_terminate_backend("pid") FROM (
    SELECT "pid" FROM pg_stat_activity WHERE "application_name" = %s AND "xact_start" IS NOT NULL
    ORDER BY random() LIMIT 1
) AS "one"
"""


@define
class Backends:
    """conninfo: of a database in which schemas may be made; it may hold a password, so it is not shown.

    name: of the schema, and by which the server knows the workers' connections.
    """

    conninfo: str = field(repr=False)
    name: str
    _connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def ledger(self) -> Ledger:
        """The workers' ledger, in whatever process."""
        return PostgresLedger(make_conninfo(self.conninfo, application_name=self.name), schema=self.name)

    def end_one(self) -> bool:
        """End the backend of a transaction that is under way. False if there is none."""
        return any(ended for (ended,) in self._connected().execute(_END, [self.name]))

    def drop(self) -> None:
        """Leave nothing behind."""
        self._connected().execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(self.name)))
        self._connected().close()

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = psycopg.connect(self.conninfo, autocommit=True)
        return self._connection
