"""A campaign: many random runs, with a fault or without any, and what came of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from attrs import evolve, frozen

from onestart_conformance.choices import SWARMED, Allowed, kind_of
from onestart_conformance.collector import seldom_collecting
from onestart_conformance.faults.fault import Fault, seeded
from onestart_conformance.judgement import Objection
from onestart_conformance.machine import ObjectedError, Tally, draws, drive, random_runs, swarm
from onestart_conformance.rules import Rules
from onestart_conformance.runs import Run, same, shrink
from onestart_conformance.storage import JSONL
from onestart_model.instance import Instance

EXAMPLES = 2000
LONG = 12  # steps: a story that takes more is looked for again in a smaller world
SHORT, AGAIN = 40, 150
SMALLER = ((1, 1), (1, 2), (2, 1), (2, 2))


Report = Callable[[int, int], None]


def nothing(examples: int, gates: int) -> None:
    """A report that nobody hears."""


@frozen
class Campaign:
    """run: the shrunk run that the named oracle objects to, None if there was none.

    instance: of the world that the run is in. others: objections of other oracles, or for other reasons, that came on
    the way, by oracle.
    """

    fault: Fault | None
    seed: int
    tally: Tally
    run: Run | None
    instance: Instance
    others: Counter[str]

    @property
    def objection(self) -> Objection | None:
        """What a judge objects to, if one does."""
        return self.run.objection if self.run is not None else None


def campaign(
    rules: Rules,
    *,
    fault: Fault | None = None,
    number: int = 0,
    examples: int = EXAMPLES,
    ledger: str = JSONL,
    report: Report = nothing,
) -> Campaign:
    """Random runs until somebody objects as the fault demands (without a fault: at all), or all are done.

    number: the seed; the same one gives the same runs. ledger: where records live, see `storage_of`.
    """
    tally, others = Tally(), Counter[str]()
    uses = frozenset(fault.uses if fault else ())

    @random_runs(number, examples)
    def run(chance: random.Random) -> None:
        allowed = evolve(swarm(chance, uses), careless=fault is not None and fault.careless)
        try:
            drive(rules, draws(chance), allowed, tally, ledger)
            if tally.examples % 10 == 0:
                report(tally.examples, tally.gates)
        except ObjectedError as error:
            if fault is None or fault.caught_by(error.objection):
                raise
            others[error.objection.oracle] += 1

    with seeded(fault), seldom_collecting():
        try:
            run()
        except ObjectedError:
            return Campaign(fault, number, tally, *_shortest(rules, fault, number, tally, ledger), others)
    return Campaign(fault, number, tally, None, rules.instance, others)


def _shortest(rules: Rules, fault: Fault | None, number: int, tally: Tally, ledger: str) -> tuple[Run, Instance]:
    """The story, shrunk; a long one is looked for again in smaller worlds with nothing in them but what it uses."""
    assert tally.objection is not None
    best, instance = shrink(rules, tally.found, tally.objection, ledger), rules.instance
    uses = frozenset(fault.uses if fault else ())
    kinds = frozenset(kind_of(move) for move in best.moves) & frozenset(SWARMED)
    for keys, processes in SMALLER:
        if len(best.steps) <= LONG:
            break
        smaller = Rules(resized(instance, keys, processes))
        for allowed in (Allowed(kinds, calls=1), Allowed(uses, calls=1)):
            run = _found_in(smaller, allowed, fault, number, tally.objection, ledger)
            if run is not None and len(run.steps) < len(best.steps):
                best, instance = run, smaller.instance
    return best, instance


def _found_in(
    rules: Rules, allowed: Allowed, fault: Fault | None, number: int, wanted: Objection, ledger: str
) -> Run | None:
    careless = fault is not None and fault.careless
    chance = random.Random(number)  # noqa: S311
    best: Run | None = None
    for _ in range(AGAIN):
        tally = Tally()
        try:
            favored = evolve(allowed, careless=careless, favor=chance.getrandbits(64))
            drive(rules, draws(chance, SHORT), favored, tally, ledger)
        except ObjectedError as error:
            if same(error.objection, wanted) and (best is None or len(tally.found) < 2 * len(best.moves)):
                run = shrink(rules, tally.found, error.objection, ledger)
                best = run if best is None or len(run.steps) < len(best.steps) else best
                if len(best.steps) <= LONG:
                    break
    return best


def resized(instance: Instance, keys: int, processes: int) -> Instance:
    """The instance with fewer keys, all of one task, and fewer processes."""
    sizes = {"Key": keys, "Process": processes, "Task": 1}
    return Instance.of(instance.model, sizes=sizes, fixed={"task": (0,) * keys}, without=instance.without)
