"""What starts commands: as processes of the operating system, or as functions of this process.

Both keep their launches in a folder, so that a key is started once and `look_up` has an answer after any crash.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Lock, Thread
from typing import Any, TypeAlias, TypeVar

from attrs import field, frozen

from onestart.clocks import SystemClock
from onestart.command import BadCommandError, Command, escaped
from onestart.launches import AlreadyLaunchedError, Begin, Launches
from onestart.ports import CannotTellError, Clock, FencedError, Order

T = TypeVar("T")

OnEnd: TypeAlias = Callable[[str], Awaitable[object]]
Function: TypeAlias = Callable[[Any], Awaitable[Any]]

RETURNED, RAISED, CANCELLED = 0, 1, -signal.SIGTERM


class NotHereError(LookupError):
    """This process does not execute the key, and its end is not on record."""


class NotExecutableError(Exception):
    """A program that cannot be executed. status: 127 if it is not there, 126 otherwise, as in a shell."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"it cannot be executed: {error}")
        self.status = 127 if isinstance(error, FileNotFoundError) else 126


@frozen
class Program:
    """The payload that a `CommandExecutor` takes. env: the whole environment, None for that of this process."""

    argv: tuple[str, ...]
    cwd: str | None = None
    env: dict[str, str] | None = None

    @classmethod
    def of(cls, payload: object) -> Program:
        """Raises BadCommandError for anything else than {"argv": [...], "cwd": ..., "env": {...}}."""
        if not isinstance(payload, dict) or not payload.keys() <= {"argv", "cwd", "env"}:
            raise BadCommandError("the payload of a command is an object of argv, cwd and env")
        argv, cwd, env = payload.get("argv"), payload.get("cwd"), payload.get("env")
        if not isinstance(argv, list) or not argv or not all(map(_is_text, argv)) or not argv[0]:
            raise BadCommandError(f"argv must be a list of texts with a program first, not {escaped(argv)}")
        if cwd is not None and not _is_text(cwd):
            raise BadCommandError(f"cwd must be a text, not {escaped(cwd)}")
        if env is not None and not _is_environment(env):
            raise BadCommandError(f"env must be an object of texts, not {escaped(env)}")
        return cls(tuple(argv), cwd, env)

    def execute(self, streams: tuple[int | None, int | None, int | None], descriptor: int) -> subprocess.Popen[bytes]:
        """Raises NotExecutableError."""
        try:
            return subprocess.Popen(  # noqa: S603  (what is executed is what was asked for)
                self.argv,
                cwd=self.cwd,
                env=self.env,
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                start_new_session=True,
                pass_fds=(descriptor,),
            )
        except (OSError, ValueError) as error:
            raise NotExecutableError(error) from error


@frozen
class _Execution:
    process: subprocess.Popen[bytes]
    end: Future[int] = field(factory=Future)


class _Remembering:
    """What both executors share. on_end: awaited with the key when an execution of this process has ended."""

    def __init__(self, launches: Launches | MemoryLaunches) -> None:
        self.on_end: OnEnd | None = None
        self._launches = launches
        self._going: set[asyncio.Task[Any]] = set()

    async def identify(self) -> str:
        """The name of what remembers the launches: nobody else can tell of them.

        Looked at each time, since the folder may have been deleted; a small file that is read takes less than a thread.
        """
        return self._launches.name()

    async def look_up(self, key: str, task: str, token: int) -> bool:
        """Whether the key was ever started; from then on, starts of the task under older tokens are refused.

        Raises CannotTellError or FencedError.
        """
        try:
            return await self._finish(self._ask(self._launches.bar, key, task, token))
        except OSError as error:
            raise CannotTellError(str(error)) from None

    async def running(self, key: str) -> bool:
        """Whether the key may still be executing, in whatever process. Raises CannotTellError."""
        return await self._ask(self._launches.running, key)

    async def outcome(self, key: str) -> int | None:
        """The status that the key ended with, None if that is not on record. Raises CannotTellError."""
        return await self._ask(self._launches.outcome, key)

    async def _ask(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function of the launches: in a thread, if it has to wait for a disk."""
        if self._launches.waits:
            return await asyncio.to_thread(function, *arguments)
        return function(*arguments)

    def _keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._going.add(task)
        task.add_done_callback(self._going.discard)
        return task

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end even if whoever waits is cancelled: what has begun has to be remembered."""
        return await asyncio.shield(self._keep(work))

    def _report(self, message: str, error: Exception) -> None:
        asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})

    def _tell_end(self, key: str, unrecorded: OSError | None) -> None:
        """In the loop: an execution has ended. unrecorded: why its end is not on record."""
        if unrecorded is not None:
            self._report(f"the end of {escaped(key)} cannot be recorded", unrecorded)
        if self.on_end is not None:
            self._keep(_told(self.on_end, key))


class CommandExecutor(_Remembering):
    """Starts programs, each as the leader of a session of its own.

    folder: where launches are remembered; all executors of a ledger on this machine share it. grace: seconds between
    asking a program to end and killing it. stdin, stdout, stderr: as `subprocess.Popen` takes them.

    A program that cannot be executed has ended at once, with status 127 or 126, as in a shell. A program gets a file
    descriptor beside the standard ones, whose lock shows others that it runs.
    """

    _launches: Launches

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        grace: float = 10.0,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        super().__init__(Launches(folder))
        self._clock = clock or SystemClock()
        self._grace = grace
        self._streams = (stdin, stdout, stderr)
        self._executions: dict[str, _Execution] = {}  # those that this process waits for

    def check(self, command: Command) -> None:
        """Raises BadCommandError for a command that is no program."""
        Program.of(command.payload)

    async def start(self, order: Order) -> None:
        """Start a program. Raises BadCommandError, FencedError or AlreadyLaunchedError without having started it."""
        program = Program.of(order.payload)
        await self._finish(asyncio.to_thread(self._start, order, program, asyncio.get_running_loop()))

    async def running(self, key: str) -> bool:
        """Whether the key may still be executing, in whatever process. Raises CannotTellError."""
        return key in self._executions or await super().running(key)

    async def stop(self, key: str) -> None:
        """Ask the program and its group to end, and kill them if it has not after the grace period."""
        if await self.signal(key, signal.SIGTERM):
            self._keep(self._insist(key))

    async def signal(self, key: str, number: int) -> bool:
        """Send a signal to the program and its group. Returns whether there is one that this process can see."""
        process = await asyncio.to_thread(self._launches.process, key)
        if process is not None:
            process.signal_group(number)
        return process is not None

    async def wait(self, key: str) -> int:
        """The exit status, negative for a signal, once it has ended. Raises NotHereError, CannotTellError."""
        execution = self._executions.get(key)
        if execution is not None:
            return await asyncio.shield(asyncio.wrap_future(execution.end))
        status = await self.outcome(key)
        if status is None:
            raise NotHereError(f"{escaped(key)} is not executed by this process")
        return status

    def _start(self, order: Order, program: Program, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: launch, and have another thread wait for the end."""

        def begin(descriptor: int) -> int:
            process = program.execute(self._streams, descriptor)
            self._executions[order.key] = _Execution(process)
            return process.pid

        try:
            self._launches.launch(order, begin)
        except NotExecutableError as error:
            unrecorded = _record_end(self._launches, order.key, error.status)
            _call_in(loop, self._report, f"{escaped(order.key)}: {error}", error)
            _call_in(loop, self._tell_end, order.key, unrecorded)
        else:
            Thread(target=self._await, args=(order.key, loop), daemon=True).start()

    def _await(self, key: str, loop: asyncio.AbstractEventLoop) -> None:
        execution = self._executions[key]
        status = execution.process.wait()
        unrecorded = _record_end(self._launches, key, status)
        del self._executions[key]
        execution.end.set_result(status)
        _call_in(loop, self._tell_end, key, unrecorded)

    async def _insist(self, key: str) -> None:
        await self._clock.sleep(self._grace)
        await self.signal(key, signal.SIGKILL)


class CallableExecutor(_Remembering):
    """Starts functions of this process, as asyncio tasks.

    folder: where launches are remembered, None for memory alone: then nothing is known of them after a crash, and a
    key whose start is in doubt by then is held, for an operator. functions: by name; each takes the payload and is
    awaited. keep: how many results of functions that have ended stay available to `wait`.

    What runs in a process ends with it, so a launch of a process that is gone does not run.
    """

    def __init__(
        self, folder: str | os.PathLike[str] | None, functions: Mapping[str, Function], *, keep: int = 1000
    ) -> None:
        super().__init__(MemoryLaunches() if folder is None else Launches(folder))
        self._functions = dict(functions)
        self._kept = keep
        self._tasks: dict[str, asyncio.Task[Any]] = {}  # the functions that run
        self._ends: dict[str, asyncio.Task[Any]] = {}  # the same until their end is on record, and some that have ended
        self._ended: deque[str] = deque()  # which of those have

    def check(self, command: Command) -> None:
        """Raises BadCommandError for a function that there is not."""
        if command.function not in self._functions:
            raise BadCommandError(f"there is no function {escaped(command.function)}")

    async def start(self, order: Order) -> None:
        """Start a function. Raises BadCommandError, FencedError or AlreadyLaunchedError without having started it."""
        function = self._functions.get(order.function)
        if function is None:
            raise BadCommandError(f"there is no function {escaped(order.function)}")
        await self._finish(self._start(order, function))

    async def running(self, key: str) -> bool:
        """Whether the key may still be executing, in whatever process. Raises CannotTellError."""
        return (key in self._ends and not self._ends[key].done()) or await super().running(key)

    async def stop(self, key: str) -> None:
        """Cancel the function, if it runs in this process."""
        if key in self._tasks:
            self._tasks[key].cancel()

    async def wait(self, key: str) -> Any:
        """What the function returned; raises what it raised. Raises NotHereError if this process did not run it."""
        if key not in self._ends:
            raise NotHereError(f"{escaped(key)} is not executed by this process")
        return await asyncio.shield(self._ends[key])

    async def _start(self, order: Order, function: Function) -> None:
        await self._ask(self._launches.launch, order, lambda _: os.getpid())
        loop = asyncio.get_running_loop()
        self._tasks[order.key] = loop.create_task(_call(function, order.payload))
        self._ends[order.key] = loop.create_task(self._await(order.key))
        self._ends[order.key].add_done_callback(partial(self._forget, order.key))

    async def _await(self, key: str) -> Any:
        """What the function comes to, once its end is on record."""
        task = self._tasks[key]
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:  # the loop is about to be closed, and the end is recorded nevertheless
                task.cancel()
        status = CANCELLED if task.cancelled() else RETURNED if task.exception() is None else RAISED
        unrecorded = await self._finish(self._ask(_record_end, self._launches, key, status))
        del self._tasks[key]
        self._tell_end(key, unrecorded)
        return task.result()

    def _forget(self, key: str, _: asyncio.Task[Any]) -> None:
        """One more has ended: drop the result of the one that ended first, if there are too many."""
        self._ended.append(key)
        if len(self._ended) > self._kept:
            del self._ends[self._ended.popleft()]


class MemoryLaunches:
    """The launches of one executor of one process, forgotten with it: for what no other process can execute anyway."""

    waits = False

    def __init__(self) -> None:
        self._lock = Lock()
        self._status: dict[str, int | None] = {}
        self._barriers: dict[str, int] = {}
        self._name = os.urandom(8).hex()

    def name(self) -> str:
        return self._name

    def launch(self, order: Order, begin: Begin) -> None:
        with self._lock:
            self._check(order.task, order.token)
            if order.key in self._status:
                raise AlreadyLaunchedError(f"{escaped(order.key)} was launched before")
            self._status[order.key] = None
            begin(-1)

    def bar(self, key: str, task: str, token: int) -> bool:
        with self._lock:
            self._check(task, token)
            self._barriers[task] = token
            return key in self._status

    def ended(self, key: str, status: int) -> None:
        self._status[key] = status

    def outcome(self, key: str) -> int | None:
        return self._status.get(key)

    def running(self, key: str) -> bool:
        return key in self._status and self._status[key] is None

    def _check(self, task: str, token: int) -> None:
        if self._barriers.get(task, 0) > token:
            raise FencedError(f"the task has been looked up under a newer token than {token}")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_environment(value: object) -> bool:
    return (
        isinstance(value, dict)
        and all(name and _is_text(name) and "=" not in name for name in value)
        and all(map(_is_text, value.values()))
    )


def _record_end(launches: Launches | MemoryLaunches, key: str, status: int) -> OSError | None:
    try:
        launches.ended(key, status)
    except OSError as error:
        return error
    return None


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: object) -> None:
    with suppress(RuntimeError):  # the loop is closed, so nobody is left to be told
        loop.call_soon_threadsafe(function, *arguments)


async def _call(function: Function, payload: Any) -> Any:
    return await function(payload)


async def _told(on_end: OnEnd, key: str) -> None:
    """Called here, so that a loop that ends before leaves no coroutine that nobody has awaited."""
    await on_end(key)
