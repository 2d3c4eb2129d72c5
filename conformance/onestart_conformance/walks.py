"""A systematic drive by the name of its bound, with a result that other processes can hand back."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onestart_conformance.coverage import Coverage, of_walk
from onestart_conformance.faults.fault import Fault, seeded
from onestart_conformance.judgement import Objection
from onestart_conformance.rules import Rules
from onestart_conformance.runs import shrink
from onestart_conformance.standard import bound_named
from onestart_conformance.storage import JSONL
from onestart_conformance.stories import counterexample
from onestart_conformance.systematic import Walk, walk
from onestart_model.counterexample import Counterexample


@frozen
class Walked:
    """taken: moves. situations: that were seen. objection and story: of the judge that ended it, if one did."""

    coverage: Coverage
    taken: int
    situations: int
    objection: Objection | None
    story: Counterexample | None


def walked(
    bound: str,
    most: int,
    *,
    fault: Fault | None = None,
    ledger: str = JSONL,
    report: Callable[[Walk], None] = lambda walk: None,
) -> Walked:
    """Walk a bound until a judge objects, every move was taken in every situation, or most moves were."""
    small = bound_named(bound)
    rules = Rules(small.instance())
    with seeded(fault):
        done = walk(rules, most=most, kinds=small.kinds, ledger=ledger, report=report)
        story = None
        if done.objection is not None:
            run = shrink(rules, done.found, done.objection, ledger)
            story = counterexample(run, rules.instance, fault, "systematic drive")
    return Walked(of_walk(done), done.taken, len(done.places), done.objection, story)
