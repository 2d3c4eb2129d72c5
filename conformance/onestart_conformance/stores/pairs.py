"""Two processes at one ledger, one of which meets an error: what the other one finds stays so for who comes later."""

from __future__ import annotations

from collections.abc import Iterator

from onestart.ports import Ledger, LedgerUnavailableError
from onestart.records import Receipt
from onestart_conformance.stores.crashes import Explored
from onestart_conformance.stores.judging import AGREED, Breach
from onestart_conformance.stores.machines import MACHINES, Machine
from onestart_conformance.stores.medium import KINDS, Image, Medium, State, Trouble
from onestart_conformance.stores.stage import turns

MOST = 40  # operations of a step, at most
FIRST = Receipt("k1", "t1", "pending", "f")
SECOND = Receipt("k2", "t2", "pending", "f")


def pairs(name: str) -> Explored:
    """Every operation of a step fails once, in every way, while another process has the ledger open."""
    machine, explored = MACHINES[name], Explored(name, "two processes")
    image = _begun(machine)
    for at in range(1, MOST):
        for how in sorted({how for hows in KINDS.values() for how in hows} - {"killed"}):
            medium = Medium(State.of(image))
            found = _pair(machine, medium, Trouble(at, how))
            if found is None:
                continue
            explored.failed += 1
            explored.images += 1
            for what in _later(machine, medium.state.seen, found):
                explored.object_to(Breach(AGREED, what), f"{how} at operation {at}")
    return explored


def _begun(machine: Machine) -> Image:
    medium = Medium()
    with machine(medium) as opened:
        _put(opened(), FIRST)
        return dict(medium.state.seen)


def _pair(machine: Machine, medium: Medium, trouble: Trouble) -> bool | None:
    """Whether the other process finds the record; None if nothing has failed."""
    with machine(medium) as opened:
        one, other = opened(), opened()
        for ledger in (one, other):
            _there(ledger)
        medium.trouble = Trouble(medium.operations + trouble.at, trouble.how)
        try:
            _put(one, SECOND)
        except LedgerUnavailableError:
            medium.trouble = None
        else:
            return None
        found = _there(other)
        medium.dead = True
    return found


def _later(machine: Machine, image: Image, found: bool) -> Iterator[str]:
    """What a process finds that comes when the others are gone."""
    with machine(Medium(State.of(image))) as opened:
        if _there(opened()) != found:
            yield f"a process found the record {'there' if found else 'absent'}, and one that came later did not"


def _put(ledger: Ledger, record: Receipt) -> None:
    turns().finish(ledger.step(lambda view: (record, None)))


def _there(ledger: Ledger) -> bool:
    return turns().finish(ledger.step(lambda view: (None, view.receipt("k2").exists)))
