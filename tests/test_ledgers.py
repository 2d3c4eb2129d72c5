"""Ledgers of every kind: their addresses, what is wrong with one, what can be saved, and copies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import apsw
import pytest

from library_world import LEASE, Line, World, command
from onestart import Answer, Outcome, Reason
from onestart.command_line import run
from onestart.copying import CopyRefusedError, DifferentError, compare, copy, history_of
from onestart.executors import CallableExecutor
from onestart.ledgers import Address, BadAddressError, open_ledger, repair_ledger, verify_ledger
from onestart.ports import View
from onestart.records import STORES, Receipt
from onestart.repair import RepairRefusedError
from onestart.sql.postgres import PostgresLedger
from onestart.sql.sqlite import SqliteLedger
from postgres_server import RealServer
from stores import KINDS, Store, store


@pytest.fixture(params=KINDS)
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(tmp_path, store(request.param, tmp_path, request))
    yield world
    world.store.close()


def filled(world: World) -> None:
    """A key that has run, one that was refused, one in doubt, and an approval that was filed for a fourth."""

    async def go() -> None:
        chain = world.chain()
        await chain.submit(command())
        await chain.submit(command("stale", task="other", revision="r0"))
        await chain.approve(command("wanted", task="third"), by="ann")
        world.line.after = ConnectionError("reset by peer")
        await chain.submit(command("doubted", task="fourth"))
        world.line.after = None

    asyncio.run(go())
    world.clock.advance(LEASE)


def submitted(world: World, key: str = "key", **more: Any) -> Answer:
    return asyncio.run(world.chain().submit(command(key, **more)))


def damaged(world: World) -> list[str]:
    return [report.store for report in verify_ledger(world.store.address) if report.damage]


def damage(store: Store, name: str, number: int) -> None:
    """Flip a bit in the body of a line."""
    line = bytearray(store.lines(name)[number])
    line[-40] ^= 1
    store.put(name, number, bytes(line))


@pytest.mark.parametrize(
    ("text", "scheme", "where"),
    [
        ("sqlite:///a/b.sqlite", "sqlite", "a/b.sqlite"),
        ("sqlite:////a/b", "sqlite", "/a/b"),
        ("jsonl:///folder", "jsonl", "folder"),
        ("jsonl:////f", "jsonl", "/f"),
        ("postgresql://u:p@h/db", "postgresql", "postgresql://u:p@h/db"),
        ("postgres:///db?host=/run", "postgresql", "postgres:///db?host=/run"),
        ("some/file", "sqlite", "some/file"),
        (".", "jsonl", "."),
    ],
)
def test_an_address_says_where(text: str, scheme: str, where: str) -> None:
    assert Address.parse(text) == Address(scheme, where)


def test_a_schema_is_part_of_the_address_and_a_password_is_not_shown() -> None:
    address = Address.parse("postgresql://u:secret@h/db?schema=mine&sslmode=require")
    assert (address.place, address.schema) == ("postgresql://u:secret@h/db?sslmode=require", "mine")
    assert str(address) == "postgresql://u:***@h/db?sslmode=require&schema=mine"
    assert Address.parse("postgresql://h/db?schema=mine").place == "postgresql://h/db"


def test_statements_are_prepared_if_the_address_says_so(postgres: RealServer) -> None:
    """It is no part of what libpq gets, and what is printed can be typed again."""
    address = Address.parse("postgresql://h/db?prepared=yes&sslmode=require")
    assert (address.place, address.prepared) == ("postgresql://h/db?sslmode=require", True)
    assert Address.parse(str(address)) == address
    assert str(Address.parse("postgresql://h/db?prepared=yes&schema=a")) == "postgresql://h/db?schema=a&prepared=yes"
    assert not Address.parse("postgresql://h/db?prepared=no").prepared
    for prepared in ("yes", "no"):
        ledger = open_ledger(f"{postgres.conninfo}&schema=prepared_{prepared}&prepared={prepared}")
        asyncio.run(ledger.step(lambda view: (None, view.receipt("a"))))
        asyncio.run(ledger.step(lambda view: (None, view.receipt("b"))))
        assert isinstance(ledger, PostgresLedger)
        assert ledger._rows is not None
        found = ledger._rows.connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchall()
        assert (found[0][0] > 0) == (prepared == "yes")
        ledger.close()


def test_sqlite_plans_a_statement_once(tmp_path: Path) -> None:
    """Not anew for the value of each parameter, which would cost several times what running it does."""
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")

    def look(view: View) -> tuple[None, int]:
        return None, sum(view.lease(f"t{n}").count + len(list(view.keys(f"t{n}"))) for n in range(5))

    planned: list[int] = []

    def authorize(what: int, *_: object) -> int:
        planned.append(what)
        return apsw.SQLITE_OK

    asyncio.run(ledger.step(look))
    assert ledger._open is not None
    ledger._open.connection.authorizer = authorize  # asked whenever a statement is planned
    asyncio.run(ledger.step(look))
    assert planned
    planned.clear()
    asyncio.run(ledger.step(look))
    assert planned == []
    ledger.close()


@pytest.mark.parametrize(
    "text", ["", "postgres://h/?prepared=maybe", "sqlite://file", "jsonl://", "mysql://h/db", "sqlite:///", "a\0b"]
)
def test_what_is_no_address_is_said_in_one_line(text: str) -> None:
    with pytest.raises(BadAddressError) as raised:
        Address.parse(text)
    assert "\n" not in str(raised.value)


def test_a_sound_ledger_needs_no_repair(place: World) -> None:
    filled(place)
    assert damaged(place) == []
    with pytest.raises(RepairRefusedError, match="nothing is wrong"):
        repair_ledger(place.store.address)


def test_a_repair_keeps_what_can_be_read_and_marks_the_rest_as_lost(place: World) -> None:
    """A record that was there is never taken for one that was not: the key of a lost attempt is held, not started."""
    filled(place)
    before = sum(len(place.store.lines(name)) for name in STORES)
    number = next(
        n for n, line in enumerate(place.store.lines("attempts")) if b'"intended"' in line and b"doubted" in line
    )
    damage(place.store, "attempts", number)
    damage(place.store, "receipts", 1)
    assert damaged(place) == ["receipts", "attempts"]
    done = repair_ledger(place.store.address)
    assert (done.kept, len(done.lost)) == (before - 2, 2)
    assert damaged(place) == []
    assert sum(report.lost for report in verify_ledger(place.store.address)) == 2
    with pytest.raises(RepairRefusedError, match="nothing is wrong"):
        repair_ledger(place.store.address)
    replayed = submitted(place)
    assert (replayed.outcome, replayed.healthy) == (Outcome.STARTED, False)
    others = Line(CallableExecutor(place.folder / "elsewhere", {"note": place._note}))
    held = asyncio.run(place.chain(executor=others).submit(command("doubted", task="fourth")))
    assert (held.outcome, held.reason) == (Outcome.HELD, Reason.IN_DOUBT)
    assert submitted(place, "new", task="new").reason is Reason.CREATED
    assert place.effects == ["payload"] * 3


def test_a_store_that_is_gone_is_marked_as_lost(place: World) -> None:
    """Others have seen its records, so a repair knows of which keys there were some."""
    filled(place)
    place.store.lose("attempts")
    assert damaged(place) == ["attempts"]
    done = repair_ledger(place.store.address)
    assert all(any(key in text for text in done.lost) for key in ("key", "doubted"))
    assert damaged(place) == []
    assert submitted(place).reason is Reason.REPLAY
    assert place.effects == ["payload"] * 2


def test_what_a_newer_program_wrote_is_not_repaired(place: World) -> None:
    """Wherever it is, also behind the damage: what it means is unknown here."""
    filled(place)
    damage(place.store, "receipts", 0)
    newest = len(place.store.lines("approvals")) - 1
    place.store.put(
        "approvals", newest, place.store.lines("approvals")[newest].replace(b'["onestart",1', b'["onestart",7')
    )
    before = [place.store.lines(name) for name in STORES]
    with pytest.raises(RepairRefusedError, match="newer program"):
        repair_ledger(place.store.address)
    assert [place.store.lines(name) for name in STORES] == before


def test_the_sealed_original_stays_as_it_was(tmp_path: Path) -> None:
    """Byte for byte, whatever happens to the new generation."""
    for kind in ("jsonl", "sqlite"):
        world = World(tmp_path / kind, store(kind, tmp_path / kind))
        filled(world)
        damage(world.store, "receipts", 0)
        before = contents(tmp_path / kind)
        repair_ledger(world.store.address)
        submitted(world, "new", task="new")
        after = contents(tmp_path / kind)
        assert {path: after[path] for path in before} == before


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file of records. What SQLite shares between processes, and locks, are none."""
    files = [path for path in folder.rglob("*") if path.is_file() and "launches" not in path.parts]
    return {path: path.read_bytes() for path in files if not path.name.endswith(("-shm", "lock"))}


def test_a_process_that_is_running_goes_over_to_the_new_generation(place: World) -> None:
    filled(place)

    async def go() -> None:
        chain = place.chain()
        await chain.submit(command("before", task="b"))
        damage(place.store, "receipts", 0)
        repair_ledger(place.store.address)
        await chain.submit(command("after", task="a"))

    asyncio.run(go())
    assert submitted(place, "after", task="a").reason is Reason.REPLAY
    assert damaged(place) == []


@pytest.mark.parametrize(("source", "target"), list(permutations(KINDS, 2)))
def test_a_copy_holds_the_same(tmp_path: Path, source: str, target: str, request: pytest.FixtureRequest) -> None:
    """With its history: every record in its place, and what it had seen of the others."""
    one, other = (World(tmp_path / kind, store(kind, tmp_path / kind, request)) for kind in (source, target))
    filled(one)
    addresses = Address.parse(one.store.address), Address.parse(other.store.address)
    count = copy(*addresses)
    assert count == sum(len(one.store.lines(name)) for name in STORES) > 10
    assert submitted(other).reason is Reason.REPLAY
    with pytest.raises(CopyRefusedError):
        copy(*addresses)
    one.store.close()
    other.store.close()


def test_a_copy_of_a_repaired_ledger_knows_what_was_lost(place: World, tmp_path: Path) -> None:
    filled(place)
    damage(place.store, "receipts", 0)
    target = Address("jsonl", str(tmp_path / "copy"))
    with pytest.raises(CopyRefusedError, match="corrupt"):
        copy(Address.parse(place.store.address), target)
    repair_ledger(place.store.address)
    copy(Address.parse(place.store.address), target)
    assert sum(report.lost for report in verify_ledger(target)) == 1


def test_ledgers_that_differ_are_told_apart(tmp_path: Path) -> None:
    """In one field of one record, in what it had seen, or by one record more."""
    world = World(tmp_path, store("jsonl", tmp_path))
    filled(world)
    one, other = Address.parse(world.store.address), Address("sqlite", str(tmp_path / "copy"))
    copy(one, other)
    asyncio.run(open_ledger(other).step(lambda _: (Receipt("k", "t", "pending", "f"), None)))
    with pytest.raises(DifferentError, match="no more"):
        compare(one, other)
    with history_of(one) as history:
        kept = next(iter(history.records("attempts")))
    assert not kept.same(kept._replace(refs={"receipt": 9}))
    assert not kept.same(kept._replace(n=2))


def test_the_doctor_says_what_is_the_matter(place: World, capsys: pytest.CaptureFixture[str]) -> None:
    """And what would happen next, and what to type."""
    assert run(["ledger", "doctor", place.store.address]) == 2
    capsys.readouterr()
    submitted(place)
    assert run(["ledger", "doctor", place.store.address]) == 0
    assert capsys.readouterr().out == "all is well: every record can be read, and nothing waits for anybody\n"
    place.line.after = ConnectionError("reset by peer")
    submitted(place, "doubted", task="fourth")
    place.clock.advance(LEASE)
    number = next(n for n, line in enumerate(place.store.lines("leases")) if b'"lease"' in line)
    for n in range(number, len(place.store.lines("leases"))):
        if b'"lease","key"' in place.store.lines("leases")[n]:
            damage(place.store, "leases", n)
    assert run(["ledger", "doctor", place.store.address]) == 1
    shown = capsys.readouterr().out
    assert "task task: its lease is corrupt" in shown
    assert "--task task --by NAME --why TEXT" in shown
    assert "repair" in shown


def test_the_doctor_knows_each_kind_of_damage(place: World, capsys: pytest.CaptureFixture[str]) -> None:
    """A key that was started, one whose receipt is illegible, one in doubt, and one whose session is gone."""
    filled(place)
    for number, line in enumerate(place.store.lines("attempts")):
        if b'"attempt","key"' in line and number:
            damage(place.store, "attempts", number)
    damage(place.store, "receipts", len(place.store.lines("receipts")) - 1)
    damage(place.store, "approvals", 0)
    assert run(["ledger", "doctor", place.store.address]) == 1
    shown = capsys.readouterr().out
    assert "key key: it was started, and its attempt record is corrupt" in shown
    assert "key wanted: its approval record is corrupt" in shown
    if place.store.address.startswith(("jsonl", "sqlite")):  # on the server's clock its lease has not run out
        assert "key doubted: whether it was started is not on record: a process meant to start it" in shown
        assert f"onestart ledger resolve {place.store.address}" in shown.replace("'", "")


def test_an_operator_settles_what_is_in_doubt(place: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Who and why is recorded; the key never starts again, and its task is free for others."""
    filled(place)
    typed = ["ledger", "resolve", place.store.address]
    assert run([*typed, "doubted", "--by", "ann", "--why", "the machine has burnt down"]) == 0
    assert "recorded: ann: the machine has burnt down" in capsys.readouterr().out
    assert any(b"ann: the machine has burnt down" in line for line in place.store.lines("attempts"))
    assert submitted(place, "doubted", task="fourth").outcome is Outcome.CLOSED
    assert submitted(place, "next", task="fourth").outcome is Outcome.STARTED
    assert run([*typed, "doubted", "--by", "ann", "--why", "again"]) == 1
    assert run([*typed, "nobody", "--by", "ann", "--why", "again"]) == 2
    assert run([*typed, "--by", "ann", "--why", "neither"]) == 2
    assert run([*typed, "--task", "fourth", "--by", "ann", "--why", "it is legible"]) == 1
