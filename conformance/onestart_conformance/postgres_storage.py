"""The ledger in PostgreSQL, over connections that are lost at any statement: a real server, a schema for each world.

What a server acknowledges is durable, so a power failure here is one of everything but the server. Leases end by the
world's time, not by the server's clock.
"""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, cast

import psycopg
from attrs import Factory, define, field, frozen

from onestart.group_commit import Run
from onestart.ports import Ledger
from onestart.sql.postgres import PostgresLedger
from onestart.sql.postgres.rows import LET_GO
from onestart.sql.postgres.server import Connection, Server
from onestart_conformance.damage.postgres import Clockless
from onestart_conformance.disk import Fuse
from onestart_conformance.gates import ProcessDied
from onestart_conformance.row_storage import Ask, RowStorage
from onestart_conformance.storage import Access, Opened, at_once

AT_ONCE, IN_A_STATEMENT, BEFORE_THE_END, AFTER_THE_END = range(4)
STATEMENTS = 6  # of a step, at one of which it may break off
ENDS = ("COMMIT", LET_GO)
_NUMBERS = count(1)


@define(eq=False)
class Wire:
    """What one process has of the server: `Access`, and the ledger, whose connection it is.

    `left` of its fuse says where the connection is lost: 0 at once, 1 at a statement (`torn` says at which), 2 before
    the transaction's end is carried out, 3 once it is and nobody has heard of it.
    """

    fuse: Fuse = Factory(Fuse)
    dead: bool = False
    ledger: PostgresLedger | None = None
    _statements: int = 0

    def statement(self, connection: psycopg.Connection[Any], text: str = "") -> None:
        """One is about to be sent."""
        if self.dead:
            raise ProcessDied
        left = self.fuse.left
        if left == IN_A_STATEMENT:
            self._statements += 1
        blows = (
            left == AT_ONCE
            or (left == IN_A_STATEMENT and self._statements > self.fuse.torn % STATEMENTS)
            or (left == BEFORE_THE_END and text in ENDS)
        )
        if blows:
            self._blow(connection)

    def ended(self, connection: psycopg.Connection[Any]) -> None:
        """A transaction has come to its end."""
        if self.fuse.left == AFTER_THE_END:
            self._blow(connection)

    def _blow(self, connection: psycopg.Connection[Any]) -> None:
        connection.close()
        dies, self.fuse, self._statements = not self.fuse.error, Fuse(), 0
        if dies:
            self.dead = True
            raise ProcessDied
        raise psycopg.OperationalError("the wire was cut")


class FusedConnection:
    """A connection of the driver that is shipped, of which each statement is told before it is sent."""

    def __init__(self, connection: psycopg.Connection[Any], wire: Wire) -> None:
        self._connection, self._wire = connection, wire

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Any:
        text = query if isinstance(query, str) else ""
        self._wire.statement(self._connection, text)
        done = self._connection.execute(query, *arguments, **options)
        if text == LET_GO:
            self._wire.ended(self._connection)
        return done

    def cursor(self, *arguments: Any, **options: Any) -> Any:
        self._wire.statement(self._connection)
        return self._connection.cursor(*arguments, **options)

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        """What is in it is carried out when it is left."""
        with self._connection.pipeline():
            yield
        self._wire.ended(self._connection)


@frozen
class FusedServer(Server):
    """The server, over a wire that can be cut."""

    wire: Wire = field(kw_only=True)

    def connect(self) -> Connection:
        return cast(Connection, FusedConnection(super().connect(), self.wire))


class PostgresStorage(RowStorage):
    """See `Storage`. address: of a database in which schemas may be made, as psycopg takes it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.schema = f"onestart_drive_{os.getpid()}_{next(_NUMBERS)}"
        self._connection = psycopg.connect(address, autocommit=True)
        self._alive: list[Wire] = []
        self._outsider: PostgresLedger | None = None

    @property
    def prefix(self) -> str:
        return f'"{self.schema}".'

    def open(self, run: Run) -> Opened:
        wire = Wire()
        wire.ledger = PostgresLedger(self._address, schema=self.schema, run=run)
        wire.ledger._server = FusedServer(self._address, self.schema, wire=wire)
        self._alive.append(wire)
        return Opened(Clockless(wire.ledger), wire)

    def left(self, access: Access) -> None:
        access.dead = True
        for gone in [wire for wire in self._alive if wire is access]:
            self._alive.remove(gone)
            if gone.ledger is not None:
                gone.ledger.close()

    def outside(self) -> Ledger:
        if self._outsider is None:
            self._outsider = PostgresLedger(self._address, schema=self.schema, run=at_once)
        return Clockless(self._outsider)

    def power_failure(self, chance: random.Random) -> None:
        """Nothing is lost: see above."""

    @contextmanager
    def by_hand(self) -> Iterator[Ask]:
        def ask(sql: str, *values: object) -> list[tuple[Any, ...]]:
            cursor = self._connection.execute(sql.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []

        yield ask

    def there(self, ask: Ask) -> Collection[str]:
        wanted = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = ?"
        return [name for (name,) in ask(wanted, self.schema)]

    def close(self) -> None:
        for wire in list(self._alive):
            self.left(wire)
        if self._outsider is not None:
            self._outsider.close()
        with suppress(psycopg.Error):
            self._connection.execute(f"DROP SCHEMA IF EXISTS {self.prefix[:-1]} CASCADE")
        self._connection.close()
