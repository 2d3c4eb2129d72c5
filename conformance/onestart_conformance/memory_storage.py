"""The ledger in memory: it outlives every process of a world, and loses nothing that it was told."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from attrs import define, field, frozen

from onestart.group_commit import Run
from onestart.memory import MemoryLedger
from onestart.ports import Ledger
from onestart_conformance.disk import Fuse
from onestart_conformance.gates import ProcessDied
from onestart_conformance.storage import Access, Opened

T = TypeVar("T")


@define(eq=False)
class MemoryAccess:
    """`Access`. With a fuse a process dies in its next step: before it if nothing goes well any more, else after it."""

    fuse: Fuse = field(factory=Fuse)
    dead: bool = False


@define(eq=False)
class MemoryStorage:
    """See `Storage`."""

    ledger: MemoryLedger = field(factory=MemoryLedger)

    def open(self, run: Run) -> Opened:
        access = MemoryAccess()
        return Opened(_Reached(self.ledger, access, run), access)

    def left(self, access: Access) -> None:
        access.dead = True

    def outside(self) -> Ledger:
        return self.ledger

    def snapshot(self) -> Mapping[str, bytes]:
        return {str(number): repr(record).encode() for number, record in enumerate(self.ledger.records)}

    def power_failure(self, chance: random.Random) -> None:
        """Nothing is lost: see above."""

    def damage(self, kind: str, key: str, task: str, how: str) -> bool:
        """There are no bytes to damage."""
        return False

    def lose_attempts(self, key: str) -> Collection[str]:
        """There is no older copy."""
        return ()

    def close(self) -> None:
        """There is nothing outside of this object."""


@frozen
class _Reached:
    """The ledger as one process reaches it."""

    ledger: MemoryLedger
    access: MemoryAccess
    run: Run

    async def step(self, decide: Callable[[Any], tuple[Any, T]]) -> T:
        await self.run(lambda: None)
        left = self.access.fuse.left
        self.access.dead |= left == 0
        if self.access.dead:
            raise ProcessDied
        answer = await self.ledger.step(decide)
        if left is not None:
            self.access.dead = True
            raise ProcessDied
        return answer
