"""Whole ledgers in PostgreSQL: one that is filled at once, and a new generation in the place of a damaged one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import evolve

from onestart.ports import NotALedgerError
from onestart.repair import Repair, RepairRefusedError, save, survey
from onestart.sql.history import RowsHistory, RowsWriter
from onestart.sql.postgres.migrations import MIGRATIONS, migrate, version
from onestart.sql.postgres.rows import PostgresRows
from onestart.sql.postgres.server import Connection, Limits, Server, translated
from onestart.sql.rows import SCHEMA_VERSION

_SEALED = "_sealed_"
_WHERE = """
    SELECT "in"."nspname" FROM pg_catalog.pg_class AS "of"
    JOIN pg_catalog.pg_namespace AS "in" ON "in"."oid" = "of"."relnamespace"
    WHERE "of"."oid" = %s AND "of"."relname" = 'ledger'
"""


@contextmanager
def filling(conninfo: str, *, schema: str = "onestart") -> Iterator[RowsWriter | None]:
    """A writer to a new ledger, whose records are all there when it is left, or none. None if it is not new."""
    server = Server(conninfo, schema, Limits())
    connection = server.connect()
    try:
        migrate(connection, server)
        rows = PostgresRows(connection, server)
        rows.lock()
        if rows.order:
            yield None
            return
        yield RowsWriter(rows)
        rows.commit()
    finally:
        connection.close()


def repair(conninfo: str, *, schema: str = "onestart") -> Repair:
    """Put a schema with all that can be read in the place of the old one, in one transaction.

    The old schema gets another name, and none of its rows is touched. Processes that have the ledger open go on with
    the new one. Raises what `onestart.ledgers.repair_ledger` raises.
    """
    server = Server(conninfo, schema, Limits())
    connection = server.connect()
    try:
        if version(connection, server) != SCHEMA_VERSION:
            raise NotALedgerError(f"the schema {schema} holds no ledger")
        old = PostgresRows(connection, server)
        old.lock()
        salvage = survey(RowsHistory(old))
        if not salvage.needed and old.count() == old.order:
            raise RepairRefusedError(f"the schema {schema}: nothing is wrong with it")
        sealed = _set_aside(connection, server)
        new = PostgresRows(connection, server)
        new.adopt()
        kept = save(RowsHistory(PostgresRows(connection, sealed)), RowsWriter(new))
        new.commit()
    finally:
        connection.close()
    return Repair(f"the schema {schema}", kept, salvage.lost, (f"the old one is the schema {sealed.schema}",))


def sealed(connection: Connection, server: Server, table: int) -> Server | None:
    """Where the generation is now that had this ledger's table, if a repair has set it aside."""
    with translated(connection):
        found = connection.execute(_WHERE, [table]).fetchall()
    names = [str(name) for (name,) in found if re.fullmatch(f"{server.schema}{_SEALED}[0-9]+", str(name))]
    return evolve(server, schema=names[0]) if names else None


def _set_aside(connection: Connection, server: Server) -> Server:
    """Within the transaction: give the schema another name, and make a new one of its own. Returns the old one."""
    with translated(connection):
        found = connection.execute("SELECT nspname FROM pg_catalog.pg_namespace")
        taken = {str(name) for (name,) in found}
        number = next(n for n in range(1, len(taken) + 2) if f"{server.schema}{_SEALED}{n}" not in taken)
        sealed = evolve(server, schema=f"{server.schema}{_SEALED}{number}")
        connection.execute(f"ALTER SCHEMA {server.prefix[:-1]} RENAME TO {sealed.prefix[:-1]}")
        connection.execute(f"CREATE SCHEMA {server.prefix[:-1]}")
        for number, migration in enumerate(MIGRATIONS, 1):
            for statement in migration(server.prefix):
                connection.execute(statement)
            connection.execute(f'INSERT INTO {server.prefix}"migrations" VALUES (%s, pg_catalog.now())', (number,))
        connection.execute(f'UPDATE {server.prefix}"ledger" SET "version" = %s', (SCHEMA_VERSION,))
    return sealed
