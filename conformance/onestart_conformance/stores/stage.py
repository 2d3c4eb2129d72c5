"""What is around a chain while its store is put to the test: an executor that counts, time by hand, acknowledgments.

Everything happens in one thread: what a ledger gives to a thread is run when the other tasks have come to rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from onestart import Chain, Command, Ruling
from onestart.ports import Ledger, LedgerUnavailableError, View
from onestart.records import Record
from onestart.worker_thread import Job
from onestart_conformance.doubles import Asked, Engine, PromptExecutor
from onestart_conformance.flows.loop import FlowLoop
from onestart_conformance.stores.medium import Medium

T = TypeVar("T")

LEASE = 30.0
REVISION = "r1"


class StuckError(AssertionError):
    """What was waited for does not come."""


class TurnLoop(FlowLoop):
    """A still loop that runs something to its end."""

    def finish(self, work: Awaitable[T]) -> T:
        """Run it to its end."""
        task = self.create_task(_awaited(work))
        self.rest()
        if not task.done():
            task.cancel()
            self.rest()
            raise StuckError("it waits for something that does not come")
        return task.result()


async def in_turn(function: Callable[[], T]) -> T:
    """Instead of a thread: it is done when all that is ready now has been run."""
    job = Job(function)

    def turn() -> None:
        job.do()
        job.ended.set()

    loop = asyncio.get_running_loop()
    loop.call_soon(loop.call_soon, turn)
    return await job.outcome()


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def turns() -> TurnLoop:
    """A new loop."""
    made: Callable[[], TurnLoop] = TurnLoop
    return made()


@frozen
class Decided:
    """A step was decided. number: among all steps. record: what it appends."""

    number: int
    record: Record | None


@frozen
class Acknowledged:
    """Whoever made the step was told that it is durable."""

    number: int
    record: Record | None


@frozen
class Failed:
    """Whoever made the step was told that nobody knows whether it took place."""

    record: Record | None


@frozen
class Answered:
    """Somebody was told what their command came to."""

    key: str
    outcome: str


@define
class Time:
    """Seconds that pass when somebody says so; nobody who sleeps wakes up."""

    seconds: float = 1000.0

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.get_running_loop().create_future()


@frozen
class Office:
    """A governance that wants approvals, or not."""

    needs_approval: bool = False

    async def rule(self, command: Command) -> Ruling:
        return Ruling(REVISION, self.needs_approval)


@frozen
class Witnessed:
    """A ledger whose decisions and acknowledgments go onto the tape. steps: how many were decided so far."""

    ledger: Ledger
    medium: Medium
    steps: list[int]

    async def step(self, decide: Callable[[View], tuple[Record | None, T]]) -> T:
        made: list[Decided] = []

        def decided(view: View) -> tuple[Record | None, T]:
            record, answer = decide(view)
            self.steps[0] += 1
            made.append(Decided(self.steps[0], record))
            self.medium.mark(made[-1])
            return record, answer

        try:
            self._alive()
            answer = await self.ledger.step(decided)
            self._alive()
        except LedgerUnavailableError:
            self.medium.mark(Failed(made[-1].record if made else None))
            raise
        self.medium.mark(Acknowledged(made[-1].number, made[-1].record))
        return answer

    def _alive(self) -> None:
        """A process that was killed gets no further."""
        if self.medium.dead:
            raise LedgerUnavailableError("ledger", "the process was killed")


@define(eq=False)
class Stage:
    """One boot of the machine. open: how a process opens the ledger. engine: the executor, which outlives all."""

    medium: Medium
    open: Callable[[], Ledger]
    engine: Engine
    time: Time
    office: Office = field(factory=Office)
    loop: TurnLoop = field(factory=TurnLoop)
    steps: list[int] = field(factory=lambda: [0])

    def ledger(self) -> Witnessed:
        """The ledger as a new process opens it."""
        return Witnessed(self.open(), self.medium, self.steps)

    def chain(self, **more: Any) -> Chain:
        """A new process."""
        ports: dict[str, Any] = {
            "ledger": self.ledger(),
            "executor": PromptExecutor(self.engine),
            "governance": self.office,
            "clock": self.time,
            "process": f"process{self.steps[0]}",
            "lease_seconds": LEASE,
        }
        return Chain(**(ports | more))

    async def submit(self, chain: Chain, command: Command) -> str:
        answer = await chain.submit(command)
        self.medium.mark(Answered(command.key, str(answer.outcome)))
        return str(answer.outcome)


def engine_on(medium: Medium, before: Engine | None = None) -> Engine:
    """The executor, as it was left, telling the tape of what it does."""

    def witness(asked: Asked) -> None:
        medium.mark(asked)

    if before is None:
        return Engine(witness)
    return Engine(witness, dict(before.starts), dict(before.effects), set(before.running), dict(before.barrier))


def command(key: str = "k1", task: str = "t1") -> Command:
    return Command(key=key, task=task, function="work", payload={"of": key}, actor="alice", revision=REVISION)
