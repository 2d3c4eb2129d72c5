"""Counterexample files: one format, read back exactly or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from itf_py import trace_from_json

from onestart_model import Counterexample, CounterexampleError, Machine
from onestart_model.catalog import CATALOG, entry
from onestart_model.counterexample import load
from onestart_proofs.variants import without

MODELS = [e.model for e in CATALOG]
CHAIN = entry("chain")


@pytest.fixture(scope="module")
def story() -> Counterexample:
    found = without(CHAIN.model, "intent-before-start", CHAIN.instances[:1]).story
    assert found is not None
    return found


@pytest.fixture
def file(story: Counterexample, tmp_path: Path) -> Path:
    path = tmp_path / "story.itf.json"
    story.save(path)
    return path


def test_a_file_gives_back_the_counterexample(story: Counterexample, file: Path) -> None:
    """What was found on one machine is what another one replays."""
    read = load(file, MODELS)
    assert (read.states, read.steps, read.property, read.source) == (
        story.states,
        story.steps,
        story.property,
        story.source,
    )
    assert read.instance.without == {"intent-before-start"}
    assert read.broken()


def test_other_tools_can_read_the_file(story: Counterexample, file: Path) -> None:
    """The format is Apalache's, so its readers see the same states."""
    parsed = trace_from_json(json.loads(file.read_text()))
    assert len(parsed.states) == len(story.states)
    assert parsed.states[-1].values["starts"]["key1"] == story.states[-1].read("starts", 0)


def test_a_trace_without_its_fault_is_not_broken(story: Counterexample) -> None:
    """On the whole model some step of the story is not enabled: that is what the protection does."""
    machine = Machine(CHAIN.standard("single").instance(CHAIN.model))
    state = machine.initial((("task", (0,)),))
    refused = 0
    for step in story.steps:
        if machine.why_not(state, step) is not None:
            refused += 1
            break
        state = machine.apply(state, step)
    assert refused == 1


def mutate(file: Path, change: Any) -> Path:
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))
    return file


@pytest.mark.parametrize(
    ("match", "change"),
    [
        ("not a counterexample file of this project", lambda d: d.pop("#meta")),
        ("not a counterexample file of this project", lambda d: d["#meta"].update(format="other")),
        ("has version 99; this release reads version 1", lambda d: d["#meta"].update(version=99)),
        ("no model is called 'chian'", lambda d: d["#meta"].update(model="chian")),
        ("no protection is called 'x'", lambda d: d["#meta"].update(without=["x"])),
        ("no invariant is called 'x'", lambda d: d["#meta"].update(property="x")),
        ("the size of Key must be", lambda d: d["#meta"]["sizes"].update(Key=0)),
        ("no action is called 'fly'", lambda d: d["states"][1]["#meta"].update(action="fly")),
        ("cannot take the arguments", lambda d: d["states"][1]["#meta"].update(arguments=[7, 7])),
        ("is not enabled", lambda d: d["states"].pop(1)),
        ("lead to another state 1", lambda d: d["states"][1]["starts"]["#map"][0].__setitem__(1, {"#bigint": "1"})),
        ("does not fit the model", lambda d: d["states"][0].pop("receipt")),
        ("does not fit the model", lambda d: d.update(states=7)),
        ("does not fit the model", lambda d: d["#meta"].pop("sizes")),
    ],
)
def test_a_file_that_does_not_fit_is_refused(file: Path, match: str, change: Any) -> None:
    """Nothing in a file is guessed or repaired; the message says what does not fit."""
    with pytest.raises(CounterexampleError, match=match):
        load(mutate(file, change), MODELS)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{", b"[" * 100_000, b'"text"', b"[1]"])
def test_a_file_that_is_no_document_is_refused(tmp_path: Path, content: bytes) -> None:
    """Garbage is one clear error, never a traceback."""
    path = tmp_path / "garbage"
    path.write_bytes(content)
    with pytest.raises(CounterexampleError, match=r"cannot be read: it is not JSON|not a counterexample file"):
        load(path, MODELS)
    with pytest.raises(CounterexampleError, match="cannot be read"):
        load(tmp_path / "missing", MODELS)
