"""A campaign: many random runs, with a fault or without any, and what came of them."""

from __future__ import annotations

from collections import Counter

from attrs import evolve, frozen
from hypothesis import HealthCheck, Phase, given, seed, settings

from onestart_conformance.choices import Allowed
from onestart_conformance.faults.fault import Fault, seeded
from onestart_conformance.machine import MOST_STEPS, ObjectedError, Tally, draws, drive, swarms
from onestart_conformance.rules import Rules
from onestart_conformance.runs import Run, shrink

EXAMPLES = 2000


@frozen
class Campaign:
    """run: the shrunk run that the named oracle objects to, None if there was none.

    others: objections of other oracles, or for other reasons, that came on the way, by oracle.
    """

    fault: Fault | None
    seed: int
    tally: Tally
    run: Run | None
    others: Counter[str]


def campaign(rules: Rules, *, fault: Fault | None = None, number: int = 0, examples: int = EXAMPLES) -> Campaign:
    """Random runs until somebody objects as the fault demands (without a fault: at all), or all are done.

    number: the seed; the same one gives the same runs.
    """
    tally, others = Tally(), Counter[str]()
    uses = frozenset(fault.uses if fault else ())

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(draws(MOST_STEPS), swarms(uses, frozenset()))
    def run(steps: list[int], allowed: Allowed) -> None:
        try:
            drive(rules, steps, evolve(allowed, careless=fault is not None and fault.careless), tally)
        except ObjectedError as error:
            if fault is None or fault.caught_by(error.objection):
                raise
            others[error.objection.oracle] += 1

    with seeded(fault):
        try:
            run()
        except ObjectedError:
            return Campaign(fault, number, tally, _shrunk(rules, tally), others)
    return Campaign(fault, number, tally, None, others)


def _shrunk(rules: Rules, tally: Tally) -> Run:
    assert tally.objection is not None
    return shrink(rules, tally.found, tally.objection)
