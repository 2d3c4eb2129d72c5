"""One transaction of a ledger in PostgreSQL: the lock, what is read under it, and statements that compare and write.

The counter of records stands for the state of the whole ledger, and so for every token: a record is inserted by the
very statement that moves the counter on from where it was when the record was decided on. If it is elsewhere, there is
no number for the row, so the server refuses it, and with it the transaction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

from onestart.group_commit import MOST
from onestart.ports import LedgerUnavailableError, NotALedgerError
from onestart.records import store_of
from onestart.sql.postgres.server import Connection, Server, translated
from onestart.sql.rows import COLUMNS, SCHEMA_VERSION, Row
from onestart.sql.statements import Statements

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

# All of it ends with the transaction: behind a pooler the next one may have another session.
SETTINGS = """
    SELECT pg_catalog.set_config('lock_timeout', '{lock}', true),
        pg_catalog.set_config('idle_in_transaction_session_timeout', '{idle}', true),
        pg_catalog.set_config('synchronous_commit', CASE "is" WHEN 'off' THEN 'on' ELSE "is" END, true)
    FROM pg_catalog.current_setting('synchronous_commit') AS "is"
"""

# The clock is read outside of the part that waits for the lock: within it, it would be read before the wait.
LOCK = """
    WITH "locked" AS (SELECT "tableoid"::bigint AS "table", "version", "records" FROM {prefix}"ledger" FOR UPDATE)
    SELECT "table", "version", "records", extract(epoch FROM pg_catalog.clock_timestamp())::float8,
        pg_catalog.pg_current_xact_id()::xid::text
    FROM "locked"
"""
LOOK = """
    SELECT "tableoid"::bigint, "version", "records", extract(epoch FROM pg_catalog.clock_timestamp())::float8, ''
    FROM {prefix}"ledger"
"""
INSERT = """
    WITH "moved" AS (
        UPDATE {prefix}"ledger" SET "records" = "records" + 1
        WHERE "records" = %s AND "version" = %s AND "tableoid"::bigint = %s
        RETURNING "records"
    )
    INSERT INTO {prefix}"{table}" ({columns}) VALUES ((SELECT "records" FROM "moved"), {values})
"""
# There is nothing to wait for. Not by ROLLBACK, after which psycopg takes all statements that are prepared for gone.
LET_GO = "SELECT pg_catalog.set_config('synchronous_commit', 'off', true); COMMIT"
_VALUES = ", ".join(["%s"] * (len(Row._fields) - 1))
_AT_ONCE = 1000  # rows that are fetched or inserted together when there are many


class PostgresRows(Statements):
    """The rows of a ledger over one connection, transaction by transaction.

    table: the server's number of the ledger's table. transaction: that of the transaction. written: the rows that it
    has inserted, the last ones of a transaction that is more than a group of steps.
    """

    def __init__(self, connection: Connection, server: Server) -> None:
        self.connection = connection
        self.prefix = server.prefix
        self.order = 0
        self.table = 0
        self.transaction = ""
        self.written: deque[Row] = deque(maxlen=MOST)
        self._waiting: list[Row] = []
        self._times = server.limits.milliseconds
        self._prepared = server.prepared
        self._streams = count()

    def lock(self) -> None:
        """Begin a transaction, and wait until no other process has one.

        Every later statement sees what all others have committed. Raises NotALedgerError for another version.
        """
        self._begin(BEGIN, SETTINGS.format(**self._times), LOCK)

    def look(self) -> None:
        """Begin a transaction that sees everything as it is now, waits for nobody and writes nothing."""
        self._begin(BEGIN_READING, LOOK)

    def _begin(self, *texts: str) -> None:
        """In one message, of the old kind: after a pipeline the server does not always watch over an idle session."""
        self.written.clear()
        self._waiting.clear()
        with translated(self.connection):
            answer = self.connection.execute(";".join(texts).format(prefix=self.prefix))
            while answer.nextset():
                pass
            self._take(answer.fetchall())

    def adopt(self) -> None:
        """Go on with a ledger that this transaction has made over the same connection."""
        with translated(self.connection):
            self._take(self.connection.execute(LOOK.format(prefix=self.prefix)).fetchall())

    def _take(self, found: Sequence[tuple[Any, ...]]) -> None:
        if len(found) != 1:
            raise NotALedgerError(f"the table of the ledger's state has {len(found)} rows")
        self.table, version, self.order, self.now, self.transaction = found[0]
        if version != SCHEMA_VERSION:
            raise NotALedgerError(f"the ledger is of version {version}; this program knows version {SCHEMA_VERSION}")

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> Iterable[tuple[Any, ...]]:
        with translated(self.connection):
            self._insert()
            cursor = self.connection.cursor(binary=True)
            return cursor.execute(sql.replace("?", "%s"), parameters, prepare=self._prepared).fetchall()

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        name = f"onestart_{next(self._streams)}"
        with translated(self.connection), self.connection.cursor(name) as cursor:
            self._insert()
            cursor.itersize = _AT_ONCE
            yield from cursor.execute(sql, binary=True)

    def insert(self, row: Row) -> None:
        """See `Rows.insert`. It is sent with what is asked for next, or with the end of the transaction."""
        self._waiting.append(row)
        self.written.append(row)
        self.order = row.order
        if len(self._waiting) >= _AT_ONCE:
            with translated(self.connection), self.connection.pipeline():
                self._insert()

    def commit(self) -> None:
        """Make it durable. Raises LostError if nobody knows whether it is; after any other error, nothing is."""
        with translated(self.connection), self.connection.pipeline():
            self._insert()
            ended = self.connection.execute("COMMIT")
        if ended.statusmessage != "COMMIT":
            raise LedgerUnavailableError("ledger", "the server has ended the transaction; nothing was written")

    def let_go(self) -> None:
        """End a transaction that has written nothing."""
        with translated(self.connection):
            self.connection.execute(LET_GO)

    def has_all(self, rows: Iterable[Row], transaction: str) -> bool:
        """Whether these rows are there, byte for byte, as that transaction has inserted them."""
        for row in rows:
            wanted = f'SELECT {COLUMNS} FROM {self.prefix}"{store_of(row.kind)}" WHERE "order" = ? AND "xmin" = ?::xid'
            if [Row._make(found) for found in self.run(wanted, [row.order, transaction])] != [row]:
                return False
        return True

    def _insert(self) -> None:
        for row in self._waiting:
            text = INSERT.format(prefix=self.prefix, table=store_of(row.kind), columns=COLUMNS, values=_VALUES)
            values = [row.order - 1, SCHEMA_VERSION, self.table, *row[1:]]
            self.connection.execute(text, values, prepare=self._prepared)
        self._waiting.clear()
