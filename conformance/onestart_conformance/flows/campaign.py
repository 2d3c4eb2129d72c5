"""A campaign over flows: many random plans, with a fault or without any, and what came of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from attrs import define, field, frozen

from onestart_conformance.collector import seldom_collecting
from onestart_conformance.faults.fault import Fault, seeded
from onestart_conformance.flows.drawing import draw
from onestart_conformance.flows.names import MODEL
from onestart_conformance.flows.position import how_far
from onestart_conformance.flows.run import examined
from onestart_conformance.flows.shrinking import shrink
from onestart_conformance.flows.world import World
from onestart_conformance.judgement import Objection
from onestart_conformance.machine import ObjectedError, random_runs

EXAMPLES = 2000

Report = Callable[[int], None]


@define
class Tally:
    """outcomes: of last attempts. kinds: of calls that were made. effects: that there were, attempts likewise.

    followed: how many runs were followed on the model to their end, or why they were not.
    """

    examples: int = 0
    attempts: int = 0
    effects: int = 0
    outcomes: Counter[str] = field(factory=Counter)
    kinds: Counter[str] = field(factory=Counter)
    followed: Counter[str] = field(factory=Counter)
    found: World | None = None

    def count(self, world: World) -> None:
        self.examples += 1
        if world.followed is not None:
            self.followed[how_far(world.followed)] += 1
        self.attempts += len(world.told)
        self.effects += len(world.effects)
        last = world.told[-1].outcome
        self.outcomes[last.state if last is not None else "cut"] += 1
        self.kinds.update(placed.call.kind for told in world.told for placed in told.asked)


@frozen
class FlowCampaign:
    """world: of the shrunk plan that the named judge objects to, None if there was none. others: what came before."""

    fault: Fault | None
    seed: int
    tally: Tally
    world: World | None
    others: Counter[str]

    @property
    def objection(self) -> Objection | None:
        """What a judge objects to, if one does."""
        return self.world.objection if self.world is not None else None


def flow_campaign(
    *, fault: Fault | None = None, number: int = 0, examples: int = EXAMPLES, report: Report = lambda done: None
) -> FlowCampaign:
    """Random plans until a judge objects as the fault demands (without a fault: at all), or all are done.

    number: the seed; the same one gives the same plans.
    """
    tally, others = Tally(), Counter[str]()
    followed = fault is None or fault.oracle == MODEL
    uses = frozenset(fault.uses if fault else ())

    @random_runs(number, examples)
    def run(chance: random.Random) -> None:
        world = examined(draw(chance, uses), followed=followed)
        tally.count(world)
        if tally.examples % 10 == 0:
            report(tally.examples)
        if world.objection is None:
            return
        if fault is None or fault.caught_by(world.objection):
            tally.found = world
            raise ObjectedError(world.objection)
        others[world.objection.oracle] += 1

    with seeded(fault), seldom_collecting():
        try:
            run()
        except ObjectedError as error:
            assert tally.found is not None
            return FlowCampaign(fault, number, tally, shrink(tally.found.plan, error.objection), others)
    return FlowCampaign(fault, number, tally, None, others)
