"""onestart trace, as people and machines see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from event_streams import HEALTHY, driven, ticking, write, write_each
from onestart.command_line import run
from onestart_model.chain import CHAIN
from onestart_model.counterexample import load
from onestart_report import screen
from test_trace_log import HAPPY, told


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are not folded, however long the paths are."""
    monkeypatch.setattr(screen, "PLAIN_WIDTH", 1000)


def early_claim(tmp_path: Path) -> Path:
    """A log in which a second process takes a lease that lasts."""
    again = [evolve(e, token=2 if e.token else 0) for e in told("ruled", "enter", "claim", process="q", start=3)]
    return write(tmp_path / "early", ticking([*told(*HAPPY[:5]), *again]))


def test_logs_that_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = driven(1, HEALTHY, swarm=False)
    assert run(["trace", *map(str, write_each(tmp_path, stream))]) == 0
    out, err = capsys.readouterr()
    assert "the log fits the model\n" in out
    assert f"{len(stream.events)} events" in err


def test_a_log_that_does_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(early_claim(tmp_path).parent)  # a long path would fold the table
    assert run(["trace", "early"]) == 1
    out = capsys.readouterr().out
    assert "does not fit: early:9" in out
    assert "allowed only without: one-lease-per-task" in out
    assert "breaks: a_live_lease_is_not_taken" in out
    assert "known of key 'k': receipt PENDING, attempt OFFERED" in out
    assert "claim 'k' by 'p' strand 1, record 3" in out


def test_the_way_to_it_can_be_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "trace.itf.json"
    assert run(["trace", str(early_claim(tmp_path)), "--save", str(saved)]) == 1
    assert f"wrote {saved}" in capsys.readouterr().out
    assert load(saved, [CHAIN]).broken()
    assert run(["show", str(saved)]) == 0


def test_what_cannot_be_saved_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = told(*HAPPY)
    del events[4]
    path, saved = write(tmp_path / "log", ticking(events)), tmp_path / "trace.itf.json"
    assert run(["trace", str(path), "--save", str(saved)]) == 1
    assert "nothing was written: no protection forbids the event" in capsys.readouterr().out
    assert not saved.exists()


def test_for_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "--json", str(write(tmp_path / "log", ticking(told(*HAPPY))))]) == 0
    fits = json.loads(capsys.readouterr().out)
    assert (fits["verdict"], fits["events"], fits["keys"], fits["misfit"]) == ("fits", 10, 1, None)
    path = early_claim(tmp_path)
    assert run(["trace", "--json", str(path)]) == 1
    found = json.loads(capsys.readouterr().out)["misfit"]
    assert found["where"] == f"{path}:9"
    assert found["protections"] == ["one-lease-per-task"]
    assert found["event"]["action"] == "claim"
    assert [chapter["event"]["action"] for chapter in found["story"]][-1] == "enter"


def test_what_was_assumed_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = told("ruled", "enter", "claim", process="q", start=4)
    events = [*told(*HAPPY[:5]), *(evolve(event, token=2 if event.token else 0) for event in again)]
    assert run(["trace", str(write(tmp_path / "log", ticking(events)))]) == 0
    out = capsys.readouterr().out
    assert "withdraw of key 'k' by strand 1 of 'p'" in out
    assert "the log fits the model with what was assumed" in out


def test_a_line_that_was_cut_off_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "log", ticking(told(*HAPPY)))
    path.write_bytes(path.read_bytes()[:-10])
    assert run(["trace", str(path)]) == 0
    assert f"{path}:11: a line that was cut off is left out" in capsys.readouterr().out


def test_names_are_shown_as_they_are_and_do_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = told(*HAPPY[:3], key="[bold]\x1b[31mk\n")
    del events[0]
    assert run(["trace", str(write(tmp_path / "[red]log", ticking(events)))]) == 1
    out = capsys.readouterr().out
    assert r"'[bold]\x1b[31mk\n'" in out
    assert "\x1b" not in out
    assert "[red]log:2" in out


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["none"], "cannot be read: No such file or directory"),
        (["empty"], "there is no event in"),
        (["bad"], "bad' is no event log: it begins with hello"),
        (["good", "bad"], "bad' is no event log"),
        (["good", "./good"], "is given twice"),
    ],
)
def test_bad_input_is_one_line(
    names: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good", told(*HAPPY))
    write(tmp_path / "empty", [])
    (tmp_path / "bad").write_text("hello\n")
    assert run(["trace", *names]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err.splitlines()[-1]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", str(early_claim(tmp_path)), "--save", str(tmp_path / "none" / "trace")]) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err
