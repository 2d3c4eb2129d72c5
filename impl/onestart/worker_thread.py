"""A thread that does one thing after the other for the tasks of an event loop, and how to do without.

A pool's thread would do, at more than twice the cost of the way there and back: much, beside a fast disk's commit.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class Signal:
    """Something that one task waits for, and that comes once. Who is cancelled meanwhile can wait again."""

    __slots__ = ("_future", "come")

    def __init__(self) -> None:
        self.come = False
        self._future: asyncio.Future[None] | None = None

    def set(self) -> None:
        self.come = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self) -> None:
        while not self.come:
            self._future = asyncio.get_running_loop().create_future()
            await self._future

    async def patiently(self) -> asyncio.CancelledError | None:
        """Wait, whoever cancels the task; returns the cancellation that came meanwhile."""
        cancelled: asyncio.CancelledError | None = None
        while not self.come:
            try:
                await self.wait()
            except asyncio.CancelledError as error:
                cancelled = error
        return cancelled


class Job(Generic[T]):
    """One thing to do, anywhere, for a task that waits for it. ended: to be set in that task's event loop."""

    __slots__ = ("_error", "_function", "_result", "ended")

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._result: T | None = None
        self._error: BaseException | None = None
        self.ended = Signal()

    def do(self) -> None:
        try:
            self._result = self._function()
        except BaseException as error:
            self._error = error

    def do_here(self) -> None:
        """Do it in that loop."""
        self.do()
        self.ended.set()

    async def outcome(self) -> T:
        """What the function returns or raises. If the waiting task is cancelled, the function ends before it does."""
        cancelled = await self.ended.patiently()
        if cancelled is not None:
            raise cancelled
        if self._error is not None:
            raise self._error
        return cast(T, self._result)


async def in_loop(function: Callable[[], T]) -> T:
    """Do it in the event loop's own thread, after what is ready by now: those that come with it share its commit.

    The way to another thread and back takes as long as half a commit of a fast disk. But nothing else in the loop gets
    on while a disk, or another process that has the lock, is waited for: for programs that have nothing else to do.
    """
    job = Job(function)
    asyncio.get_running_loop().call_soon(job.do_here)
    return await job.outcome()


_Jobs = SimpleQueue[tuple[Job[object], AbstractEventLoop] | None]


class WorkerThread:
    """Starts with the first thing to do, and ends when nobody has it any more. A forked child gets one of its own."""

    def __init__(self) -> None:
        self._jobs: _Jobs | None = None
        self._process = 0

    async def do(self, function: Callable[[], T]) -> T:
        """See `Job.outcome`."""
        job = Job(function)
        self._started().put((cast("Job[object]", job), asyncio.get_running_loop()))
        return await job.outcome()

    def _started(self) -> _Jobs:
        if self._jobs is None or self._process != os.getpid():
            jobs: _Jobs = SimpleQueue()
            threading.Thread(target=_work, args=(jobs,), name="onestart ledger", daemon=True).start()
            weakref.finalize(self, jobs.put, None)
            self._jobs, self._process = jobs, os.getpid()
        return self._jobs


def _work(jobs: _Jobs) -> None:
    while (got := jobs.get()) is not None:
        job, loop = got
        job.do()
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            loop.call_soon_threadsafe(job.ended.set)
        del got, job, loop  # what they hold may be what keeps the thread
