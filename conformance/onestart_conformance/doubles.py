"""Doubles of what is outside of the library: the executor with all that it ever did, governance, and time."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field, frozen

from onestart import CannotTellError, Command, FencedError, Order, Ruling
from onestart_conformance.gates import LOOK_UP, RULE, RUNNING, SLEEP, START, STOP, Gate, Gates

REVISION = "r1"
GO = None
LOST = ConnectionError("the response was lost")
FAILED = ConnectionError("the request was lost")


@frozen
class Asked:
    """A call that reached the executor. answer: of a look-up, whether the key was ever started."""

    action: str
    submission: int
    key: str
    task: str
    token: int
    answer: bool = False


Witness = Callable[[Asked], None]


@define
class Engine:
    """The executor itself, which outlives every process. witness: is told of everything that it does.

    starts, effects: how often each key was started and had its effect. barrier: the newest token answered to, by task.
    """

    witness: Witness
    starts: dict[str, int] = field(factory=dict)
    effects: dict[str, int] = field(factory=dict)
    running: set[str] = field(factory=set)
    barrier: dict[str, int] = field(factory=dict)

    def start(self, submission: int, order: Order) -> None:
        if self.barred(order.task, order.token):
            raise FencedError(f"task {order.task} has answered to token {self.barrier[order.task]}")
        self.starts[order.key] = self.starts.get(order.key, 0) + 1
        self.effects[order.key] = self.effects.get(order.key, 0) + 1
        self.running.add(order.key)
        self.witness(Asked(START, submission, order.key, order.task, order.token))

    def look_up(self, submission: int, key: str, task: str, token: int) -> bool:
        if self.barred(task, token):
            raise FencedError(f"task {task} has answered to token {self.barrier[task]}")
        self.bar(task, token)
        known = self.knows(key)
        self.witness(Asked(LOOK_UP, submission, key, task, token, known))
        return known

    def barred(self, task: str, token: int) -> bool:
        return self.barrier.get(task, 0) > token

    def bar(self, task: str, token: int) -> None:
        self.barrier[task] = token

    def knows(self, key: str) -> bool:
        return key in self.starts


def unheard(asked: Asked) -> None:
    """Nobody is told of what the executor does."""


@define
class PromptExecutor:
    """The engine, which answers at once. lost, unsent: keys whose answer, or whose request, is lost.

    tells: whether it can be asked what it has started.
    """

    engine: Engine
    lost: frozenset[str] = frozenset()
    unsent: frozenset[str] = frozenset()
    tells: bool = True

    async def start(self, order: Order) -> None:
        if order.key not in self.unsent:
            self.engine.start(0, order)
        if order.key in self.lost | self.unsent:
            raise ConnectionError("there is no answer")

    async def look_up(self, key: str, task: str, token: int) -> bool:
        if not self.tells:
            raise CannotTellError("it does not remember")
        return self.engine.look_up(0, key, task, token)

    async def running(self, key: str) -> bool:
        return key in self.engine.running

    async def stop(self, key: str) -> None:
        self.engine.running.discard(key)


@frozen
class GatedExecutor:
    """The engine as one process reaches it."""

    gates: Gates
    engine: Engine
    submission: Callable[[], int]

    async def start(self, order: Order) -> None:
        how = await self._answer(START, order.key)
        if how is not FAILED:
            self.engine.start(self.submission(), order)
        if how is not GO:
            raise ConnectionError(str(how))

    async def look_up(self, key: str, task: str, token: int) -> bool:
        await self.gates.passed(LOOK_UP, key)
        return self.engine.look_up(self.submission(), key, task, token)

    async def running(self, key: str) -> bool:
        await self.gates.passed(RUNNING, key)
        return key in self.engine.running

    async def stop(self, key: str) -> None:
        await self.gates.passed(STOP, key)

    async def _answer(self, kind: str, key: str) -> object:
        answer = await self.gates.passed(kind, key)
        return {"lost": LOST, "failed": FAILED}.get(answer, GO)


@frozen
class GatedGovernance:
    """Governance whose answer the driver gives: the gate is opened with a Ruling."""

    gates: Gates

    async def rule(self, command: Command) -> Ruling:
        answer = await self.gates.passed(RULE, command.key)
        return answer if isinstance(answer, Ruling) else Ruling(command.revision)


@define
class VirtualTime:
    """The time of the whole world; it passes when the driver says so."""

    seconds: float = 1000.0

    def at(self, gate: Gate) -> None:
        """Let the time come for which a sleeper waits."""
        self.seconds = max(self.seconds, gate.until)


@frozen
class GatedClock:
    """Virtual time as one process reads it."""

    gates: Gates
    time: VirtualTime

    def now(self) -> float:
        return self.time.seconds

    async def sleep(self, seconds: float) -> None:
        await self.gates.passed(SLEEP, until=self.time.seconds + seconds)
