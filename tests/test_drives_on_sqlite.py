"""Drives over SQLite: the ledger as it is shipped, followed on the model event by event, killed in any operation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onestart.command_line import run
from onestart_conformance.campaign import campaign
from onestart_conformance.faults import fault_named
from onestart_conformance.gates import LEDGER
from onestart_conformance.moves import Move, find_gate
from onestart_conformance.rules import Rules
from onestart_conformance.runs import replay, step
from onestart_conformance.sqlite_storage import SqliteStorage
from onestart_conformance.standard import chain
from onestart_conformance.storage import SQLITE
from onestart_conformance.stories import retell, story
from onestart_conformance.walks import walked
from onestart_conformance.world import World
from onestart_model.counterexample import Counterexample, CounterexampleError

EVERYTHING = ("die", "break", "damage", "lose_attempt", "power_failure", "pass_time")


def rules() -> Rules:
    return Rules(chain(keys=2, processes=3))


def test_random_runs_follow_the_model() -> None:
    """Interleavings, deaths, errors, power failures, damage: nobody objects, and all of them occur."""
    done = campaign(rules(), number=5, examples=60, ledger=SQLITE)
    assert done.objection is None
    assert done.tally.examples == 60
    for action in ("crash", "start", "record", "ask", "damage_receipt", "damage_attempt", "lose_attempt"):
        assert done.tally.taken[action], action


def test_every_move_of_a_small_world() -> None:
    """In every situation that is reached, as far as so many moves lead."""
    done = walked("pair", 600, ledger=SQLITE)
    assert done.objection is None
    assert done.taken == 600


def test_the_same_seed_gives_the_same_run() -> None:
    """Also where the power fails, and what is left is drawn."""
    first, second = (campaign(rules(), number=9, examples=15, ledger=SQLITE) for _ in range(2))
    assert first.tally == second.tally


@pytest.mark.parametrize("name", ["one-lease-per-task", "fencing-token", "fingerprint", "intent-noted"])
def test_a_fault_is_caught_and_its_story_told_again(name: str) -> None:
    """By the oracle that must catch it; the file says over which kind of ledger, and there it still fails."""
    done = campaign(rules(), fault=fault_named(name), number=0, examples=2000, ledger=SQLITE)
    assert done.objection is not None, done.others
    trace = story(done)
    assert trace.replay["ledger"] == SQLITE
    assert retell(trace).fails
    assert not retell(trace, shipped=True).fails


def test_a_story_of_an_unknown_ledger_is_refused() -> None:
    done = campaign(rules(), fault=fault_named("one-lease-per-task"), number=0, ledger=SQLITE)
    trace = story(done)
    other = Counterexample.of(
        trace.instance, trace.states, trace.steps, broken="", source="", replay={**trace.replay, "ledger": "cobol"}
    )
    with pytest.raises(CounterexampleError, match="another kind of ledger: 'cobol'"):
        retell(other)


@pytest.mark.parametrize("at", [(0, 0), *((1, torn) for torn in range(3, 256, 23)), (2, 0), (3, 0)])
@pytest.mark.parametrize("failure", ["dies", "fails"])
def test_a_step_that_breaks_off_anywhere_is_there_or_not(at: tuple[int, int], failure: str) -> None:
    """The first one, which makes the file: whoever comes next finds it to be one or the other, and goes on."""
    moves = [
        Move("call", (0, "submit", "key1", 0)),
        Move("break", (0, "submit key1", LEDGER, 0, failure, *at)),
        Move("call", (1, "submit", "key1", 0)),
        *[Move("open", (1, "submit key1", kind, 0, answer)) for kind, answer in GOING for _ in range(12)],
    ]
    found = replay(rules(), moves, SQLITE)
    assert found.objection is None
    assert len(found.moves) > 3


GOING: Any = ((LEDGER, "go"), ("rule", "in force"), (LEDGER, "go"), ("start", "go"), (LEDGER, "go"))


def test_nothing_is_left_behind() -> None:
    """A world has a folder of its own, which is gone with it."""
    world = World(rules(), SQLITE)
    assert isinstance(world.storage, SqliteStorage)
    folder = Path(world.storage.folder)
    step(world, Move("call", (0, "submit", "key1", 0)))
    assert find_gate(world, 0, "submit key1", LEDGER, 0) is not None
    step(world, Move("open", (0, "submit key1", LEDGER, 0, "go")))
    assert (folder / "ledger.sqlite").stat().st_size
    world.end()
    assert not folder.exists()


def test_the_command_says_over_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["drive", "--ledger", "sqlite", "--examples", "5"]) == 0
    assert "random drive over sqlite, seed 0" in capsys.readouterr().err
    assert run(["drive", "--ledger", "sqlite", "--flows"]) == 2
    assert "--ledger is for the command chain" in capsys.readouterr().err
