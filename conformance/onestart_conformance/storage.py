"""Where the records of a simulated world live: a kind of ledger, as processes, the power and a reader meet it."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from typing import Protocol, TypeVar

from attrs import frozen

from onestart.group_commit import Run
from onestart.ports import Ledger
from onestart_conformance.disk import Fuse

R = TypeVar("R")

MEMORY, JSONL, SQLITE, POSTGRES = "memory", "jsonl", "sqlite", "postgres"
STORAGES = (JSONL, SQLITE, POSTGRES)  # that outlive a process


class Access(Protocol):
    """What one process has of the storage. fuse: what goes wrong in its next operations. dead: it gets no further."""

    fuse: Fuse
    dead: bool


@frozen
class Opened:
    """A process's ledger, and its access to what that is kept on."""

    ledger: Ledger
    access: Access


class Storage(Protocol):
    """What lasts in a simulated world. Deterministic: the same calls give the same bytes."""

    def open(self, run: Run) -> Opened:
        """The ledger as a process opens it that has just come up. run: how its steps are run, see `GroupCommit`."""

    def left(self, access: Access) -> None:
        """The process with this access has died: what it held is free, and nothing more of it is written."""

    def outside(self) -> Ledger:
        """The ledger as somebody opens it who only looks."""

    def snapshot(self) -> Mapping[str, bytes]:
        """What is recorded, in pieces of which each may only grow."""

    def power_failure(self, chance: random.Random) -> None:
        """Lose what was not made durable, as chance will have it; all processes have died."""

    def damage(self, kind: str, key: str, task: str, how: str) -> bool:
        """Damage the newest legible record of a kind of a key, or of a task's lease. False if there is none."""

    def lose_attempts(self, key: str) -> Collection[str]:
        """Bring the store of attempts back to before a key had one. Returns the keys that have lost theirs."""

    def close(self) -> None:
        """Leave nothing behind."""


async def at_once(function: Callable[[], R]) -> R:
    """How a ledger runs its work where nobody else is about."""
    return function()


def kind_of(ledger: str) -> str:
    """The kind of a ledger that is given by its kind or, in PostgreSQL, by the server's address."""
    return ledger if ledger in (MEMORY, JSONL, SQLITE) else POSTGRES


def storage_of(ledger: str) -> Storage:
    """A new one of this kind, or on the server at this address."""
    if ledger == MEMORY:
        from onestart_conformance.memory_storage import MemoryStorage

        return MemoryStorage()
    if ledger == JSONL:
        from onestart_conformance.disk_storage import DiskStorage

        return DiskStorage()
    if ledger == SQLITE:
        from onestart_conformance.sqlite_storage import SqliteStorage

        return SqliteStorage()
    from onestart_conformance.postgres_storage import PostgresStorage  # needs a driver that is an extra

    return PostgresStorage(ledger)
