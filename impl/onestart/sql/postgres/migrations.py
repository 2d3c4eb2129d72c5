"""The tables of a ledger in PostgreSQL, by version. Whoever comes first makes them; the others wait for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from onestart.ports import NotALedgerError
from onestart.sql.postgres.rows import BEGIN, SETTINGS
from onestart.sql.postgres.server import Connection, Server, translated
from onestart.sql.rows import SCHEMA_VERSION, TABLES, Row
from onestart.sql.statements import schema

Migration: TypeAlias = Callable[[str], tuple[str, ...]]

# Text is compared by its bytes: any other order differs between machines, and an update of one would break the indexes.
_TEXT = 'TEXT COLLATE "C"'
_LOCK = "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('onestart'), pg_catalog.hashtext(%s))"
_COLUMNS = """
    SELECT "c"."relname", "a"."attname", pg_catalog.format_type("a"."atttypid", "a"."atttypmod"), "a"."attnotnull"
    FROM pg_catalog.pg_class AS "c"
    JOIN pg_catalog.pg_namespace AS "s" ON "s"."oid" = "c"."relnamespace"
    LEFT JOIN pg_catalog.pg_attribute AS "a"
        ON "a"."attrelid" = "c"."oid" AND "a"."attnum" > 0 AND NOT "a"."attisdropped"
    WHERE "s"."nspname" = %s AND "c"."relkind" IN ('r', 'p', 'v', 'm', 'f', 'S')
"""


def _first(prefix: str) -> tuple[str, ...]:
    return (
        f'CREATE TABLE {prefix}"migrations" ("version" BIGINT PRIMARY KEY, "applied" TIMESTAMPTZ NOT NULL)',
        *schema(number="BIGINT", blob="BYTEA", primary="BIGINT", text=_TEXT, prefix=prefix),
        f'CREATE UNIQUE INDEX "ledger_only" ON {prefix}"ledger" ((true))',
        f'INSERT INTO {prefix}"ledger" VALUES (0, 0)',
    )


MIGRATIONS: tuple[Migration, ...] = (_first,)
"""What makes each version of the one before it, from version 1 on. Never changed; a new version is one more."""


def migrate(connection: Connection, server: Server) -> None:
    """Bring the schema up to the version of this program.

    Raises NotALedgerError, having changed nothing, if it holds something else or a newer version.
    """
    with translated(connection):
        while version(connection, server) < SCHEMA_VERSION:
            connection.execute(BEGIN)
            _one(connection, server)
            connection.execute("COMMIT")


def version(connection: Connection, server: Server) -> int:
    """Which version of a ledger the schema holds, 0 if none. Raises NotALedgerError for anything else."""
    with translated(connection):
        found = set(connection.execute(_COLUMNS, (server.schema,)))
    if not found:
        return 0
    if not {("ledger", "version", "bigint", True), ("migrations", "version", "bigint", True)} <= found:
        raise NotALedgerError(f"the schema {server.schema} holds something else than a ledger")
    newest = _newest(connection, server)
    if newest > SCHEMA_VERSION:
        raise NotALedgerError(f"the ledger is of version {newest}; this program knows version {SCHEMA_VERSION}")
    if newest == SCHEMA_VERSION and not _expected() <= found:
        raise NotALedgerError(f"the schema {server.schema} has other tables than a ledger of version {newest}")
    return newest


def _newest(connection: Connection, server: Server) -> int:
    text = f'SELECT pg_catalog.max("version") FROM {server.prefix}"migrations"'
    with translated(connection):
        ((newest,),) = connection.execute(text)
    if not isinstance(newest, int):
        raise NotALedgerError(f"the schema {server.schema} holds something else than a ledger")
    return newest


def _one(connection: Connection, server: Server) -> None:
    """The next migration, within a transaction, unless another process has made it meanwhile."""
    prefix = server.prefix
    connection.execute(SETTINGS.format(**server.limits.milliseconds))
    connection.execute(_LOCK, (server.schema,))
    before = version(connection, server)
    if before >= SCHEMA_VERSION:
        return
    if before:  # processes that know the old version finish what they are at, and then see the new one
        connection.execute(f'SELECT 1 FROM {prefix}"ledger" FOR UPDATE')
    elif not _exists(connection, server):
        connection.execute(f"CREATE SCHEMA {server.prefix[:-1]}")
    connection.execute(";".join(MIGRATIONS[before](prefix)))
    connection.execute(f'INSERT INTO {prefix}"migrations" VALUES (%s, pg_catalog.now())', (before + 1,))
    connection.execute(f'UPDATE {prefix}"ledger" SET "version" = %s', (before + 1,))


def _exists(connection: Connection, server: Server) -> bool:
    found = connection.execute("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", (server.schema,))
    ((encoding,),) = connection.execute("SHOW server_encoding")
    if encoding != "UTF8":
        raise NotALedgerError(f"the database's encoding is {encoding}; a ledger needs UTF8")
    return found.fetchone() is not None


def _expected() -> set[tuple[Any, ...]]:
    types = dict.fromkeys(("order", "n", "lease"), "bigint") | {"line": "bytea"}
    rows = {(table, column, types.get(column, "text"), True) for table in TABLES for column in Row._fields}
    return rows | {("ledger", "version", "bigint", True), ("ledger", "records", "bigint", True)}
