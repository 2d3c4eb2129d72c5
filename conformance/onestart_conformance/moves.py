"""Moves: what a driver can let happen in a simulated world. Each is a name with arguments, and survives in a file.

A gate is named by its process, its kind and the call that waits there, so that a move keeps its meaning when others
before it are left out.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onestart import Ruling
from onestart_conformance.breakage import break_in
from onestart_conformance.damage.drives import damage, lose_attempt
from onestart_conformance.disk import Fuse
from onestart_conformance.doubles import REVISION
from onestart_conformance.gates import SLEEP, Gate
from onestart_conformance.world import World

GO = "go"
RULINGS = {
    "in force": Ruling(REVISION),
    "stale": Ruling("r2"),
    "needs approval": Ruling(REVISION, needs_approval=True),
}


@frozen
class Move:
    """name: call, open, break, die, finish, pass_time, damage, lose_attempt or power_failure."""

    name: str
    arguments: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


def name_of(world: World, gate: Gate) -> tuple[int, str, str]:
    """Process, call and kind of a gate; several may have the same."""
    call = world.calls[gate.submission]
    return gate.node, f"{call.name} {call.key}{' foreign' * call.foreign}", gate.kind


def find_gate(world: World, node: int, call: str, kind: str, nth: int) -> Gate | None:
    """The gate that a move names, None if nobody waits there."""
    found = [gate for gate in world.gates() if name_of(world, gate) == (node, call, kind)]
    return found[nth] if nth < len(found) else None


def take(world: World, move: Move) -> bool:
    """Let a move happen. False if it has no meaning now, and nothing was done."""
    return _TAKEN[move.name](world, *move.arguments)


def _call(world: World, node: int, name: str, key: str, foreign: int) -> bool:
    world.call(node, name, key, foreign=bool(foreign))
    return True


def _open(world: World, node: int, call: str, kind: str, nth: int, answer: str) -> bool:
    gate = find_gate(world, node, call, kind, nth)
    if gate is None:
        return False
    if gate.kind == SLEEP:
        world.time.at(gate)
        world.monitor.time(world.time.seconds)
    world.open(gate, RULINGS.get(answer, None if answer == GO else answer))
    return True


def _break(world: World, node: int, call: str, kind: str, nth: int, failure: str, at: int = 0, torn: int = 0) -> bool:
    gate = find_gate(world, node, call, kind, nth)
    if gate is None:
        return False
    return break_in(world, gate, Fuse(at, torn, failure == "fails"))


def _die(world: World, node: int) -> bool:
    world.kill(node)
    return True


def _power_failure(world: World, seed: int) -> bool:
    world.power_failure(seed)
    return True


def _pass_time(world: World) -> bool:
    if not world.monitor.ends:
        return False
    world.pass_time(min(world.monitor.ends.values()) - world.time.seconds)
    return True


def _finish(world: World, key: str) -> bool:
    if key not in world.engine.running:
        return False
    world.engine.running.discard(key)
    world.monitor.world("finish", world.keys[key])
    return True


_TAKEN: dict[str, Callable[..., bool]] = {
    "call": _call,
    "open": _open,
    "break": _break,
    "die": _die,
    "power_failure": _power_failure,
    "pass_time": _pass_time,
    "finish": _finish,
    "damage": damage,
    "lose_attempt": lose_attempt,
}

NAMES = tuple(_TAKEN)
