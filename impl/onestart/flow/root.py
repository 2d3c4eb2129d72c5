"""A root under way: one attempt of one driver, with everything that its steps share."""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Semaphore
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import Context
from functools import partial
from typing import Any

from attrs import define, field

from onestart import leases
from onestart.flow.definition import Worker
from onestart.flow.errors import (
    BadFlowError,
    EndedError,
    LeaseLostError,
    OrderMismatchError,
    RefusedError,
    StoreLostError,
    UnknownKindError,
)
from onestart.flow.execution import Execution
from onestart.flow.guard import Asked, Guard
from onestart.flow.identity import CAUSAL
from onestart.flow.journal import Journal, told
from onestart.flow.latch import Latch
from onestart.flow.line import Line
from onestart.flow.tasks import FlowFuture, FlowTask, held_up, known
from onestart.lines import TooLongError
from onestart.outside import Decision, Outside, Strand
from onestart.ports import LedgerUnavailableError, View
from onestart.records import Step as Entry


@define(eq=False)
class Root:
    """journal: what earlier attempts have left, None in the first one. strand: the driver's, with its lease's token.

    withheld: steps that wait for a journaled one to be reached that asks for the same. parked: questions without an
    answer, by step. due: when the lease is to be renewed. held: steps of which nobody knows how far they got, and why.
    over: the flow has been refused, or there is nothing left to do in it but to wait for somebody outside.
    """

    id: str
    version: int
    journal: Journal | None
    workers: Mapping[str, Worker]
    outside: Outside
    execution: Execution
    strand: Strand
    loop: AbstractEventLoop
    context: Context
    latch: Latch = field(factory=Latch)
    parked: dict[str, tuple[str, str]] = field(factory=dict)
    held: dict[str, str] = field(factory=dict)
    tasks: set[FlowTask] = field(factory=set)
    busy: set[asyncio.Task[Any]] = field(factory=set)
    due: float = field(init=False)
    over: asyncio.Event = field(factory=asyncio.Event)
    stirred: asyncio.Event = field(factory=asyncio.Event)
    replays: int = 0
    withheld: dict[str, tuple[Asked, Guard, asyncio.Future[None]]] = field(factory=dict)
    _slots: dict[str, Semaphore] = field(factory=dict)
    _looking: bool = False

    def __attrs_post_init__(self) -> None:
        self.due = self.outside.clock.now() + self.outside.lease_seconds / 3

    @property
    def causal(self) -> bool:
        return self.version >= CAUSAL

    def worker(self, kind: str) -> Worker:
        """Raises UnknownKindError."""
        worker = self.workers.get(kind)
        if worker is None:
            raise UnknownKindError(
                f"no worker carries out steps of kind {kind!r}; give one: workers={{{kind!r}: Worker(...)}}"
            )
        return worker

    def indexed(self, step: str) -> bool:
        """Whether an earlier attempt has admitted the step."""
        return self.journal is not None and step in self.journal.index

    def known(self, step: str) -> bool:
        """Whether an earlier attempt has recorded the step."""
        return self.journal is not None and (step in self.journal.index or step in self.journal.waits)

    def slot(self, kind: str) -> AbstractAsyncContextManager[object]:
        """One of the places for steps of this kind."""
        slots = self.workers[kind].slots
        if slots is None:
            return nullcontext()
        return self._slots.setdefault(kind, Semaphore(slots))

    def task(self, coro: Coroutine[Any, Any, Any], line: Line) -> FlowTask:
        """Part of the flow's own code, as a task."""
        task = FlowTask(
            coro, line=line, tasks=self.tasks, waited=self.look, loop=self.loop, context=self.context.copy()
        )
        asyncio.Task.add_done_callback(task, _seen)
        return task

    def spawn(self, work: Coroutine[Any, Any, Any], future: FlowFuture) -> None:
        """Something that is done for a step, outside of the flow's code; what it raises goes to whoever awaits."""
        task = asyncio.Task(self._guarded(work, future), loop=self.loop, context=self.context.copy())
        self.busy.add(task)
        task.add_done_callback(self._rested)

    def soon(self, deliver: Callable[[], None]) -> None:
        """Something that is delivered in the loop's next round."""

        def delivered() -> None:
            self.replays -= 1
            deliver()
            self.look()

        self.replays += 1
        self.loop.call_soon(delivered)

    def afterwards(self, task: FlowTask, work: Callable[[], Coroutine[Any, Any, Any]], future: FlowFuture) -> None:
        """Something that is done for a step when a part of the flow's code has ended."""
        asyncio.Task.add_done_callback(task, lambda _: None if task.cancelled() else self.spawn(work(), future))

    async def withhold(self, asked: Asked, guard: Guard) -> None:
        """Wait while a journaled step that was not reached yet asks for the same. Raises the refusal if it never is."""
        while guard.twin(asked) is not None:
            released = self.loop.create_future()
            self.withheld[asked.step] = (asked, guard, released)
            self.look()
            try:
                await released
            finally:
                self.withheld.pop(asked.step, None)
            self.latch.check()

    def release(self) -> None:
        """A journaled step was reached: look again."""
        for _, _, released in self.withheld.values():
            if not released.done():
                released.set_result(None)

    async def append(self, what: str, step: str, body: dict[str, Any]) -> None:
        """Record an entry. Raises LeaseLostError, with nothing recorded, if another driver has taken over."""
        await self._keep_lease()
        entry = Entry(self.id, self.strand.task, what, step, self.strand.token, body)

        def decide(view: View) -> Decision[bool]:
            if not leases.holds(view, strand=self.strand, outside=self.outside):
                return Decision(False)
            return Decision(True, f"flow_{what}", entry, told(entry))

        try:
            held = await self.outside.step(self.strand, decide)
        except TooLongError as error:  # such as a step that follows a hundred thousand others
            raise BadFlowError(str(error)) from None
        if not held:
            raise self._lost()

    async def _keep_lease(self) -> None:
        """Renew the lease if it is time: a loop that is busy for long gets to its timers late."""
        now = self.outside.clock.now()
        if now >= self.due:
            self.due = now + self.outside.lease_seconds / 3
            await self.outside.step(self.strand, partial(leases.renew, strand=self.strand, outside=self.outside))

    async def check_lease(self) -> None:
        """Raises LeaseLostError if another driver has taken over."""
        await self._keep_lease()

        def decide(view: View) -> Decision[bool]:
            return Decision(leases.holds(view, strand=self.strand, outside=self.outside))

        if not await self.outside.step(self.strand, decide):
            raise self._lost()

    def check_refused(self) -> None:
        """Raises the refusal of a step that was about to be started. In a flow that has just ended it may be."""
        if not isinstance(self.latch.refusal, EndedError):
            self.latch.check()

    def _lost(self) -> RefusedError:
        lost = LeaseLostError(f"another driver has taken {self.id!r} over")
        self.latch.refuse(lost)
        return lost

    def waiting_for_somebody(self) -> bool:
        """Whether a part of the flow is left that only somebody outside can bring on."""
        return bool(self.tasks) and bool(self.parked or self.held) and self.over.is_set()

    async def drain(self) -> None:
        """What nobody awaits any more comes to its end all the same, if the flow's own steps can bring it there.

        Else what a flow has done would depend on how far a task got before its body returned. A task that waits for
        something else is left to be cancelled.
        """
        while not self.over.is_set() and (self.busy or self.replays or any(map(_goes_on, self.tasks))):
            self.stirred.clear()
            await self.stirred.wait()

    def finish(self) -> None:
        """Nothing more will come of this attempt."""
        self.over.set()
        self.stirred.set()

    def look(self) -> None:
        """Something has changed that may leave nothing to do but to wait for somebody outside."""
        self.stirred.set()
        if (self.parked or self.held or self.withheld) and not self._looking:
            self._looking = True
            self.loop.call_soon(self._look)

    def _look(self) -> None:
        self._looking = False
        at_rest = len(self.busy) == len(self.withheld) and not self.replays and all(map(_waits, self.tasks))
        if not at_rest or any(released.done() for _, _, released in self.withheld.values()):
            return
        for asked, guard, _ in self.withheld.values():
            what = f"step {guard.twin(asked)!r} is journaled and asks for the same as {asked.step!r}"
            self.latch.refuse(OrderMismatchError(f"{what}, but this resume does not reach it"))
        self.release()
        if self.tasks:
            self.finish()

    def _rested(self, task: asyncio.Task[Any]) -> None:
        self.busy.discard(task)
        self.look()

    async def _guarded(self, work: Awaitable[Any], future: FlowFuture) -> None:
        try:
            await work
        except LedgerUnavailableError as error:
            _fail(future, self.latch.refuse(StoreLostError(f"the ledger is not available: {error}")))
        except asyncio.CancelledError:
            future.cancel()
            raise
        except Exception as error:
            _fail(future, error)

    async def close(self, *, finish: bool) -> None:
        """End what is left of the flow's code. finish: wait for steps under way; their results are worth keeping."""
        self.latch.refuse(EndedError(f"{self.id!r} has come to its end in this attempt"))
        while self.tasks or self.busy:
            for task in list(self.tasks):
                task.cancel()
            for work in list(self.busy) if not finish else ():
                work.cancel()
            await asyncio.wait([*self.tasks, *self.busy])


def _waits(task: FlowTask) -> bool:
    waiting: Any = task.waiting
    if not task.begun or waiting is None or waiting.done():
        return False
    return known(task, waiting) or held_up(task)


def _seen(task: asyncio.Task[Any]) -> None:
    """What it raises is told by whoever is behind it."""
    if not task.cancelled():
        asyncio.Task.exception(task)


def _goes_on(task: FlowTask) -> bool:
    """Whether the task is about to run, or waits for what is of the flow."""
    return task.waiting is None or known(task, task.waiting)


def _fail(future: FlowFuture, error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
