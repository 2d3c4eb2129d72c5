"""onestart drive --flows and its stories, as people call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onestart.command_line import run
from onestart_conformance.flows.position import FOLLOWED


def test_flows_are_driven(capsys: pytest.CaptureFixture[str]) -> None:
    """How they ended, which calls they made, and the seed."""
    assert run(["drive", "--flows", "--examples", "20", "--seed", "5"]) == 0
    out = capsys.readouterr().out
    assert "20 runs, " in out
    assert out.rstrip().endswith("seed 5")


def test_a_story_is_saved_and_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 while it still fails, 0 once it does not; the first run and the resume stand beside each other."""
    folder = tmp_path / "stories"
    assert run(["drive", "--flows", "--fault", "waits-hold", "--examples", "400", "--save", str(folder)]) == 1
    assert "admission objects" in capsys.readouterr().out
    (path,) = folder.iterdir()
    assert run(["replay", str(path)]) == 1
    out = capsys.readouterr().out
    assert "first run" in out
    assert "resume" in out
    assert "it still fails" in out
    assert run(["replay", str(path), "--shipped"]) == 0
    assert run(["replay", str(path), "--json"]) == 1
    capsys.readouterr()
    document = json.loads(path.read_text(encoding="utf-8"))
    document["fault"] = ""
    path.write_text(json.dumps(document), encoding="utf-8")
    assert run(["replay", str(path)]) == 0
    assert "it does not fail" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"plan": {}}, "holds no plan of a flow"),
        ({"#meta": {"format": "onestart-flow-counterexample"}}, "version None"),
    ],
)
def test_a_bad_file_is_one_line(
    change: dict[str, object], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and what is wrong; nothing is guessed."""
    path = tmp_path / "story.json"
    meta = {"format": "onestart-flow-counterexample", "version": 1, "source": "a test"}
    path.write_text(json.dumps({"#meta": meta, "fault": "", "oracle": "", "what": "", **change}), encoding="utf-8")
    assert run(["replay", str(path)]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1


def test_a_small_program_is_driven_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing left is said only when it is so; machines get the counts."""
    assert run(["drive", "--flows", "--systematic", "two-by-two", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["version 3"] == {
        "orders": 3,
        "places": 31,
        "runs": 53,
        "completed": 53,
        "refused": 0,
        "complete": True,
        "followed": {FOLLOWED: 53},
    }
    assert run(["drive", "--flows", "--systematic", "two-by-two", "--moves", "5"]) == 0
    assert "not known" in capsys.readouterr().out


def test_faults_of_flows_are_hunted_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """The command knows both kinds, and says which name is close."""
    assert run(["faults", "result-not-recorded"]) == 0
    assert "1 of 1 faults caught" in capsys.readouterr().out
    assert run(["faults", "watermarks"]) == 2
    assert "did you mean watermark" in capsys.readouterr().err


def test_scenarios_show_flows(capsys: pytest.CaptureFixture[str]) -> None:
    """Both tables, after those of the chain."""
    assert run(["scenarios"]) == 0
    out = capsys.readouterr().out
    assert "Flows with counted ids" in out
    assert "flows: 37 of 37" in out
