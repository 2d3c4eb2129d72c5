"""The published receipt reader, as a fault around any ledger: it skips what it cannot read, and does not say so.

Source: receipts, section 2. It searches backward, skips every line that cannot be parsed or is of an unknown version,
and returns the newest record that it can read, or nothing. Whoever asks it cannot tell damage from absence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from attrs import frozen

from onestart.health import Finding, Health, Reading
from onestart.ports import Ledger, View
from onestart.records import Approval, Attempt, Lease, Note, Receipt, Record, Session, Step

T = TypeVar("T")


@frozen
class LenientLedger:
    """A ledger whose receipts are read in the published way; all other stores are read as they are."""

    ledger: Ledger

    async def step(self, decide: Callable[[View], tuple[Record | None, T]]) -> T:
        return await self.ledger.step(lambda view: decide(LenientView(view)))


@frozen
class LenientView:
    """The view that such a ledger gives."""

    view: View

    @property
    def order(self) -> int:
        return self.view.order

    @property
    def now(self) -> float | None:
        return self.view.now

    def receipt(self, key: str) -> Reading[Receipt]:
        """The newest legible record, or nothing, and never a word about health."""
        reading = self.view.receipt(key)
        found = reading.records[-1:]
        return Reading(found, len(found), Health.INTACT if found else Health.ABSENT, reading.where if found else "")

    def attempt(self, key: str) -> Reading[Attempt]:
        return self.view.attempt(key)

    def session(self, key: str) -> Reading[Session]:
        return self.view.session(key)

    def approval(self, key: str) -> Reading[Approval]:
        return self.view.approval(key)

    def lease(self, task: str) -> Reading[Lease]:
        return self.view.lease(task)

    def steps(self, root: str) -> Reading[Step]:
        return self.view.steps(root)

    def note(self, key: str) -> Reading[Note]:
        return self.view.note(key)

    def task_of(self, key: str) -> str | None:
        return self.view.task_of(key)

    def keys(self, task: str) -> Iterable[str]:
        return self.view.keys(task)

    def all_keys(self) -> Iterable[str]:
        return self.view.all_keys()

    def stray(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.view.stray() if finding.store != "receipts")
