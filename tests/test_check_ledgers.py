"""What a check does to each kind of ledger, and what it says of it."""

from __future__ import annotations

import pytest
from attrs import evolve

from onestart.command_line import run
from onestart_check import over
from onestart_check import stores as checked
from onestart_check.damage import Damaged
from onestart_check.over import Share, drive_over
from onestart_check.summary import show_tried
from onestart_conformance.campaign import campaign
from onestart_conformance.commands import ledgers
from onestart_conformance.commands.ledgers import LEDGERS, chosen_ledgers
from onestart_conformance.commands.stores import KILLS
from onestart_conformance.damage.systematic import Count, Tally
from onestart_conformance.faults import fault_named
from onestart_conformance.rules import Rules
from onestart_conformance.standard import chain
from onestart_conformance.stores.killing import Kills
from onestart_conformance.stores.suite import PLANS
from onestart_model.expression import RuleError
from onestart_report.screen import Screen
from onestart_report.verdict import Verdict
from own_pool import AtOnce
from postgres_server import RealServer

NOWHERE = "postgresql://nobody:secret@127.0.0.1:1/nothing"
QUIET = Screen(quiet=True)


@pytest.mark.parametrize("command", ["check", "stores", "damage"])
def test_postgresql_needs_an_address(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and nothing was begun."""
    assert run([command, "--ledger", "postgres"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "PostgreSQL needs --at" in said.err
    assert len(said.err.splitlines()) == 1


def test_all_are_those_that_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "reach", lambda at: None)
    assert chosen_ledgers("all", "") == ("jsonl", "sqlite")
    assert chosen_ledgers("all", NOWHERE, "memory") == ("memory", *LEDGERS)
    assert chosen_ledgers("postgres", NOWHERE) == ("postgres",)
    with pytest.raises(RuleError, match="--at"):
        chosen_ledgers("postgres", "")


def test_a_server_of_which_there_is_none_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Without its password."""
    assert run(["stores", "--ledger", "postgres", "--at", NOWHERE, "--jobs", "1"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("onestart: PostgreSQL: ")
    assert "secret" not in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_drives_over_another_kind_of_ledger(kind: str, postgres: RealServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are random and walk bounded worlds; the first that a judge objects to is the end, with its story."""
    ledger = postgres.conninfo if kind == "postgres" else kind
    done = drive_over(ledger, Share(2, {"pair": 30}), 0)
    assert (done.ledger, done.runs, done.moves, done.objection, done.story) == (kind, 2, 30, "", None)
    random = campaign(Rules(chain()), examples=2, ledger=ledger)
    assert done.steps > random.tally.gates
    with fault_named("loser-releases").seeded():
        drawn = drive_over(ledger, Share(100, {"pair": 200}), 0)
        monkeypatch.setattr(over, "campaign", lambda *_, **__: random)
        walked = drive_over(ledger, Share(2, {"pair": 200}), 0)
    assert (drawn.moves, walked.runs) == (0, 2)
    assert drawn.story is not None
    assert walked.story is not None
    assert walked.objection.startswith("pair: ")


def test_a_check_puts_the_axioms_to_postgresql_and_kills(
    postgres: RealServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Axioms and kills are claims of the chosen ledger alone, and are counted in the table at the end."""
    monkeypatch.setitem(KILLS, "standard", 8)
    monkeypatch.setitem(PLANS, "quick", evolve(PLANS["quick"], probes=1))
    at = postgres.conninfo
    pending = checked.store_tests("standard", 0, AtOnce(), ["postgres"], at)
    stored = checked.collect(pending, profile="standard", seed=0, at=at, phase=QUIET.phase)
    claims = list(stored.claims)
    assert {claim.method for claim in claims} == {"axiom", "kills"}
    assert {claim.verdict for claim in claims} == {Verdict.PROVED}
    assert {claim.scope for claim in claims} == {"the memory ledger", "the postgres ledger"}
    assert stored.killed["postgres"].kills >= 8
    show_tried(Screen(), ["postgres"], None, Damaged(), stored)
    shown = capsys.readouterr().out
    assert "processes killed" in shown
    assert f"{stored.killed['postgres'].kills:,}" in shown


def test_a_second_start_is_refuted_wherever_it_was_seen(capsys: pytest.CaptureFixture[str]) -> None:
    """By damage, or by processes that were killed."""
    stored = checked.Stored(killed={"jsonl": Kills(9, 4, 0, 5, 6, 5, 1, 0, 1.0, ("k1 was started 2 times",))})
    damaged = Damaged(tallies={"sqlite": Tally({("receipts", "zeroed"): Count(tried=3, starts=2)})})
    (claim,) = stored.claims
    assert (claim.verdict, claim.detail) == (Verdict.REFUTED, "k1 was started 2 times")
    show_tried(Screen(), ["jsonl", "sqlite"], None, damaged, stored)
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "second starts" in line)
    assert row.split()[-2:] == ["1", "2"]
