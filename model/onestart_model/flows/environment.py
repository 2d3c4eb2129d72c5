"""What the world does to a flow: crashes, and people who answer.

What is assumed:
- of the program, what `program` says;
- a record is written wholly or not at all, is never lost, and a driver that lost its lease writes none;
- an executor starts effects for the driver that leads the root alone, and can be asked what it has started;
- results arrive in any order, whenever they like.
"""

from __future__ import annotations

from onestart_model import environment, forget, require
from onestart_model.flows.state import Driver, Entry, Id, Kind, State


@environment("crash", source="serial ordinals, summary: resume")
def crash(s: State, d: Driver) -> None:
    """A driver dies with all that it had in memory; effects that it started go on without it."""
    require(s.active[d])
    forget(s, d)


@environment("person", source="serial ordinals, mechanism: f.human")
def answer(s: State, x: Id) -> None:
    """Somebody answers a parked question."""
    require(s.entry[x] == Entry.ADMITTED, s.filed[x] == Kind.HUMAN)
    s.entry[x] = Entry.COMPLETED
