"""The systematic drive of flows: all orders of a first run, all places where it can die, all orders of the resume.

What was ordered differently only after the driver had died is not played again; results that are on record already are
replayed, so orders of a resume are those of what is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from attrs import define, evolve, field, frozen

from onestart_conformance.collector import seldom_collecting
from onestart_conformance.faults.fault import Fault, seeded
from onestart_conformance.flows.names import MODEL
from onestart_conformance.flows.plan import Order, Plan, Stop
from onestart_conformance.flows.position import how_far
from onestart_conformance.flows.program import Block, Call, Fan, Program
from onestart_conformance.flows.run import examined
from onestart_conformance.flows.shrinking import shrink
from onestart_conformance.flows.world import Told, World
from onestart_conformance.judgement import Objection
from onestart_model.expression import RuleError

MOST_RUNS = 200_000


@frozen
class FlowBound:
    """A small program that is driven to the end. every: die at every write, not just at entries, starts and ends.

    profile: the first of quick, standard, deep that walks it in a check.
    """

    name: str
    statement: str
    program: Program
    profile: str = "quick"
    every: bool = False


@define
class FlowWalk:
    """orders: of first runs. places: where they died, each after what had happened by then. runs: that were played.

    outcomes: how many ended completed, and refused. complete: whether nothing is left to play. followed: how many runs
    were followed on the model to their end, or why they were not.
    objected: the objection in words, where the world itself is not at hand.
    """

    orders: int = 0
    places: int = 0
    runs: int = 0
    completed: int = 0
    refused: int = 0
    complete: bool = False
    objected: str = ""
    followed: Counter[str] = field(factory=Counter)
    world: World | None = None

    @property
    def objection(self) -> Objection | None:
        return None if self.world is None else self.world.objection

    def count(self, world: World) -> None:
        self.runs += 1
        if world.followed is not None:
            self.followed[how_far(world.followed)] += 1
        last = world.told[-1].outcome
        self.completed += last is not None and last.state == "completed"
        self.refused += last is not None and last.state == "refused"


def walk_flow(
    bound: FlowBound,
    version: int,
    *,
    fault: Fault | None = None,
    most: int = MOST_RUNS,
    report: Callable[[FlowWalk], None] = lambda walk: None,
) -> FlowWalk:
    """Play everything there is, or until a judge objects, or most runs were played."""
    walk = FlowWalk()
    followed = fault is None or fault.oracle == MODEL
    with seeded(fault), seldom_collecting():
        for world in _everything(Plan(bound.program, version=version), bound.every, followed, walk):
            walk.count(world)
            if walk.runs % 50 == 0:
                report(walk)
            if world.objection is not None:
                walk.world = shrink(world.plan, world.objection)
                return walk
            if walk.runs >= most:
                return walk
    walk.complete = True
    return walk


def _everything(plan: Plan, every: bool, followed: bool, walk: FlowWalk) -> Iterator[World]:
    for first in _orders(plan, 0, followed):
        walk.orders += 1
        yield first
        told = first.told[0]
        for stop in _stops(told, every):
            walk.places += 1
            yield from _orders(evolve(plan, orders=(_made(told),), stops=(stop,)), 1, followed)


def _orders(plan: Plan, attempt: int, followed: bool) -> Iterator[World]:
    """Every order of an attempt, the others as they are planned."""
    order: Order | None = ()
    while order is not None:
        world = examined(evolve(plan, orders=(*plan.orders[:attempt], order)), followed=followed)
        yield world
        order = _next(world.told[attempt]) if attempt < len(world.told) else None


def _made(told: Told) -> Order:
    return tuple(which for _, which in told.choices)


def _next(told: Told) -> Order | None:
    """The order that differs in the last choice that has something left to choose."""
    choices = list(told.choices)
    while choices:
        number, which = choices.pop()
        if which + 1 < number:
            return (*(chosen for _, chosen in choices), which + 1)
    return None


def _stops(told: Told, every: bool) -> Iterator[Stop]:
    """Where a first run can die, if nothing that would have been chosen later is another choice than the first."""
    made, name, at = _made(told), "", 0
    for index, tick in enumerate(told.ticks):
        if tick and told.ticks.index(tick) == index:
            name, at = tick, index
        if (tick or every) and name and not any(made[told.chosen[index] :]):
            yield Stop(name, index - at)


def _of(*calls: Call) -> Block:
    return calls


MEMORY = Call("memory", "m")
BOUNDS = (
    FlowBound(
        "two-by-two",
        "2 branches of 2 steps: run, llm, agent, human",
        Program(
            (Fan("gather", (_of(Call("run", "a"), Call("llm", "b")), _of(Call("agent", "c"), Call("human", "d")))),)
        ),
    ),
    FlowBound(
        "two-by-two-helpers",
        "2 branches of 2 steps: helper, mcp, plugin, a hook with a step",
        Program(
            (
                Fan(
                    "group",
                    (
                        _of(Call("helper", "a"), Call("mcp", "b")),
                        _of(Call("plugin", "c"), Call("hook", "h", body=(MEMORY,))),
                    ),
                ),
            )
        ),
    ),
    FlowBound(
        "two-by-two-children",
        "2 branches of 2 steps: a child flow, on, memory, run",
        Program(
            (
                Fan(
                    "tasks",
                    (
                        _of(Call("dispatch", "child", body=(Call("llm", "a"),)), Call("on", "b")),
                        _of(Call("memory", "c"), Call("run", "d")),
                    ),
                ),
            )
        ),
    ),
    FlowBound(
        "two-by-two-everywhere",
        "2 branches of 2 steps, dying at every write",
        Program((Fan("gather", (_of(Call("run", "a"), Call("llm", "b")), _of(Call("llm", "c"), Call("agent", "d")))),)),
        "standard",
        True,
    ),
    FlowBound(
        "three-by-two",
        "3 branches of 2 steps",
        Program(
            (
                Fan(
                    "gather",
                    (
                        _of(Call("run", "a"), Call("llm", "b")),
                        _of(Call("llm", "c"), Call("agent", "d")),
                        _of(Call("agent", "e"), Call("run", "f")),
                    ),
                ),
            )
        ),
        "deep",
    ),
)


def flow_bound(name: str) -> FlowBound:
    """Raises RuleError if there is no such bound."""
    for bound in BOUNDS:
        if bound.name == name:
            return bound
    raise RuleError(f"no program is called {name!r}; known: {', '.join(bound.name for bound in BOUNDS)}")
