"""Moves: what a driver can let happen in a simulated world. Each is a name with arguments, and survives in a file.

A gate is named by its process, kind and subject, so that a move keeps its meaning when others before it are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import frozen

from onestart import Ruling
from onestart_conformance.breakage import break_in
from onestart_conformance.damage import DAMAGES, damage, lose_attempt, targets
from onestart_conformance.disk import Fuse
from onestart_conformance.doubles import REVISION
from onestart_conformance.gates import LEDGER, RULE, SLEEP, START, Gate
from onestart_conformance.world import World
from onestart_model.execution import Step

GO = "go"
RULINGS = {
    "in force": Ruling(REVISION),
    "stale": Ruling("r2"),
    "needs approval": Ruling(REVISION, needs_approval=True),
}
ANSWERS = {RULE: tuple(RULINGS), START: (GO, "lost", "failed")}
CALLS = ("submit", "cancel", "reconcile", "recover", "settle", "repair_lease", "approve")
FAILURES = ("dies", "fails")


@frozen
class Move:
    """name: call, open, break, die, finish, pass_time, damage, lose_attempt or power_failure."""

    name: str
    arguments: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@frozen
class Allowed:
    """What a run may use; swarms of runs with different ones find more than all of them together.

    calls: at most this many are under way in one process at a time. careless: an operator settles without looking.
    """

    foreign: bool = True
    stale: bool = True
    approvals: bool = True
    cancel: bool = True
    operator: bool = True
    recovery: bool = True
    crashes: bool = True
    torn: bool = True
    errors: bool = True
    power: bool = True
    time: bool = True
    damage: bool = True
    rollback: bool = True
    executor: bool = True
    careless: bool = False
    calls: int = 2


def moves(world: World, allowed: Allowed) -> Iterator[Move]:
    """Every move that is possible now, in a fixed order."""
    yield from _opened(world, allowed)
    yield from _called(world, allowed)
    yield from _of_the_world(world, allowed)


def _opened(world: World, allowed: Allowed) -> Iterator[Move]:
    seen: dict[tuple[int, str, str], int] = {}
    for gate in world.gates():
        name = (gate.node, gate.kind, gate.subject)
        nth = seen[name] = seen.get(name, -1) + 1
        if (gate.kind == SLEEP and not allowed.time) or not _operator_may(world, gate, allowed):
            continue
        where = (gate.node, gate.kind, gate.subject, nth)
        for answer in ANSWERS.get(gate.kind, (GO,)):
            if _answer_allowed(answer, allowed):
                yield Move("open", (*where, answer))
        if gate.kind == LEDGER and allowed.torn and allowed.crashes:
            yield Move("break", (*where, "dies"))
        if gate.kind == LEDGER and allowed.errors:
            yield Move("break", (*where, "fails"))


def _operator_may(world: World, gate: Gate, allowed: Allowed) -> bool:
    """Whoever settles a key has made sure that nothing of it runs or is about to start: that is assumed of a person."""
    call = world.calls[gate.submission]
    if call.name != "settle" or allowed.careless:
        return True
    step = Step("settle", (world.keys[call.key],))
    return world.rules.enabled(world.monitor.state, step) or not world.rules.forbidden_by(world.monitor.state, step)


def _answer_allowed(answer: str, allowed: Allowed) -> bool:
    needed = {"stale": allowed.stale, "needs approval": allowed.approvals, "lost": allowed.executor}
    return needed.get(answer, True) and (answer != "failed" or allowed.executor)


def _called(world: World, allowed: Allowed) -> Iterator[Move]:
    names = [name for name in CALLS if _call_allowed(name, allowed)]
    busy = sum(len(node.calls) for node in world.nodes)
    for node in world.nodes:
        if len(node.calls) >= allowed.calls or busy >= len(world.monitor.slots) * allowed.calls:
            continue
        if len(node.calls) and busy >= len(world.monitor.slots):
            continue
        for name in names:
            for key in world.keys:
                yield Move("call", (node.index, name, key, 0))
                if name == "submit" and allowed.foreign:
                    yield Move("call", (node.index, name, key, 1))
                if name == "recover":
                    break


def _call_allowed(name: str, allowed: Allowed) -> bool:
    needed = {
        "cancel": allowed.cancel,
        "settle": allowed.operator,
        "repair_lease": allowed.operator,
        "recover": allowed.recovery,
        "approve": allowed.approvals,
    }
    return needed.get(name, True)


def _of_the_world(world: World, allowed: Allowed) -> Iterator[Move]:
    busy = [node for node in world.nodes if node.calls or node.gates.waiting]
    if allowed.crashes:
        yield from (Move("die", (node.index,)) for node in busy)
    if allowed.power and busy:
        yield Move("power_failure", (len(world.events),))
    if allowed.time and world.monitor.ends:
        yield Move("pass_time")
    yield from (Move("finish", (key,)) for key in world.keys if key in world.engine.running)
    damageable = list(targets(world)) if allowed.damage or allowed.rollback else []
    if allowed.damage:
        yield from (Move("damage", (kind, key, how)) for kind, key in damageable for how in DAMAGES)
    if allowed.rollback:
        yield from (Move("lose_attempt", (key,)) for kind, key in damageable if kind == "attempt")


def find_gate(world: World, node: int, kind: str, subject: str, nth: int) -> Gate | None:
    """The gate that a move names, None if nobody waits there."""
    found = [g for g in world.gates() if (g.node, g.kind, g.subject) == (node, kind, subject)]
    return found[nth] if nth < len(found) else None


def take(world: World, move: Move) -> bool:
    """Let a move happen. False if it has no meaning now, and nothing was done."""
    return _TAKEN[move.name](world, *move.arguments)


def _call(world: World, node: int, name: str, key: str, foreign: int) -> bool:
    world.call(node, name, key, foreign=bool(foreign))
    return True


def _open(world: World, node: int, kind: str, subject: str, nth: int, answer: str) -> bool:
    gate = find_gate(world, node, kind, subject, nth)
    if gate is None:
        return False
    if gate.kind == SLEEP:
        world.time.at(gate)
        world.monitor.time(world.time.seconds)
    world.open(gate, RULINGS.get(answer, None if answer == GO else answer))
    return True


def _break(
    world: World, node: int, kind: str, subject: str, nth: int, failure: str, at: int = 0, torn: int = 0
) -> bool:
    gate = find_gate(world, node, kind, subject, nth)
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
