"""The command line: verdicts as exit codes, tables for people, JSON for machines, one line for mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest

from onestart.command_line import _load, run

BAD = [
    (["explore", "--without", "fingerprnt"], "no protection is called 'fingerprnt'; did you mean 'fingerprint'?"),
    (["explore", "--property", "x"], "no invariant is called 'x'"),
    (["explore", "--model", "chian"], "no model is called 'chian'; known: chain, flows, yardstick"),
    (["explore", "--instance", "huge"], "chain has no instance 'huge'; known: single, unlimited, budgeted, troubled"),
    (["explore", "--size", "Key=0", "--size", "Process=1", "--size", "Task=1"], "the size of Key must be a whole"),
    (["explore", "--size", "Key=2"], "the instance says nothing of Task: add --size Task=1"),
    (["explore", "--size", "Key"], "'Key' is not NAME=NUMBER"),
    (["explore", "--size", "Key=9", "--size", "Process=9", "--size", "Task=9"], "the instance is too large"),
    (["explore", "--size", "Key=2", "--size", "Process=6", "--size", "Task=1"], "do not fit 16 bits"),
    (["explore", "--budget", "crash=1"], "budgets and limits need sizes too"),
    (["explore", "--instance", "single", "--size", "Key=1"], "give either it or those"),
    (["explore", "--max-states", "0"], "a limit of 0 states leaves nothing to search"),
    (["explore", "--max-memory", "-5"], "leaves nothing to search"),
    (["explore", "--max-states", "many"], "'many' is not a valid integer"),
    (["explore", "--model", "yardstick", "--instance", "small", "--graph", "/dev/null/x"], "cannot be written"),
    (["prove", "--resources", "0"], "leaves nothing to prove with"),
    (["prove", "--resources", "4294967297"], "give 1 to 4294967295"),
    (["prove", "--property", "every_accepted_command_can_end"], "use onestart explore"),
    (["prove", "--depth", "3", "--property", "every_accepted_command_can_end"], "use explore"),
    (["explore", "--size", "Key=1", "--size", "Process=999999999", "--size", "Task=1"], "too large: 999999999"),
    (["explore", "--size", "Key=1", "--size", "Key=2"], "--size Key is given twice"),
    (["prove", "--seed", "99999999999"], "does not fit 32 bits"),
    (["prove", "--depth", "0"], "choose one from 1 to 60"),
    (["prove", "--size", "Key=1"], "the instance says nothing of"),
    (["prove", "--instance", "single"], "a proof is for all sizes"),
    (["check", "--profile", "slow"], "'slow' is not one of 'quick', 'standard', 'deep'"),
    (["explain", "one_key_at_most_one_strat"], "did you mean one_key_at_most_one_start"),
    (["show", "/nonexistent"], "/nonexistent cannot be read: No such file or directory"),
    (["show", __file__], "cannot be read: it is not JSON"),
    (["bogus"], "No such command 'bogus'"),
    (["explore", "--bogus"], "No such option '--bogus'"),
]


BUG = ["--without", "no fresh offer over damage"]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_a_mistake_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing that a user can write gives a traceback: one line that says what to do, and exit code 2."""
    assert run(arguments) == 2
    captured = capsys.readouterr()
    (line,) = [line for line in captured.err.splitlines() if line.startswith("onestart: ")]
    assert message in line
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_the_verdict_is_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts tell proved, refuted, not inductive and undetermined apart without reading."""
    yardstick = ["--model", "yardstick"]
    assert run(["prove", *yardstick]) == 0
    assert run(["explore", *yardstick, "--instance", "small"]) == 0
    assert run(["explore", *yardstick, "--instance", "small", *BUG]) == 1
    assert run(["prove", *yardstick, *BUG]) == 3
    assert run(["explore", *yardstick, "--instance", "small", "--max-states", "5"]) == 4
    assert run(["prove", *yardstick, "--resources", "1"]) == 4
    assert "undetermined" in capsys.readouterr().out


def test_nothing_decided_is_not_proved(capsys: pytest.CaptureFixture[str]) -> None:
    """A property that a search could not decide is undetermined, also if it is the only one."""
    only = ["explore", "--instance", "single", "--property", "every_accepted_command_can_end"]
    assert run([*only, "--max-states", "10"]) == 4
    small = ["--size", "Key=1", "--size", "Process=1", "--size", "Task=1"]
    assert run(["explore", *small, "--budget", "crash=1", "--property", "every_accepted_command_can_end"]) == 4
    assert run(only) == 0
    assert "from all 40,707 states" in capsys.readouterr().out


def test_a_search_prints_its_counts_and_its_story(capsys: pytest.CaptureFixture[str]) -> None:
    """The table says what was looked at; the story says what happened, step by step, in plain text."""
    assert (
        run(["explore", "--model", "yardstick", "--instance", "small", "--without", "no fresh offer over damage"]) == 1
    )
    out = capsys.readouterr().out
    assert "yardstick: 1 key, 2 workers, expiries = 1" in out
    assert re.search(r"at_most_one_start: 10 steps", out)
    assert "starts[key1]: 1 -> 2" in out
    assert "\x1b" not in out


def test_a_witness_that_is_asked_for_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """What must be possible is shown as a story, like what must not be."""
    name = "a_new_key_starts_after_a_cancelled_one"
    assert run(["explore", "--property", name]) == 0
    out = capsys.readouterr().out
    assert f"{name}: 19 steps" in out
    assert "start(process" in out


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output holds the document alone; progress goes elsewhere."""
    assert run(["explore", "--model", "yardstick", "--instance", "small", "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert (document["states"], document["verdict"], document["complete"]) == (78, "proved", True)
    assert {c["subject"] for c in document["claims"]} == {"at_most_one_start", "no_start_before_running"}
    assert run(["prove", "--model", "yardstick", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert all(o["verdict"] == "proved" for o in document["obligations"])


def test_a_saved_trace_can_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From a removed protection to a file, and from the file to the story."""
    folder = tmp_path / "traces"
    assert run(["explore", "--without", "intent-before-start", "--save", str(folder)]) == 1
    (path,) = folder.iterdir()
    assert str(path) in capsys.readouterr().out
    assert run(["show", str(path)]) == 0
    out = capsys.readouterr().out
    assert "removed: intent-before-start" in out
    assert "no_start_after_refusal_or_cancellation: 7 steps" in out
    assert "broken at the last step" in out


def test_a_counterexample_to_induction_can_be_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its first state need not be reachable, and the file says so."""
    folder = tmp_path / "traces"
    assert (
        run(["prove", "--without", "executor-fence", "--property", "who_may_start_is_first", "--save", str(folder)])
        == 3
    )
    path = folder / "chain-who_may_start_is_first-without-executor-fence.itf.json"
    assert run(["show", str(path)]) == 0
    assert "the first state need not be reachable" in capsys.readouterr().out


def test_bounded_checking_prints_the_shortest_story(capsys: pytest.CaptureFixture[str]) -> None:
    """A trace of a given length, without a search."""
    name = "one_key_at_most_one_start"
    assert run(["prove", "--without", "intent-before-start", "--depth", "9", "--property", name]) == 1
    assert f"{name}: 9 steps" in capsys.readouterr().out
    assert run(["prove", "--depth", "4", "--property", name]) == 4


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "one_key_at_most_one_start",
            ["layer: start", "No idempotency key is ever started twice.", "who_may_start_is_first"],
        ),
        ("start", ["action of the system", "(protection executor-fence)", "launched[k] := true"]),
        ("crash", ["action of the environment (crash)", "changes"]),
        ("intent-noted", ["in: start", "no_start_after_refusal_or_cancellation", "8 steps"]),
        ("every_accepted_command_can_end", ["possibility", "may not use: caller, crash, damage"]),
        ("bytes_are_never_destroyed", ["does not speak of: damage, rollback"]),
    ],
)
def test_explain_says_what_a_rule_rests_on(name: str, expected: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An auditor gets the statement, the source and the dependencies of anything by its name."""
    assert run(["explain", name]) == 0
    out = capsys.readouterr().out
    for text in expected:
        assert text in out


def test_a_quick_check_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Proof, enumeration, what can happen, what each protection is for: one summary and one verdict."""
    assert run(["check", "--model", "chain", "--profile", "quick"]) == 0
    out = capsys.readouterr().out
    for text in ("one_key_at_most_one_start", "a_new_key_starts_after_a_cancelled_one", "operator-looks-first"):
        assert text in out
    assert "22 of 22 protections needed" in out
    assert out.splitlines()[-2] == "chain: proved, seed 0"


def test_the_same_seed_gives_the_same_document(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing in a result depends on time or on the machine."""

    def document() -> str:
        assert run(["prove", "--model", "yardstick", "--json", "--seed", "3"]) == 0
        return capsys.readouterr().out

    assert document() == document()


def test_a_mistake_in_a_rule_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever writes rules sees the rule's own file, line and message, from any command."""
    (tmp_path / "mistaken.py").write_text(
        "from onestart_model import RuleError\n\ndef f():\n    raise RuleError('write & instead')\n\nf()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    command = _load(EntryPoint("mistaken", "mistaken:command", "onestart.commands"))
    with pytest.raises(click.UsageError, match=r"cannot be loaded: .*mistaken\.py:4: write & instead"):
        command.main(["--any", "option"], standalone_mode=False)


def test_what_never_happens_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """An action that a search never saw is named, whatever the verdict."""
    assert (
        run(["explore", "--model", "yardstick", "--size", "Key=1", "--size", "Worker=1", "--limit", "expiries=0"]) == 0
    )
    out = capsys.readouterr().out
    assert "never happens here: resubmit, expire" in out


def test_the_installed_command_runs() -> None:
    """The entry point, in a process of its own: help without a terminal, and a broken pipe that is no error."""
    command = Path(sys.executable).with_name("onestart")
    shown = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    for name in ("check", "explain", "explore", "prove", "show"):
        assert re.search(rf"^  {name} ", shown.stdout, re.M)
    plain = subprocess.run(
        [command, "explore", "--model", "yardstick", "--instance", "small"], capture_output=True, check=True
    )
    assert b"\x1b" not in plain.stdout + plain.stderr
    assert b"searching 1 key, 2 workers" in plain.stderr
