"""`onestart run`, really run: killed at every step, in competition, under bad input, replayed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from onestart import Chain
from onestart.eventlog import Header, read_events
from onestart.events import Event
from onestart.executors import CommandExecutor
from onestart.jsonl import JsonlLedger

DEADLINE = 60.0
MAIN = "from onestart.command_line import main; main()"

# Kills itself once so many steps of the ledger are done, or at a point of the executor.
CRASHING = """
import os, sys
from onestart import Chain, launches
from onestart.jsonl.ledger import JsonlLedger
point, left = sys.argv.pop(1), 0
if point.isdigit():
    left = int(point)
carry_out = JsonlLedger._carry_out

def counted(*arguments):
    global left
    if point.isdigit() and left == 0:
        os.kill(os.getpid(), 9)
    left -= 1
    return carry_out(*arguments)

def kill(*_):
    os.kill(os.getpid(), 9)

JsonlLedger._carry_out = counted
if point == "before the mark":
    launches.Launches._mark = kill
elif point == "before the program":
    launches._sync_folder = lambda folder: kill() if ".launch" in " ".join(os.listdir(folder)) else None
elif point == "before it is noted":
    launches._append = kill
elif point == "before its end is recorded":
    launches.Launches.ended = kill
elif point == "before the task is free":
    Chain.reconcile = kill
from onestart.command_line import main
main()
"""


class Place:
    """A folder with a ledger, where commands leave a line for each start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = folder / "ledger"
        self.running: list[subprocess.Popen[str]] = []

    def open(self, *arguments: str, source: str = MAIN, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        environment = os.environ | {"ONESTART_LEDGER": f"jsonl:///{self.ledger}"}
        process = subprocess.Popen(
            [sys.executable, "-c", source, *before, "run", *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        return process

    def run(self, *arguments: str, source: str = MAIN, before: tuple[str, ...] = ()) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        process = self.open(*arguments, source=source, before=before)
        out, err = process.communicate(timeout=DEADLINE)
        return process.returncode, out, err

    def wait_for(self, pattern: str) -> Path:
        end = time.monotonic() + DEADLINE
        while not (found := sorted(self.folder.glob(pattern))):
            assert time.monotonic() < end, f"no {pattern}"
            time.sleep(0.001)
        return found[0]

    @property
    def starts(self) -> int:
        path = self.folder / "starts"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def bytes(self) -> dict[str, bytes]:
        """All that is there."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    for process in place.running:
        process.kill()
        process.communicate()


def counting(exit_code: int = 7, then: str = "") -> tuple[str, ...]:
    return ("--", "sh", "-c", f"echo $$ >> starts; {then or ':'}; exit {exit_code}")


def test_the_first_time_it_is_as_if_it_ran_alone(place: Place) -> None:
    code, out, err = place.run("key", "--", "sh", "-c", "echo out; echo err >&2; exit 5")
    assert (code, out, err) == (5, "out\n", "err\n")


def test_later_it_is_not_started_and_its_exit_code_is_returned(place: Place) -> None:
    for expected in (0, 7):
        key = f"key{expected}"
        assert place.run(key, *counting(expected)) == (expected, "", "")
        assert place.run(key, *counting(expected)) == (
            expected,
            "",
            f"onestart: '{key}' was started before (exit code {expected})\n",
        )
    assert place.starts == 2


def test_the_task_is_free_after_the_end(place: Place) -> None:
    """Its attempt has ended and its lease is back, so the next command of the task need not wait."""
    for number in range(3):
        assert place.run("--task", "task", f"key{number}", *counting())[0] == 7
    assert place.starts == 3
    leases = (place.ledger / "leases.jsonl").read_text().splitlines()
    assert '"holder":null' in leases[-1]


def test_a_signal_that_ends_it_shows_in_the_exit_code(place: Place) -> None:
    assert place.run("key", *counting(then="kill -9 $$")) == (137, "", "")
    assert place.run("key", *counting(then="kill -9 $$"))[0] == 137


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_passed_on(place: Place, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'exit 9' {name}; touch ready; while :; do sleep 0.01; done"
    process = place.open("key", "--", "sh", "-c", script)
    place.wait_for("ready")
    process.send_signal(number)
    assert process.wait(DEADLINE) == 9
    assert place.run("key", "--", "sh", "-c", script)[0] == 9


def test_a_signal_before_the_start_is_passed_on_after_it(place: Place) -> None:
    source = f"""
import os, signal
from onestart.launches import Launches
mark = Launches._mark
def hook(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    return mark(*arguments)
Launches._mark = hook
{MAIN}"""
    assert place.run("key", "--", "sleep", "1000", source=source)[0] == 128 + signal.SIGTERM


def test_a_signal_that_was_to_be_ignored_is(place: Place) -> None:
    source = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {MAIN}"
    process = place.open("key", "--", "sh", "-c", "touch ready; until [ -e go ]; do sleep 0.01; done", source=source)
    place.wait_for("ready")
    process.send_signal(signal.SIGHUP)
    (place.folder / "go").touch()
    assert process.wait(DEADLINE) == 0


def test_while_it_runs_nobody_starts_it(place: Place) -> None:
    waiting = counting(then="until [ -e go ]; do sleep 0.01; done")
    first = place.open("key", *waiting)
    place.wait_for("starts")
    place.wait_for("ledger/sessions.jsonl")
    end = time.monotonic() + DEADLINE
    while (again := place.run("key", *waiting))[2] != "onestart: 'key' was started before (still running)\n":
        assert time.monotonic() < end
    assert again[0] == 75
    assert place.run("--task", "key", "other", *counting()) == (
        75,
        "",
        "onestart: 'other' is not started now: another process holds its task, or died less than a lease ago\n",
    )
    (place.folder / "go").touch()
    assert first.wait(DEADLINE) == 7
    assert place.starts == 1
    assert place.run("--task", "key", "other", *counting())[0] == 7


def test_one_of_many_starts_it(place: Place) -> None:
    racers = [place.open("key", *counting()) for _ in range(6)]
    codes = [racer.wait(DEADLINE) for racer in racers]
    assert 7 in codes
    assert set(codes) <= {7, 75}
    assert place.starts == 1


def test_without_waiting(place: Place) -> None:
    script = ("--", "sh", "-c", "echo $$ >> starts; until [ -e go ]; do sleep 0.01; done", "x")
    detached = [*script[:3], f"exec >&- 2>&-; {script[3]}"]
    assert place.run("--no-wait", "key", *detached) == (0, "", "")
    assert place.run("key", *detached) == (75, "", "onestart: 'key' was started before (still running)\n")
    (place.folder / "go").touch()
    end = time.monotonic() + DEADLINE
    while "still running" in (again := place.run("key", *detached))[2]:
        assert time.monotonic() < end
    assert again == (75, "", "onestart: 'key' was started before (how it ended is not on record)\n")
    assert place.starts == 1


STEPS = [str(number) for number in range(15)]
POINTS = ["before the mark", "before the program", "before it is noted", "before its end is recorded"]


@pytest.mark.parametrize("point", [*STEPS, *POINTS])
def test_killed_anywhere_it_starts_once(place: Place, point: str) -> None:
    """And it starts after all, unless it was killed when the executor had accepted it."""
    crashed = place.run("--lease", "0.5", "key", *counting(), source=CRASHING, before=(point,))[0]
    launched = bool(list(place.ledger.glob("launches/*.launch")))
    ended = launched and '"ended"' in next(place.ledger.glob("launches/*.launch")).read_text()
    assert crashed == -9 or (crashed == 7 and point in STEPS[8:]), "there are fewer steps than that"
    end = time.monotonic() + DEADLINE
    while (again := place.run("key", *counting()))[0] == 75 and "how it ended" not in again[2]:
        assert time.monotonic() < end, again
    if launched and not ended:
        assert again == (75, "", "onestart: 'key' was started before (how it ended is not on record)\n")
        assert place.starts == (0 if point == "before the program" else 1)
    else:
        assert (again[0], place.starts) == (7, 1)
    assert place.run("key", *counting())[0] == again[0]
    assert place.run("--task", "key", "next", *counting(3))[0] == 3, "the task is free"


MOMENTS = [
    "ledger/ledger.json",
    "ledger/receipts.jsonl",
    "ledger/attempts.jsonl",
    "ledger/leases.jsonl",
    "ledger/launches/*.draft",
    "ledger/launches/*.launch",
    "starts",
    "ledger/sessions.jsonl",
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_from_outside_it_starts_once(place: Place, moment: str) -> None:
    """The same without a hand inside of the process; where exactly it dies is up to the machine."""
    waiting = counting(then="until [ -e go ]; do sleep 0.01; done")
    process = place.open("--lease", "0.5", "key", *waiting)
    if "draft" in moment:
        place.wait_for("ledger/launches")
    else:
        place.wait_for(moment)
    process.kill()
    process.wait()
    (place.folder / "go").touch()
    end = time.monotonic() + DEADLINE
    while (again := place.run("key", *waiting))[0] == 75 and "how it ended" not in again[2]:
        assert time.monotonic() < end, again
    assert again[0] in (7, 75)
    assert place.starts <= 1
    assert place.starts == 1 or again[0] == 75


def test_who_finds_it_ended_frees_its_task(place: Place) -> None:
    assert place.run("key", *counting(), source=CRASHING, before=("before the task is free",))[0] == -9
    assert place.run("key", *counting())[0] == 7
    assert '"state":"ended"' in (place.ledger / "attempts.jsonl").read_text()
    assert '"holder":null' in (place.ledger / "leases.jsonl").read_text().splitlines()[-1]


def test_what_was_cancelled_never_starts(place: Place) -> None:
    place.run("key", *counting(), source=CRASHING, before=("3",))
    chain = Chain(ledger=JsonlLedger(place.ledger), executor=CommandExecutor(place.ledger / "launches"))
    asyncio.run(chain.cancel("key"))
    assert place.run("key", *counting()) == (2, "", "onestart: 'key' will never start: task_cancelled\n")
    assert place.starts == 0


def test_a_ledger_that_fails_after_the_start_loses_no_exit_code(place: Place) -> None:
    source = f"""
from onestart.jsonl.ledger import JsonlLedger
from onestart.launches import Launches
from onestart.ports import LedgerUnavailableError
launch = Launches.launch
def fail(*_):
    raise LedgerUnavailableError("sessions", "No space left on device")
def hook(*arguments):
    launch(*arguments)
    JsonlLedger.step = fail
Launches.launch = hook
{MAIN}"""
    assert place.run("--lease", "0.5", "key", *counting(), source=source) == (
        7,
        "",
        "onestart: it was started, and that could not be recorded: "
        "the ledger cannot be used (sessions: No space left on device)\n"
        "onestart: the task 'key' is not freed yet: sessions: No space left on device\n"
        "onestart: the ledger is not healthy: sessions: unavailable\n",
    )
    end = time.monotonic() + DEADLINE
    while (again := place.run("key", *counting()))[0] == 75:
        assert time.monotonic() < end, again
    assert (again[0], place.starts) == (7, 1)


def test_killed_twice_and_raced_it_starts_once(place: Place) -> None:
    for point in ("4", "7", "before the mark"):
        place.run("--lease", "0.2", "key", *counting(), source=CRASHING, before=(point,))
    end = time.monotonic() + DEADLINE
    codes: list[int] = []
    while 7 not in codes:
        assert time.monotonic() < end
        racers = [place.open("--lease", "0.5", "key", *counting()) for _ in range(3)]
        codes = [racer.wait(DEADLINE) for racer in racers]
    assert place.starts == 1


OTHERS: dict[str, tuple[list[str], str]] = {
    "command": (["key", "--", "echo", "other"], ": the command was ['true']"),
    "task": (["--task", "other", "key", "--", "true"], ": the task was 'key'"),
    "actor": (["--actor", "other", "key", "--", "true"], ": the actor was 'anybody'"),
}


@pytest.mark.parametrize(("arguments", "difference"), OTHERS.values(), ids=OTHERS)
def test_a_key_belongs_to_its_command(place: Place, arguments: list[str], difference: str) -> None:
    place.run("key", "--", "true")
    before = place.bytes()
    assert place.run(*arguments) == (2, "", f"onestart: 'key' belongs to another command{difference}\n")
    assert place.bytes() == before


def test_a_key_belongs_to_its_folder(place: Place, tmp_path: Path) -> None:
    place.run("key", "--", "true")
    (tmp_path / "other").mkdir()
    place.folder = tmp_path / "other"
    assert place.run("key", "--", "true")[2] == (
        f"onestart: 'key' belongs to another command: the folder was '{tmp_path}'\n"
    )


BAD: dict[str, tuple[list[str], str]] = {
    "empty key": (["", "--", "true"], "the key must be a text that is not empty, not ''"),
    "huge key": (["k" * 513, "--", "true"], "the key has 513 characters; 512 are allowed"),
    "control": (["a\nb\x1b[0m", "--", "true"], r"the key 'a\nb\x1b[0m' has characters that cannot be printed"),
    "bytes": ([os.fsdecode(b"k\xff"), "--", "true"], r"the key 'k\udcff' has characters that cannot be printed"),
    "task": (["--task", "\t", "key", "--", "true"], r"the task '\t' has characters that cannot be printed"),
    "actor": (["--actor", "", "key", "--", "true"], "the actor must be a text that is not empty, not ''"),
    "no program": (["key", "--", "no-such-program"], "there is no program 'no-such-program' that can be executed"),
    "a folder": (["key", "--", "/tmp"], "there is no program '/tmp' that can be executed"),
    "empty program": (["key", "--", ""], "there is no program '' that can be executed"),
    "nothing": (["key"], "Missing argument '-- COMMAND...'."),
    "lease": (["--lease", "0", "key", "--", "true"], "--lease 0.0 is no time that a task can be taken for"),
    "nan": (["--lease", "nan", "key", "--", "true"], "--lease nan is no time that a task can be taken for"),
    "log": (["--log", "/no/such", "key", "--", "true"], "/no/such cannot be written: No such file or directory"),
    "no ledger": (["--ledger", "", "key", "--", "true"], "--ledger: a ledger needs a path"),
    "huge": (["key", "--", *["x" * 100_000] * 11], "the payload takes 1100"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_leaves_nothing(place: Place, arguments: list[str], message: str) -> None:
    code, out, err = place.run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"onestart: {message}")
    assert err.count("\n") == 1
    assert list(place.folder.iterdir()) == []


def test_what_is_no_ledger_is_left_alone(place: Place) -> None:
    (place.folder / "file").write_text("x")
    (place.folder / "home").mkdir()
    (place.folder / "home" / "letter").write_text("x")
    before = place.bytes()
    for name, message in (
        ("file", "is no ledger"),
        ("jsonl:///file", "is no folder"),
        ("home", "holds other things"),
    ):
        code, _, err = place.run("--ledger", name, "key", "--", "true")
        assert (code, err.count("\n")) == (2, 1)
        assert message in err
    assert place.bytes() == before


def test_a_ledger_that_cannot_be_used_starts_nothing(place: Place) -> None:
    (place.folder / "file").write_text("x")
    code, _, err = place.run("--ledger", "file/ledger", "key", *counting())
    assert (code, place.starts) in ((2, 0), (75, 0))
    assert err.count("\n") == 1


def test_a_program_that_is_gone_is_replayed(place: Place) -> None:
    program = place.folder / "program"
    program.write_text("#!/bin/sh\nexit 4\n")
    program.chmod(0o755)
    assert place.run("key", "--", "./program")[0] == 4
    program.unlink()
    assert place.run("key", "--", "./program")[0] == 4
    assert place.run("key2", "--", "./program")[0] == 2


def test_what_turns_out_not_to_be_executable_has_ended(place: Place) -> None:
    program = place.folder / "program"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    code, _, err = place.run("key", "--", "./program")
    assert code == 127
    assert err.startswith("onestart: 'key': it cannot be executed: ")
    assert err.count("\n") == 1
    assert place.run("key", "--", "./program")[0] == 127


def test_damage_is_reported(place: Place) -> None:
    place.run("key", *counting())
    path = place.ledger / "receipts.jsonl"
    first, second = path.read_bytes().splitlines()
    path.write_bytes(first + b"\n" + second.replace(b"completed", b"complexed") + b"\n")
    code, _, err = place.run("key", *counting())
    assert place.starts == 1
    assert code in (7, 75)
    assert "onestart: the ledger is not healthy: receipts.jsonl:2: corrupt" in err


def test_the_answer_as_json(place: Place) -> None:
    code, out, _ = place.run("--json", "key", *counting(then="echo own output"))
    own, answer = out.splitlines()
    assert (code, own) == (7, "own output")
    first = json.loads(answer)
    assert (first["key"], first["outcome"], first["started_now"], first["exit_code"]) == ("key", "started", True, 7)
    code, out, _ = place.run("--json", "key", *counting(then="echo own output"))
    again = json.loads(out)
    assert (code, again["reason"], again["started_now"], again["exit_code"]) == (7, "idempotent_replay", False, 7)
    code, out, _ = place.run("--json", "key", "--", "true")
    assert (code, json.loads(out)["reason"]) == (2, "idempotency_key_conflict")


def test_events_are_logged(place: Place) -> None:
    place.run("--log", "events", "key", *counting())
    place.run("--log", "events", "key", *counting())
    items = list(read_events(place.folder / "events"))
    events = [item for item in items if isinstance(item, Event)]
    assert [event.action for event in events].count("start") == 1
    assert {event.key for event in events} == {"key"}
    assert len({item.process for item in items if isinstance(item, Header)}) == 2


def test_a_log_that_cannot_be_written_stops_nothing(place: Place) -> None:
    code, _, err = place.run("--log", "/dev/full", "key", *counting())
    assert (code, place.starts) == (7, 1)
    assert err == "onestart: /dev/full is incomplete: No space left on device\n"
