"""Which moves may bring about an action of the model: what a state machine is generated from.

A strand that waits at the ledger may take any step that the model allows it at its stage; which one the library chooses
is what the monitor looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from onestart_conformance.gates import LEDGER, LOOK_UP, RULE, RUNNING, SLEEP, START, STOP, Gate
from onestart_conformance.moves import Move, find_gate
from onestart_conformance.world import World
from onestart_model.execution import Step
from onestart_model.rules import Action

CALLED: Mapping[str, tuple[str, ...]] = {
    "accept": ("submit",),
    "replay": ("submit",),
    "conflict": ("submit",),
    "cancel": ("cancel",),
    "cancel_session": ("cancel",),
    "report_dispatched": ("submit", "recover"),
    "report_closed": ("submit", "cancel"),
    "reconcile": ("reconcile",),
    "release": ("reconcile",),
    "settle": ("settle",),
    "repair_lease": ("repair_lease",),
    "enter": ("approve",),
}
GATES: Mapping[str, tuple[str, ...]] = {
    START: ("start",),
    LOOK_UP: ("look_up",),
    SLEEP: ("renew",),
    RUNNING: ("reconcile",),
    STOP: ("cancel_session",),
}
WORLD: Mapping[str, str] = {
    "die": "crash",
    "break": "crash",
    "power_failure": "crash",
    "pass_time": "expire",
    "finish": "finish",
    "lose_attempt": "lose_attempt",
}
DAMAGES = {
    "receipt": "damage_receipt",
    "attempt": "damage_attempt",
    "session": "damage_session",
    "lease": "damage_lease",
}


def aims(world: World, move: Move) -> Iterator[str]:
    """The actions of the model that the move may bring about."""
    if move.name == "call":
        yield from _called(world, move)
    elif move.name == "open":
        yield from _opened(world, move)
    elif move.name == "damage":
        yield DAMAGES[str(move.arguments[0])]
    else:
        yield WORLD[move.name]


def _called(world: World, move: Move) -> Iterator[str]:
    node, name, key, foreign = move.arguments
    index = world.keys[str(key)]
    for action, names in CALLED.items():
        if name not in names:
            continue
        if action == "conflict" and not foreign:
            continue
        if action in ("accept", "replay", "cancel", "cancel_session", "settle") and not _possible(world, action, index):
            continue
        yield action


def _possible(world: World, action: str, key: int) -> bool:
    """Whether the model allows the action for the key now, to whoever asks."""
    parameters = world.rules.instance.model.action_named(action).parameters
    if len(parameters) == 1:
        return world.rules.enabled(world.monitor.state, Step(action, (key,)))
    more = (False,) * (len(parameters) - 2)
    slots = range(len(world.monitor.slots))
    return any(world.rules.enabled(world.monitor.state, Step(action, (slot, key, *more))) for slot in slots)


def _opened(world: World, move: Move) -> Iterator[str]:
    node, kind, subject, nth, answer = move.arguments
    if kind == RULE:
        yield "refuse" if answer == "stale" else "enter"
        return
    if kind != LEDGER:
        yield from GATES[str(kind)]
        return
    gate = find_gate(world, int(node), str(kind), str(subject), int(nth))
    assert gate is not None
    yield from _next_of(world, gate)


def _next_of(world: World, gate: Gate) -> Iterator[str]:
    """What the strand that waits at the ledger may do next, as far as the model says."""
    call = world.calls[gate.submission]
    slot = None if call.strand is None else world.monitor.slot_of(call.strand)
    key = world.keys.get(call.key, 0)
    found = False
    for action in world.rules.instance.model.actions:
        if slot is not None and takes_process(action):
            more = (False,) * (len(action.parameters) - 2)
            if world.rules.enabled(world.monitor.state, Step(action.name, (slot, key, *more))):
                found = True
                yield action.name
    if not found:
        yield from (action for action, names in CALLED.items() if call.name in names)
        yield "report"


def takes_process(action: Action) -> bool:
    """Whether the action is a step of the library's by one of its strands."""
    return len(action.parameters) > 1 and str(action.parameters[0].type) == "Process"


Aiming = Callable[[World, Move], Iterator[str]]
