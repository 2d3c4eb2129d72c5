"""Executors: programs and functions, started once, found again after a crash, stopped, waited for."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from onestart.command import BadCommandError
from onestart.executors import CallableExecutor, CommandExecutor, NotHereError
from onestart.launches import AlreadyLaunchedError, Launches
from onestart.ports import CannotTellError, Executor, FencedError, Order

DEADLINE = 60.0


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    end = time.monotonic() + DEADLINE
    while not await condition():
        assert time.monotonic() < end, "it did not come about"
        await asyncio.sleep(0.005)


async def there(path: Path) -> None:
    async def exists() -> bool:
        return path.exists()

    await until(exists)


def program(*argv: str, key: str = "key", token: int = 1, **more: Any) -> Order:
    return Order(key, "task", token, "run", {"argv": list(argv), **more})


def shell(script: str, **more: Any) -> Order:
    return program("sh", "-c", script, **more)


class StillClock:
    """A clock that stands still until it is moved on."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.over = asyncio.Event()

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self.over.wait()


def test_both_are_executors(tmp_path: Path) -> None:
    executors: list[Executor] = [CommandExecutor(tmp_path), CallableExecutor(None, {})]
    assert executors


def test_a_program_runs_once(tmp_path: Path) -> None:
    async def main() -> None:
        executor = CommandExecutor(tmp_path / "launches")
        order = shell(f"echo started >> {tmp_path}/starts; exit 7")
        assert not await executor.look_up("key", "task", 1)
        await executor.start(order)
        assert await executor.look_up("key", "task", 1)
        assert await executor.wait("key") == 7
        for again in (executor, CommandExecutor(tmp_path / "launches")):
            with pytest.raises(AlreadyLaunchedError):
                await again.start(order)
            assert await again.wait("key") == 7
            assert not await again.running("key")
        assert (tmp_path / "starts").read_text() == "started\n"

    asyncio.run(main())


def test_an_older_token_starts_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        executor = CommandExecutor(tmp_path)
        assert not await executor.look_up("key", "task", 2)
        with pytest.raises(FencedError):
            await executor.start(program("true", token=1))
        with pytest.raises(FencedError):
            await executor.look_up("key", "task", 1)
        with pytest.raises(NotHereError):
            await executor.wait("key")

    asyncio.run(main())


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {"argv": []},
        {"argv": "true"},
        {"argv": ["true", 1]},
        {"argv": [""]},
        {"argv": ["a\0b"]},
        {"argv": ["true"], "cwd": 3},
        {"argv": ["true"], "env": {"A": 1}},
        {"argv": ["true"], "env": {"A=B": "1"}},
        {"argv": ["true"], "shell": True},
    ],
)
def test_a_bad_payload_leaves_no_mark(tmp_path: Path, payload: object) -> None:
    async def main() -> None:
        executor = CommandExecutor(tmp_path / "launches")
        with pytest.raises(BadCommandError):
            await executor.start(Order("key", "task", 1, "run", payload))
        assert not (tmp_path / "launches").exists()

    asyncio.run(main())


@pytest.mark.parametrize(("name", "status"), [("absent", 127), ("plain", 126)])
def test_what_cannot_be_executed_has_ended(tmp_path: Path, name: str, status: int) -> None:
    (tmp_path / "plain").write_text("no program")
    told: list[str] = []

    async def main() -> None:
        ended = asyncio.Event()

        async def on_end(key: str) -> None:
            assert not await executor.running(key)
            ended.set()

        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["message"]))
        executor = CommandExecutor(tmp_path / "launches")
        executor.on_end = on_end
        await executor.start(program(str(tmp_path / name)))
        await asyncio.wait_for(ended.wait(), DEADLINE)
        assert await executor.wait("key") == status
        assert await executor.look_up("key", "task", 1)

    asyncio.run(main())
    (message,) = told
    assert message.startswith("'key': it cannot be executed: ")


def test_a_program_gets_its_surroundings(tmp_path: Path) -> None:
    async def main() -> None:
        executor = CommandExecutor(tmp_path / "launches", stdin=subprocess.DEVNULL)
        script = 'echo "$PWD $A ${HOME-none}" > out; ps -o sid= -p $$ | tr -d " " >> out; echo $$ >> out'
        await executor.start(shell(script, cwd=str(tmp_path), env={"A": "b", "PATH": os.environ["PATH"]}))
        assert await executor.wait("key") == 0
        first, session, number = (tmp_path / "out").read_text().splitlines()
        assert first == f"{tmp_path} b none"
        assert session == number

    asyncio.run(main())


def test_the_end_is_told_once_it_is_known(tmp_path: Path) -> None:
    """Whoever is told finds the key not running, and its end on record."""

    async def main() -> None:
        executor = CommandExecutor(tmp_path)
        seen: list[tuple[str, bool, int | None]] = []
        told = asyncio.Event()

        async def on_end(key: str) -> None:
            seen.append((key, await executor.running(key), Launches(tmp_path).outcome(key)))
            told.set()

        executor.on_end = on_end
        await executor.start(shell("kill -9 $$"))
        await asyncio.wait_for(told.wait(), DEADLINE)
        assert seen == [("key", False, -9)]

    asyncio.run(main())


def test_it_runs_until_this_process_has_noted_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        executor = CommandExecutor(tmp_path)
        loop = asyncio.get_running_loop()
        noting = asyncio.Event()
        hold = os.pipe()
        real = Launches.ended

        def ended(self: Launches, key: str, status: int) -> None:
            loop.call_soon_threadsafe(noting.set)
            os.read(hold[0], 1)
            real(self, key, status)

        monkeypatch.setattr(Launches, "ended", ended)
        await executor.start(program("true"))
        await asyncio.wait_for(noting.wait(), DEADLINE)
        assert await executor.running("key")
        os.write(hold[1], b"x")
        assert await executor.wait("key") == 0
        assert not await executor.running("key")

    asyncio.run(main())


def test_a_program_is_asked_to_end(tmp_path: Path) -> None:
    async def main() -> None:
        executor = CommandExecutor(tmp_path / "launches", clock=StillClock())
        await executor.start(shell(f"trap 'exit 3' TERM; touch {tmp_path}/ready; while :; do sleep 0.01; done"))
        await there(tmp_path / "ready")
        await CommandExecutor(tmp_path / "launches", clock=StillClock()).stop("key")  # by any process
        assert await executor.wait("key") == 3
        await executor.stop("key")
        await executor.stop("unknown")

    asyncio.run(main())


def test_a_program_that_goes_on_is_killed_with_its_group(tmp_path: Path) -> None:
    async def main() -> None:
        clock = StillClock()
        executor = CommandExecutor(tmp_path / "launches", clock=clock, grace=5.0)
        script = f"trap '' TERM; mkfifo {tmp_path}/f; sh -c 'echo > {tmp_path}/f; sleep 1000' & read x < {tmp_path}/f; "
        await executor.start(shell(f"{script} echo $! > {tmp_path}/part; mv {tmp_path}/part {tmp_path}/child; wait"))
        await there(tmp_path / "child")
        await executor.stop("key")
        await asyncio.sleep(0)
        assert clock.asked == [5.0]
        assert await executor.running("key")
        clock.over.set()
        assert await executor.wait("key") == -9
        child = int((tmp_path / "child").read_text())
        await until(lambda: gone(child))

    asyncio.run(main())


async def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_a_start_goes_on_when_nobody_waits_for_it(tmp_path: Path) -> None:
    async def main() -> None:
        executor = CommandExecutor(tmp_path / "launches")
        await executor.look_up("other", "task", 1)
        (lock,) = (tmp_path / "launches").glob("*.lock")
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            start = asyncio.ensure_future(executor.start(program("touch", str(tmp_path / "done"))))
            await asyncio.sleep(0)
            start.cancel()
            with pytest.raises(asyncio.CancelledError):
                await start

        async def over() -> bool:
            return await executor.outcome("key") == 0

        await until(over)
        assert (tmp_path / "done").exists()

    asyncio.run(main())


def test_the_end_is_recorded_without_a_loop(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    executor = CommandExecutor(tmp_path / "launches")
    asyncio.run(executor.start(shell(f"read x < {tmp_path}/f; exit 4")))
    (tmp_path / "f").write_text("go\n")

    async def recorded() -> bool:
        return Launches(tmp_path / "launches").outcome("key") == 4

    asyncio.run(until(recorded))


def test_what_the_disk_does_not_take_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    async def main() -> None:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["message"]))
        ended = asyncio.Event()

        async def on_end(_: str) -> None:
            ended.set()

        executor = CommandExecutor(tmp_path)
        executor.on_end = on_end
        monkeypatch.setattr(Launches, "ended", full)
        await executor.start(shell("exit 6"))
        await asyncio.wait_for(ended.wait(), DEADLINE)
        assert not await executor.running("key")

    asyncio.run(main())
    assert told == ["the end of 'key' cannot be recorded"]


def test_a_disk_that_fails_a_question_answers_it_not(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(CannotTellError):
            await CommandExecutor(tmp_path / "file" / "launches").look_up("key", "task", 1)

    asyncio.run(main())


LAUNCHER = """
import asyncio, os, sys
from onestart import launches
from onestart.executors import CallableExecutor, CommandExecutor
from onestart.ports import Order
folder, how, *argv = sys.argv[1:]
if how == "unnoted":
    launches._append = lambda *_: os.kill(os.getpid(), 9)

async def main():
    if how == "function":
        executor = CallableExecutor(folder, {"run": lambda _: asyncio.sleep(1000)})
    else:
        executor = CommandExecutor(folder)
    await executor.start(Order("key", "task", 1, "run", {"argv": argv}))
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""


def launcher(folder: Path, how: str, *argv: str) -> None:
    """A process that starts the key and is killed."""
    process = subprocess.run([sys.executable, "-c", LAUNCHER, str(folder), how, *argv], timeout=DEADLINE, check=False)
    assert process.returncode == -9


@pytest.mark.parametrize("how", ["noted", "unnoted"])
def test_a_program_outlives_whoever_started_it(tmp_path: Path, how: str) -> None:
    """Also if that was killed before it could note whom it had started."""
    os.mkfifo(tmp_path / "f")
    script = f"touch {tmp_path}/ready; read x < {tmp_path}/f; touch {tmp_path}/done"
    launcher(tmp_path / "launches", how, "sh", "-c", script)

    async def main() -> None:
        executor = CommandExecutor(tmp_path / "launches")
        await there(tmp_path / "ready")
        assert await executor.running("key")
        assert await executor.look_up("key", "task", 2)
        (tmp_path / "f").write_text("go\n")
        await there(tmp_path / "done")

        async def over() -> bool:
            return not await executor.running("key")

        await until(over)
        assert await executor.outcome("key") is None
        with pytest.raises(NotHereError):
            await executor.wait("key")

    asyncio.run(main())


def test_a_function_ends_with_its_process(tmp_path: Path) -> None:
    launcher(tmp_path, "function")

    async def main() -> None:
        executor = CallableExecutor(tmp_path, {"run": returns})
        assert not await executor.running("key")
        assert await executor.look_up("key", "task", 2)
        with pytest.raises(AlreadyLaunchedError):
            await executor.start(Order("key", "task", 3, "run"))

    asyncio.run(main())


async def returns(payload: Any) -> Any:
    return ("returned", payload)


async def fails(payload: Any) -> None:
    raise ValueError(payload)


async def hangs(_: Any) -> None:
    await asyncio.Event().wait()


FUNCTIONS: dict[str, Callable[[Any], Awaitable[Any]]] = {"returns": returns, "fails": fails, "hangs": hangs}


@pytest.mark.parametrize("durable", [True, False])
def test_a_function_runs_once(tmp_path: Path, durable: bool) -> None:
    async def main() -> None:
        executor = CallableExecutor(tmp_path if durable else None, FUNCTIONS)
        ends: list[tuple[str, bool]] = []

        async def on_end(key: str) -> None:
            ends.append((key, await executor.running(key)))

        executor.on_end = on_end
        assert not await executor.look_up("key", "task", 1)
        await executor.start(Order("key", "task", 1, "returns", 5))
        assert await executor.wait("key") == ("returned", 5)
        assert not await executor.running("key")
        assert await executor.outcome("key") == 0
        with pytest.raises(AlreadyLaunchedError):
            await executor.start(Order("key", "task", 1, "returns", 5))
        await executor.start(Order("key2", "task", 1, "fails", "x"))
        with pytest.raises(ValueError, match="x"):
            await executor.wait("key2")
        assert await executor.outcome("key2") == 1
        assert await executor.look_up("key2", "task", 4)
        with pytest.raises(FencedError):
            await executor.start(Order("key3", "task", 3, "returns"))
        with pytest.raises(FencedError):
            await executor.look_up("key3", "task", 3)
        assert not await executor.look_up("key3", "task", 4)

        async def told() -> bool:
            return ends == [("key", False), ("key2", False)]

        await until(told)
        assert bool(list(tmp_path.iterdir())) == durable

    asyncio.run(main())


@pytest.mark.parametrize("durable", [True, False])
def test_a_function_is_cancelled(tmp_path: Path, durable: bool) -> None:
    async def main() -> None:
        executor = CallableExecutor(tmp_path if durable else None, FUNCTIONS)
        await executor.start(Order("key", "task", 1, "hangs"))
        assert await executor.running("key")
        await executor.stop("key")  # perhaps before its first step
        with pytest.raises(asyncio.CancelledError):
            await executor.wait("key")
        assert not await executor.running("key")
        assert await executor.outcome("key") == -15
        await executor.stop("key")
        await executor.stop("unknown")

    asyncio.run(main())


def test_a_function_that_nobody_knows_leaves_no_mark(tmp_path: Path) -> None:
    async def main() -> None:
        executor = CallableExecutor(tmp_path / "launches", FUNCTIONS)
        with pytest.raises(BadCommandError, match="there is no function 'unknown'"):
            await executor.start(Order("key", "task", 1, "unknown"))
        assert not (tmp_path / "launches").exists()
        with pytest.raises(NotHereError):
            await executor.wait("key")

    asyncio.run(main())


def test_a_function_ends_on_record_with_its_loop(tmp_path: Path) -> None:
    executor = CallableExecutor(tmp_path, FUNCTIONS)
    asyncio.run(executor.start(Order("key", "task", 1, "hangs")))
    assert Launches(tmp_path).outcome("key") == -15


def test_who_is_to_be_told_of_an_end_is_not_called_when_the_loop_ends_before(tmp_path: Path) -> None:
    """And nothing is left behind that nobody has awaited, of which Python would complain."""
    called: list[str] = []

    async def on_end(key: str) -> None:
        called.append(key)

    async def main() -> None:
        executor = CallableExecutor(tmp_path, FUNCTIONS)
        executor.on_end = on_end
        executor._tell_end("key", None)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()  # as a loop does that ends

    asyncio.run(main())
    gc.collect()
    assert called == []


def test_a_start_of_a_function_goes_on_when_nobody_waits_for_it(tmp_path: Path) -> None:
    async def main() -> None:
        executor = CallableExecutor(tmp_path, FUNCTIONS)
        start = asyncio.ensure_future(executor.start(Order("key", "task", 1, "returns")))
        await asyncio.sleep(0)
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start

        async def over() -> bool:
            return await executor.outcome("key") == 0

        await until(over)

    asyncio.run(main())


def test_what_is_remembered_in_memory_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for, so the way to a thread and back would be for nothing."""

    async def main() -> None:
        monkeypatch.setattr(asyncio, "to_thread", lambda *_: pytest.fail("a thread"))
        executor = CallableExecutor(None, FUNCTIONS)
        await executor.start(Order("key", "task", 1, "returns", 7))
        assert await executor.wait("key") == ("returned", 7)
        assert await executor.look_up("key", "task", 1)
        assert not await executor.running("key")
        assert await executor.outcome("key") == 0

    asyncio.run(main())


def test_so_many_results_are_kept(tmp_path: Path) -> None:
    async def main() -> None:
        executor = CallableExecutor(None, FUNCTIONS, keep=2)
        for number in range(5):
            await executor.start(Order(f"key{number}", "task", 1, "returns", number))
            await executor.wait(f"key{number}")
        await executor.start(Order("last", "task", 1, "hangs"))
        for number in range(5):
            await executor.start(Order(f"more{number}", "task", 1, "returns", number))
            await executor.wait(f"more{number}")
        assert list(executor._ends) == ["last", "more3", "more4"]
        assert await executor.running("last")
        assert await executor.outcome("key0") == 0
        await executor.stop("last")

    asyncio.run(main())


def test_signals_reach_the_program(tmp_path: Path) -> None:
    async def main() -> None:
        executor = CommandExecutor(tmp_path / "launches")
        await executor.start(shell(f"trap 'exit 9' USR1; touch {tmp_path}/ready; while :; do sleep 0.01; done"))
        await there(tmp_path / "ready")
        assert await executor.signal("key", signal.SIGUSR1)
        assert await executor.wait("key") == 9
        assert not await executor.signal("key", signal.SIGUSR1)

    asyncio.run(main())
