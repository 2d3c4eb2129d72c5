"""A plan: a program, in which order results arrive in each attempt, and where attempts are cut short."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from onestart.flow.definition import InFlight
from onestart_conformance.flows.program import Program, from_json, to_json

Order = tuple[int, ...]


@frozen
class Stop:
    """Where an attempt is cut short. after: what was just written or has happened, such as `done b` or `start b` of the
    call that asks for b. more: so many ledger writes, starts and ends of effects later.

    stalls: the driver stands still and goes on when the next one has ended, instead of dying.
    """

    after: str
    more: int = 0
    stalls: bool = False


@frozen
class Plan:
    """orders: by attempt, which of the open effects ends next, as a number among them in the order of the text; 0 when
    they are used up. stops: by attempt. changed: what the program has become when it is resumed, None if it stays.

    version: of step ids. in_flight: what workers declare. slots: of each kind of worker, 0 for any number.
    eager: questions are answered although their driver has died.
    """

    program: Program
    orders: tuple[Order, ...] = ()
    stops: tuple[Stop | None, ...] = ()
    version: int = 3
    in_flight: InFlight = "again"
    slots: int = 0
    changed: Program | None = None
    eager: bool = False

    def order(self, attempt: int) -> Order:
        return self.orders[attempt] if attempt < len(self.orders) else ()

    def stop(self, attempt: int) -> Stop | None:
        return self.stops[attempt] if attempt < len(self.stops) else None

    def program_of(self, attempt: int) -> Program:
        return self.changed if attempt and self.changed is not None else self.program

    def to_json(self) -> dict[str, Any]:
        """As a file holds it."""
        return {
            "program": to_json(self.program.block),
            "changed": None if self.changed is None else to_json(self.changed.block),
            "orders": [list(order) for order in self.orders],
            "stops": [None if stop is None else [stop.after, stop.more, stop.stalls] for stop in self.stops],
            "version": self.version,
            "in_flight": self.in_flight,
            "slots": self.slots,
            "eager": self.eager,
        }


def from_document(document: Any) -> Plan:
    """Raises ValueError, KeyError or TypeError for what is no plan."""
    if document["in_flight"] not in ("again", "ask", "hold") or document["version"] not in (2, 3):
        raise ValueError("no such worker or version")
    changed = document["changed"]
    return Plan(
        Program(from_json(document["program"])),
        tuple(tuple(int(number) for number in order) for order in document["orders"]),
        tuple(None if stop is None else Stop(str(stop[0]), int(stop[1]), bool(stop[2])) for stop in document["stops"]),
        document["version"],
        document["in_flight"],
        int(document["slots"]),
        None if changed is None else Program(from_json(changed)),
        bool(document["eager"]),
    )
