"""The page on read health is what the library does, and keeps to what is promised of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from onestart import Reason
from onestart.command_line import run
from onestart.records import Note
from onestart_conformance.damage import grammar
from onestart_conformance.damage.jsonl import DiskMedium
from onestart_conformance.damage.policy import HOLD, NOTHING, PROCEED, REPORT, Policy, page, policy
from onestart_conformance.damage.prepared import prepared
from onestart_conformance.damage.trial import How, attempt

PAGE = Path(__file__).parent.parent / "docs" / "read-health.md"


@pytest.fixture(scope="module")
def cells() -> Policy:
    return policy()


def test_the_page_is_what_the_library_does(cells: Policy) -> None:
    """After a change, `onestart damage --policy docs/read-health.md` writes it anew."""
    assert PAGE.read_text(encoding="utf-8").splitlines() == list(page(cells))


def test_the_command_writes_the_page(tmp_path: Path, cells: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """One command, one file; a folder that is not there is a complaint in one line."""
    monkeypatch.setattr("onestart_conformance.commands.damage.policy", lambda: cells)
    assert run(["damage", "--policy", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
    assert run(["damage", "--policy", str(tmp_path / "nowhere" / "page.md")]) == 2


def test_an_intact_ledger_holds_nobody_up(cells: Policy) -> None:
    """What is asked of every kind of command proceeds, so that each other cell says something."""
    assert {cell.action for (_, name, _, _), cell in cells.items() if name == "intact"} == {PROCEED}


def test_damage_of_another_never_stops_an_unrelated_command(cells: Policy) -> None:
    """It proceeds, and damage that may be anybody's is reported to it; only a store that nobody can read holds it."""
    for (_, name, whose, question), cell in cells.items():
        if question == "unrelated" and name != "unavailable":
            assert cell.action in (PROCEED, REPORT, NOTHING)
            assert cell.action == REPORT or whose != "perhaps anybody's"


def test_what_cannot_be_read_is_never_absent(cells: Policy) -> None:
    """A store that the system refuses holds every command that asks it."""
    for (_, name, _, question), cell in cells.items():
        if name == "unavailable" and question != "reconcile":
            assert cell.action == HOLD


def test_a_damaged_note_is_reported() -> None:
    """It counts as a note all the same, and whoever is answered about its key is told."""
    medium = DiskMedium()
    ledger = prepared(medium)
    number = next(o.number for o in ledger.records["leases"] if o.line.kind == Note.kind and o.line.key == "lost")
    trial = attempt(ledger, medium, (grammar.UnknownVersion("leases", number),), "lost", How(tells=False))
    assert trial.answers[-1].reason == Reason.IN_DOUBT
    assert any("unsupported version" in text for text in trial.answers[-1].findings)
