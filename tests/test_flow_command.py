"""`onestart flow`: run, resumed, parked, answered, refused, held; what is said of it, and exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onestart.command_line import run
from onestart.commands import flow as command
from onestart.commands.flow_progress import Mode, Progress
from onestart.events import Event
from onestart.jsonl import JsonlLedger
from onestart.records import Lease, Record, Step

MAIN = "from onestart.command_line import main; main()"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

FLOWS = """
import asyncio, os
from pathlib import Path
from onestart.flow import Handle, Worker, flow

async def ask_model(call):
    with Path("effects").open("a") as file:
        file.write(call.spec["prompt"] + "\\n")
    if call.spec["prompt"] == "die" and "MAY_DIE" in os.environ:
        os.kill(os.getpid(), 9)
    if call.spec["prompt"] == "fail":
        raise RuntimeError("no\\nmodel")
    return call.spec["prompt"].upper()

workers = {"llm": Worker(ask_model)}

@flow(workers=workers)
async def upper(f: Handle, *texts):
    return await asyncio.gather(*[f.llm(text) for text in texts])

@flow(workers=workers)
async def in_turn(f: Handle, *texts):
    return [await f.llm(text) for text in texts]

@flow(workers=workers)
async def asking(f: Handle, text):
    word = await f.llm(text)
    first = await f.human(f"Is {word} right?", to="anna")
    return [first, await f.human("Sure?")]

@flow(workers=workers)
async def raising(f: Handle):
    raise ValueError("two\\nlines")

@flow
async def without(f: Handle):
    await f.llm("nobody")

number = 7
"""


class Place:
    """A folder with flows in a file, where `onestart flow` is typed."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self.write(FLOWS)

    def write(self, source: str, name: str = "flows.py") -> None:
        (self.folder / name).write_text(source)

    def type(self, *words: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        code = run(["flow", *words])
        captured = self._capsys.readouterr()
        return code, captured.out, captured.err

    @property
    def effects(self) -> list[str]:
        path = self.folder / "effects"
        return sorted(path.read_text().split()) if path.exists() else []

    def record(self, *records: Record, ledger: str = ".onestart") -> None:
        """Written by somebody else."""

        async def go() -> None:
            there = JsonlLedger(self.folder / ledger)
            for record in records:
                await there.step(lambda view, record=record: (record, None))  # type: ignore[misc]

        asyncio.run(go())

    def die(self, root: str) -> None:
        """A driver dies while a step is under way."""
        words = ["flow", "run", "flows.py:in_turn", root, '"a"', '"die"']
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *words],
            cwd=self.folder,
            env=os.environ | {"MAY_DIE": "yes"},
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == -9, done.stderr


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONESTART_LEDGER", "jsonl:///.onestart")
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Place(tmp_path, capsys)


def wait(words: str) -> str:
    return f"human-after-{words}"


def test_a_flow_is_run_once_and_gives_its_value_again(place: Place) -> None:
    code, out, err = place.type("run", "flows.py:upper", "root", '"b"', '"a"')
    assert (code, out) == (0, '["B", "A"]\n')
    assert sorted(err.splitlines()) == ["done     llm-after-e3b0c442-0  b", "done     llm-after-e3b0c442-1  a"]
    assert place.type("run", "flows.py:upper", "root", '"b"', '"a"') == (0, '["B", "A"]\n', "")
    assert place.type("resume", "flows.py:upper", "root") == (0, '["B", "A"]\n', "")
    assert place.effects == ["a", "b"]


def test_modules_are_found_in_the_current_folder(place: Place) -> None:
    place.write(FLOWS, "flows_of_a_test.py")
    assert place.type("run", "flows_of_a_test:upper", "root", "--quiet") == (0, "[]\n", "")


def test_a_value_may_be_a_whole_document(place: Place) -> None:
    code, out, _ = place.type("run", "flows.py:upper", "root", "--json")
    assert code == 0
    document = json.loads(out)
    assert (document["root"], document["state"], document["value"]) == ("root", "completed", [])


def test_a_parked_flow_says_what_to_type_and_that_works(place: Place) -> None:
    """Both commands are taken from the screen as they stand there."""
    code, out, err = place.type("run", "flows.py:asking", "my root", '"it"', "--ledger", "a ledger", "-q")
    assert (code, out) == (3, "")
    said, question, answer, _, resume = err.splitlines()
    assert said == "my root is parked on 1 question"
    assert question == "  to anna: Is IT right?"
    words = shlex.split(answer.replace("VALUE", "yes"))
    assert words[:2] == ["onestart", "flow"]
    code, out, _ = place.type(*words[2:])
    assert (code, out) == (0, 'answered "Is IT right?" with "yes"\n')
    code, out, err = place.type(*shlex.split(resume)[2:])
    assert code == 3
    assert err.splitlines()[0] == "resuming my root: 2 steps on record"
    assert "  to anybody: Sure?" in err.splitlines()
    answer = next(line for line in err.splitlines() if " answer " in line)
    assert place.type(*shlex.split(answer.replace("VALUE", '"[7]"'))[2:])[0] == 0
    assert place.type(*shlex.split(resume)[2:])[:2] == (0, '["yes", [7]]\n')
    assert place.effects == ["it"]


@pytest.fixture
def parked(place: Place) -> str:
    """A flow that is parked, and the id of its question, as it is shown."""
    assert place.type("run", "flows.py:asking", "root", '"it"', "-q")[0] == 3
    [question] = json.loads(place.type("status", "root", "--json")[1])["waits"]
    assert question["to"] == "anna"
    return str(question["wait"])


@pytest.mark.parametrize(
    ("typed", "recorded"),
    [
        (["yes"], "yes"),
        (["true"], True),
        (["-1"], -1),
        (['{"a": 1}'], {"a": 1}),
        (['"7"'], "7"),
        (["--text", "7"], "7"),
        (["NaN"], "NaN"),
        (["--text", "{"], "{"),
        ([""], ""),
    ],
)
def test_an_answer_is_json_or_else_a_text(place: Place, parked: str, typed: list[str], recorded: Any) -> None:
    code, out, err = place.type("answer", "root", parked, *typed, "--by", "anna")
    assert (code, err) == (0, "")
    assert out == f'answered "Is IT right?" with {json.dumps(recorded)}\n'
    place.type("resume", "flows.py:asking", "root", "-q")
    [answer] = [r for r in steps(place) if r.what == "answer"]
    assert answer.body == {"value": recorded, "by": "anna"}


def steps(place: Place) -> list[Step]:
    from onestart.jsonl.ledger import open_for_reading

    return list(open_for_reading(place.folder / ".onestart").steps("root").records)


def test_an_answer_stands(place: Place, parked: str) -> None:
    assert place.type("answer", "root", parked, "yes")[0] == 0
    assert place.type("answer", "root", parked, "yes")[0] == 0
    code, out, err = place.type("answer", "root", parked, "no")
    assert (code, out) == (2, "")
    assert err.startswith("onestart: 'human-after-")
    assert err.endswith("of 'root' is answered already\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["root", "human-9", "yes"], "root has no question human-9; open: human-after-"),
        (["root", "WAIT", '{"a'], '{"a is no JSON; take it as a text with --text'),
        (["other", "WAIT", "yes"], "nothing is on record of the flow other"),
        (["", "WAIT", "yes"], "the flow's id must be a text that is not empty, not ''"),
        (["root", "WAIT", "yes", "--by", ""], "the answerer must be a text that is not empty, not ''"),
        (["root", "WAIT", "yes", "--ledger", "nowhere"], "ledger: "),
        (["root", "WAIT", "yes", "--ledger", ""], "--ledger: a ledger needs a path"),
    ],
)
def test_an_answer_that_cannot_be_given(place: Place, parked: str, words: list[str], said: str) -> None:
    words = [parked if word == "WAIT" else word for word in words]
    code, out, err = place.type("answer", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"onestart: {said}")
    assert err.count("\n") == 1


def test_a_shortened_question_has_to_be_one(place: Place) -> None:
    """Whole ids are shown, and wanted, where two questions are shortened to the same."""
    ids = [f"human-after-{'ab' * 4}{digit * 56}-0" for digit in "01"]
    begin = Step("root", "flow:root", "root", "", 1, {"flow": "asking", "version": 3, "arguments": []})
    asked = [Step("root", "flow:root", "wait", step, 1, {"question": f"{step[-3]}?", "to": "anna"}) for step in ids]
    place.record(begin, *asked)
    code, _, err = place.type("answer", "root", "human-after-abababab-0", "yes")
    assert code == 2
    assert "stands for 2 questions; type the whole id" in err
    page = place.type("status", "root")[1]
    for step in ids:
        assert f"onestart flow answer root {step} VALUE" in page
        assert place.type("answer", "root", step, "yes")[0] == 0


def test_what_fails_is_one_line(place: Place) -> None:
    code, out, err = place.type("run", "flows.py:upper", "one", '"fail"', "-q")
    assert (code, out) == (1, "")
    assert err == "onestart: one has failed: step_failed: llm-after-e3b0c442-0: RuntimeError: no model\n"
    code, _, err = place.type("run", "flows.py:raising", "two", "-q")
    assert (code, err) == (1, "onestart: two has failed: step_failed: ValueError: two lines\n")
    code, _, err = place.type("run", "flows.py:without", "three", "-q")
    assert code == 1
    assert err.startswith("onestart: three has failed: unknown_kind: no worker carries out steps of kind 'llm'")


def test_another_body_is_refused(place: Place, parked: str) -> None:
    """Ordinal, journaled step and kind, attempted kind; and no effect."""
    place.write(FLOWS.replace("word = await f.llm(text)", "word = await f.run(['touch', 'ran'])"))
    code, out, err = place.type("resume", "flows.py:asking", "root", "-q")
    assert (code, out) == (1, "")
    assert err == (
        "onestart: root is refused: serial_replay_order_mismatch: ordinal 0 in this place is journaled as llm step "
        "'llm-after-e3b0c442-0', but this resume reached it with run\n"
    )
    assert not (place.folder / "ran").exists()
    place.write(FLOWS.replace("word = await f.llm(text)", "word = await f.llm(text + '!')"))
    code, _, err = place.type("resume", "flows.py:asking", "root", "-q")
    assert code == 1
    assert err.startswith("onestart: root is refused: run_admission_conflict: step 'llm-after-e3b0c442-0' is journaled")
    assert err.count("\n") == 1
    assert place.effects == ["it"]


@pytest.fixture
def died(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver has died while a step was under way, and its lease has run out since."""
    place.die("root")
    monkeypatch.setattr(command, "SystemClock", lambda: Clock(place, seconds=time.time() + 1000))


@pytest.mark.usefixtures("died")
def test_what_was_under_way_when_the_driver_died_is_held(place: Place) -> None:
    code, out, err = place.type("resume", "flows.py:in_turn", "root", "-q")
    assert (code, out) == (4, "")
    lines = err.splitlines()
    assert "root is held: nobody knows how far 1 step got" in lines[0]
    assert lines[1].startswith("  llm-after-803834f2-0: it was under way when its driver died")
    assert lines[-1] == "    onestart flow resume flows.py:in_turn root"
    assert place.effects == ["a", "die"]


@pytest.mark.usefixtures("died")
def test_it_goes_on_once_the_worker_may_run_it_again(place: Place) -> None:
    place.write(FLOWS.replace("Worker(ask_model)", 'Worker(ask_model, in_flight="again")'))
    code, out, err = place.type("resume", "flows.py:in_turn", "root")
    assert (code, out) == (0, '["A", "DIE"]\n')
    assert "again    llm-after-803834f2-0  it was under way when its driver died, and may run again" in err
    assert err.endswith("done     llm-after-803834f2-0  die\n")
    assert place.effects == ["a", "die", "die"]


@pytest.mark.usefixtures("died")
@pytest.mark.parametrize(
    ("said", "value"),
    [(["--again"], '["A", "DIE"]'), (["--result", '"seen"'], '["A", "seen"]'), (["--result", "seen"], '["A", "seen"]')],
)
def test_an_operator_resolves_what_was_under_way(place: Place, said: list[str], value: str) -> None:
    """Which step, what became of it, who says so and why; then the flow goes on."""
    place.type("resume", "flows.py:in_turn", "root", "-q")
    who = ["--by", "anna", "--why", "I looked"]
    code, out, _ = place.type("resolve", "root", "llm-after-803834f2-0", *said, *who)
    assert (code, out.split(" is resolved")[0]) == (0, "llm-after-803834f2-0 of root")
    code, out, _ = place.type("resume", "flows.py:in_turn", "root", "-q")
    assert (code, out) == (0, f"{value}\n")
    assert place.effects == (["a", "die", "die"] if "--again" in said else ["a", "die"])
    code, out, err = place.type("resolve", "root", "llm-after-803834f2-0", *said, *who)
    assert (code, out) == (2, "")
    assert "is under way" in err


@pytest.mark.usefixtures("died")
@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ([], "say one thing"),
        (["--again", "--failed", "x"], "say one thing"),
        (["--result", "{"], "is no JSON"),
    ],
)
def test_a_resolution_is_one_thing(place: Place, said: list[str], problem: str) -> None:
    place.type("resume", "flows.py:in_turn", "root", "-q")
    before = len(steps(place))
    code, out, err = place.type("resolve", "root", "llm-after-803834f2-0", "--by", "a", "--why", "b", *said)
    assert (code, out) == (2, "")
    assert problem in err
    assert len(steps(place)) == before


class Clock:
    """Time that passes when somebody sleeps, and what happens meanwhile."""

    def __init__(self, place: Place, *leases: Lease, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self._place = place
        self._leases = list(leases)

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        if seconds > 5:  # until a lease is renewed: nothing here takes that long
            await asyncio.Event().wait()
        self.seconds += seconds
        if self._leases:
            ledger = JsonlLedger(self._place.folder / ".onestart")
            lease = self._leases.pop(0)
            await ledger.step(lambda view: (lease, None))
        await asyncio.sleep(0)


def held(ends: float, token: int = 1) -> Lease:
    return Lease("flow:root", token, "root", ends, "elsewhere-1")


def test_a_driver_that_has_died_is_waited_for(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It renews nothing, so its lease runs out."""
    place.record(held(30.0))
    clock = Clock(place)
    monkeypatch.setattr(command, "SystemClock", lambda: clock)
    code, out, err = place.type("run", "flows.py:upper", "root", '"a"')
    assert (code, out) == (0, '["A"]\n')
    assert err.splitlines()[0] == "another driver has the lease of root; if it has died, it is free in 30 s"
    assert clock.seconds >= 30


@pytest.mark.parametrize("lease", [held(60.0), held(30.0, token=2)], ids=["renewed", "taken by a third"])
def test_a_driver_that_lives_is_left_alone(place: Place, monkeypatch: pytest.MonkeyPatch, lease: Lease) -> None:
    place.record(held(30.0))
    monkeypatch.setattr(command, "SystemClock", lambda: Clock(place, lease))
    code, out, err = place.type("run", "flows.py:upper", "root", '"a"', "-q")
    assert (code, out) == (75, "")
    assert err == "onestart: another driver is at root: elsewhere-1 has renewed its lease\n"
    assert place.effects == []


def test_a_driver_that_ends_meanwhile_is_waited_for_no_longer(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.record(held(1000.0))
    clock = Clock(place, Lease("flow:root", 1, None, 0.0))
    monkeypatch.setattr(command, "SystemClock", lambda: clock)
    assert place.type("run", "flows.py:upper", "root", '"a"', "-q")[:2] == (0, '["A"]\n')
    assert clock.seconds < 10


BAD: dict[str, tuple[list[str], str]] = {
    "no flow": (["run", "flows.py", "root"], "write MODULE:FLOW or FILE.py:FLOW, not 'flows.py'"),
    "no such file": (["run", "there.py:upper", "root"], "there is no file 'there.py'"),
    "no such module": (["run", "no_such_module.x:upper", "root"], "there is no module no_such_module"),
    "no name of a module": (["run", "a b:upper", "root"], "'a b' is no name of a module; a file's name ends in .py"),
    "unknown flow": (
        ["run", "flows.py:lower", "root"],
        "flows.py has no flow 'lower'; it has upper, in_turn, asking, raising, without",
    ),
    "not a flow": (
        ["run", "flows.py:number", "root"],
        "flows.py:number is no flow but of type int; flows are declared with @flow",
    ),
    "empty id": (["run", "flows.py:upper", ""], "the flow's id must be a text that is not empty, not ''"),
    "long id": (["run", "flows.py:upper", "x" * 401], "the flow's id has 401 characters; 400 are allowed"),
    "id with control characters": (
        ["run", "flows.py:upper", "a\x1b"],
        r"the flow's id 'a\x1b' has characters that cannot be printed",
    ),
    "no JSON": (
        ["run", "flows.py:upper", "root", "7", "text"],
        "argument 2, text, is no JSON; a text is written '\"like this\"'",
    ),
    "NaN": (["run", "flows.py:upper", "root", "NaN"], "argument 1, NaN, is no JSON"),
    "no option": (["run", "flows.py:upper", "root", "--leese=3"], "argument 1, --leese=3, is no JSON"),
    "no time": (["run", "flows.py:upper", "root", "--lease", "0"], "--lease 0.0 is no time"),
    "nothing to resume": (["resume", "flows.py:upper", "other"], "nothing is on record of the flow other; begin it"),
    "no ledger": (["run", "flows.py:upper", "root", "--ledger", "flows.py"], "the file is no SQLite database"),
    "no status": (["status", "other"], "nothing is on record of the flow other"),
    "nothing to verify": (["verify", "other"], "nothing is on record of the flow other"),
}


@pytest.mark.parametrize(("words", "said"), BAD.values(), ids=list(BAD))
def test_bad_input_is_one_line(place: Place, words: list[str], said: str) -> None:
    place.record(Step("root", "flow:root", "root", "", 1, {"flow": "upper", "version": 3, "arguments": []}))
    before = {path: path.read_bytes() for path in (place.folder / ".onestart").iterdir()}
    code, out, err = place.type(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("onestart: ")
    assert err.count("\n") == 1
    assert {path: path.read_bytes() for path in (place.folder / ".onestart").iterdir()} == before


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import no_such_thing", "broken.py:1: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("\n\ndef f(:\n", "broken.py:3: SyntaxError: invalid syntax"),
        ("\nraise KeyError('x')", "broken.py:2: KeyError: 'x'"),
        ("import sys\n\nsys.exit(3)", "broken.py:3: SystemExit: 3"),
        ("from onestart.flow import flow\n@flow(workers={'llm': 7})\nasync def body(f): pass", "broken.py:2: BadFlow"),
    ],
)
@pytest.mark.parametrize("where", ["broken.py", "broken"])
def test_a_body_that_cannot_be_imported(place: Place, source: str, said: str, where: str) -> None:
    place.write(source, "broken.py")
    sys.modules.pop("broken", None)
    code, out, err = place.type("run", f"{where}:body", "root")
    assert (code, out) == (2, "")
    assert err.startswith(f"onestart: {where} cannot be imported: ")
    assert said in err
    assert err.count("\n") == 1


UNUSABLE: dict[str, tuple[Step, str]] = {
    "newer version": (
        Step("root", "flow:root", "root", "", 1, {"flow": "upper", "version": 9, "arguments": []}),
        "'root' was begun with step ids of version 9",
    ),
    "unknown entry": (Step("root", "flow:root", "moved"), "has an entry 'moved' of a newer version"),
    "another flow": (
        Step("root", "flow:root", "root", "", 1, {"flow": "lower", "version": 3, "arguments": []}),
        "'root' is a flow 'lower', not 'upper'",
    ),
    "other arguments": (
        Step("root", "flow:root", "root", "", 1, {"flow": "upper", "version": 3, "arguments": ["a"]}),
        "'root' was begun with the arguments [\"a\"], not []; `onestart flow resume` takes them from the record",
    ),
}


@pytest.mark.parametrize(("entry", "said"), UNUSABLE.values(), ids=list(UNUSABLE))
def test_a_journal_that_cannot_be_used(place: Place, entry: Step, said: str) -> None:
    place.record(entry)
    code, out, err = place.type("run", "flows.py:upper", "root")
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def damage(place: Place) -> None:
    path = place.folder / ".onestart" / "flows.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Is IT right", b"Is IT wrong", 1))


@pytest.mark.parametrize("words", [["resume", "flows.py:asking"], ["status"], ["verify"]], ids=lambda words: words[0])
def test_a_damaged_journal_is_said_to_be(place: Place, parked: str, words: list[str]) -> None:
    damage(place)
    code, out, err = place.type(*words, "root")
    assert (code, out) == (2, "")
    assert err.startswith("onestart: the journal of 'root' is damaged (flows.jsonl:")
    assert err.endswith("see onestart ledger verify\n")
    code, out, err = place.type("status")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert run(["ledger", "verify", ".onestart"]) == 1


def test_an_older_journal_is_resumed(place: Place) -> None:
    """It has no version and no arguments, and its steps were counted."""
    place.record(
        Step("root", "flow:root", "root", "", 1, {"flow": "asking"}),
        Step("root", "flow:root", "wait", "human-1", 1, {"question": "Sure?", "to": "anybody"}),
    )
    assert "asking, cut off" in place.type("status", "root")[1]
    assert place.type("answer", "root", "human-1", "yes")[0] == 0
    place.write(FLOWS.replace("async def asking(f: Handle, text):", "async def asking(f: Handle):\n    text = 'x'"))
    code, _, err = place.type("resume", "flows.py:asking", "root", "-q")
    assert code == 1
    assert "ordinal 1 is journaled as human step 'human-1', but this resume reached it with llm" in err


def test_the_status_of_all(place: Place, parked: str) -> None:
    place.type("run", "flows.py:upper", "other", '"a"', '"b"')
    place.type("run", "flows.py:raising", "third")
    assert place.type("status") == (
        0,
        "root   asking   parked     1 done  0 in flight  1 question\n"
        "other  upper    completed  2 done  0 in flight\n"
        "third  raising  failed     0 done  0 in flight\n",
        "",
    )
    documents = json.loads(place.type("status", "--json")[1])
    assert [(d["root"], d["state"]) for d in documents] == [
        ("root", "parked"),
        ("other", "completed"),
        ("third", "failed"),
    ]


def test_the_status_of_one(place: Place, parked: str) -> None:
    name = parked.replace(parked[20:-2], "")
    assert place.type("status", "root")[1].splitlines() == [
        "root: flow asking, parked, 1 attempt",
        "",
        "  done  llm-after-e3b0c442-0    it",
        f"  open  {name}  anna: Is IT right?",
        "",
        f"answer with  onestart flow answer root {name} VALUE",
        "then         onestart flow resume MODULE_OR_FILE:asking root",
    ]
    document = json.loads(place.type("status", "root", "--json")[1])
    assert document["arguments"] == ["it"]
    assert [step["state"] for step in document["steps"]] == ["done", "open"]
    assert document["waits"] == [{"wait": parked, "question": "Is IT right?", "to": "anna"}]


def test_the_status_of_what_was_cut_off(place: Place) -> None:
    place.die("root")
    page = place.type("status", "root")[1].splitlines()
    assert page[0] in ("root: flow in_turn, cut off, 1 attempt", "root: flow in_turn, running, 1 attempt")
    assert "  in flight  llm-after-803834f2-0  die" in page
    place.record(held(time.time() + 1000, token=2))
    page = place.type("status", "root")[1].splitlines()
    assert page[:2] == ["root: flow in_turn, running, 1 attempt", "  a driver holds its lease: elsewhere-1"]
    assert not [line for line in page if "resume" in line]
    place.record(Lease("flow:root", 2, None, 0.0))
    page = place.type("status", "root")[1].splitlines()
    assert page[0] == "root: flow in_turn, cut off, 1 attempt"
    assert page[-1] == "go on with   onestart flow resume MODULE_OR_FILE:in_turn root"


def test_the_status_of_nothing(place: Place) -> None:
    code, _, err = place.type("status")
    assert (code, err) == (2, "onestart: ledger: .onestart holds no ledger\n")
    place.record(Lease("t", 1, None, 0.0))
    assert place.type("status") == (0, "", "no flow is on record\n")


def test_verify(place: Place, parked: str) -> None:
    assert place.type("verify", "root") == (0, "root: 5 entries, sound\n", "")
    place.record(Step("root", "flow:root", "done", f"run-after-{EMPTY}-7", 1, {"result": 1}))
    assert place.type("verify", "root") == (
        1,
        "entry 6: 'run-after-e3b0c442-7' was never admitted (admission)\nroot: 6 entries, 1 problem\n",
        "",
    )
    document = json.loads(place.type("verify", "root", "--json")[1])
    assert (document["sound"], document["problems"][0]["check"]) == (False, "admission")


def test_the_ledger_shows_a_flow(place: Place, parked: str, capsys: pytest.CaptureFixture[str]) -> None:
    place.type("answer", "root", parked, "yes", "--by", "anna")
    assert run(["ledger", "show", ".onestart", "--key", "root"]) == 0
    name = parked.replace(parked[20:-2], "")
    assert capsys.readouterr().out.splitlines() == [
        ".onestart: 15 records, 1 key, 1 flow",
        "",
        "flow root",
        "  lease  token 1, free  intact  leases.jsonl:4",
        "  root    -                       flow asking, step ids of version 3",
        "  index   llm-after-e3b0c442-0    it",
        '  done    llm-after-e3b0c442-0    "IT"',
        f"  wait    {name}  anna: Is IT right?",
        "  ended   -                       parked",
        f'  answer  {name}  "yes" by anna',
    ]
    assert run(["ledger", "show", ".onestart"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("flow root\n") == 1
    assert "task flow:root" not in shown
    damage(place)
    assert run(["ledger", "show", ".onestart", "--key", "root"]) == 0
    assert "  ILLEGIBLE  -                       1 of 6 entries" in capsys.readouterr().out


def event(action: str, step: str, **body: Any) -> Event:
    return Event(action, "p", 0, "root", "flow:root", 1, 0.0, 1, "", {"root": "root", "step": step, "body": body})


def test_a_terminal_shows_what_is_under_way(capsys: pytest.CaptureFixture[str]) -> None:
    """The last line is what runs; what has ended is left above it."""
    progress = Progress(Mode.TERMINAL)
    progress(event("flow_index", "run-1", kind="run", shown='{"argv": ["make", "a b"], "cwd": null, "env": null}'))
    assert capsys.readouterr().err.endswith("\r\x1b[K\x1b[2munder way: make 'a b'\x1b[0m")
    progress(event("flow_index", "llm-2", kind="llm", shown='{"prompt": "write\\u001b"}'))
    assert capsys.readouterr().err.endswith(r"under way: make 'a b'; write\x1b" + "\x1b[0m")
    progress(event("flow_done", "run-1", result=1))
    assert "\r\x1b[K\x1b[32mdone   \x1b[0m  run-1  make 'a b'\n" in capsys.readouterr().err
    progress(event("flow_done", "llm-2", failed="no model"))
    assert "\x1b[31mfailed \x1b[0m  llm-2  write\\x1b: no model\n" in capsys.readouterr().err
    progress.close()
    assert capsys.readouterr().err == "\r\x1b[K"


TOLD: list[tuple[Event, str]] = [
    (event("flow_verdict", "hook-1", verdict="pass"), "verdict  hook-1  : pass"),
    (event("flow_wait", "human-1", question="q?", to="anna"), "asks     human-1  anna: q?"),
    (event("flow_done", "dispatch-1", kind="dispatch", shown='{"flow": "a", "arguments": [1]}', result=1), "a(1)"),
    (event("flow_done", "mcp-1", kind="mcp", shown='{"server": "s", "tool": "t", "arguments": {"a": 1}}'), "s.t(a=1)"),
    (event("flow_done", "helper-1", kind="helper", shown='{"name": "n", "arguments": {}}', result=1), "n()"),
    (event("flow_done", "llm-1", kind="llm", shown='{"prompt": "cut', result=1), '{"prompt": "cut'),
    (event("flow_done", "run-1", kind="run", shown='{"argv": ["a"], "cwd": "/b"}', result=1), '"cwd": "/b"'),
]


@pytest.mark.parametrize(("told", "said"), TOLD, ids=[event.details["step"] for event, _ in TOLD])
def test_elsewhere_each_is_a_line(capsys: pytest.CaptureFixture[str], told: Event, said: str) -> None:
    Progress(Mode.LINES)(told)
    assert said in capsys.readouterr().err


def test_the_folder_need_not_be_the_current_one(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may import what lies beside it."""
    (place.folder / "sub").mkdir()
    place.write("from beside_it import thing\n" + FLOWS, "sub/own.py")
    place.write("thing = 1", "sub/beside_it.py")
    check: Callable[..., tuple[int, str, str]] = place.type
    assert check("run", "sub/own.py:upper", "root", "-q") == (0, "[]\n", "")
