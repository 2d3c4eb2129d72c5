"""What is outside of a damaged ledger: an executor that answers at once, governance, and a time that stands still."""

from __future__ import annotations

import asyncio

from attrs import define, field, frozen

from onestart import CannotTellError, Command, Order, Ruling
from onestart_conformance.doubles import Asked, Engine, VirtualTime


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
class Approvers:
    """Governance that wants these keys approved."""

    keys: frozenset[str] = frozenset()

    async def rule(self, command: Command) -> Ruling:
        return Ruling(command.revision, command.key in self.keys)


@frozen
class StandingClock:
    """A clock that moves when it is told to; whoever sleeps does not wake up."""

    time: VirtualTime = field(factory=VirtualTime)

    def now(self) -> float:
        return self.time.seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.get_running_loop().create_future()
