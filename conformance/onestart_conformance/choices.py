"""What a random drive chooses among: for each action of the model, the kinds of moves that may bring it about.

A strand that waits at the ledger may take any step of its own; which one it takes is the library's choice, and the
monitor's concern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import frozen

from onestart_conformance.damage.drives import targets
from onestart_conformance.damage.lines import DAMAGES
from onestart_conformance.gates import LEDGER, RULE, SLEEP, START, Gate
from onestart_conformance.moves import GO, Move, name_of
from onestart_conformance.world import World
from onestart_model.execution import Step
from onestart_model.rules import Model

AIMS: Mapping[str, tuple[str, ...]] = {
    "accept": ("submit",),
    "replay": ("submit", "foreign"),
    "conflict": ("foreign",),
    "enter": ("go", "approval", "approve"),
    "refuse": ("stale",),
    "cancel": ("cancel",),
    "cancel_session": ("cancel",),
    "report_closed": ("go", "submit"),
    "report_dispatched": ("go", "submit", "recover"),
    "report": ("go", "submit"),
    "offer": ("go",),
    "claim": ("go",),
    "intend": ("go",),
    "note": ("go",),
    "start": ("go", "lost"),
    "record": ("go",),
    "ask": ("go",),
    "look_up": ("go",),
    "give_up": ("go",),
    "renew": ("wake",),
    "withdraw": ("go",),
    "abandon": ("go",),
    "reconcile": ("reconcile",),
    "release": ("reconcile",),
    "settle": ("settle",),
    "repair_lease": ("repair_lease",),
    "crash": ("die", "break", "power_failure"),
    "expire": ("pass_time",),
    "finish": ("finish",),
    "damage_receipt": ("damage",),
    "damage_attempt": ("damage",),
    "damage_session": ("damage",),
    "damage_lease": ("damage",),
    "lose_attempt": ("lose_attempt",),
}

WEIGHTS: Mapping[str, int] = {"go": 24, "submit": 5, "finish": 2, "reconcile": 2, "die": 2, "break": 2, "pass_time": 2}

STRIDE = 8
SWARMED = tuple(sorted({kind for kinds in AIMS.values() for kind in kinds} - {"go", "submit"}))


@frozen
class Allowed:
    """What a run may use. Swarms of runs with different ones find more than runs with everything.

    kinds: of moves. calls: at most this many are under way at once in one process. favor: says which process is
    ahead of the others, and when; the longer one stands still, the more it misses. careless: an operator settles a key
    without having looked.
    """

    kinds: frozenset[str] = frozenset(SWARMED)
    calls: int = 2
    favor: int = 0
    careless: bool = False

    def ahead(self, step: int, processes: int) -> int:
        """The process that is ahead at a step."""
        return (self.favor >> 2 * (step // STRIDE)) % processes

    def choices(self) -> tuple[str, ...]:
        """The kinds, each as often as its weight."""
        kinds = ("go", "submit", *sorted(self.kinds))
        return tuple(kind for kind in kinds for _ in range(WEIGHTS.get(kind, 1)))


def kind_of(move: Move) -> str:
    """Which kind a move is of."""
    if move.name == "call":
        return "foreign" if move.arguments[3] else str(move.arguments[1])
    if move.name == "open":
        kind, answer = move.arguments[2], str(move.arguments[4])
        return {SLEEP: "wake"}.get(str(kind), {"needs approval": "approval"}.get(answer, answer))
    return move.name


def without_aim(model: Model) -> tuple[str, ...]:
    """Actions of a model that no move aims at: a drive would never try them."""
    return tuple(action.name for action in model.actions if action.name not in AIMS)


def moves(world: World, kind: str, allowed: Allowed) -> list[Move]:
    """Every move of a kind that is possible now, in a fixed order."""
    return list(_KINDS[kind](world, allowed))


def _gates(world: World) -> Iterator[tuple[Gate, tuple[int, str, str, int]]]:
    """Every waiting gate, with how a move names it."""
    seen: dict[tuple[int, str, str], int] = {}
    for gate in world.gates():
        name = name_of(world, gate)
        nth = seen[name] = seen.get(name, -1) + 1
        yield gate, (*name, nth)


def _opening(kind: str, answer: str) -> Callable[[World, Allowed], Iterator[Move]]:
    def found(world: World, allowed: Allowed) -> Iterator[Move]:
        yield from (Move("open", (*name, answer)) for gate, name in _gates(world) if gate.kind == kind)

    return found


def _go(world: World, allowed: Allowed) -> Iterator[Move]:
    for gate, name in _gates(world):
        if gate.kind != SLEEP and _operator_may(world, gate, allowed):
            yield Move("open", (*name, "in force" if gate.kind == RULE else GO))


def _operator_may(world: World, gate: Gate, allowed: Allowed) -> bool:
    """Whoever settles a key has made sure that nothing of it runs or is about to start: that is assumed of a person."""
    call = world.calls[gate.submission]
    if call.name != "settle" or allowed.careless:
        return True
    step = Step("settle", (world.keys[call.key],))
    return not world.rules.forbidden_only_by("operator-looks-first", world.monitor.state, step)


def _break(world: World, allowed: Allowed) -> Iterator[Move]:
    for gate, name in _gates(world):
        if gate.kind == LEDGER and _operator_may(world, gate, allowed):
            yield Move("break", (*name, "dies"))
            yield Move("break", (*name, "fails"))


def _calling(name: str, *, foreign: bool = False) -> Callable[[World, Allowed], Iterator[Move]]:
    def found(world: World, allowed: Allowed) -> Iterator[Move]:
        busy = sum(len(node.calls) for node in world.nodes)
        for node in world.nodes:
            room = len(node.calls) < allowed.calls if busy < len(world.nodes) else not node.calls
            if room and busy < len(world.monitor.slots):
                yield from (Move("call", (node.index, name, key, int(foreign))) for key in world.keys)

    return found


def _die(world: World, allowed: Allowed) -> Iterator[Move]:
    yield from (Move("die", (node.index,)) for node in world.nodes if node.calls or node.gates.waiting)


def _power(world: World, allowed: Allowed) -> Iterator[Move]:
    if any(node.calls for node in world.nodes):
        yield Move("power_failure", (len(world.events),))


def _time(world: World, allowed: Allowed) -> Iterator[Move]:
    if world.monitor.ends:
        yield Move("pass_time")


def _finish(world: World, allowed: Allowed) -> Iterator[Move]:
    yield from (Move("finish", (key,)) for key in world.keys if key in world.engine.running)


def _damage(world: World, allowed: Allowed) -> Iterator[Move]:
    yield from (Move("damage", (kind, key, how)) for kind, key in targets(world) for how in DAMAGES)


def _lose(world: World, allowed: Allowed) -> Iterator[Move]:
    yield from (Move("lose_attempt", (key,)) for kind, key in targets(world) if kind == "attempt")


_KINDS: Mapping[str, Callable[[World, Allowed], Iterator[Move]]] = {
    "go": _go,
    "stale": _opening(RULE, "stale"),
    "approval": _opening(RULE, "needs approval"),
    "lost": _opening(START, "lost"),
    "wake": _opening(SLEEP, GO),
    "submit": _calling("submit"),
    "foreign": _calling("submit", foreign=True),
    "cancel": _calling("cancel"),
    "reconcile": _calling("reconcile"),
    "recover": _calling("recover"),
    "settle": _calling("settle"),
    "repair_lease": _calling("repair_lease"),
    "approve": _calling("approve"),
    "die": _die,
    "break": _break,
    "power_failure": _power,
    "pass_time": _time,
    "finish": _finish,
    "damage": _damage,
    "lose_attempt": _lose,
}
