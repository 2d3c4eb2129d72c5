"""What a ledger in PostgreSQL must do when sessions, answers or servers are lost, or others are at work.

Each check gets a new ledger's place and returns what is wrong, or nothing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from onestart.ports import LedgerUnavailableError, View
from onestart.records import Approval, Attempt, Lease, Record
from onestart.sql.postgres import Limits, PostgresLedger
from onestart.sql.postgres.generations import repair
from onestart.sql.postgres.migrations import MIGRATIONS
from postgres_proxy import Cut, proxy
from stores import PostgresStore

Check: TypeAlias = Callable[[PostgresStore], str]
Decide: TypeAlias = Callable[[View], tuple[Record | None, Any]]

AT_ONCE = Limits(lock=10.0, doubt=(0.0, 0.0))


def approval(key: str) -> Record:
    return Approval(key, "task", "digest", "by")


def write(ledger: PostgresLedger, record: Record | None) -> int:
    """The order of the ledger at which it was written."""
    return asyncio.run(ledger.step(lambda view: (record, view.order)))


def keys(kept: PostgresStore) -> list[str]:
    """Of all approvals, as they were written."""
    return [key for (key,) in kept.ask('SELECT "key" FROM "approvals" ORDER BY "order"')]


@contextmanager
def occupied(kept: PostgresStore) -> Iterator[Callable[[], None]]:
    """Somebody else has the ledger, until what is given is called."""
    with kept.server.connection() as other:
        other.execute("BEGIN")
        other.execute(f"SELECT 1 FROM {kept.schema}.ledger FOR UPDATE")
        yield other.rollback


async def together(kept: PostgresStore, ledger: PostgresLedger, decides: Sequence[Decide]) -> list[Any]:
    """What steps come to that share one transaction; an error is one's outcome."""
    with occupied(kept) as release:
        steps = [asyncio.ensure_future(ledger.step(decide)) for decide in decides]
        await asyncio.to_thread(kept.until_locked)
        release()
        return await asyncio.gather(*steps, return_exceptions=True)


def lost_answer(when: Cut) -> Check:
    """Two steps in a transaction whose COMMIT gets no answer."""

    def check(kept: PostgresStore) -> str:
        calls: list[str] = []

        def deciding(key: str) -> Decide:
            def decide(view: View) -> tuple[Record | None, str]:
                calls.append(key)
                return approval(key), key

            return decide

        with proxy(kept.server.socket) as between:
            ledger = kept.open(conninfo=between.conninfo, limits=AT_ONCE)
            write(ledger, None)
            between.cut(1, when)
            first, second = asyncio.run(together(kept, ledger, [deciding("first"), deciding("second")]))
            there = keys(kept)
            if sorted(calls) != ["first", "second"]:
                return f"it was decided {len(calls)} times"
            if when != "at once" and bool(there) != (when == "answered"):
                return f"there is {there}"
            if there and (first, second, there) != ("first", "second", ["first", "second"]):
                return f"there is {there}, and the steps come to {first!r} and {second!r}"
            if not there and not all("nothing was written" in str(step) for step in (first, second)):
                return f"there is nothing, and the steps come to {first!r} and {second!r}"
            return "" if write(ledger, approval("third")) == len(there) else "it does not go on"

    return check


def same_bytes(kept: PostgresStore) -> str:
    """What was not committed is written by another process, at the same place, before anybody looks."""
    other = kept.open(limits=AT_ONCE)
    write(other, None)
    with proxy(kept.server.socket) as between:
        ledger = kept.open(conninfo=between.conninfo, limits=AT_ONCE)
        write(ledger, None)
        between.cut(1, "before", then=lambda: write(other, approval("key")))
        try:
            write(ledger, approval("key"))
        except LedgerUnavailableError as error:
            return "" if (keys(kept), "nothing was written" in error.reason) == (["key"], True) else str(error)
    return "the other's record is taken for one's own"


def slow_commit(kept: PostgresStore) -> str:
    """The connection is lost while the server is still busy with the COMMIT: whoever looks too early finds nothing."""
    write(kept.open(), None)
    kept.ask(f"""
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_advisory_xact_lock(''{kept.schema}.ledger''::regclass::bigint); RETURN NULL; END';
        CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON approvals DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION slow();
    """)

    async def step(ledger: PostgresLedger) -> Any:
        with kept.server.connection() as other:
            other.execute(f"SELECT pg_advisory_lock('{kept.schema}.ledger'::regclass::bigint)")
            writing = asyncio.ensure_future(ledger.step(lambda view: (approval("key"), "written")))
            waiting = asyncio.ensure_future(asyncio.to_thread(kept.until_locked, until=writing.done))
            await waiting
        return (await asyncio.gather(writing, return_exceptions=True))[0]

    with proxy(kept.server.socket) as between:
        ledger = kept.open(conninfo=between.conninfo, limits=AT_ONCE)
        write(ledger, None)
        between.cut(1, "at once")
        outcome = asyncio.run(step(ledger))
        kept.until_quiet()
        return "" if (outcome, keys(kept)) == ("written", ["key"]) else f"{outcome!r}, and there is {keys(kept)}"


def hard_stop(kept: PostgresStore) -> str:
    """The server crashes, and is stopped without being asked, on which the user commits asynchronously."""
    careless = kept.server.conninfo + "&options=-c%20synchronous_commit%3Doff"
    ledger = kept.open(conninfo=careless, limits=AT_ONCE)
    names = [f"key {number}" for number in range(6)]

    def work() -> list[str]:
        return [name for number, name in enumerate(names[:3]) if write(ledger, approval(name)) == number]

    acknowledged = kept.server.crash(work)
    if (there := keys(kept) if kept.exists("approvals") else []) != acknowledged:
        return f"acknowledged were {acknowledged}, and there is {there}"
    for name in names[3:]:
        write(ledger, approval(name))
    with kept.server.stopped():
        pass
    return "" if keys(kept) == names else f"acknowledged were {names}, and there is {keys(kept)}"


def two_writers(kept: PostgresStore) -> str:
    """Two processes at once, each of which writes only if nobody has: one of them does."""
    for ledger in (first := kept.open(limits=AT_ONCE), second := kept.open(limits=AT_ONCE)):
        write(ledger, None)
    decided: list[str] = []

    def deciding(key: str) -> Decide:
        def decide(view: View) -> tuple[Record | None, str]:
            alone = view.order == 0
            decided.append(key)
            if len(decided) == 1:  # until the other has decided as well, or waits for this one
                kept.until_locked(until=lambda: len(decided) == 2)
            return approval(key) if alone else None, key

        return decide

    async def both() -> list[Any]:
        steps = [first.step(deciding("first")), second.step(deciding("second"))]
        return await asyncio.gather(*steps, return_exceptions=True)

    outcomes = asyncio.run(both())
    if len(keys(kept)) != 1:
        return f"there is {keys(kept)}"
    refused = [str(error) for error in outcomes if isinstance(error, LedgerUnavailableError)]
    return "" if len(refused) < 2 else f"both were refused: {refused}"


def stale_token(kept: PostgresStore) -> str:
    """A holder decides by its token, stands still for longer than its lease, and goes on: the next one is at work."""
    slow, quick = kept.open(limits=Limits(idle=0.2)), kept.open(limits=Limits(lock=2.0))
    write(slow, Lease("task", 1, "slow", 1.0, "slow"))
    write(quick, None)
    looked, taken = threading.Event(), threading.Event()

    def intend(view: View) -> tuple[Record | None, Any]:
        lease = view.lease("task").newest
        holds = lease is not None and lease.token == 1
        looked.set()
        taken.wait(20)
        return Attempt("slow", "task", "intended", "print", 1) if holds else None, None

    async def both() -> None:
        stale = asyncio.ensure_future(slow.step(intend))
        await asyncio.to_thread(looked.wait, 20)
        try:
            await quick.step(lambda view: (Lease("task", 2, "quick", 1.0, "quick"), None))
        finally:
            taken.set()
            await asyncio.gather(stale, return_exceptions=True)

    try:
        asyncio.run(both())
    except LedgerUnavailableError as error:
        return f"whoever stands still keeps the ledger: {error}"
    written = kept.ask('SELECT "order" FROM "attempts"')
    return f"an intent under the token 1 is record {written[0][0]}, after the token 2" if written else ""


def replaced_meanwhile(kept: PostgresStore) -> str:
    """While a step waits, another ledger with as many records gets the name of the one that it waits for."""
    ledger = kept.open(limits=AT_ONCE)
    write(ledger, approval("old"))

    async def step() -> Any:
        with kept.server.connection() as other:
            other.execute(f'BEGIN; SELECT 1 FROM "{kept.schema}"."ledger" FOR UPDATE')
            waiting = asyncio.ensure_future(ledger.step(lambda view: (approval("key"), "written")))
            await asyncio.to_thread(kept.until_locked)
            other.execute(f'ALTER SCHEMA "{kept.schema}" RENAME TO "{kept.schema}_old"; CREATE SCHEMA "{kept.schema}"')
            for statement in MIGRATIONS[0](f'"{kept.schema}".'):
                other.execute(statement)
            other.execute(f'UPDATE "{kept.schema}"."ledger" SET "version" = 1, "records" = 1; COMMIT')
            return (await asyncio.gather(waiting, return_exceptions=True))[0]

    outcome = asyncio.run(step())
    if keys(kept):
        return f"there is {keys(kept)}"
    return "" if "it is not as it was" in str(outcome) else f"the step comes to {outcome!r}"


def repaired_in_doubt(kept: PostgresStore) -> str:
    """A COMMIT is carried out, its answer is lost, and the ledger is repaired before anybody looks."""

    def repair_it() -> None:
        kept.ask('UPDATE "approvals" SET "line" = %s WHERE "key" = %s', [b"?", "old"])
        repair(kept.server.conninfo, schema=kept.schema)

    with proxy(kept.server.socket) as between:
        ledger = kept.open(conninfo=between.conninfo, limits=AT_ONCE)
        write(ledger, approval("old"))
        between.cut(1, "answered", then=repair_it)
        try:
            order = write(ledger, approval("key"))
        except LedgerUnavailableError as error:
            return f"there is {keys(kept)}, and the step comes to {error}"
        if (order, keys(kept)) != (1, ["old", "key"]):
            return f"there is {keys(kept)}, and the step was carried out at {order}"
        return "" if write(ledger, approval("next")) == 2 else "it does not go on"


def version_changed(kept: PostgresStore) -> str:
    """A newer program has migrated the ledger while this one has it open."""
    ledger = kept.open()
    write(ledger, None)
    kept.ask('UPDATE "ledger" SET "version" = 2')
    try:
        write(ledger, approval("key"))
    except LedgerUnavailableError:
        return "".join(keys(kept))
    return "it was written to"
