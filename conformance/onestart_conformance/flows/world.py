"""The world of a flow: its ledger, the effects that it has had, its time, and everything that was seen of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from onestart.flow import Outcome
from onestart.flow.journal import Journal, collect
from onestart.health import Reading
from onestart.memory import MemoryLedger, MemoryView
from onestart.records import Step as Entry
from onestart_conformance.flows.monitor import Monitor
from onestart_conformance.flows.plan import Plan
from onestart_conformance.flows.program import ROOT, Placed
from onestart_conformance.judgement import Objection

T = TypeVar("T")

LEASE = 30.0


class CountedView(MemoryView):
    """Counts how often the journal is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def steps(self, root: str) -> Reading[Entry]:
        self.asked += 1
        return super().steps(root)


class CountedLedger(MemoryLedger):
    """A ledger that outlives every driver."""

    def __init__(self) -> None:
        super().__init__()
        self._view: CountedView = CountedView()

    @property
    def asked(self) -> int:
        return self._view.asked

    @property
    def written(self) -> int:
        return self._view.order

    def newest(self) -> Any:
        return self._view.records[-1]


@define(eq=False)
class Effect:
    """Something that was done in the world. key: the idempotency key that it was done under."""

    placed: Placed
    attempt: int
    step: str
    key: str
    finished: bool = False


@frozen
class Noted:
    """Something that happened. attempt: from 0."""

    attempt: int
    what: str


@define(eq=False)
class Told:
    """What was seen of one attempt.

    asked: calls in the order in which the author made them. ids: of those that were declared, by position; placed: the
    other way round. refused: the first call that was. waiting: calls that were awaited before that. given: steps that
    gave a value. arrived: calls in the order in which their effects ended. wrote: entries of the journal.
    choices: of how many open effects which one ended. ticks: what has reached the world, by name; chosen: how many
    choices had been made by then.
    """

    number: int
    asked: list[Placed] = field(factory=list)
    ids: dict[str, str] = field(factory=dict)
    placed: dict[str, Placed] = field(factory=dict)
    refused: Placed | None = None
    waiting: set[str] = field(factory=set)
    given: set[str] = field(factory=set)
    indexed: set[str] = field(factory=set)
    arrived: list[Placed] = field(factory=list)
    wrote: list[Entry] = field(factory=list)
    choices: list[tuple[int, int]] = field(factory=list)
    ticks: list[str] = field(factory=list)
    chosen: list[int] = field(factory=list)
    outcome: Outcome | None = None


@define(eq=False)
class World:
    """seconds: of virtual time. told: by attempt. judged: whether anybody objects. followed: who did, on the model."""

    plan: Plan
    ledger: CountedLedger = field(factory=CountedLedger)
    seconds: float = 1000.0
    effects: list[Effect] = field(factory=list)
    noted: list[Noted] = field(factory=list)
    told: list[Told] = field(factory=list)
    objection: Objection | None = None
    judged: bool = True
    followed: Monitor | None = None

    def note(self, attempt: int, what: str) -> None:
        self.noted.append(Noted(attempt, what))

    def object_to(self, objection: Objection | None) -> None:
        """Keep the first objection."""
        if self.objection is None and objection is not None and self.judged:
            self.objection = objection

    def name(self, placed: Placed) -> str:
        """What a result belongs to: with counted ids, or when the text has changed, calls that ask for the same cannot
        be told from each other.
        """
        return placed.identity if self.plan.version >= 3 and self.plan.changed is None else placed.likeness

    def journal(self) -> list[Entry]:
        """The entries of the flow's journal, oldest first."""
        return [record for record in self.ledger.records if isinstance(record, Entry)]

    def read(self) -> Journal | None:
        """The journal as a fresh reader sees it."""
        entries = self.journal()
        return collect(ROOT, entries) if entries else None

    async def step(self, decide: Callable[[Any], tuple[Any, T]]) -> T:
        return await self.ledger.step(decide)
