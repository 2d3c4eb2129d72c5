"""Hunts: each seeded fault looked for at random and, if wanted, systematically; several at once in processes."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from onestart_conformance.campaign import campaign
from onestart_conformance.faults import Fault, fault_named, seeded
from onestart_conformance.rules import Rules
from onestart_conformance.standard import bound_named, chain
from onestart_conformance.stories import story
from onestart_conformance.systematic import walk
from onestart_model.counterexample import Counterexample

WORLDS = ("alone", "pair-in-trouble", "two-commands", "everything")


@frozen
class Hunt:
    """examples: random runs until it was caught, or all. steps: of the story, 0 if there is none.

    others: objections that are not the one wanted, by oracle. moves: of the systematic drive until it was caught, 0 if
    it was not, or not looked for. seconds: that it took.
    """

    fault: str
    caught: bool
    examples: int
    steps: int
    others: Mapping[str, int]
    moves: int
    seconds: float
    story: Counterexample | None = None


def hunt(name: str, *, seed: int, examples: int, moves: int = 0) -> Hunt:
    """Look for one fault."""
    start = time.perf_counter()
    fault = fault_named(name)
    found = campaign(Rules(chain()), fault=fault, number=seed, examples=examples)
    seconds = time.perf_counter() - start
    return Hunt(
        name,
        found.run is not None,
        found.tally.examples,
        len(found.run.steps) if found.run else 0,
        dict(found.others),
        _systematically(fault, moves) if moves else 0,
        seconds,
        story(found) if found.run else None,
    )


def _systematically(fault: Fault, most: int) -> int:
    """Moves until the systematic drive meets the objection in one of the small worlds, 0 if it does not."""
    taken = 0
    for bound in map(bound_named, WORLDS):
        kinds = tuple(dict.fromkeys((*bound.kinds, *fault.uses)))
        with seeded(fault):
            walked = walk(
                Rules(bound.instance()), most=most, kinds=kinds, careless=fault.careless, wanted=fault.caught_by
            )
        taken += walked.taken
        if fault.caught_by(walked.objection):
            return taken
    return 0


def hunt_all(names: Sequence[str], *, seed: int, examples: int, moves: int = 0, jobs: int = 1) -> Iterator[Hunt]:
    """Look for each of them, in the order given; the results do not depend on the number of jobs."""
    settings = [(name, seed, examples, moves) for name in names]
    if jobs == 1 or len(names) == 1:
        yield from map(_hunt, settings)
        return
    with multiprocessing.get_context("spawn").Pool(min(jobs, len(names))) as pool:
        yield from pool.imap(_hunt, settings)


def _hunt(settings: tuple[str, int, int, int]) -> Hunt:
    name, seed, examples, moves = settings
    return hunt(name, seed=seed, examples=examples, moves=moves)
