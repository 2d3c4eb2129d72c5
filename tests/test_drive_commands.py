"""onestart drive and onestart faults, as people call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onestart.command_line import run
from onestart_conformance.faults import FAULTS
from onestart_conformance.hunts import hunt_all
from onestart_conformance.moves import Move
from onestart_conformance.wording import in_words
from onestart_report.pool import processes


def test_a_drive_says_what_it_has_been_through(capsys: pytest.CaptureFixture[str]) -> None:
    """Actions, steps of the model with their denominator, the seed, and what was never driven."""
    assert run(["drive", "--examples", "10", "--seed", "5"]) == 0
    out = capsys.readouterr().out
    assert "10 runs, " in out
    assert " that the model allows there; " in out
    assert "never driven" in out
    assert out.rstrip().endswith("seed 5")


def test_a_drive_of_a_fault_ends_in_a_story(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, the oracle, the story in words, and a file to replay."""
    assert run(["drive", "--fault", "one-lease-per-task", "--save", str(tmp_path / "stories")]) == 1
    out = capsys.readouterr().out
    assert "rule objects: claim(" in out
    assert "submits key" in out
    assert [path.suffix for path in (tmp_path / "stories").iterdir()] == [".json"]


def test_a_systematic_drive_says_when_nothing_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    """Complete is said only when it is."""
    assert run(["drive", "--systematic", "pair"]) == 0
    assert "nothing is left to take" in capsys.readouterr().out
    assert run(["drive", "--systematic", "pair", "--moves", "50"]) == 0
    assert "known moves not taken" in capsys.readouterr().out


def test_drives_answer_machines(capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON document, and nothing else."""
    assert run(["drive", "--examples", "3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["runs"] == 3
    assert document["objection"] is None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["drive", "--fault", "no-such"], "no fault is called 'no-such'"),
        (["drive", "--systematic", "no-such"], "no bound is called 'no-such'"),
        (["faults", "fencing"], "did you mean fencing-token"),
        (["drive", "--examples", "0"], "--examples"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, one clear line."""
    assert run(arguments) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1


def test_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Every fault, with what is wrong."""
    assert run(["faults", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in FAULTS)


def test_a_fault_that_is_not_found_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 if an oracle misses a fault: here, because it is given no time."""
    assert run(["faults", "executor-fence", "--examples", "1"]) == 1
    assert "0 of 1 faults caught" in capsys.readouterr().out
    assert run(["faults", "revision-in-force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["faults"][0]["caught"] is True


def test_hunts_do_not_depend_on_how_many_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed finds the same stories, alone or in two processes."""
    names = ["intent-noted", "revision-in-force"]
    alone = [(h.fault, h.examples, h.steps) for h in hunt_all(names, seed=4, examples=200)]
    with processes(2) as pool:
        together = [(h.fault, h.examples, h.steps) for h in hunt_all(names, seed=4, examples=200, pool=pool)]
    assert alone == together


def test_a_fault_can_be_hunted_systematically() -> None:
    """The systematic hunt says after how many moves it was found."""
    (found,) = hunt_all(["intent-noted"], seed=0, examples=50, moves=3000)
    assert 0 < found.moves <= 3000


def test_moves_read_as_sentences() -> None:
    """A story is for people."""
    words = {
        Move("call", (0, "submit", "key1", 1)): "process 1 submits key1, with another command",
        Move("open", (1, "submit key1", "rule", 0, "stale")): "process 2 (submit key1) hears from governance: stale",
        Move("open", (0, "submit key1", "start", 0, "lost")): (
            "process 1 (submit key1) asks the executor to start it, and the response is lost"
        ),
        Move("break", (0, "submit key1", "ledger", 0, "dies", 2, 9)): (
            "process 1 (submit key1) dies in the middle of its turn at the ledger"
        ),
        Move("damage", ("lease", "key1", "body")): "the newest lease record of key1 is damaged (body)",
    }
    assert {move: in_words(move) for move in words} == words
