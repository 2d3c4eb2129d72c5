"""Drives of flows: without a fault nobody objects, runs repeat, small programs are driven to the end."""

from __future__ import annotations

import random

import pytest

from onestart_conformance.flows.abstraction import CHANGED
from onestart_conformance.flows.campaign import flow_campaign
from onestart_conformance.flows.drawing import draw, edits, smaller
from onestart_conformance.flows.plan import Plan, Stop, from_document
from onestart_conformance.flows.position import FOLLOWED
from onestart_conformance.flows.program import KINDS, Call, Caught, Fan, Program, Saved, parts
from onestart_conformance.flows.reference import value_of_block
from onestart_conformance.flows.run import examined, play
from onestart_conformance.flows.systematic import BOUNDS, flow_bound, walk_flow
from onestart_model.expression import RuleError

PAIR = Program((Fan("gather", ((Call("run", "a"), Call("run", "z")), (Call("run", "b"), Call("llm", "l")))),))


@pytest.mark.parametrize("seed", range(3))
def test_without_a_fault_nobody_objects(seed: int) -> None:
    """Whatever order results arrive in, wherever drivers die or stand still, whatever the flow has become."""
    done = flow_campaign(number=seed, examples=150)
    assert done.world is None, (done.world.plan, done.world.objection)
    assert done.tally.examples == 150
    assert done.tally.outcomes["completed"] > 75
    assert sum(done.tally.followed.values()) == 150
    assert done.tally.followed[FOLLOWED] > 100
    assert done.tally.followed[CHANGED] > 5


def test_the_same_seed_gives_the_same_runs() -> None:
    """A campaign can be repeated exactly, and another seed is another one."""
    first, second = (flow_campaign(number=7, examples=40).tally for _ in range(2))
    assert (first.attempts, first.effects, first.kinds) == (second.attempts, second.effects, second.kinds)
    assert flow_campaign(number=8, examples=40).tally.kinds != first.kinds


def test_a_campaign_meets_everything() -> None:
    """All kinds of calls, and all ways for a flow to end."""
    tally = flow_campaign(number=0, examples=150).tally
    assert set(tally.kinds) == set(KINDS)
    assert {"completed", "failed", "held", "refused"} <= set(tally.outcomes)


COUNTS = {"two-by-two": (3, 31, 53), "two-by-two-helpers": (6, 68, 142), "two-by-two-children": (6, 62, 136)}


@pytest.mark.parametrize("name", list(COUNTS))
def test_two_branches_of_two_steps_are_driven_to_the_end(name: str) -> None:
    """All orders of the first run, all places to die, all orders of the resume; with causal ids each one completes."""
    walk = walk_flow(flow_bound(name), 3)
    assert walk.objection is None
    assert walk.complete
    assert (walk.orders, walk.places, walk.runs) == COUNTS[name]
    assert (walk.completed, walk.refused) == (walk.runs, 0)
    assert walk.followed == {FOLLOWED: walk.runs}


def test_counted_ids_complete_or_are_refused() -> None:
    """The same program with version 2: some resumes are refused, none does anything twice."""
    walk = walk_flow(flow_bound("two-by-two"), 2)
    assert walk.objection is None
    assert (walk.completed, walk.refused) == (36, 17)
    assert walk.followed == {FOLLOWED: 53}


def test_a_systematic_drive_finds_what_is_wrong() -> None:
    """The systematic drive has teeth too, and says when it was cut short."""
    from onestart_conformance.flows.faults import FLOW_FAULTS

    fault = FLOW_FAULTS["ordinal-kind"]
    found = walk_flow(flow_bound("two-by-two-helpers"), 2, fault=fault)
    assert fault.caught_by(found.objection)
    assert not found.complete
    assert not walk_flow(flow_bound("two-by-two"), 3, most=5).complete


def test_bounds_have_names() -> None:
    """A typing mistake in a program's name is told."""
    assert len({bound.name for bound in BOUNDS}) == len(BOUNDS)
    with pytest.raises(RuleError, match="known: two-by-two"):
        flow_bound("two-by-too")


@pytest.mark.parametrize("seed", range(40))
def test_plans_survive_a_file(seed: int) -> None:
    """What is saved is what is played again."""
    plan = draw(random.Random(seed))
    assert from_document(plan.to_json()) == plan


def test_parts_shrink_and_change() -> None:
    """Every part of a program can be left out or be another one, down to nothing."""
    block = draw(random.Random(3)).program.block
    while block:
        candidates = list(smaller(block))
        assert candidates
        assert all(len(list(parts(candidate))) <= len(list(parts(block))) + 1 for candidate in candidates)
        block = candidates[0]
    assert all(changed != PAIR.block for changed in edits(PAIR.block))


def test_a_dead_driver_reaches_nothing() -> None:
    """What the driver would have done after its death is not in the world: neither effects nor entries."""
    world = play(Plan(PAIR, stops=(Stop("start a"),)))
    first = [note.what for note in world.noted if note.attempt == 0]
    assert first[-1] == "the driver dies"
    assert [effect.attempt for effect in world.effects].count(0) == 1
    assert world.told[1].outcome is not None
    assert world.told[1].outcome.state == "completed"


def test_orders_are_of_first_run_and_resume_apart() -> None:
    """What ends first is a number among what is open, for each attempt on its own."""
    world = play(Plan(PAIR, ((1,), (1,)), (Stop("done b"),)))
    assert [placed.call.label for placed in world.told[0].arrived] == ["b"]
    assert [placed.call.label for placed in world.told[1].arrived] == ["l", "a", "z"]


def test_a_program_has_one_value_in_whatever_order() -> None:
    """The reference is sequential; the library gives the same."""
    block = (Saved(Call("llm", "s"), (Caught((Call("run", "x", fails=True),)),)), *PAIR.block)
    program = Program(block)
    for orders in ((), ((1, 1, 1),)):
        world = examined(Plan(program, orders))
        assert world.objection is None
        outcome = world.told[0].outcome
        assert outcome is not None
        assert outcome.value == value_of_block(block, "", world.name)
