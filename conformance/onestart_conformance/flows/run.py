"""A run: a plan played in a fresh world, attempt after attempt, until a judge objects or the flow is over."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import lru_cache
from typing import Any

from attrs import evolve

from onestart.flow import Flows, Outcome
from onestart_conformance.flows.abstraction import Abstraction
from onestart_conformance.flows.attempt import Attempt, Gate
from onestart_conformance.flows.judges import Judges
from onestart_conformance.flows.loop import FlowLoop
from onestart_conformance.flows.monitor import Monitor
from onestart_conformance.flows.outcomes import comparable, done_order, judge_journals, judge_outcome
from onestart_conformance.flows.plan import Plan
from onestart_conformance.flows.program import ROOT
from onestart_conformance.flows.reference import answer_to
from onestart_conformance.flows.world import LEASE, Told, World
from onestart_conformance.judgement import CRASH, Objection
from onestart_conformance.rules import Rules
from onestart_model.flows import FLOWS
from onestart_model.instance import Instance

MOST_ATTEMPTS = 8
MOST_WAKES = 50

Choose = Callable[[Told, list[Gate]], int]


def play(plan: Plan, choose: Choose | None = None, *, judged: bool = True, followed: bool = False) -> World:
    """Play a plan to its end. choose: which of the open effects ends next, instead of what the plan says.

    judged: whether the run ends with the first objection; otherwise nobody objects. followed: whether it is followed
    on the model as well, whose objection counts when no judge has one.
    """
    world = World(plan, judged=judged)
    judges = Judges(world)
    monitor = monitor_of(plan) if followed else None
    lives: list[Attempt] = []
    try:
        for number in range(MOST_ATTEMPTS):
            told = Told(number)
            world.told.append(told)
            _attempt(Attempt(world, judges, told, plan.stop(number), monitor), lives, choose or _planned(plan))
            if world.objection is not None or _over(plan, told):
                break
            _between(world, judges, told, monitor)
    finally:
        for attempt in lives:
            attempt.end()
    if monitor is not None:
        world.followed = monitor
        world.object_to(monitor.objection)
    return world


def examined(plan: Plan, *, followed: bool = False) -> World:
    """Play a plan, and where every attempt kept to the order compare its journal with that of a run without a stop."""
    world = play(plan, followed=followed)
    if world.objection is None and comparable(world):
        arrived = [placed.position for placed in done_order(world)]
        through = play(evolve(plan, stops=()), _in_order_of(arrived))
        world.object_to(judge_journals(world, through))
    return world


def _in_order_of(positions: Sequence[str]) -> Choose:
    rank = {position: number for number, position in enumerate(positions)}

    def choose(told: Told, gates: list[Gate]) -> int:
        ranks = [rank.get(gate.effect.placed.position, len(rank)) for gate in gates]
        return ranks.index(min(ranks))

    return choose


def _attempt(attempt: Attempt, lives: list[Attempt], choose: Choose) -> None:
    """Drive an attempt; then a driver that stood still all the while goes on."""
    world, told = attempt.world, attempt.told
    before = world.ledger.asked
    lives.append(attempt)
    attempt.begin()
    _drive(attempt, choose)
    told.outcome = attempt.outcome()
    attempt.judges.ends(told, world.ledger.asked - before)
    if attempt.monitor is not None:
        attempt.monitor.looked(told.number, world.ledger.asked - before)
    if not attempt.cut:
        judge_outcome(world, told)
        _concluded(attempt)
    for earlier in lives[:-1]:
        if not earlier.dead:
            earlier.go_on()
            _drive(earlier, lambda told, gates: 0)
            _end(earlier)
    if attempt.dead or not attempt.cut:
        _end(attempt)


def _concluded(attempt: Attempt) -> None:
    outcome, monitor = attempt.told.outcome, attempt.monitor
    if monitor is not None and outcome is not None:
        monitor.concluded(attempt.told.number, outcome)


def _end(attempt: Attempt) -> None:
    attempt.end()
    if attempt.monitor is not None:
        attempt.monitor.ended(attempt.told.number)
    _look(attempt)


def _look(attempt: Attempt) -> None:
    """At rest, what is on record has to be what the model says."""
    if attempt.monitor is not None and not attempt.monitor.stopped:
        attempt.monitor.at_rest(attempt.world.read())


def _drive(attempt: Attempt, choose: Choose) -> None:
    """Let effects end, one after the other, until the driver is done or cut off."""
    wakes = 0
    while not (attempt.over or attempt.cut) and attempt.world.objection is None:
        _look(attempt)
        gates = attempt.open()
        if gates:
            which = choose(attempt.told, gates) % len(gates)
            attempt.told.choices.append((len(gates), which))
            attempt.arrive(which)
        elif wakes == MOST_WAKES or not attempt.wake():
            attempt.world.object_to(Objection(CRASH, f"attempt {attempt.told.number + 1} does not get on"))
        else:
            wakes += 1


def monitor_of(plan: Plan) -> Monitor:
    """Who follows a plan on the model."""
    abstraction = Abstraction.of(plan)
    return Monitor(abstraction, rules_of(tuple(abstraction.sizes.items())))


@lru_cache(64)
def rules_of(sizes: tuple[tuple[str, int], ...], without: frozenset[str] = frozenset()) -> Rules:
    """The rules for programs of these sizes."""
    return Rules(Instance.of(FLOWS, sizes=dict(sizes), without=without), cached=1_000)


def _planned(plan: Plan) -> Choose:
    def choose(told: Told, gates: list[Gate]) -> int:
        order, made = plan.order(told.number), len(told.choices)
        return order[made] if made < len(order) else 0

    return choose


def _over(plan: Plan, told: Told) -> bool:
    outcome = told.outcome
    if outcome is None or outcome.state == "parked":
        return False
    if outcome.state in ("refused", "held"):
        return told.number + 1 >= len(plan.orders)
    return outcome.state != "lost"


def _between(world: World, judges: Judges, told: Told, monitor: Monitor | None) -> None:
    """Questions are answered, and whatever the last driver held runs out."""
    world.seconds += LEASE + 1
    parked = told.outcome is not None and told.outcome.state == "parked"
    if parked or (told.outcome is None and world.plan.eager):
        answered = {entry.step for entry in world.journal() if entry.what == "answer"}
        for wait in [wait for wait in judges.questions if wait not in answered]:
            value = answer_to(world.name(judges.questions[wait]))
            world.note(told.number, f"{wait} is answered: {value}")
            _alone(_answering(world, wait, value))
            if monitor is not None:
                monitor.answers(wait, value)


async def _answering(world: World, wait: str, value: str) -> None:
    flows = Flows(ledger=world.ledger, process="person", lease_seconds=LEASE)
    await flows.answer(ROOT, wait, value)


def _alone(work: Coroutine[Any, Any, None]) -> None:
    loop = FlowLoop()  # type: ignore[abstract]
    task = loop.create_task(work)
    loop.rest()
    task.result()


def outcome_of(world: World) -> Outcome | None:
    """What the last attempt came to."""
    return world.told[-1].outcome
