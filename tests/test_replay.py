"""Counterexamples of every source, made to happen on the library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onestart.command_line import run
from onestart_conformance.campaign import campaign
from onestart_conformance.faults import FAULTS, seeded
from onestart_conformance.rules import Rules
from onestart_conformance.runs import shrink
from onestart_conformance.standard import bound_named, chain
from onestart_conformance.stories import counterexample, retell, story
from onestart_conformance.systematic import walk
from onestart_model.catalog import entry
from onestart_model.chain import CHAIN
from onestart_model.counterexample import CounterexampleError, load
from onestart_proofs.bmc import bounded_check
from onestart_proofs.variants import ladder, without

PROTECTIONS = [protection.name for protection in CHAIN.protections]


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_a_trace_of_the_model_replays_on_the_library(protection: str, tmp_path: Path) -> None:
    """What the model does without a protection, the library does without the same one, to the broken promise."""
    found = without(CHAIN, protection, ladder(entry("chain")))
    assert found.story is not None
    path = tmp_path / "trace.itf.json"
    found.story.save(path)
    retold = retell(load(path, [CHAIN]))
    assert retold.objection is not None, retold.instead
    assert retold.at == len(found.story.steps)
    assert retold.objection.promise in {*found.failing}
    if found.story.property == "one_key_at_most_one_start":
        assert max(retold.starts.values()) == 2
    shipped = retell(load(path, [CHAIN]), shipped=True)
    assert not shipped.fails
    assert shipped.instead
    assert max(shipped.starts.values()) <= 1


@pytest.mark.parametrize("name", ["one-lease-per-task", "start-tried-again", "wrong-shape-dropped", "fingerprint"])
def test_a_story_of_a_drive_replays(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 with the fault, 0 without; the step at which the oracle objects is told."""
    path = tmp_path / "story.itf.json"
    story(campaign(Rules(chain()), fault=FAULTS[name], number=1)).save(path)
    assert run(["replay", str(path)]) == 1
    shown = capsys.readouterr().out
    assert f"the library with the fault {name}" in shown
    assert f": {FAULTS[name].oracle}: " in shown
    assert "it still fails" in shown
    assert run(["replay", "--shipped", str(path)]) == 0
    assert "it does not fail" in capsys.readouterr().out
    assert run(["show", str(path)]) == 0


def test_a_story_of_the_systematic_drive_replays(tmp_path: Path) -> None:
    """The systematic drive writes the same kind of file."""
    fault, bound = FAULTS["intent-noted"], bound_named("pair")
    rules = Rules(bound.instance())
    with seeded(fault):
        done = walk(rules, most=3000, kinds=bound.kinds, wanted=fault.caught_by)
        assert done.objection is not None
        shortest = shrink(rules, done.found, done.objection)
    path = tmp_path / "story.itf.json"
    counterexample(shortest, rules.instance, fault, "systematic drive").save(path)
    assert run(["replay", str(path)]) == 1
    assert run(["replay", "--shipped", str(path)]) == 0


def test_a_trace_of_bounded_model_checking_replays(tmp_path: Path) -> None:
    """The third source: a trace that z3 found."""
    instance = entry("chain").standard("single").instance(CHAIN, without=["one-lease-per-task"])
    found = bounded_check(instance, CHAIN.property_named("a_live_lease_is_not_taken"), depth=6).trace
    assert found is not None
    path = tmp_path / "trace.itf.json"
    found.save(path)
    retold = retell(load(path, [CHAIN]))
    assert retold.objection is not None
    assert retold.objection.promise == "a_live_lease_is_not_taken"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it is not JSON"),
        ("{}", "is not a counterexample file"),
        ('{"#meta": {"format": "onestart-counterexample", "version": 9}}', "has version 9"),
    ],
)
def test_a_file_that_is_none_is_refused(
    content: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One clear line, exit code 2, and the file is left as it is."""
    path = tmp_path / "file"
    path.write_text(content)
    assert run(["replay", str(path)]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1
    assert path.read_text() == content


def test_moves_that_mean_nothing_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file whose moves were tampered with is told, not guessed at."""
    path = tmp_path / "story.itf.json"
    story(campaign(Rules(chain()), fault=FAULTS["intent-noted"], number=1)).save(path)
    document = json.loads(path.read_text())
    document["#meta"]["replay"]["moves"][0] = ["fly", "away"]
    path.write_text(json.dumps(document))
    assert run(["replay", str(path)]) == 2
    assert "no move is called 'fly'" in capsys.readouterr().err


def test_other_implementations_are_told(tmp_path: Path) -> None:
    """A file of another library is not replayed on this one."""
    path = tmp_path / "story.itf.json"
    story(campaign(Rules(chain()), fault=FAULTS["intent-noted"], number=1)).save(path)
    document = json.loads(path.read_text())
    document["#meta"]["replay"]["library"] = "theirs"
    path.write_text(json.dumps(document))
    with pytest.raises(CounterexampleError, match="another implementation: 'theirs'"):
        retell(load(path, [CHAIN]))
