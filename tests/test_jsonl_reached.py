"""How far each file of lines had got, noted in the lock's file: what is cut off is missed, and nothing else ever is."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from onestart import Outcome, evidence
from onestart.doctor import complaints
from onestart.jsonl import JsonlLedger
from onestart.jsonl.files import LocalFiles
from onestart.jsonl.ledger import LOCK, open_for_reading
from onestart.jsonl.repair import repair
from onestart.jsonl.verify import verify
from onestart.ledgers import inspected
from onestart.ports import View
from onestart.records import Approval, Attempt, Lease, Receipt, Record
from onestart.repair import RepairRefusedError
from onestart_conformance.damage.jsonl import DiskMedium
from onestart_conformance.damage.prepared import LOST, command
from onestart_conformance.damage.site import LEASE, Site
from onestart_conformance.doubles import Engine, PromptExecutor, unheard


def receipt(key: str) -> Receipt:
    return Receipt(key, "t", "pending", "f" * 64)


def put(ledger: JsonlLedger, *records: Record) -> None:
    async def all_of_them() -> None:
        for record in records:
            await ledger.step(lambda view, record=record: (record, None))  # type: ignore[misc]

    asyncio.run(all_of_them())


def told(ledger: JsonlLedger) -> list[str]:
    """What is said of damage that may be anybody's."""

    def look(view: View) -> tuple[None, list[str]]:
        return None, [str(finding) for finding in view.stray()]

    return asyncio.run(ledger.step(look))


def cut(folder: Path, store: str = "receipts", lines: int = 1) -> None:
    path = folder / f"{store}.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    with path.open("r+b") as file:
        file.truncate(sum(map(len, whole[:-lines])))


def missing(first: int, last: int) -> list[str]:
    return [f"receipts.jsonl (records {first} to {last}, missing): corrupt, whose it was cannot be told"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A ledger of three receipts, of which no other store has seen any."""
    put(JsonlLedger(tmp_path), *(receipt(f"k{number}") for number in range(3)))
    return tmp_path


def test_records_that_are_cut_off_are_missed_by_everybody(folder: Path) -> None:
    """Who has it open, who opens it, who reads it without the lock, and the ledger's own check."""
    live = JsonlLedger(folder)
    assert told(live) == []
    cut(folder, lines=2)
    for ledger in (live, JsonlLedger(folder)):
        assert told(ledger) == missing(2, 3)
    assert [str(finding) for finding in open_for_reading(folder).stray()] == missing(2, 3)
    assert verify(folder)[0].missing == 2


def test_what_another_process_wrote_and_nobody_has_read_is_missed(folder: Path) -> None:
    """The file is no shorter than this process knows it."""
    live = JsonlLedger(folder)
    assert told(live) == []
    put(JsonlLedger(folder), receipt("k3"))
    cut(folder)
    assert told(live) == missing(4, 4)


def test_it_stays_missing_when_the_file_goes_on(folder: Path) -> None:
    """No number is given twice, and the note is never lowered."""
    cut(folder)
    put(JsonlLedger(folder), Approval("k0", "t", "f" * 64, "anna"))
    assert told(JsonlLedger(folder)) == missing(3, 3)
    put(JsonlLedger(folder), receipt("k3"))
    cut(folder)
    assert told(JsonlLedger(folder)) == missing(3, 4)


def test_a_file_that_is_gone_is_missed_wholly(folder: Path) -> None:
    (folder / "receipts.jsonl").unlink()
    assert told(JsonlLedger(folder)) == missing(1, 3)


@pytest.mark.parametrize("note", [b"", b"\n", b"0" * 105, b"\xff" * 105, b"1 2 3"])
def test_a_note_that_is_none_says_nothing(folder: Path, note: bytes) -> None:
    """A power failure may leave anything there; the next step that records something writes it anew."""
    (folder / LOCK).write_bytes(note)
    assert told(JsonlLedger(folder)) == []
    put(JsonlLedger(folder), receipt("k3"))
    cut(folder)
    assert told(JsonlLedger(folder)) == missing(4, 4)


def test_an_older_note_misses_nothing_that_is_there(folder: Path) -> None:
    """After a power failure it may be one of before."""
    note = (folder / LOCK).read_bytes()
    put(JsonlLedger(folder), receipt("k3"))
    (folder / LOCK).write_bytes(note)
    assert told(JsonlLedger(folder)) == []
    assert verify(folder)[0].missing == 0


def test_a_repair_goes_on_with_what_is_left(folder: Path) -> None:
    """What is missing is in its report; of the new generation nothing is, and what was noted of the old one is over."""
    live = JsonlLedger(folder)
    assert told(live) == []
    cut(folder)
    done = repair(folder)
    assert done.left_out == tuple(missing(3, 3))
    for ledger in (live, JsonlLedger(folder)):
        assert told(ledger) == []
    with pytest.raises(RepairRefusedError):
        repair(folder)
    put(live, receipt("k3"))
    cut(Path(done.place))
    assert told(JsonlLedger(folder)) == missing(3, 3)


def test_a_note_that_cannot_be_left_fails_nothing(folder: Path) -> None:
    """The record is durable; only less may be noticed later."""

    class Full(LocalFiles):
        def leave_note(self, path: str, data: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    put(JsonlLedger(folder, files=Full()), receipt("k3"))
    assert open_for_reading(folder).receipt("k3").exists
    cut(folder)
    assert told(JsonlLedger(folder)) == []


def test_a_doctor_says_what_it_means_for_new_keys(folder: Path) -> None:
    """Of a key that seems new, all three records may have been among those that are gone; a repair ends that."""
    put(JsonlLedger(folder), Attempt("k0", "t", "offered", "f" * 64), Lease("t", 1, None, 0.0))

    def said() -> list[str]:
        with inspected(f"jsonl:///{folder}") as view:
            return [complaint.name for complaint in complaints(view, iter(()), 0.0) if complaint.about == "keys"]

    for store in ("receipts", "attempts"):
        cut(folder, store)
        assert said() == []
    cut(folder, "leases")
    assert said() == ["without a record"]
    repair(folder)
    assert said() == []


def test_an_intent_of_which_all_records_were_cut_off_is_not_started_again() -> None:
    """Its attempt and its note were the last records of their stores: the executor is asked. New keys start."""
    medium = DiskMedium()
    site = Site(medium.ledger(), PromptExecutor(Engine(unheard), LOST))
    site.submit(command("lost"))
    medium.cut("attempts", 1, 0)
    medium.cut("leases", 1, 0)
    site.ledger = medium.ledger()
    site.executor.lost = frozenset()
    site.pass_time(4 * LEASE)
    again = site.submit(command("lost"))
    assert (again.outcome, site.starts["lost"]) == (Outcome.STARTED, 1)
    assert {finding.store for finding in again.findings} >= evidence.INTENTS
    assert site.submit(command("later", "books")).outcome is Outcome.STARTED
