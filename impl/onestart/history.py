"""A ledger's records as a sequence, whatever keeps them: what is copied, and what a repair saves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from onestart.health import Health
from onestart.lines import Owner, Place, place
from onestart.records import Record


class Kept(NamedTuple):
    """One record of a store. n: its number among those of its kind and name, from 1.

    record: None if it cannot be read. refs: the number of the newest record of each other kind, of the same key
    (leases: task), when it was written. health, where: how it reads, and where it is.
    """

    owner: Owner
    n: int
    record: Record | None
    refs: Mapping[str, int]
    health: Health
    where: str
    lost: bool = False

    @property
    def place(self) -> Place:
        return place(*self.owner)

    @property
    def sound(self) -> bool:
        """Whether it is as it was written, or known to be lost."""
        return self.record is not None or self.lost

    def same(self, other: Kept) -> bool:
        """Whether it says the same, wherever it is."""
        return (self.owner, self.n, self.record, dict(self.refs)) == (
            other.owner,
            other.n,
            other.record,
            dict(other.refs),
        )


class History(Protocol):
    """All that a ledger holds at one moment."""

    def records(self, store: str) -> Iterator[Kept]:
        """The records of a store in the order of their writing; those of one place by number, with none left out.

        One that is missing, and of which that is known, is there as one that cannot be read.
        """

    def strays(self, store: str) -> Iterator[tuple[Health, str]]:
        """What is there besides, of which nobody can tell whose record it was: how it reads, and where it is."""


class Writer(Protocol):
    """A ledger that is being made, and that nobody sees before it is finished."""

    def add(self, store: str, kept: Kept) -> None:
        """Put a record behind the others of its store."""
