"""The axioms about stores, put to each ledger; and that each of them can be broken."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onestart.command_line import run as run_command
from onestart.launches import AlreadyLaunchedError
from onestart.ports import Order
from onestart_conformance.stores import workers
from onestart_conformance.stores.crashes import crashes, drawn_crash, scene
from onestart_conformance.stores.faults import STORE_FAULTS, hunt_store
from onestart_conformance.stores.killing import kill_all
from onestart_conformance.stores.machines import MACHINES
from onestart_conformance.stores.medium import Medium, State, Trouble, TroubleError
from onestart_conformance.stores.plays import PLAYS, play_named
from onestart_conformance.stores.probes import PROBES
from onestart_conformance.stores.suite import GROUPS, JUDGED, LIMITS, PLANS, Table, parts, try_part
from onestart_conformance.stores.survivals import Effort, survivals
from onestart_model.chain.axioms import AXIOMS
from postgres_server import RealServer

FILE = "ledger/receipts.jsonl"


def silent(text: str, share: float) -> None:
    """Progress that nobody watches."""


def medium() -> Medium:
    """A file with five durable bytes."""
    return Medium(State.of({FILE: b"12345"}))


def left(of: Medium, effort: Effort | None = None) -> set[bytes | None]:
    """What a power failure may leave of the file."""
    return {image.get(FILE) for image in survivals(of.state, effort or Effort(), random.Random(0))}


def test_any_part_of_what_was_not_synced_may_survive() -> None:
    """Later bytes without earlier ones too; never what was not written, and everything once it is synced."""
    disk = medium()
    disk.write(FILE, 5, b"ab")
    disk.write(FILE, 7, b"cd")
    assert left(disk) == {b"12345", b"12345ab", b"12345abcd", b"12345\0\0cd", b"12345a", b"12345abc"}
    disk.sync(FILE)
    assert left(disk) == {b"12345abcd"}


def test_a_sync_that_failed_is_not_made_good_by_the_next() -> None:
    """What it should have written is seen, and is on the disk only if it is written once more."""
    disk = medium()
    disk.trouble = Trouble(2, "dropped")
    disk.write(FILE, 5, b"ab")
    with pytest.raises(TroubleError):
        disk.sync(FILE)
    disk.sync(FILE)
    assert disk.state.seen == {FILE: b"12345ab"}
    assert left(disk) == {b"12345ab", b"12345"}
    disk.write(FILE, 5, b"ab")
    disk.sync(FILE)
    assert left(disk) == {b"12345ab"}


def test_names_are_lost_and_deleted_ones_come_back() -> None:
    disk = Medium()
    disk.write(FILE, 0, b"ab")
    disk.sync(FILE)
    assert left(disk) == {b"ab", None}
    disk.sync_names()
    assert left(disk) == {b"ab"}
    disk.delete(FILE, durable=False)
    assert left(disk) == {b"ab", None}
    disk.sync_names()
    assert left(disk) == {None}


def test_a_write_is_torn_at_each_sector_and_a_small_one_at_each_byte() -> None:
    disk = Medium(State.of({FILE: b""}))
    disk.write(FILE, 0, b"a" * 1025)
    assert Counter(len(data or b"") for data in left(disk)) == {0: 1, 512: 1, 1024: 1, 1025: 3}
    small = medium()
    small.write(FILE, 5, b"abc")
    assert left(small) == {b"12345", b"12345a", b"12345ab", b"12345abc"}


def test_each_axiom_is_tested() -> None:
    """By a probe or after crashes; and what is known to be limited is one of them."""
    assert {axiom.name for axiom in AXIOMS} <= {probe.axiom for probe in PROBES} | set(JUDGED)
    assert {axiom for _, axiom in LIMITS} <= set(JUDGED)


def everything(ledger: str, plan: str, at: str = "") -> Table:
    table = Table()
    for part in parts(ledger, PLANS[plan], seed=0, at=at):
        table.add(try_part(part))
    return table


@pytest.mark.parametrize("ledger", ["memory", "jsonl", "sqlite"])
def test_a_ledger_keeps_the_axioms(ledger: str) -> None:
    """Every crash, failed operation and power failure of a play, as far as the quick profile goes."""
    table = everything(ledger, "quick")
    assert table.refuted == []
    if ledger in MACHINES:
        plays = [play.name for play in PLAYS for _ in range(2)]
        assert [done.play for done in table.explored] == ["two processes", *plays]
        assert sum(done.points for done in table.explored) > 1_000


def test_a_ledger_in_postgresql_keeps_the_axioms(postgres: RealServer) -> None:
    """Those that can be put to it from outside, on a real server."""
    table = everything("postgres", "glance", postgres.conninfo)
    assert table.refuted == []
    assert {tested.axiom for tested in table.tested.values()} == {probe.axiom for probe in PROBES}


def test_a_crash_is_the_same_for_the_same_seed() -> None:
    """Nothing depends on time or on the machine."""
    start = scene(MACHINES["jsonl"], play_named("submit"))
    effort = Effort(subsets=1, drawn=3, grain=64)
    first, again = (crashes("jsonl", start, effort, seed=4, most=20) for _ in range(2))
    assert (first.points, first.images, first.operations) == (again.points, again.images, again.operations)


@settings(max_examples=60)
@given(st.data())
def test_a_crash_may_keep_anything(data: st.DataObject) -> None:
    """Beyond the bound: any play, any moment, any writes of all that were not synced, each torn anywhere."""
    play = play_named(data.draw(st.sampled_from([play.name for play in PLAYS if play.name not in GROUPS])))
    at, chance = data.draw(st.floats(0, 1)), data.draw(st.integers(0, 1 << 32))
    assert drawn_crash("jsonl", scene(MACHINES["jsonl"], play), at, random.Random(chance)) == []


@pytest.mark.parametrize("name", list(STORE_FAULTS))
def test_a_fault_breaks_the_axiom_that_is_named_with_it(name: str) -> None:
    """A ledger or disk with one thing wrong is found out."""
    found = hunt_store(STORE_FAULTS[name])
    assert STORE_FAULTS[name].axiom in found.broken
    assert found.where


@pytest.mark.parametrize("ledger", ["jsonl", "sqlite"])
def test_workers_may_be_killed_anywhere(ledger: str) -> None:
    """Real processes over one ledger: at most one effect for each key, and every accepted command comes to its end."""
    kills = kill_all(ledger, 16, seed=0, report=silent)
    assert kills.breaches == ()
    assert kills.kills >= 16
    assert kills.ended == kills.commands >= kills.starts


def test_what_workers_must_not_leave_is_counted(tmp_path: Path) -> None:
    """A key that was started twice, one that would have been, and one that is gone although somebody was told of it."""
    site = workers.Site("jsonl", tmp_path, 0)

    async def submitted_twice() -> None:
        executor = workers.MortalExecutor(tmp_path / "launches")
        executor.noted = site.note
        await site.chain().submit(site.command(1))
        with pytest.raises(AlreadyLaunchedError):
            await executor.start(Order("k1", "t1", 9, "run", site.command(1).payload))

    asyncio.run(submitted_twice())
    for key in ("k2", "k2", "k3"):
        site.note(workers.STARTS, key)
    site.note(workers.ACKNOWLEDGED, "k1")
    site.note(workers.ACKNOWLEDGED, "k9")
    found = asyncio.run(workers.conclude(site, 5))
    assert found["found"] == [
        "k2 was started 2 times",
        "k1 was to be started again, 1 times",
        "k9 was acknowledged, and is not there",
    ]
    assert (found["commands"], found["ended"], found["second"], found["lost"]) == (1, 1, 2, 1)


def test_the_command_shows_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each axiom; with --json the same for machines."""
    assert run_command(["stores", "--ledger", "memory"]) == 0
    out = capsys.readouterr().out
    for axiom in AXIOMS:
        assert axiom.name in out
    assert "next:  onestart explain AXIOM" in out
    assert run_command(["stores", "--ledger", "memory", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {one["verdict"] for one in document["axioms"]} == {"holds"}


def test_an_axiom_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["explain", "tokens-only-grow"]) == 0
    out = capsys.readouterr().out
    assert "axiom about stores (damage)" in out
    assert "onestart stores" in out
