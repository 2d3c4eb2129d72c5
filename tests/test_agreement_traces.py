"""What is found is shown: shortest traces, the same from both searches, that the reference machine repeats."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given

from onestart_model import (
    Bool,
    Fn,
    Model,
    Sort,
    Stamp,
    action,
    durable,
    forall,
    implies,
    invariant,
    state,
    step_invariant,
)
from onestart_model.counterexample import Counterexample
from onestart_model.execution import Machine
from onestart_model.instance import Instance
from onestart_model.rules import REACHABLE, STEP, Property
from onestart_model.yardstick import YARDSTICK
from onestart_proofs import search
from onestart_proofs.bmc import bounded_check
from onestart_proofs.induction import Options, prove
from onestart_proofs.search import Exploration, explore
from onestart_proofs.traces import trace
from onestart_report.verdict import Verdict
from random_models import Case, cases, explore_all, profile

MOST = 250
DEPTH = 4


def length_of(exploration: Exploration, prop: Property) -> int | None:
    """Steps of the shortest trace to a sighting; a broken step is one more than the state that it starts from."""
    sighting = exploration.sightings.get(prop.name)
    return None if sighting is None else sighting.level + (prop.kind == STEP)


def assert_shows(found: Counterexample, prop: Property, length: int) -> None:
    """The trace starts initially, each step is one of the machine's, and it ends in the sighting."""
    machine = Machine(found.instance)
    assert len(found.steps) == length
    assert found.states[0] in set(machine.initial_states())
    for before, step, successor in zip(found.states, found.steps, found.states[1:], strict=False):
        assert machine.apply(before, step) == successor
    if found.steps or prop.kind != REACHABLE:
        assert found.broken()
    else:
        assert machine.holds(prop, found.states[0])


@profile(40)
@given(cases())
def test_traces_of_an_enumeration_run_on_the_machine(case: Case) -> None:
    """Protects a counterexample's word: it is shortest, and it breaks what it says that it breaks."""
    for symmetry in (True, False):
        exploration = explore_all(case.instance, symmetry=symmetry, limit=MOST)
        for name, sighting in exploration.sightings.items():
            prop = case.instance.model.property_named(name)
            length = length_of(exploration, prop)
            assert length is not None
            assert_shows(trace(exploration, sighting), prop, length)


@profile(30)
@given(cases())
def test_bounded_checks_find_what_an_enumeration_finds(case: Case) -> None:
    """Protects both searches by each other: a violation at a depth is found by either or by none."""
    exploration = explore_all(case.instance, symmetry=True, limit=MOST)
    known = DEPTH if exploration.complete else min(DEPTH, exploration.levels - 1)
    if known < 1:
        return
    for prop in case.instance.model.properties:
        outcome = bounded_check(case.instance, prop, depth=known)
        expected = length_of(exploration, prop)
        if expected is None or expected > known:
            assert (outcome.verdict, outcome.trace) == (Verdict.UNDETERMINED, None), prop.name
            continue
        assert outcome.verdict == (Verdict.PROVED if prop.kind == REACHABLE else Verdict.REFUTED), prop.name
        assert outcome.trace is not None
        assert_shows(outcome.trace, prop, expected)


@profile(30)
@given(cases())
def test_what_is_proved_is_never_broken(case: Case) -> None:
    """Protects proofs: what induction proves for all sizes, no instance breaks, and what it refutes, one does."""
    model, without = case.instance.model, case.instance.without
    proof = prove(model, without=without, options=Options(resources=200_000))
    exploration = explore_all(case.instance, symmetry=True, limit=MOST)
    invariants = [o for o in proof.obligations if not o.property.startswith("range_of_")]
    if all(o.verdict == Verdict.PROVED for o in proof.obligations):
        assert not {o.property for o in invariants} & set(exploration.sightings)
    for obligation in invariants:
        if obligation.counterexample is not None:
            assert obligation.counterexample.broken()


@pytest.mark.parametrize("symmetry", [True, False])
def test_the_known_bug_has_one_shortest_trace(symmetry: bool) -> None:
    """Protects the yardstick's counterexample: the same length from both searches, repeated by the machine."""
    instance = Instance.of(
        YARDSTICK, sizes={"Key": 1, "Worker": 1}, limits={"expiries": 1}, without=["no fresh offer over damage"]
    )
    prop = YARDSTICK.property_named("at_most_one_start")
    exploration = explore(instance, symmetry=symmetry, properties=[prop.name])
    length = length_of(exploration, prop)
    assert length is not None
    assert_shows(trace(exploration, exploration.sightings[prop.name]), prop, length)
    outcome = bounded_check(instance, prop, depth=length)
    assert outcome.trace is not None
    assert_shows(outcome.trace, prop, length)


class Key(Sort): ...


@state
class Shown:
    lit: Fn[Key, Bool] = durable("flags", False)
    top: Fn[Key, Stamp] = durable("tokens", 0)
    held: Fn[Key, Stamp] = durable("tokens", 0)


@action
def flip(s: Shown, k: Key) -> None:
    """A key is lit or put out."""
    s.lit[k] = ~s.lit[k]


@action
def raise_top(s: Shown, k: Key) -> None:
    """A token is given out."""
    s.top[k] = s.top[k].next()


@action
def take(s: Shown, k: Key) -> None:
    """The newest token is taken."""
    s.held[k] = s.top[k]


@step_invariant()
def never_put_out(s: Shown, after: Shown) -> Bool:
    """No lit key is put out."""
    return forall(Key, lambda k: implies(s.lit[k], after.lit[k]))


@step_invariant()
def one_at_most(s: Shown, after: Shown) -> Bool:
    """No key is lit beside another."""
    return forall(Key, Key, lambda k, j: implies(s.lit[k] & ~s.lit[j], ~after.lit[j]))


@invariant
def never_outdated(s: Shown) -> Bool:
    """A token that is held is the newest."""
    return forall(Key, lambda k: implies(s.held[k] != 0, s.top[k] <= s.held[k]))


SHOWN = Model.of("shown", Shown, sys.modules[__name__])


@pytest.mark.parametrize(("prop", "length"), [(never_put_out, 2), (one_at_most, 2), (never_outdated, 3)])
def test_the_right_step_among_several_is_shown(prop: Property, length: int) -> None:
    """Protects traces whose last step is one of several of one action, and stamps that grow in a bounded check."""
    instance = Instance.of(SHOWN, sizes={"Key": 2})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "dense_visited", lambda model, layout: None)
        exploration = explore(instance, properties=[prop.name])
    assert_shows(trace(exploration, exploration.sightings[prop.name]), prop, length)
    found = bounded_check(instance, prop, depth=length).trace
    assert found is not None
    assert_shows(found, prop, length)
