"""Following a trace of the model on the library: for each step, the moves that make the library take it.

A trace may have been found by proof or enumeration, where nobody knew of a library. Each of its steps is looked for
among a few short sequences of moves; one is right if the monitor then is in the trace's next state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from onestart_conformance.gates import LEDGER, RULE, SLEEP
from onestart_conformance.judgement import Objection
from onestart_conformance.moves import GO, Move, name_of
from onestart_conformance.moves import take as take_move
from onestart_conformance.rules import Rules
from onestart_conformance.world import World
from onestart_model.counterexample import Counterexample
from onestart_model.execution import State, Step, renumber_stamps
from onestart_model.instance import Instance
from onestart_model.rules import SYSTEM

MOST_OPENED = 12
BESIDE = {
    "cancel": "cancel",
    "cancel_session": "cancel",
    "reconcile": "reconcile",
    "release": "reconcile",
    "settle": "settle",
    "repair_lease": "repair_lease",
}
DAMAGED = {
    "damage_receipt": "receipt",
    "damage_attempt": "attempt",
    "damage_session": "session",
    "damage_lease": "lease",
}


@frozen
class Followed:
    """moves: that were taken. reached: how many steps of the trace the library took.

    noticed: what the rules with every protection object to first, and at which step of the trace. objection: what ended
    it, such as a broken promise. instead: what the library did where the trace could not be followed.
    """

    moves: tuple[Move, ...]
    reached: int
    noticed: Objection | None
    noticed_at: int
    objection: Objection | None
    instead: str
    starts: dict[str, int]


def follow(trace: Counterexample, *, shipped: bool = False) -> Followed:
    """Make the library take the steps of a trace, as far as it does.

    shipped: judge it by all rules, and let nobody else do what they forbid, such as an operator who does not look.

    A trace may let a submission enter the callback that was received long before. If the library cannot be made to
    follow, it is tried once more with submissions that are received as soon as their key is accepted, and then wait.
    """
    rules, strict = Rules(trace.instance), Rules(_whole(trace.instance))
    judges = (strict, None) if shipped else (rules, strict)
    plain = _follow(trace, *judges, spare=False)
    if not plain.instead:
        return plain
    spared = _follow(trace, *judges, spare=True)
    return plain if spared.reached < plain.reached else spared


def _follow(trace: Counterexample, rules: Rules, strict: Rules | None, *, spare: bool) -> Followed:
    moves: tuple[Move, ...] = ()
    reached, noticed_at, instead = 0, 0, ""
    for number, step in enumerate(trace.steps, 1):
        found = _reach(rules, strict, moves, step, renumber_stamps(trace.states[number]))
        if found is None:
            instead = f"the library does not take {rules.machine.show_step(step)} here"
            break
        moves, world = found
        reached = number
        if world.monitor.noticed is not None and not noticed_at:
            noticed_at = number
        ended = world.objection is not None
        if spare and step.action == "accept" and not ended:
            moves += tuple(_spares(world, step))
        world.end()
        if ended:
            break
    world = _replayed(rules, strict, moves)
    world.end()
    starts = {key: world.engine.starts.get(key, 0) for key in world.keys}
    return Followed(moves, reached, world.monitor.noticed, noticed_at, world.objection, instead, starts)


def _spares(world: World, step: Step) -> Iterator[Move]:
    """A submission of the accepted key in each process, up to where governance is asked."""
    key = next(key for key, index in world.keys.items() if index == step.arguments[1])
    for node in world.nodes[:-1]:
        name = f"submit {key}"
        yield Move("call", (node.index, "submit", key, 0))
        yield Move("open", (node.index, name, LEDGER, 0, GO))


def _whole(instance: Instance) -> Instance:
    return Instance(instance.model, instance.sizes, instance.limits, instance.budgets, frozenset(), instance.fixed)


def _replayed(rules: Rules, strict: Rules | None, moves: Iterable[Move]) -> World:
    world = World(rules, bystanders=1, strict=strict)
    for move in moves:
        take_move(world, move)
    return world


def _reach(
    rules: Rules, strict: Rules | None, moves: tuple[Move, ...], step: Step, goal: State
) -> tuple[tuple[Move, ...], World] | None:
    """The moves with those that make the library take the step, and the world after them; None if nothing does."""
    now = _replayed(rules, strict, moves)
    plans = list(_plans(now, step))
    now.end()
    for plan in plans:
        world = _replayed(rules, strict, moves)
        taken = _carried_out(world, plan, step, goal)
        if taken is not None:
            return moves + taken, world
        world.end()
    return None


@frozen
class Plan:
    """first: the moves that begin it. call: whose gates are then opened, empty if none. ruling: governance's answer."""

    first: tuple[Move, ...] = ()
    call: tuple[int, str] | None = None
    ruling: str = "in force"
    asleep: bool = False


def _plans(world: World, step: Step) -> Iterator[Plan]:
    action = world.rules.instance.model.action_named(step.action)
    if action.cause != SYSTEM and not world.rules.enabled(world.monitor.state, step):
        return
    names: dict[object, str] = {index: key for key, index in world.keys.items()}
    if str(action.parameters[0].type) == "Process":
        node = step.arguments[0]
        assert isinstance(node, int)
        if step.action == "crash":
            yield Plan((Move("die", (node,)),))
        else:
            yield from _by_strand(world, step, node, names[step.arguments[1]])
        return
    first = step.arguments[0]
    assert isinstance(first, int)
    if step.action in BESIDE:
        yield from _beside(world, step, names[_key_of(world, step, first)])
    elif step.action in DAMAGED:
        key_name = names[_key_of(world, step, first)]
        yield Plan((Move("damage", (DAMAGED[step.action], key_name, "body")),))
    elif step.action == "expire":
        yield Plan((Move("pass_time"),))
    else:
        yield Plan((Move(step.action, (names[first],)),))


def _key_of(world: World, step: Step, first: int) -> int:
    """The key that stands for the argument: itself, or the first one of a task."""
    action = world.rules.instance.model.action_named(step.action)
    if str(action.parameters[0].type) != "Task":
        return first
    return next(i for k, i in world.keys.items() if world.tasks[world.commands[k, False].task] == first)


def _by_strand(world: World, step: Step, node: int, key: str) -> Iterator[Plan]:
    foreign = step.action == "conflict" or (step.action == "replay" and bool(step.arguments[2]))
    ruling = "in force"
    if step.action == "refuse" or (step.action == "enter" and not step.arguments[2]):
        ruling = "stale"
    elif step.action == "enter" and not step.arguments[3]:
        ruling = "needs approval"
    open_ended = step.action in ("report_closed", "report_dispatched", "report")
    rulings = (ruling, "stale", "needs approval") if open_ended else (ruling,)
    nodes = [node, *(n.index for n in world.nodes if n.index != node)]
    waiting = {name_of(world, gate)[:2] for gate in world.gates()}
    for answer in rulings:
        for where in nodes:
            for call in sorted(waiting):
                if call[0] == where and key in call[1]:
                    yield Plan((), call, answer, step.action == "renew")
        name = f"submit {key}{' foreign' * foreign}"
        yield Plan((Move("call", (node, "submit", key, int(foreign))),), (node, name), answer)


def _beside(world: World, step: Step, key: str) -> Iterator[Plan]:
    bystander = len(world.nodes) - 1
    name = BESIDE[step.action]
    yield Plan((), (bystander, f"{name} {key}"))
    yield Plan((Move("call", (bystander, name, key, 0)),), (bystander, f"{name} {key}"))
    waiting = {name_of(world, gate)[:2] for gate in world.gates()}
    yield from (Plan((), call) for call in sorted(waiting))


def _carried_out(world: World, plan: Plan, step: Step, goal: State) -> tuple[Move, ...] | None:
    """The moves, if they lead to the goal by one step of this action, or to an objection; else None."""
    taken: list[Move] = []
    before = len(world.monitor.steps)
    for move in plan.first:
        if not take_move(world, move):
            return None
        taken.append(move)
    for _ in range(MOST_OPENED):
        told = world.monitor.steps[before:]
        if world.objection is not None:
            return tuple(taken) if told and told[-1].action == step.action else None
        if told:
            right = len(told) == 1 and told[0].action == step.action and world.monitor.state == goal
            return tuple(taken) if right else None
        opened = _open(world, plan)
        if opened is None:
            return None
        taken.append(opened)
    return None


def _open(world: World, plan: Plan) -> Move | None:
    """Open the gate at which the plan's call waits: the newest one, as an older one may be of a call that rests."""
    found = [gate for gate in world.gates() if plan.call is not None and name_of(world, gate)[:2] == plan.call]
    found = [gate for gate in found if (gate.kind == SLEEP) == (plan.asleep and not _awake(world, plan))]
    if not found:
        return None
    newest = max(gate.submission for gate in found)
    gate = [gate for gate in found if gate.submission == newest][-1]
    same = [g for g in world.gates() if name_of(world, g) == name_of(world, gate)]
    move = Move("open", (*name_of(world, gate), same.index(gate), plan.ruling if gate.kind == RULE else GO))
    return move if take_move(world, move) else None


def _awake(world: World, plan: Plan) -> bool:
    """Whether the renewal of the call has woken up and waits at the ledger, beside the call itself."""
    ledger = [g for g in world.gates() if name_of(world, g)[:2] == plan.call and g.kind == LEDGER]
    asleep = [g for g in world.gates() if name_of(world, g)[:2] == plan.call and g.kind == SLEEP]
    return bool(ledger) and not asleep
