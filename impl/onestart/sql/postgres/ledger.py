"""The ledger in PostgreSQL: a transaction for each promise, one at a time, for the processes of many machines.

Source for what one does about a commit without an answer: the documentation of `pg_xact_status` in PostgreSQL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import sleep
from typing import Any, TypeVar

from onestart.group_commit import GroupCommit, Run, Step, Take
from onestart.ports import LedgerUnavailableError, NotALedgerError, View
from onestart.records import Record
from onestart.sql.postgres.generations import sealed
from onestart.sql.postgres.migrations import migrate, version
from onestart.sql.postgres.rows import PostgresRows
from onestart.sql.postgres.server import Limits, LostError, Server
from onestart.sql.rows import SCHEMA_VERSION
from onestart.sql.view import RowsView

T = TypeVar("T")


class PostgresLedger:
    """A `Ledger` in a schema of a database, made if it is missing. Leases end by the server's clock.

    Steps that come while another transaction is under way share the next. A transaction that was lost before its end
    has written nothing; if the answer to its COMMIT is lost, the next transaction looks whether its rows are there.

    conninfo: as psycopg takes it, a URL or names with values. schema: letters, digits and underscores. limits: how long
    things are waited for. prepared: statements are prepared, which saves the server most of its work; not for a pooler
    that hands out sessions by the transaction and does not know of them. run: how a step is run, each alone; together
    and in a thread if None.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        schema: str = "onestart",
        limits: Limits | None = None,
        prepared: bool = False,
        run: Run | None = None,
    ) -> None:
        self._server = Server(conninfo, schema, limits or Limits(), prepared)
        self._rows: PostgresRows | None = None
        self._process = os.getpid()
        self._table = self._most = 0
        self._group = GroupCommit(self._carry_out, run)

    async def step(self, decide: Callable[[View], tuple[Record | None, T]]) -> T:
        """See `Ledger.step`. Raises NotALedgerError if the schema holds something else."""
        return await self._group.step(decide)

    def close(self) -> None:
        """Close the connection; a later step makes a new one."""
        rows, self._rows = self._rows, None
        if rows is not None:
            rows.connection.close()

    def _carry_out(self, take: Take) -> None:
        rows = self._locked()
        self._together(rows, take())

    def _together(self, rows: PostgresRows, steps: list[Step[Any]]) -> None:
        try:
            RowsView(rows).decide(steps)
            self._end(rows)
        except BaseException:
            self.close()
            raise
        for step in steps:
            step.done()

    def _end(self, rows: PostgresRows) -> None:
        """What was only read is durable already: with these settings nobody sees what is not."""
        if not rows.written:
            rows.let_go()
            return
        try:
            rows.commit()
            self._most = rows.order
        except LostError as lost:
            self._resolve(rows, lost)

    def _resolve(self, lost: PostgresRows, why: LostError) -> None:
        """Find out what became of a transaction whose end was not heard of.

        Whoever gets the lock knows that it is over. Raises LedgerUnavailableError unless it was committed.
        """
        reason: LedgerUnavailableError = why
        for pause in self._server.limits.doubt:
            sleep(pause)
            self.close()
            try:
                rows = self._locked()
                there = self._generation(rows, lost.table).has_all(lost.written, lost.transaction)
                rows.let_go()
            except LedgerUnavailableError as error:
                reason = error
                continue
            if not there:
                raise LedgerUnavailableError("ledger", f"{why.reason}; nothing was written")
            return
        raise LedgerUnavailableError("ledger", f"the outcome of a write is unknown: {reason.reason}")

    def _generation(self, rows: PostgresRows, table: int) -> PostgresRows:
        """The rows of the generation with this table: these, or what a repair has set aside meanwhile."""
        if rows.table == table:
            return rows
        where = sealed(rows.connection, self._server, table)
        if where is None:
            raise NotALedgerError("the ledger was replaced while it was open")
        return PostgresRows(rows.connection, where)

    def _locked(self) -> PostgresRows:
        """A transaction that has the ledger. A connection that was lost meanwhile is made anew, once."""
        if self._rows is not None and self._process != os.getpid():
            raise NotALedgerError("this process has forked since the ledger was opened; open it anew")
        try:
            if self._rows is not None:
                return self._checked(self._rows)
        except LostError:
            self.close()
        self._rows = _opened(self._server, new=not self._table)
        self._process = os.getpid()
        return self._checked(self._rows)

    def _checked(self, rows: PostgresRows) -> PostgresRows:
        """Lock. Raises NotALedgerError for what is not the ledger that this process has known."""
        try:
            rows.lock()
            if self._table not in (0, rows.table):
                self._generation(rows, self._table)
                self._most = 0  # a new generation counts anew
            if rows.order < self._most:
                raise NotALedgerError(f"the ledger had {self._most} records and has {rows.order}: it was rolled back")
        except BaseException:
            self.close()
            raise
        self._table, self._most = rows.table, rows.order
        return rows


def _opened(server: Server, *, new: bool) -> PostgresRows:
    """Connect. new: the schema may be made, or brought up to date. Raises NotALedgerError if it is something else."""
    connection = server.connect()
    try:
        if new:
            migrate(connection, server)
        return PostgresRows(connection, server)
    except BaseException:
        connection.close()
        raise


@contextmanager
def reading(conninfo: str, *, schema: str = "onestart") -> Iterator[PostgresRows]:
    """The rows as they are at one moment; nothing is written and nobody waits.

    Raises NotALedgerError if there is no ledger, LedgerUnavailableError if it cannot be read.
    """
    server = Server(conninfo, schema)
    connection = server.connect()
    try:
        if version(connection, server) != SCHEMA_VERSION:
            raise NotALedgerError(f"the schema {schema} holds no ledger")
        rows = PostgresRows(connection, server)
        rows.look()
        yield rows
    finally:
        connection.close()
