"""Shrinking a plan: each part on its own, while the same judge objects for the same protection."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from onestart_conformance.flows.drawing import smaller
from onestart_conformance.flows.names import MODEL
from onestart_conformance.flows.plan import Order, Plan, Stop
from onestart_conformance.flows.program import Program
from onestart_conformance.flows.run import examined
from onestart_conformance.flows.world import World
from onestart_conformance.judgement import Objection
from onestart_conformance.runs import same

MOST_PLAYS = 1500


def shrink(plan: Plan, wanted: Objection) -> World:
    """The smallest plan that can be reached by taking away one thing after the other, played."""
    followed = wanted.oracle == MODEL
    best, plays = examined(plan, followed=followed), 0
    found = True
    while found and plays < MOST_PLAYS:
        found = False
        for candidate in candidates(best.plan):
            plays += 1
            world = examined(candidate, followed=followed)
            if same(world.objection, wanted):
                best, found = world, True
                break
            if plays >= MOST_PLAYS:
                break
    return best


def candidates(plan: Plan) -> Iterator[Plan]:
    """Plans with one thing less."""
    yield from _fewer_attempts(plan)
    if plan.changed is None:
        yield from (evolve(plan, program=Program(block)) for block in smaller(plan.program.block))
    else:
        yield evolve(plan, changed=None)
        both = zip(smaller(plan.program.block), smaller(plan.changed.block), strict=False)
        yield from (evolve(plan, program=Program(one), changed=Program(other)) for one, other in both)
        yield from (evolve(plan, changed=Program(block)) for block in smaller(plan.changed.block))
        yield from (evolve(plan, program=Program(block)) for block in smaller(plan.program.block))
    yield from (evolve(plan, stops=stops) for stops in _stops(plan.stops))
    for index, order in enumerate(plan.orders):
        before, after = plan.orders[:index], plan.orders[index + 1 :]
        yield from (evolve(plan, orders=(*before, other, *after)) for other in _orders(order))
    if plan.slots:
        yield evolve(plan, slots=0)
    if plan.eager:
        yield evolve(plan, eager=False)
    if plan.in_flight != "again":
        yield evolve(plan, in_flight="again")


def _fewer_attempts(plan: Plan) -> Iterator[Plan]:
    if len(plan.orders) > 1:
        yield evolve(plan, orders=plan.orders[:-1], stops=plan.stops[: len(plan.orders) - 1])
    if len(plan.stops) > 1:
        yield evolve(plan, orders=plan.orders[1:], stops=plan.stops[1:])


def _stops(stops: tuple[Stop | None, ...]) -> Iterator[tuple[Stop | None, ...]]:
    if stops and stops[-1] is None:
        yield stops[:-1]
    for index, stop in enumerate(stops):
        if stop is None:
            continue
        before, after = stops[:index], stops[index + 1 :]
        yield (*before, None, *after)
        if stop.stalls:
            yield (*before, evolve(stop, stalls=False), *after)
        if stop.more:
            yield (*before, evolve(stop, more=0), *after)
            yield (*before, evolve(stop, more=stop.more - 1), *after)


def _orders(order: Order) -> Iterator[Order]:
    if order:
        yield ()
        yield order[: len(order) // 2]
        yield order[:-1]
    for index, which in enumerate(order):
        if which:
            yield (*order[:index], 0, *order[index + 1 :])
        if which > 1:
            yield (*order[:index], 1, *order[index + 1 :])
