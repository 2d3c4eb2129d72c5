"""What is wrong with a ledger, store by store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from attrs import frozen

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told now and then of a store, how much of it has been read, and how much there is."""

MOST = 10  # findings of a store that are kept


@frozen
class StoreReport:
    """What one store holds.

    lines: of records, legible or not. torn: writes that were cut off and never acknowledged, which is no damage.
    missing: records that are gone, by the numbers of those around them or by what other stores had seen. backward:
    lines whose number is not above the one before. lost: records that a repair could not read either, and has put a
    line in the place of, which is no damage any more. findings: the first few, with their place.
    """

    store: str
    lines: int
    intact: int
    corrupt: int
    unsupported: int
    torn: int
    missing: int
    backward: int
    lost: int
    findings: tuple[str, ...]

    @property
    def damage(self) -> int:
        """How many things are wrong; 0 if all is well."""
        return self.corrupt + self.unsupported + self.missing + self.backward


def silent(store: str, done: int, total: int) -> None:
    """A `Progress` that nobody watches."""
