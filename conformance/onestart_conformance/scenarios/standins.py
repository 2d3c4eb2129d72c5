"""What stands in for the outside in a scenario: executor, governance, clock, files and callbacks, all in memory.

Every call gives way to others once before it does anything, so that submissions made together really interleave.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from attrs import define, field

from onestart import Answer, Command, Order, Reason, Ruling
from onestart.dispatcher import Dispatcher
from onestart.kernel import Callback, dispatched
from onestart.outside import Strand
from onestart_conformance.disk import Disk, SimulatedFiles
from onestart_conformance.doubles import REVISION, Asked, Engine

T = TypeVar("T")

SYNTHETIC = "synthetic_callback"


async def in_turn(function: Callable[[], T]) -> T:
    """How a ledger runs its work here: after whoever was ready before."""
    await asyncio.sleep(0)
    return function()


class StoppedClock:
    """Time does not pass, so no lease runs out."""

    def now(self) -> float:
        return 1000.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.get_running_loop().create_future()


@define
class FixedGovernance:
    """One revision is in force until a scenario changes it. asked: every command that it ruled on."""

    revision: str = REVISION
    needs_approval: bool = False
    asked: list[Command] = field(factory=list)

    async def rule(self, command: Command) -> Ruling:
        await asyncio.sleep(0)
        self.asked.append(command)
        return Ruling(self.revision, self.needs_approval)


class RefusingFiles(SimulatedFiles):
    """The disk as a process sees it. refused: paths that the system does not let it read."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk)
        self.refused: set[str] = set()

    def read(self, path: str, offset: int, length: int) -> bytes:
        if path in self.refused:
            raise OSError(errno.EIO, "Input/output error", path)
        return super().read(path, offset, length)


def _unheard(asked: Asked) -> None:
    """Nobody is told of what the executor does."""


@define
class MemoryExecutor:
    """Starts in the memory of one process, as the experiment's did: another process knows nothing of it.

    That is less than an executor has to remember, so it puts more weight on the records. orders: what was started.
    """

    engine: Engine = field(factory=lambda: Engine(_unheard))
    orders: list[Order] = field(factory=list)

    async def start(self, order: Order) -> None:
        await asyncio.sleep(0)
        self.engine.start(0, order)
        self.orders.append(order)

    async def look_up(self, key: str, task: str, token: int) -> bool:
        await asyncio.sleep(0)
        return self.engine.look_up(0, key, task, token)

    async def running(self, key: str) -> bool:
        await asyncio.sleep(0)
        return key in self.engine.running

    async def stop(self, key: str) -> None:
        await asyncio.sleep(0)
        self.engine.running.discard(key)


class Entered(Protocol):
    """An execution callback that keeps what became of it. answers: its own. effects: had by itself, by key."""

    @property
    def calls(self) -> int: ...

    @property
    def answers(self) -> list[Answer]: ...

    @property
    def effects(self) -> Counter[str]: ...

    def of(self, dispatcher: Dispatcher) -> Callback: ...

    def said(self, answer: Answer) -> str:
        """The reason of an answer, in published words."""


@define
class SyntheticCallback:
    """The callback of round one: it counts, has an effect in memory, and records the command as done.

    coalesces: a key that had its effect has no second one.
    """

    coalesces: bool = False
    calls: int = 0
    effects: Counter[str] = field(factory=Counter)
    answers: list[Answer] = field(factory=list)

    def of(self, dispatcher: Dispatcher) -> Callback:
        return partial(self._enter, dispatcher)

    async def _enter(self, dispatcher: Dispatcher, strand: Strand, command: Command) -> Answer:
        self.calls += 1
        if not (self.coalesces and self.effects[command.key]):
            self.effects[command.key] += 1
        done = partial(dispatched, command=command, reason=Reason.CREATED)
        answer = await dispatcher.outside.step(strand, done)
        self.answers.append(answer)
        return answer

    def said(self, answer: Answer) -> str:
        return SYNTHETIC if any(answer is own for own in self.answers) else str(answer.reason)


@define
class DispatchingCallback:
    """The callback of round two, and as shipped: the real dispatcher, watched."""

    calls: int = 0
    effects: Counter[str] = field(factory=Counter)
    answers: list[Answer] = field(factory=list)

    def of(self, dispatcher: Dispatcher) -> Callback:
        return partial(self._enter, dispatcher)

    async def _enter(self, dispatcher: Dispatcher, strand: Strand, command: Command) -> Answer | None:
        self.calls += 1
        answer = await dispatcher.dispatch(strand, command)
        if answer is not None:
            self.answers.append(answer)
        return answer

    def said(self, answer: Answer) -> str:
        return str(answer.reason)
