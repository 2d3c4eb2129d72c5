"""What is outside of a damaged ledger: governance, and a time that stands still."""

from __future__ import annotations

import asyncio

from attrs import field, frozen

from onestart import Command, Ruling
from onestart_conformance.doubles import VirtualTime


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
