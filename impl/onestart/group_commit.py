"""Group commit: steps that come while others are made durable wait, and share the next fsync or transaction.

A step is acknowledged when what it recorded, and what it had read of others in its group, is durable: never before.
Source: D. J. DeWitt et al., Implementation techniques for main memory database systems, SIGMOD 1984.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from onestart.lines import check_length
from onestart.ports import LedgerUnavailableError, View
from onestart.records import Record
from onestart.worker_thread import Signal, WorkerThread

T = TypeVar("T")

Decide: TypeAlias = Callable[[View], tuple[Record | None, T]]

_NOT_CARRIED_OUT = LedgerUnavailableError("ledger", "the step was not carried out")
MOST = 256  # steps in a group: enough to hide a sync, few enough that the first of them does not wait for long


class Run(Protocol):
    """How work is run: somewhere, once, and to its end, whoever stops waiting for it."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]: ...


class Step(Generic[T]):
    """One step of a ledger, on its way. Whoever carries it out calls decide once, then done or failed."""

    __slots__ = ("_answer", "_decide", "_error", "_mistake", "turn")

    def __init__(self, decide: Decide[T]) -> None:
        self._decide = decide
        self._answer: T | None = None
        self._mistake: Exception | None = None
        self._error: Exception | None = _NOT_CARRIED_OUT
        self.turn: Signal | None = None

    def decide(self, view: View) -> Record | None:
        """The record to append. What deciding raises is for this step alone, which then appends nothing."""
        try:
            record, self._answer = self._decide(view)
            if record is not None:
                check_length(record)
        except Exception as error:
            self._mistake = error
            return None
        return record

    @property
    def under_way(self) -> bool:
        """Whether it is neither done nor failed."""
        return self._error is _NOT_CARRIED_OUT

    def done(self) -> None:
        """All that it recorded and relied on is durable."""
        self._error = None

    def failed(self, error: Exception) -> None:
        """Nobody knows whether it is durable, or nothing could be done at all."""
        self._error = error

    def result(self) -> T:
        """What was decided, or why it could not be."""
        error = self._error or self._mistake
        if error is not None:
            raise error
        return cast(T, self._answer)


Take: TypeAlias = Callable[[], list[Step[Any]]]


class GroupCommit:
    """The queue before a ledger, for the tasks of one event loop. A step that finds it empty waits for nobody.

    carry_out: gets the ledger's lock, takes the steps that have come by then, and carries them out. If it raises
    LedgerUnavailableError, all that are not done by then have failed. run: how a step is run, each alone; in groups if
    None. thread: what carries out groups, a thread of its own if None; or `in_loop`.
    """

    def __init__(self, carry_out: Callable[[Take], None], run: Run | None = None, thread: Run | None = None) -> None:
        self._carry_out = carry_out
        self._run = run
        self._thread: Run = WorkerThread().do if thread is None else thread
        self._waiting: deque[Step[Any]] = deque()
        self._led = False

    async def step(self, decide: Decide[T]) -> T:
        """See `Ledger.step`."""
        if self._run is not None:
            return await self._run(lambda: self.alone(decide))
        step = Step(decide)
        self._waiting.append(step)
        if self._led:
            step.turn = Signal()
            cancelled = await self._turn(step, step.turn)
            if cancelled is not None:
                raise cancelled
        if step in self._waiting:
            await self._lead()
        return step.result()

    def alone(self, decide: Decide[T]) -> T:
        """Carry out one step at once, in this thread."""
        step = Step(decide)
        self._carried_out(lambda: [step])
        return step.result()

    def _carried_out(self, take: Take) -> None:
        steps: list[Step[Any]] = []

        def taken() -> list[Step[Any]]:
            steps[:] = take()
            return steps

        try:
            self._carry_out(taken)
        except LedgerUnavailableError as error:
            for step in steps or take():
                if step.under_way:
                    step.failed(error)

    async def _turn(self, step: Step[Any], turn: Signal) -> asyncio.CancelledError | None:
        """Wait until the step is carried out, or is to lead. One that is cancelled before it is taken never happens."""
        try:
            await turn.wait()
        except asyncio.CancelledError as error:
            if not turn.come and self._withdrawn(step):
                return error
            await turn.patiently()
            if step in self._waiting:
                self._waiting.remove(step)
                self._hand_over()
            return error
        return None

    def _withdrawn(self, step: Step[Any]) -> bool:
        try:
            self._waiting.remove(step)
        except ValueError:
            return False
        return True

    async def _lead(self) -> None:
        self._led = True
        taken: list[Step[Any]] = []

        def take() -> list[Step[Any]]:
            while self._waiting and len(taken) < MOST:
                taken.append(self._waiting.popleft())
            return taken

        try:
            await self._thread(lambda: self._carried_out(take))
        finally:
            for step in taken:
                if step.turn is not None:
                    step.turn.set()
            self._hand_over()

    def _hand_over(self) -> None:
        """Let the first of those that have come meanwhile lead."""
        self._led = bool(self._waiting)
        for step in self._waiting:
            if step.turn is not None:
                step.turn.set()
                return
