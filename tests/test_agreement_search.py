"""An enumeration finds what plain execution finds: the same states at the same distances, reduced or not."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pytest
from attrs import define, evolve, field
from hypothesis import given
from hypothesis import strategies as st

from onestart_model.chain import CHAIN
from onestart_model.execution import Machine, State, explore_by_execution, renumber_stamps
from onestart_model.expression import MaybeType, SortType, Type, Value
from onestart_model.instance import Instance, Row
from onestart_model.rules import INVARIANT, REACHABLE, STEP, Property
from onestart_model.yardstick import YARDSTICK
from onestart_proofs import search
from onestart_proofs.ground import to_codes, to_state
from onestart_proofs.search import Component, Exploration, Limits, explore
from onestart_proofs.symmetry import permutations_of, renamed_codes
from onestart_proofs.visited import Visited
from random_models import Case, cases, explore_all, profile

MOST = 250
YARDSTICK_ONE = Instance.of(YARDSTICK, sizes={"Key": 1, "Worker": 2}, limits={"expiries": 1})
YARDSTICK_OPEN = Instance.of(
    YARDSTICK, sizes={"Key": 1, "Worker": 2}, limits={"expiries": 2}, without=["no fresh offer over damage"]
)
CHAIN_ONE = Instance.of(CHAIN, sizes={"Key": 1, "Process": 2, "Task": 1}, budgets={"+".join(CHAIN.causes): 1})
CHAIN_TWO = Instance.of(CHAIN, sizes={"Key": 2, "Process": 1, "Task": 1}, budgets={"+".join(CHAIN.causes): 0})
KNOWN = pytest.mark.parametrize(
    "instance",
    [YARDSTICK_ONE, YARDSTICK_OPEN, CHAIN_ONE, CHAIN_TWO],
    ids=["yardstick", "yardstick without its protection", "chain of one key", "chain of two keys"],
)


@define
class Walk:
    """What plain execution finds, level by level."""

    instance: Instance
    machine: Machine = field(init=False)
    levels: list[set[State]] = field(init=False)
    generated: int = 0
    deadlocks: int = 0
    seen: dict[str, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.machine = Machine(self.instance)
        self.levels = [{renumber_stamps(state) for state in self.machine.initial_states()}]
        self.generated = len(self.levels[0])

    def go_on(self) -> None:
        """Expand the newest level."""
        found: set[State] = set()
        for state in self.levels[-1]:
            self._look(state)
            steps = self.machine.enabled(state)
            self.generated += len(steps)
            self.deadlocks += not steps
            for step in steps:
                successor = self.machine.successor(state, step)
                self._look(state, successor, step.action)
                found.add(renumber_stamps(successor))
        self.levels.append(found.difference(*self.levels))

    def _look(self, state: State, successor: State | None = None, action: str = "") -> None:
        kinds = (INVARIANT, REACHABLE) if successor is None else (STEP,)
        for prop in self.instance.model.of_kind(*kinds):
            spoken = not action or prop.concerns(self.instance.model.action_named(action))
            if spoken and self.machine.holds(prop, state, successor) == (prop.kind == REACHABLE):
                self.seen.setdefault(prop.name, len(self.levels) - 1)


def walk_beside(instance: Instance, exploration: Exploration) -> Walk:
    """Plain execution of as many levels as the exploration has expanded."""
    walk = Walk(instance)
    for _ in range(exploration.levels):
        walk.go_on()
    return walk


def states_of(component: Component) -> Iterator[State]:
    for row in component.visited[:].T:
        yield to_state(component.model, component.layout.unpack(row))


def levels_of(exploration: Exploration) -> list[set[State]]:
    """The states of each level, of all components together; the last one is not expanded."""
    levels: list[set[State]] = [set() for _ in range(exploration.levels + 1)]
    for component in exploration.components:
        ends = [*component.levels[1:], component.visited.count]
        states = list(states_of(component))
        for level, (start, end) in enumerate(itertools.pairwise([0, *ends])):
            levels[level].update(states[start:end])
    return levels


def seen_by(exploration: Exploration) -> dict[str, int]:
    return {name: sighting.level for name, sighting in exploration.sightings.items()}


@contextmanager
def small_blocks(size: int, *, hashed: bool) -> Iterator[None]:
    """The enumeration cut into blocks so small that a small level has several, perhaps with a hash table throughout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "BLOCK", size)
        if hashed:
            patch.setattr(search, "dense_visited", lambda model, layout: None)
        yield


@profile(80)
@given(cases(), st.sampled_from([1, 3, 1 << 15]), st.booleans())
def test_enumeration_walks_as_execution_does(case: Case, block: int, hashed: bool) -> None:
    """Protects every count that is published: states, levels, steps, deadlocks, and where a promise is first broken."""
    with small_blocks(block, hashed=hashed):
        exploration = explore_all(case.instance, symmetry=False, limit=MOST)
    walk = walk_beside(case.instance, exploration)
    assert levels_of(exploration) == walk.levels
    assert exploration.states == sum(map(len, walk.levels))
    assert (exploration.generated, exploration.deadlocks) == (walk.generated, walk.deadlocks)
    assert seen_by(exploration) == walk.seen


@KNOWN
def test_known_models_have_the_distances_of_execution(instance: Instance) -> None:
    """Protects the counts of the two models of this project, by the reference machine's own exploration."""
    exploration = explore_all(instance, symmetry=False)
    distances = explore_by_execution(instance)
    levels = levels_of(exploration)
    assert exploration.complete
    assert not levels[-1]
    assert {state: level for level, states in enumerate(levels) for state in states} == distances


@KNOWN
def test_known_models_take_the_steps_of_execution(instance: Instance) -> None:
    """Protects the number of generated states, which the published counts are compared with."""
    exploration = explore_all(instance, symmetry=False)
    walk = walk_beside(instance, exploration)
    assert (exploration.generated, exploration.deadlocks) == (walk.generated, walk.deadlocks)
    assert seen_by(exploration) == walk.seen


def renamed(state: State, permutation: Mapping[SortType, tuple[int, ...]]) -> State:
    """The state with its elements renamed, by the definition and by nothing of the enumeration."""
    rows = []
    for function, row in zip(state.instance.model.schema.functions, state.rows, strict=True):
        places = list(state.instance.arguments(function))
        moved: list[Value] = [None] * len(places)
        for arguments, value in zip(places, row, strict=True):
            image = tuple(permutation[sort][i] for sort, i in zip(function.arguments, arguments, strict=True))
            moved[places.index(image)] = _renamed_value(function.type, value, permutation)
        rows.append(tuple(moved))
    return evolve(state, rows=tuple(rows))


def _renamed_value(kind: Type, value: Value, permutation: Mapping[SortType, tuple[int, ...]]) -> Value:
    match kind, value:
        case (SortType() as sort, int(index)) | (MaybeType(of=sort), int(index)):
            return permutation[sort][index]
        case _:
            return value


def orbits(instance: Instance, states: Iterable[State]) -> set[State]:
    """Every renaming of the states that the instance allows; some have fixed values that it does not start with."""
    permutations = list(permutations_of(instance))
    allowed = {tuple(row for _, row in fixing) for fixing in instance.fixings()}
    every = {renamed(state, permutation) for state in states for permutation in permutations}
    return {state for state in every if fixed_rows(state) in allowed}


def fixed_rows(state: State) -> tuple[Row, ...]:
    functions = state.instance.model.schema.functions
    return tuple(row for function, row in zip(functions, state.rows, strict=True) if function.home == "fixed")


def assert_reduced_soundly(instance: Instance, limit: int) -> None:
    full = explore_all(instance, symmetry=False, limit=limit)
    if not full.complete:
        return
    reduced = explore_all(instance, symmetry=True)
    kept = [state for component in reduced.components for state in states_of(component)]
    whole = {state for component in full.components for state in states_of(component)}
    assert orbits(instance, kept) == whole
    assert seen_by(reduced) == seen_by(full)
    assert reduced.levels == full.levels
    assert all(len(orbits(instance, [state]) & set(kept)) == 1 for state in kept), "two states of one orbit are kept"


@profile(80)
@given(cases())
def test_symmetry_loses_nothing(case: Case) -> None:
    """Protects the reduction: the orbits of what it keeps are all states, with one state of each, and all verdicts."""
    assert_reduced_soundly(case.instance, MOST)


@pytest.mark.parametrize("instance", [YARDSTICK_ONE, CHAIN_TWO], ids=["yardstick", "chain"])
def test_symmetry_loses_nothing_of_known_models(instance: Instance) -> None:
    """Protects the reduction where it is used."""
    assert_reduced_soundly(instance, 1 << 20)


@profile(30)
@given(cases(), st.data())
def test_cells_are_renamed_as_states_are(case: Case, data: st.DataObject) -> None:
    """Protects the definition that the tables of the reduction are built from, and the tables by it."""
    exploration = explore_all(case.instance, symmetry=False, limit=30)
    component = data.draw(st.sampled_from(exploration.components))
    permutation = data.draw(st.sampled_from(list(permutations_of(case.instance))))
    for state in itertools.islice(states_of(component), 10):
        image = renamed(state, permutation)
        if fixed_rows(image) == fixed_rows(state):
            codes = renamed_codes(component.model, to_codes(component.model, state), permutation)
            assert to_state(component.model, codes) == image


@profile(40)
@given(cases())
def test_stopping_at_a_violation_keeps_the_verdict(case: Case) -> None:
    """Protects the search that ends early: it sees the violations of the first level that has any, and no others."""
    full = explore_all(case.instance, symmetry=True, limit=MOST)
    short = explore(case.instance, stop=True, limits=Limits(states=MOST))
    bad = {name: level for name, level in seen_by(full).items() if _of(case, name).kind != REACHABLE}
    first = min(bad.values(), default=0)
    assert {n: v for n, v in seen_by(short).items() if n in bad} == {n: v for n, v in bad.items() if v == first}


def _of(case: Case, name: str) -> Property:
    return case.instance.model.property_named(name)


@profile(60)
@given(st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=12), st.sampled_from([1, 2]))
def test_visited_states_are_a_set_in_order(batches: list[list[int]], words: int) -> None:
    """Protects the hash table: each state once, under one number, through collisions and growth."""
    visited, known = Visited(words, capacity=4), dict[int, None]()
    for batch in batches:
        packed = np.array([[n * n << (word + 1) for n in batch] for word in range(words)], dtype=np.uint64)
        new = set(batch) - set(known)
        known.update(dict.fromkeys(batch))
        assert visited.add(packed) == len(new)
    assert visited.count == len(known)
    assert sorted(map(int, visited[:][0])) == sorted(n * n << 1 for n in known)
    assert np.array_equal(visited.find(visited[:]), np.arange(len(known)))
    absent = np.full((words, 1), 3, dtype=np.uint64)
    assert visited.find(absent).tolist() == [-1]
