"""What befalls a ledger in PostgreSQL, and that the checks would notice if it did not cope with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pytest

from library_world import LEASE, World, command
from onestart import Outcome, Reason, Result
from onestart.ports import Ledger, LedgerUnavailableError, View
from onestart.records import Record, store_of
from onestart.sql.postgres import PostgresLedger, rows
from onestart.sql.rows import Row
from onestart.sql.view import RowsView
from postgres_checks import (
    AT_ONCE,
    Check,
    approval,
    hard_stop,
    keys,
    lost_answer,
    repaired_in_doubt,
    replaced_meanwhile,
    same_bytes,
    slow_commit,
    stale_token,
    together,
    two_writers,
    version_changed,
    write,
)
from postgres_proxy import Cut, Proxy, proxy
from stores import ClockedLedger, PostgresStore

T = TypeVar("T")

Patches: TypeAlias = list[tuple[Any, str, Any]]

CHECKS: dict[str, Check] = {
    "commit not delivered": lost_answer("before"),
    "commit without an answer": lost_answer("at once"),
    "answer lost": lost_answer("answered"),
    "same bytes": same_bytes,
    "slow commit": slow_commit,
    "hard stop": hard_stop,
    "two writers": two_writers,
    "stale token": stale_token,
    "version changed": version_changed,
    "replaced meanwhile": replaced_meanwhile,
    "repaired in doubt": repaired_in_doubt,
}

_UNLOCKED = rows.LOCK.replace(" FOR UPDATE", "")
_ANY_VERSION = rows.LOCK.replace('"version", "records", extract', '1::bigint, "records", extract')
_ANY_TIME = rows.INSERT.replace('"version" = %s', "%s::bigint IS NOT NULL")
_ANY_TABLE = rows.INSERT.replace('"tableoid"::bigint = %s', "%s::bigint IS NOT NULL")
_UNCOMPARED = rows.INSERT.replace('"records" = %s AND', "%s::bigint IS NOT NULL AND")


def done(self: PostgresLedger, lost: Any, why: Any) -> None:
    """A COMMIT without an answer is taken for one that was carried out."""


def failed(self: PostgresLedger, lost: Any, why: Any) -> None:
    """A COMMIT without an answer is taken for one that was not."""
    raise LedgerUnavailableError("ledger", "nothing was written")


def again(self: PostgresLedger, lost: Any, why: Any) -> None:
    """A transaction whose COMMIT got no answer is simply carried out once more."""
    self.close()
    found = self._locked()
    for row in lost.written:
        found.insert(row._replace(order=found.order + 1, n=row.n + found.order))
    found.commit()


def newest(self: PostgresLedger, found: rows.PostgresRows, table: int) -> rows.PostgresRows:
    """Whatever generation a transaction was in, its rows are looked for in the one that is in force."""
    return found


def has_bytes(self: rows.PostgresRows, written: Iterable[Row], transaction: str) -> bool:
    """Whoever has written the rows."""
    return all(row in self.all(store_of(row.kind)) for row in written)


def elsewhere(self: PostgresLedger, found: Any, steps: list[Any]) -> None:
    """What is decided on in one transaction is written in another one."""
    records = [step.decide(RowsView(found)) for step in steps]
    self.close()
    found = self._locked()
    view = RowsView(found)
    for record in records:
        if record is not None:
            view.append(record)
    self._end(found)
    for step in steps:
        step.done()


FAULTS: dict[str, tuple[str, Patches]] = {
    "a doubt is taken for success": ("commit not delivered", [(PostgresLedger, "_resolve", done)]),
    "a doubt is taken for failure": ("answer lost", [(PostgresLedger, "_resolve", failed)]),
    "a doubt is tried again": ("answer lost", [(PostgresLedger, "_resolve", again)]),
    "a doubt goes by the bytes alone": ("same bytes", [(rows.PostgresRows, "has_all", has_bytes)]),
    "a doubt is looked into without the lock": ("slow commit", [(rows, "LOCK", _UNLOCKED)]),
    "asynchronous commit is left on": ("hard stop", [(rows, "SETTINGS", rows.SETTINGS.replace("'on'", "'off'"))]),
    "neither lock nor compare": ("two writers", [(rows, "LOCK", _UNLOCKED), (rows, "INSERT", _UNCOMPARED)]),
    "a token is checked in another transaction": ("stale token", [(PostgresLedger, "_together", elsewhere)]),
    "no end to standing still": ("stale token", [(rows, "SETTINGS", rows.SETTINGS.replace("'{idle}'", "'0'"))]),
    "a version is looked at once": ("version changed", [(rows, "LOCK", _ANY_VERSION), (rows, "INSERT", _ANY_TIME)]),
    "a doubt is looked into after a repair": ("repaired in doubt", [(PostgresLedger, "_generation", newest)]),
    "a ledger goes by its name": ("replaced meanwhile", [(rows, "INSERT", _ANY_TABLE)]),
}

# Each of these is one of two lines of defense, and the other one holds.
ASIDE: dict[str, tuple[str, Patches]] = {
    "the compare alone": ("two writers", [(rows, "LOCK", _UNLOCKED)]),
    "the lock alone": ("two writers", [(rows, "INSERT", _UNCOMPARED)]),
}


def patched(monkeypatch: pytest.MonkeyPatch, patches: Patches) -> None:
    for target, name, value in patches:
        assert getattr(target, name) != value, "the fault changes nothing"
        monkeypatch.setattr(target, name, value)


@pytest.mark.parametrize("name", list(CHECKS))
def test_it_copes_with(kept: PostgresStore, name: str) -> None:
    """As it is shipped."""
    assert CHECKS[name](kept) == ""


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_seeded_fault_is_noticed(kept: PostgresStore, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the check that is named with it."""
    check, patches = FAULTS[name]
    patched(monkeypatch, patches)
    assert CHECKS[check](kept)


@pytest.mark.parametrize("name", list(ASIDE))
def test_either_line_of_defense_would_do(kept: PostgresStore, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under READ COMMITTED a lost update takes both of them away."""
    check, patches = ASIDE[name]
    patched(monkeypatch, patches)
    assert CHECKS[check](kept) == ""


STEPS = 8  # of the ledger, from accepting a command to recording its result
COMMITS = 7  # of them write


def ended(kept: PostgresStore, name: str) -> None:
    """The sessions of an application are terminated, and gone."""
    those = "FROM pg_stat_activity WHERE application_name = %s"
    assert kept.ask(f"SELECT pg_terminate_backend(pid, 10000) {those}", [name]) == [(True,)]


def named(kept: PostgresStore, name: str) -> PostgresLedger:
    ledger = kept.open(conninfo=f"{kept.server.conninfo}&application_name={name}")
    write(ledger, None)
    return ledger


def test_a_session_that_was_lost_meanwhile_is_made_anew(kept: PostgresStore) -> None:
    """Nothing had been decided, so nobody notices; when there is no server, it is told."""
    ledger = named(kept, "idle")
    for number in range(2):
        ended(kept, "idle")
        assert write(ledger, approval(f"key {number}")) == number
    with kept.server.stopped(), pytest.raises(LedgerUnavailableError, match="connection to server"):
        write(ledger, approval("key 2"))
    assert write(ledger, approval("key 2")) == 2


@pytest.mark.parametrize("at", ["before it reads", "after it has read", "after an insert", "before it commits"])
def test_a_session_that_is_lost_within_a_transaction_has_written_nothing(kept: PostgresStore, at: str) -> None:
    """All steps of the transaction fail, whatever they had read or written, and the next ones get on."""
    ledger = named(kept, "busy")

    def first(view: View) -> tuple[Record, None]:
        if at == "before it reads":
            ended(kept, "busy")
        assert not view.approval("first").exists
        if at == "after it has read":
            ended(kept, "busy")
        return approval("first"), None

    def second(view: View) -> tuple[Record, None]:
        assert view.approval("first").exists
        if at == "after an insert":
            ended(kept, "busy")
        assert not view.approval("second").exists
        if at == "before it commits":
            ended(kept, "busy")
        return approval("second"), None

    outcomes = asyncio.run(together(kept, ledger, [first, second]))
    assert all(str(outcome).startswith("ledger: the connection was lost") for outcome in outcomes), outcomes
    assert keys(kept) == []
    assert write(ledger, approval("next")) == 0


def test_an_outcome_that_cannot_be_found_out_is_told_as_such(kept: PostgresStore) -> None:
    """The answer to a COMMIT is lost, and so is the server."""
    with proxy(kept.server.socket) as between:
        ledger = kept.open(conninfo=between.conninfo, limits=AT_ONCE)
        write(ledger, None)
        between.cut(1, "answered", gone=True)
        with pytest.raises(LedgerUnavailableError, match="the outcome of a write is unknown: connection"):
            write(ledger, approval("key"))
    assert keys(kept) == ["key"]


@pytest.mark.parametrize("when", ["before", "at once", "answered"])
def test_no_lost_answer_starts_anything_twice(kept: PostgresStore, tmp_path: Path, when: Cut) -> None:
    """At each COMMIT of a submission. What was committed is gone on with at once."""

    async def story(between: Proxy) -> None:
        world = World(tmp_path, kept)
        ledger = kept.open(conninfo=between.conninfo, limits=AT_ONCE)
        for number in range(1, COMMITS + 1):
            await ledger.step(lambda view: (None, None))
            asked = command(f"key {number}", number, task=f"task {number}")
            between.cut(number, when)
            answer = await world.chain(ledger=ClockedLedger(ledger, world.clock)).submit(asked)
            if when != "at once":
                assert answer.reason is (Reason.CREATED if when == "answered" else Reason.STORE_UNAVAILABLE)
            world.clock.advance(LEASE)
            assert (await world.chain().submit(asked)).result == Result(Outcome.STARTED, Reason.CREATED)
        assert world.effects == list(range(1, COMMITS + 1))

    with proxy(kept.server.socket) as between:
        asyncio.run(story(between))


def test_no_lost_session_starts_anything_twice(kept: PostgresStore, tmp_path: Path) -> None:
    """At each step of a submission, when it was decided and is not written yet."""

    async def story() -> None:
        world = World(tmp_path, kept)
        ledger = kept.open(conninfo=f"{kept.server.conninfo}&application_name=chain")
        for number in range(1, STEPS + 1):
            asked = command(f"key {number}", number, task=f"task {number}")
            broken = Breaking(ledger, number, lambda: ended(kept, "chain"))
            answer = await world.chain(ledger=ClockedLedger(broken, world.clock)).submit(asked)
            assert answer.reason is Reason.STORE_UNAVAILABLE
            world.clock.advance(LEASE)
            assert (await world.chain().submit(asked)).result == Result(Outcome.STARTED, Reason.CREATED)
        assert world.effects == list(range(1, STEPS + 1))

    asyncio.run(story())


class Breaking:
    """A ledger that something happens to within one of its steps, after it was decided."""

    def __init__(self, ledger: Ledger, at: int, breaks: Callable[[], None]) -> None:
        self._ledger, self._left, self._breaks = ledger, at, breaks

    async def step(self, decide: Callable[[View], tuple[Record | None, T]]) -> T:
        self._left -= 1
        breaks = self._left == 0

        def breaking(view: View) -> tuple[Record | None, T]:
            decided = decide(view)
            if breaks:
                self._breaks()
            return decided

        return await self._ledger.step(breaking)
