"""The chain's way to the outside: ports, and the events that say what was done there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Generic, TypeVar

from attrs import define, field, frozen

from onestart.command import Command
from onestart.events import Event, Observer
from onestart.ports import Clock, Executor, Governance, Ledger, Order, View
from onestart.records import Record

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@frozen
class Decision(Generic[T_co]):
    """What a ledger step does. action: the event that tells of it, empty if there is nothing to tell."""

    value: T_co
    action: str = ""
    record: Record | None = None
    details: Mapping[str, Any] = field(factory=dict)


@define
class Strand:
    """One submission on its way, in one process.

    token: of the lease that it acquired, 0 if none. started: whether this strand started its key. failure: what the
    executor raised instead of starting it. seen: how many records the ledger had when the strand last looked. fresh:
    whether it is certainly the key's first submission. executor: the name of the executor that it deals with.
    elsewhere: that one cannot tell what became of the key.
    """

    number: int
    key: str
    task: str
    fingerprint: str = ""
    token: int = 0
    started: bool = False
    failure: str = ""
    seen: int = 0
    fresh: bool = False
    executor: str = ""
    elsewhere: bool = False

    def order_of(self, command: Command) -> Order:
        """What the executor gets; the payload is a copy, since a function may change what it is given."""
        return Order(command.key, command.task, self.token, command.function, deepcopy(command.payload))


@frozen
class Outside:
    """All ports of one process. lease_seconds: how long a lease lasts unless it is renewed."""

    ledger: Ledger
    executor: Executor
    governance: Governance
    clock: Clock
    observer: Observer
    process: str
    lease_seconds: float

    async def identify(self) -> str:
        """The executor's name, empty if it has none."""
        identify = getattr(self.executor, "identify", None)
        return str(await identify()) if identify is not None else ""

    def now(self, view: View) -> float:
        """The time by which leases end: that of the ledger's clock if it has one, else of this process's."""
        return self.clock.now() if view.now is None else view.now

    async def step(self, strand: Strand, decide: Callable[[View], Decision[T]]) -> T:
        """One ledger step, and its event once the record is durable."""

        def at_once(view: View) -> tuple[Record | None, tuple[Decision[T], int]]:
            decision = decide(view)
            return decision.record, (decision, view.order + (decision.record is not None))

        decision, strand.seen = await self.ledger.step(at_once)
        if decision.action:
            self.tell(decision.action, strand, **decision.details)
        return decision.value

    def tell(self, action: str, strand: Strand, **details: Any) -> None:
        """Emit an event."""
        self.observer(
            Event(
                action,
                self.process,
                strand.number,
                strand.key,
                strand.task,
                strand.seen,
                self.clock.now(),
                strand.token,
                strand.fingerprint,
                details,
            )
        )
