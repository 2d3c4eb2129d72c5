"""Hunts: each seeded fault looked for at random and, if wanted, systematically; several at once in processes."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor

from attrs import frozen

from onestart_conformance.campaign import campaign
from onestart_conformance.damage.campaign import damage_campaign
from onestart_conformance.faults import FAULTS, Fault, fault_named, seeded
from onestart_conformance.faults.damage import DAMAGE_FAULTS
from onestart_conformance.flows.campaign import flow_campaign
from onestart_conformance.flows.faults import FLOW_FAULTS
from onestart_conformance.flows.stories import FlowStory, flow_story
from onestart_conformance.rules import Rules
from onestart_conformance.standard import bound_named, chain
from onestart_conformance.stories import story
from onestart_conformance.systematic import walk
from onestart_model.counterexample import Counterexample
from onestart_model.expression import RuleError

WORLDS = ("alone", "pair-in-trouble", "two-commands", "everything")


@frozen
class Hunt:
    """examples: random runs until it was caught, or all. steps: of the story, 0 if there is none;
    of one of flows, what happened in it; of one of damage, how much of it was done together.

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
    flow: FlowStory | None = None


def hunt(name: str, *, seed: int, examples: int, moves: int = 0) -> Hunt:
    """Look for one fault: of the chain, of flows, or of what is made of damage."""
    start = time.perf_counter()
    if name in DAMAGE_FAULTS:
        return _hunt_damage(DAMAGE_FAULTS[name], seed, examples, start)
    if name in FLOW_FAULTS:
        return _hunt_flow(FLOW_FAULTS[name], seed, examples, start)
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


def _hunt_flow(fault: Fault, seed: int, examples: int, start: float) -> Hunt:
    found = flow_campaign(fault=fault, number=seed, examples=examples)
    story = flow_story(found.world, fault, f"random drive of flows, seed {seed}") if found.world is not None else None
    seconds = time.perf_counter() - start
    lines = story.lines if story is not None else 0
    done = story is not None, found.tally.examples
    return Hunt(fault.name, *done, lines, dict(found.others), 0, seconds, flow=story)


def _hunt_damage(fault: Fault, seed: int, examples: int, start: float) -> Hunt:
    found = damage_campaign(fault, number=seed, examples=examples)
    seconds = time.perf_counter() - start
    steps = len(found.found[0][0]) if found.found is not None else 0
    return Hunt(fault.name, found.found is not None, found.tried, steps, dict(found.others), 0, seconds)


def any_fault(name: str) -> Fault:
    """Of any kind. Raises RuleError, with a name that is close, if there is no such fault."""
    others = {**FLOW_FAULTS, **DAMAGE_FAULTS}
    near = difflib.get_close_matches(name, others, 1)
    if name in others:
        return others[name]
    if near and not difflib.get_close_matches(name, FAULTS, 1):
        raise RuleError(f"no fault is called {name!r}; did you mean {near[0]}?")
    return fault_named(name)


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


def hunt_all(
    names: Sequence[str], *, seed: int, examples: int, moves: int = 0, pool: Executor | None = None
) -> Iterator[Hunt]:
    """Look for each of them, in the order given: in the pool from now on, or here, one by one as they are asked for."""
    settings = [(name, seed, examples, moves) for name in names]
    return map(_hunt, settings) if pool is None else pool.map(_hunt, settings)


def _hunt(settings: tuple[str, int, int, int]) -> Hunt:
    name, seed, examples, moves = settings
    return hunt(name, seed=seed, examples=examples, moves=moves)
