"""The ledger in PostgreSQL by itself: its clock, its tables, what is read back, and what is refused."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import psycopg
import pytest

from onestart.health import Health
from onestart.ports import LedgerUnavailableError, NotALedgerError, View
from onestart.records import STORES, Approval, Attempt, Lease, Receipt, Record, Session, Step
from onestart.sql.postgres import Limits, PostgresLedger, migrations, reading, rows
from onestart.sql.postgres.generations import repair
from onestart.sql.view import RowsView
from postgres_proxy import proxy
from stores import PostgresStore

RECORDS: tuple[Record, ...] = (
    Receipt("key", "task", "pending", "print", {"function": "note"}),
    Approval("key", "task", "digest", "ann"),
    Attempt("key", "task", "offered", "print"),
    Lease("task", 1, "key", 10.0, "process"),
    Attempt("key", "task", "intended", "print", 1),
    Session("key", "task", "live", "print", 1),
    Step("root", "flow:root", "root", "", 1, {"flow": "short"}),
)


def write(ledger: PostgresLedger, record: Record | None) -> int:
    """The order of the ledger at which it was written."""
    return asyncio.run(ledger.step(lambda view: (record, view.order)))


def look(ledger: PostgresLedger, at: Callable[[View], Any]) -> Any:
    return asyncio.run(ledger.step(lambda view: (None, at(view))))


def filled(kept: PostgresStore) -> PostgresLedger:
    ledger = kept.open()
    for record in RECORDS:
        write(ledger, record)
    return ledger


def test_every_kind_of_record_comes_back(kept: PostgresStore) -> None:
    """From a ledger that is opened anew, and from a reader that writes nothing, in the order of writing."""
    filled(kept)
    ledger = kept.open()
    assert look(ledger, lambda view: view.receipt("key").newest) == RECORDS[0]
    assert look(ledger, lambda view: view.lease("task").records) == (RECORDS[3],)
    assert look(ledger, lambda view: view.steps("root").records) == (RECORDS[6],)
    before = kept.ask('SELECT "xmin", "records" FROM "ledger"')
    with reading(kept.server.conninfo, schema=kept.schema) as found:
        view = RowsView(found)
        assert view.order == found.count() == len(RECORDS)
        assert view.attempt("key").records == (RECORDS[2], RECORDS[4])
        assert view.now is not None
        streams = {store: found.all(store) for store in STORES}  # all of them open at once
        assert sorted(row.order for rows in streams.values() for row in rows) == list(range(1, len(RECORDS) + 1))
        assert not [gap for store in STORES for gap in found.gaps(store)]
        with pytest.raises(LedgerUnavailableError, match="read-only transaction"):
            found.run(f'DELETE FROM {found.prefix}"attempts"')
    assert kept.ask('SELECT "xmin", "records" FROM "ledger"') == before


def test_a_reader_sees_one_moment(kept: PostgresStore) -> None:
    """What is written while it reads does not show, and does not wait for it."""
    ledger = filled(kept)
    with reading(kept.server.conninfo, schema=kept.schema) as found:
        write(ledger, Attempt("late", "task", "offered", "print"))
        assert found.count() == len(RECORDS)
        assert "late" not in found.all_keys()


def test_the_time_is_the_servers_after_the_wait(kept: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has waited for the ledger judges leases by the time when it got it, not by that when it asked."""
    ledger = kept.open()
    write(ledger, None)

    def early() -> bool:
        with kept.server.connection() as other:
            other.execute("BEGIN")
            other.execute(f"SELECT 1 FROM {kept.schema}.ledger FOR UPDATE")
            waited: list[float] = []

            def wait() -> None:
                kept.until_locked()
                ((now,),) = other.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
                waited.append(now)
                other.execute("ROLLBACK")

            async def both() -> float:
                step = asyncio.ensure_future(ledger.step(lambda view: (None, view.now or 0.0)))
                await asyncio.to_thread(wait)
                return await step

            return asyncio.run(both()) < waited[0]

    assert not early()
    within = rows.LOOK.replace(", ''", ", pg_catalog.pg_current_xact_id()::xid::text") + " FOR UPDATE"
    monkeypatch.setattr(rows, "LOCK", within)
    assert early()


@pytest.mark.parametrize("store", ["receipts", "attempts", "sessions", "leases", "approvals", "flows"])
@pytest.mark.parametrize("column", ["kind", "name", "n", "key", "task", "lease", "line"])
def test_a_row_that_was_edited_by_hand_is_damage(kept: PostgresStore, store: str, column: str) -> None:
    """Whatever was changed about it, its record is not taken for what it says, and not for one that is intact."""
    value = {"n": '"n" + 7', "lease": "7", "line": 'substr("line", 2)'}.get(column, "'other'")
    ledger = filled(kept)
    kept.ask(f'UPDATE "{store}" SET "{column}" = {value}')
    for name in ("key", "task", "root", "other"):  # by what it was found before, or is now
        reads = store.removesuffix("s") if store != "flows" else "steps"
        found = look(ledger, methodcaller(reads, name))
        assert (found.newest, found.health is Health.INTACT) == (None, False)


def test_a_row_that_was_deleted_by_hand_is_missed(kept: PostgresStore) -> None:
    """What others have seen is missed; numbers that are gone show, too."""
    ledger = filled(kept)
    kept.ask("DELETE FROM receipts")
    reading_ = look(ledger, lambda view: view.receipt("key"))
    assert (reading_.health, reading_.where) == (Health.CORRUPT, "receipts:receipt 1 of key, missing")
    kept.ask('DELETE FROM attempts WHERE "n" = 1')
    with reading(kept.server.conninfo, schema=kept.schema) as found:
        assert list(found.gaps("attempts")) == [("attempt", "key", 1)]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("INSERT INTO migrations VALUES (2, now()); UPDATE ledger SET version = 2", "of version 2; this program knows"),
        ("DROP TABLE sessions", "has other tables than a ledger of version 1"),
        ("ALTER TABLE sessions ALTER COLUMN n TYPE int", "has other tables than a ledger of version 1"),
        (
            'ALTER TABLE sessions DROP CONSTRAINT sessions_pkey; ALTER TABLE sessions ALTER "order" DROP NOT NULL',
            "has other tables than a ledger of version 1",
        ),
        ("DROP TABLE migrations", "holds something else than a ledger"),
        ("DELETE FROM migrations", "holds something else than a ledger"),
        ("DELETE FROM ledger", "the table of the ledger's state has 0 rows"),
        ("DROP INDEX ledger_only; INSERT INTO ledger VALUES (1, 0)", "the table of the ledger's state has 2 rows"),
        ("UPDATE ledger SET version = 2", "of version 2; this program knows version 1"),
    ],
)
def test_what_is_no_ledger_of_this_version_is_left_alone(kept: PostgresStore, change: str, says: str) -> None:
    """By whoever opens it, by whoever has it open, and by a reader."""
    ledger = filled(kept)
    for statement in change.split("; "):
        kept.ask(statement)
    before = dump(kept)
    with pytest.raises(NotALedgerError, match=says):
        write(kept.open(), RECORDS[0])
    with pytest.raises(NotALedgerError, match=says), reading(kept.server.conninfo, schema=kept.schema):
        pass
    if "ledger" in change.split()[2]:
        with pytest.raises(NotALedgerError, match=says):
            write(ledger, RECORDS[0])
    assert dump(kept) == before


def dump(kept: PostgresStore) -> list[Any]:
    """All that the schema holds."""
    names = [
        name
        for (name,) in kept.ask("SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace", [kept.schema])
    ]
    tables = [name for (name,) in kept.ask("SELECT tablename FROM pg_tables WHERE schemaname = %s", [kept.schema])]
    return [sorted(names), {name: kept.ask(f'SELECT *, "xmin" FROM "{name}"') for name in sorted(tables)}]


def test_a_schema_of_something_else_is_left_alone(kept: PostgresStore) -> None:
    """A schema with any table is not made a ledger; an empty one is, so that no right to make schemas is needed."""
    kept.ask(f"CREATE SCHEMA {kept.schema}; CREATE TABLE {kept.schema}.ledger (mine int)")
    before = dump(kept)
    with pytest.raises(NotALedgerError, match="holds something else than a ledger"):
        write(kept.open(), RECORDS[0])
    with (
        pytest.raises(NotALedgerError, match="holds something else"),
        reading(kept.server.conninfo, schema=kept.schema),
    ):
        pass
    assert dump(kept) == before
    kept.ask(f"DROP TABLE {kept.schema}.ledger")
    with pytest.raises(NotALedgerError, match="holds no ledger"), reading(kept.server.conninfo, schema=kept.schema):
        pass
    assert write(kept.open(), RECORDS[0]) == 0


def test_a_role_needs_no_more_than_its_schema(kept: PostgresStore) -> None:
    """One that may not make schemas is told so, and one that has a schema makes its ledger there."""
    role = f"role_{kept.schema}"
    kept.ask(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    conninfo = kept.server.conninfo.replace("postgres:@", f"{role}:secret@")
    with pytest.raises(LedgerUnavailableError, match="ledger: permission denied for database postgres"):
        write(kept.open(conninfo=conninfo), RECORDS[0])
    kept.ask(f"CREATE SCHEMA {kept.schema} AUTHORIZATION {role}")
    assert write(kept.open(conninfo=conninfo), RECORDS[0]) == 0


def test_a_migration_is_applied_to_what_is_there(kept: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer program brings the tables up to date, once; the older one, which has the ledger open, then stops."""
    old = filled(kept)
    with monkeypatch.context() as newer:
        second: migrations.Migration = lambda prefix: (f"CREATE TABLE {prefix}more ()",)  # noqa: E731
        newer.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, second))
        for module in (migrations, rows):
            newer.setattr(module, "SCHEMA_VERSION", 2)
        assert write(kept.open(), RECORDS[4]) == len(RECORDS)
        assert write(kept.open(), RECORDS[4]) == len(RECORDS) + 1
    assert kept.ask('SELECT "version" FROM "migrations" ORDER BY 1') == [(1,), (2,)]
    with pytest.raises(NotALedgerError, match="is of version 2; this program knows version 1"):
        write(old, RECORDS[4])


def test_a_ledger_that_is_gone_is_not_made_anew(kept: PostgresStore) -> None:
    """Nothing on record would mean that everything may start: whoever knew the ledger goes on with no other one."""
    ledger = filled(kept)
    kept.ask("UPDATE ledger SET records = records - 1")
    with pytest.raises(NotALedgerError, match="the ledger had 7 records and has 6: it was rolled back"):
        write(ledger, RECORDS[0])
    kept.ask(f"DROP SCHEMA {kept.schema} CASCADE")
    with pytest.raises(LedgerUnavailableError, match="does not exist"):
        write(ledger, RECORDS[0])
    assert write(kept.open(), RECORDS[0]) == 0
    with pytest.raises(NotALedgerError, match="the ledger was replaced while it was open"):
        write(ledger, RECORDS[0])


def test_a_repaired_ledger_goes_on(kept: PostgresStore) -> None:
    """Also with fewer records than it had, and with one repair after the other; for who read and for who wrote."""
    reader, writer = filled(kept), kept.open(prepared=True)
    write(writer, None)
    for left in (6, 5):
        kept.ask(f"DELETE FROM {'flows' if left == 6 else 'sessions'}")
        repair(kept.server.conninfo, schema=kept.schema)
        assert look(reader, lambda view: view.order) == left
    assert write(writer, RECORDS[6]) == 5
    assert write(reader, RECORDS[5]) == 6
    assert look(writer, lambda view: view.session("key").count) == 1


def test_a_forked_process_leaves_the_connection_alone(kept: PostgresStore) -> None:
    """It is its parent's; what the child would say there would be taken for the parent's words."""
    ledger = filled(kept)
    child = os.fork()
    if not child:
        try:
            write(ledger, None)
        except NotALedgerError as error:
            os._exit(17 if "has forked" in error.reason else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    assert write(ledger, RECORDS[0]) == len(RECORDS)


def test_a_mistake_in_deciding_is_for_its_step_alone(kept: PostgresStore) -> None:
    """It appends nothing; a record that PostgreSQL cannot keep fails the group, and the next one gets on."""
    ledger = filled(kept)
    with pytest.raises(ZeroDivisionError):
        look(ledger, lambda view: 1 // 0)
    with pytest.raises(LedgerUnavailableError, match="NUL"):
        write(ledger, Approval("a\0b", "task", "digest", "by"))
    assert write(ledger, None) == len(RECORDS)


@pytest.mark.parametrize(
    "conninfo",
    [
        "postgresql://ann:s3cr3t@127.0.0.1:1/x",
        "host=127.0.0.1 port=1 user=ann password=s3cr3t",
        "postgresql://ann:s3cr3t@h@127.0.0.1:1/x",
        "postgresql://ann:p@s3cr3t@127.0.0.1:1/x",
        "postgresql://ann:s3cr3t/x@127.0.0.1:1/x",
        "postgresql://ann:123/s3cr3t@127.0.0.1:1/x",
        "postgresql://ann:/s3cr3t@127.0.0.1/x",
        "postgresql://ann:%s3cr3t@127.0.0.1:1/x",
        "host=127.0.0.1 password='s3cr3t",
        "s3cr3t",
        "postgresql://ann:s3cr3t@s3cr3t.invalid:1/x",
        "postgresql://s3cr3t:ann@[s3cr3t/x",
    ],
)
def test_a_password_is_never_shown(conninfo: str) -> None:
    """Not in an error, not in what it came from, not in what represents the ledger, however it was mistyped."""
    ledger = PostgresLedger(conninfo, limits=Limits(connect=2))
    with pytest.raises(LedgerUnavailableError) as caught:
        write(ledger, None)
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cr3t" not in f"{error!r} {error}"
        assert "\n" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert "s3cr3t" not in f"{ledger!r} {vars(ledger)!r}"


@pytest.mark.parametrize("schema", ["", 'a"b', "a b", "a;b", "a.b", "x" * 64, "ä", "1a"])
def test_a_schemas_name_is_checked(kept: PostgresStore, schema: str) -> None:
    """What is no plain name gets nowhere near a statement."""
    with pytest.raises(NotALedgerError, match="is no name for a schema"):
        write(kept.open(schema=schema), None)
    with pytest.raises(NotALedgerError, match="is no name for a schema"), reading(kept.server.conninfo, schema=schema):
        pass


def test_without_psycopg_one_is_told_what_to_install() -> None:
    """In one line, when the ledger is imported, and not before."""
    code = "import sys; sys.modules['psycopg'] = None; import onestart; import onestart.sql.postgres"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = done.stderr.splitlines()[-1]
    assert said.startswith("ModuleNotFoundError: PostgreSQL needs psycopg")
    assert said.endswith("install it with  pip install 'onestart[postgres]'")


def left_in_sessions(kept: PostgresStore, **more: Any) -> set[Any]:
    """What the sessions of a pooler are left with, that a ledger has written its records through."""
    wanted = """
        SELECT current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'),
            (SELECT count(*) FROM pg_prepared_statements)
    """
    with proxy(kept.server.socket, sessions=3) as pooler:
        ledger = kept.open(conninfo=pooler.conninfo, **more)
        before = write(ledger, None)
        assert [write(ledger, record) for record in RECORDS] == list(range(before, before + len(RECORDS)))
        ledger.close()
        assert len(pooler.sessions) == 3
        assert all(session.served >= 2 for session in pooler.sessions)
        with psycopg.connect(pooler.conninfo, autocommit=True, prepare_threshold=None) as client:
            return {client.execute(wanted).fetchone() for _ in pooler.sessions}


def test_any_session_will_do_for_a_transaction(kept: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a pooler each transaction may get another session: nothing is left in one, and nothing expected there."""
    assert left_in_sessions(kept) == {("0", "0", 0)}
    with monkeypatch.context() as fault:
        fault.setattr(rows, "SETTINGS", rows.SETTINGS.replace("true", "false"))
        assert left_in_sessions(kept) == {("30s", "10s", 0)}
    with pytest.raises(LedgerUnavailableError, match='prepared statement "_pg3_0" does not exist'):
        left_in_sessions(kept, prepared=True)


def test_a_session_may_keep_prepared_statements(kept: PostgresStore) -> None:
    """Where it is one's own, each text is planned once, and all else is as it is without."""
    ledger = kept.open(conninfo=f"{kept.server.conninfo}&application_name=own", prepared=True)
    for _ in range(2):
        assert [write(ledger, record) for record in RECORDS]
    assert look(ledger, lambda view: view.lease("task").count) == 2
    assert look(ledger, lambda view: view.receipt("key").newest) == RECORDS[0]
