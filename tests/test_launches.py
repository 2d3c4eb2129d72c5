"""What an executor remembers of its starts, across processes, crashes and damage."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onestart import launches as subject
from onestart import processes
from onestart.launches import AlreadyLaunchedError, Launches
from onestart.ports import CannotTellError, FencedError, Order
from onestart.processes import Identity

ORDER = Order("key", "task", 3)


def own(_: int) -> int:
    return os.getpid()


def mark_of(folder: Path) -> Path:
    (path,) = folder.glob("*.launch")
    return path


@pytest.fixture
def program() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


class Crash(BaseException):
    """The process is gone: nothing after this point happens."""


def test_a_key_is_launched_once(tmp_path: Path) -> None:
    begun: list[int] = []

    def begin(descriptor: int) -> int:
        begun.append(descriptor)
        return os.getpid()

    Launches(tmp_path / "a" / "b").launch(ORDER, begin)
    for again in (ORDER, Order("key", "task", 9), Order("key", "another task", 3)):
        with pytest.raises(AlreadyLaunchedError, match="'key' was launched before"):
            Launches(tmp_path / "a" / "b").launch(again, begin)
    assert len(begun) == 1
    assert Launches(tmp_path / "a" / "b").bar("key", "task", 4)
    assert not Launches(tmp_path / "a" / "b").bar("other", "task", 4)


def test_a_newer_token_bars_older_launches(tmp_path: Path) -> None:
    assert not Launches(tmp_path).bar("key", "task", 4)
    with pytest.raises(FencedError):
        Launches(tmp_path).launch(ORDER, own)
    with pytest.raises(FencedError):
        Launches(tmp_path).bar("key", "task", 3)
    assert not Launches(tmp_path).bar("key", "task", 4)
    assert not list(tmp_path.glob("*.launch"))
    Launches(tmp_path).launch(Order("key", "task", 4), own)
    Launches(tmp_path).launch(Order("key2", "another task", 3), own)


def test_a_refusal_leaves_the_barrier(tmp_path: Path) -> None:
    Launches(tmp_path).bar("key", "task", 4)
    with pytest.raises(FencedError):
        Launches(tmp_path).bar("key", "task", 2)
    with pytest.raises(FencedError):
        Launches(tmp_path).launch(ORDER, own)


def durable_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to the disk from now on, in order."""
    steps: list[str] = []

    def watched(name: str, describe: Callable[..., str]) -> None:
        real = getattr(os, name)

        def step(*arguments: object) -> object:
            result = real(*arguments)
            steps.append(describe(*arguments))
            return result

        monkeypatch.setattr(os, name, step)

    kind = {True: "folder", False: "file"}
    watched("fsync", lambda d: f"sync {kind[os.path.isdir(f'/proc/self/fd/{d}')]}")
    watched("link", lambda a, b: f"link {Path(b).suffix}")
    watched("replace", lambda a, b: f"replace {Path(b).suffix}")
    return steps


def test_the_mark_is_durable_before_anything_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launches = Launches(tmp_path)
    launches.launch(Order("first", "task", 1), own)
    steps = durable_steps(monkeypatch)
    launches.launch(ORDER, lambda _: begin_or_crash("", steps))
    assert steps == ["sync file", "link .launch", "sync folder", "begun"]
    steps.clear()
    launches.ended("key", 0)
    assert steps == ["sync file"]
    steps.clear()
    launches.bar("key", "task", 5)
    assert steps == ["sync file", "replace .barrier", "sync folder"]
    steps.clear()
    launches.bar("key", "task", 5)
    assert steps == []


def test_a_new_folder_is_durable_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = durable_steps(monkeypatch)
    Launches(tmp_path / "a" / "b").launch(ORDER, own)
    made = ["sync folder", "sync folder", "sync file", "link ", "sync folder"]
    assert steps == [*made, "sync file", "link .launch", "sync folder"]


@pytest.mark.parametrize("point", ["write", "fsync", "flock", "link", "unlink", "fsync folder", "begin"])
def test_a_crash_at_any_point_leaves_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Either the key was never launched, and nothing has begun and will; or it was, whether or not it has begun."""
    begun: list[str] = []
    Launches(tmp_path).name()
    with monkeypatch.context() as patch:
        crash_at(patch, point)
        with pytest.raises(Crash):
            Launches(tmp_path).launch(ORDER, lambda _: begin_or_crash(point, begun))
    launched = Launches(tmp_path).bar("key", "task", 4)
    assert launched == (point in ("unlink", "fsync folder", "begin"))
    assert not begun
    assert Launches(tmp_path).outcome("key") is None
    assert not Launches(tmp_path).running("key")
    if launched:
        with pytest.raises(AlreadyLaunchedError):
            Launches(tmp_path).launch(Order("key", "task", 5), own)
    else:
        Launches(tmp_path).launch(Order("key", "task", 5), own)


def begin_or_crash(point: str, begun: list[str]) -> int:
    if point == "begin":
        raise Crash
    begun.append("begun")
    return os.getpid()


def crash_at(patch: pytest.MonkeyPatch, point: str) -> None:
    def crash(*_: object) -> None:
        raise Crash

    if point == "fsync folder":

        def sync(folder: str) -> None:
            if any(name.endswith(".launch") for name in os.listdir(folder)):
                crash()

        patch.setattr(subject, "_sync_folder", sync)
    elif point == "flock":
        real = fcntl.flock
        locks = iter([real, crash])
        patch.setattr(fcntl, "flock", lambda *a: next(locks)(*a))
    elif point != "begin":
        patch.setattr(os, point, crash)


@pytest.mark.parametrize("point", ["write", "fsync", "replace"])
def test_a_crash_while_barring_leaves_the_older_barrier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    Launches(tmp_path).bar("key", "task", 2)
    with monkeypatch.context() as patch:
        crash_at(patch, point)
        with pytest.raises(Crash):
            Launches(tmp_path).bar("key", "task", 7)
    with pytest.raises(FencedError):
        Launches(tmp_path).launch(Order("key", "task", 1), own)
    assert not Launches(tmp_path).bar("key", "task", 2)


def test_a_full_disk_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            Launches(tmp_path).launch(ORDER, lambda _: begin_or_crash("", begun))
    assert not begun
    assert not Launches(tmp_path).bar("key", "task", 3)
    assert not list(tmp_path.glob("*.draft"))


def spoil_flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    path.write_bytes(data)


def spoil_version(path: Path) -> None:
    write(path, version=2, key="key", task="task")


def spoil_other(path: Path) -> None:
    write(path, version=1, key="other", task="other")


def write(path: Path, **fields: object) -> None:
    record = "barrier" if path.suffix == ".barrier" else "launched"
    path.write_bytes(subject._line({"record": record, "token": 9, **fields}))


def spoil_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


SPOILS: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:40]),
    "flipped": spoil_flip,
    "zeros": lambda path: path.write_bytes(bytes(200)),
    "version": spoil_version,
    "another's": spoil_other,
    "unreadable": spoil_folder,
}


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_a_damaged_mark_is_no_proof_of_anything(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    launches = Launches(tmp_path)
    launches.launch(ORDER, own)
    spoil(mark_of(tmp_path))
    for ask in (launches.running, launches.outcome, launches.process, lambda key: launches.bar(key, "task", 3)):
        with pytest.raises(CannotTellError):
            ask("key")
    with pytest.raises(AlreadyLaunchedError):
        launches.launch(ORDER, own)
    launches.launch(Order("key2", "task", 3), own)


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_a_damaged_barrier_bars_everything(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    launches = Launches(tmp_path)
    launches.bar("key", "task", 3)
    (path,) = tmp_path.glob("*.barrier")
    spoil(path)
    with pytest.raises(CannotTellError):
        launches.launch(Order("key", "task", 9), own)
    with pytest.raises(CannotTellError):
        launches.bar("key", "task", 9)
    assert not list(tmp_path.glob("*.launch"))


def test_who_executes_is_known_by_number_and_start(tmp_path: Path, program: subprocess.Popen[bytes]) -> None:
    Launches(tmp_path).launch(ORDER, lambda _: program.pid)
    assert Launches(tmp_path).running("key")
    os.kill(program.pid, signal.SIGKILL)
    os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
    assert not Launches(tmp_path).running("key"), "ended, though its parent has not taken note"


def test_a_later_process_with_the_same_number_is_another(tmp_path: Path, program: subprocess.Popen[bytes]) -> None:
    identity = Identity.of(program.pid)
    assert identity.alive
    assert not Identity(identity.pid, f"{identity.started}1", identity.among).alive


def test_without_proc_the_number_alone_counts(
    monkeypatch: pytest.MonkeyPatch, program: subprocess.Popen[bytes]
) -> None:
    monkeypatch.setattr(processes, "_state", lambda pid: None)
    monkeypatch.setattr(processes, "_surroundings", lambda: "")
    identity = Identity.of(program.pid)
    assert (identity.in_sight, identity.alive) == (True, True)
    program.kill()
    program.wait()
    assert not identity.alive


@pytest.mark.parametrize("record", ["missing", "cut", "of another boot"])
def test_the_lock_tells_what_no_number_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str) -> None:
    """A launcher that dies before it has noted whom it started leaves a lock with whom it started."""
    held: list[int] = []

    def begin(descriptor: int) -> int:
        held.append(os.dup(descriptor))
        return os.getpid()

    if record == "of another boot":
        monkeypatch.setattr(processes, "_surroundings", lambda: "another boot")
    launcher = Launches(tmp_path)
    launcher.launch(ORDER, begin)
    monkeypatch.undo()
    os.close(launcher._open["key"])
    data = mark_of(tmp_path).read_bytes()
    if record != "of another boot":
        mark_of(tmp_path).write_bytes(data.split(b"\n")[0] + b"\n" if record == "missing" else data[:-9])
    assert Launches(tmp_path).running("key")
    assert Launches(tmp_path).process("key") is None
    os.close(held[0])
    assert not Launches(tmp_path).running("key")


def test_damage_to_who_executes_leaves_it_open(tmp_path: Path) -> None:
    launcher = Launches(tmp_path)
    launcher.launch(ORDER, own)
    os.close(launcher._open["key"])
    data = mark_of(tmp_path).read_bytes()
    mark_of(tmp_path).write_bytes(data.replace(b"begun", b"began"))
    with pytest.raises(CannotTellError):
        Launches(tmp_path).running("key")
    assert Launches(tmp_path).bar("key", "task", 3), "that it was launched is known all the same"


def test_the_end_is_on_record(tmp_path: Path) -> None:
    launches = Launches(tmp_path)
    launches.launch(ORDER, own)
    assert launches.outcome("key") is None
    launches.ended("key", -9)
    for one in (launches, Launches(tmp_path)):
        assert one.outcome("key") == -9
        assert not one.running("key")
        assert one.process("key") is None
    assert Launches(tmp_path).outcome("other") is None
    assert not Launches(tmp_path).running("other")


def test_the_end_is_legible_beside_a_line_that_was_cut_short(tmp_path: Path) -> None:
    launches = Launches(tmp_path)
    launches.launch(ORDER, own)
    path = mark_of(tmp_path)
    os.truncate(path, path.stat().st_size - 9)
    launches.ended("key", 5)
    assert Launches(tmp_path).outcome("key") == 5


def test_an_end_that_cannot_be_recorded_is_known_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launches = Launches(tmp_path)
    launches.launch(ORDER, own)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            launches.ended("key", 5)
    assert (launches.outcome("key"), launches.running("key")) == (5, False)
    assert Launches(tmp_path).outcome("key") is None


RACER = """
import os, sys
from onestart.launches import AlreadyLaunchedError, Launches
from onestart.ports import FencedError, Order
sys.stdin.readline()
try:
    Launches(sys.argv[1]).launch(Order("key", "task", 1), lambda _: print("begun") or os.getpid())
except (AlreadyLaunchedError, FencedError) as error:
    print(type(error).__name__)
"""


def test_processes_race_for_one_launch(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path / "new")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    said = sorted(racer.communicate(timeout=60)[0].strip() for racer in racers)
    assert said == ["AlreadyLaunchedError"] * 7 + ["begun"]


def test_launching_and_barring_exclude_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both look and write under the task's lock, so nobody is told that there was no launch while there is one."""
    refused: list[str] = []

    def watched(name: str) -> None:
        real = getattr(os, name)

        def step(*arguments: object) -> object:
            (lock,) = tmp_path.glob("*.lock")
            with lock.open() as file, pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            refused.append(name)
            return real(*arguments)

        monkeypatch.setattr(os, name, step)

    Launches(tmp_path).name()
    watched("link")
    watched("replace")
    Launches(tmp_path).launch(ORDER, own)
    Launches(tmp_path).bar("key", "task", 9)
    assert refused == ["link", "replace"]


def test_what_remembers_has_a_name_of_its_own(tmp_path: Path) -> None:
    """The same for every process, and another one once the folder was deleted: then nobody can tell of its launches."""
    names = [Launches(tmp_path / folder).name() for folder in ("a", "a", "b")]
    assert names[0] == names[1] != names[2]
    shutil.rmtree(tmp_path / "a")
    assert Launches(tmp_path / "a").name() not in names
    (tmp_path / "b" / "ready").write_text("x")
    with pytest.raises(CannotTellError, match="whose launches these are"):
        Launches(tmp_path / "b").name()


def test_strange_names_are_names(tmp_path: Path) -> None:
    for name in ("../../etc", "a/b", "\u2603", "x" * 500, ".", "\x00", "CON"):
        Launches(tmp_path).launch(Order(name, name, 1), own)
        assert Launches(tmp_path).bar(name, name, 1)
    assert {path.parent for path in tmp_path.rglob("*")} == {tmp_path}
