"""Exhaustive search: all reachable states of an instance, level by level."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from onestart_model.execution import Machine
from onestart_model.expression import RuleError
from onestart_model.instance import FixedValues, Instance
from onestart_model.rules import INVARIANT, REACHABLE, STEP, Property
from onestart_proofs.columns import Registers
from onestart_proofs.dense import DenseVisited, dense_visited
from onestart_proofs.frontier import Expander, Rows, StampError
from onestart_proofs.ground import GroundModel, ground
from onestart_proofs.packing import Layout, Words, lay_out
from onestart_proofs.symmetry import Canonical, check_size, representatives
from onestart_proofs.visited import Visited

BLOCK = 1 << 15
MOST_MEMORY = 8_000_000_000  # bytes of tables that a search takes unless a caller says otherwise


@frozen
class Limits:
    """What a search may use; None for no limit. memory is in bytes and counts the tables of visited states."""

    states: int | None = None
    memory: int | None = None

    def __attrs_post_init__(self) -> None:
        for name, value in (("states", self.states), ("memory", self.memory)):
            if value is not None and value <= 0:
                raise RuleError(f"a limit of {value} {name} leaves nothing to search; give a positive number")


@frozen
class Progress:
    """Where a search is: the level just finished."""

    level: int
    states: int
    generated: int
    frontier: int
    seconds: float


@frozen
class Sighting:
    """Where a property was first seen broken (or, for a reachable one, shown).

    state: its number in the component. move: the ground action whose step breaks a step invariant, else None.
    """

    property: str
    component: int
    level: int
    state: int
    move: int | None

    def steps(self) -> int:
        """The length of the shortest trace that ends with what was seen."""
        return self.level + (self.move is not None)


@define
class Component:
    """The states of one choice of the fixed functions. levels[i] is the number of the first state of level i."""

    model: GroundModel
    layout: Layout
    canonical: Canonical
    expander: Expander
    visited: Visited | DenseVisited
    levels: list[int] = field(factory=lambda: [0])
    generated: int = 1
    deadlocks: int = 0

    def blocks(self, start: int, end: int) -> Iterator[tuple[int, Words]]:
        for first in range(start, end, BLOCK):
            yield first, self.visited[first : min(end, first + BLOCK)]


@frozen
class Exploration:
    """What a search found. complete is False if a limit ended it, or a violation did."""

    instance: Instance
    components: tuple[Component, ...]
    sightings: dict[str, Sighting]
    fired: dict[str, int]
    complete: bool
    reason: str
    seconds: float

    @property
    def states(self) -> int:
        """Distinct states: up to symmetry, if that was used."""
        return sum(c.visited.count for c in self.components)

    @property
    def generated(self) -> int:
        """Steps taken, and the initial states."""
        return sum(c.generated for c in self.components)

    @property
    def levels(self) -> int:
        """Levels that hold states: one more than the longest shortest path."""
        return max(len(c.levels) - 1 for c in self.components)

    @property
    def deadlocks(self) -> int:
        """States without any enabled step."""
        return sum(c.deadlocks for c in self.components)

    @property
    def memory(self) -> int:
        return sum(c.visited.bytes for c in self.components)


class _LimitError(Exception):
    """The search may go no further."""


Report = Callable[[Progress], None]


def explore(
    instance: Instance,
    *,
    symmetry: bool = True,
    limits: Limits | None = None,
    properties: Iterable[str] | None = None,
    watched: Iterable[Property] = (),
    stop: bool = True,
    report: Report | None = None,
) -> Exploration:
    """Search all reachable states, and check every invariant in each and every step invariant on each step.

    symmetry: keep one of all states that differ by a renaming of elements. properties: names of those to check (all).
    watched: further invariants and step invariants whose violations are noted and end nothing. stop: end at the level
    where the first violation is seen, so that traces are shortest. report: called after a level.
    """
    model = instance.model
    names = [p.name for p in model.properties] if properties is None else list(properties)
    checked = tuple(model.property_named(name) for name in names)
    return _Search(instance, symmetry, limits or Limits(), checked, tuple(watched), stop, report).run()


class _Search:
    def __init__(
        self,
        instance: Instance,
        symmetry: bool,
        limits: Limits,
        checked: tuple[Property, ...],
        watched: tuple[Property, ...],
        stop: bool,
        report: Report | None,
    ) -> None:
        self._instance, self._symmetry, self._limits = instance, symmetry, limits
        self._stop, self._report = stop, report
        self._checked, self._properties = checked, (*checked, *watched)
        self._states = [p for p in self._properties if p.kind in (INVARIANT, REACHABLE)]
        self._steps = [p for p in self._properties if p.kind == STEP]
        self._sightings: dict[str, Sighting] = {}
        self._fired: dict[str, int] = {action.name: 0 for action in instance.model.actions}
        self._start = time.perf_counter()

    def run(self) -> Exploration:
        check_size(self._instance, symmetry=self._symmetry)
        fixings = representatives(self._instance) if self._symmetry else Machine(self._instance).fixings()
        components = [self._component(fixing) for fixing in fixings]
        if not components:
            raise RuleError("no choice of the instance's fixed functions is one that the model assumes")
        reason, open_ = "", list(range(len(components)))
        while open_ and not reason:
            try:
                open_ = [number for number in open_ if self._level(number, components)]
            except (StampError, _LimitError) as error:
                reason = str(error)
                break
            self._tell(components)
            reason = self._end() if open_ or (self._stop and self._violated()) else ""
        seconds = time.perf_counter() - self._start
        return Exploration(self._instance, tuple(components), self._sightings, self._fired, not reason, reason, seconds)

    def _component(self, fixing: FixedValues) -> Component:
        model = ground(self._instance, fixing, self._properties)
        layout = lay_out(model)
        canonical = Canonical(model, layout, symmetry=self._symmetry)
        expander = Expander(model, layout, canonical, tuple(model.conditions.values()))
        visited = dense_visited(model, layout) or Visited(layout.words)
        visited.add(canonical.states(layout.pack(model.initial)[:, None]))
        return Component(model, layout, canonical, expander, visited)

    def _level(self, number: int, components: list[Component]) -> bool:
        """Expand the newest level; returns whether there is a next one."""
        component = components[number]
        start, end = component.levels[-1], component.visited.count
        for first, states in component.blocks(start, end):
            registers = component.expander.evaluate(states)
            self._check_states(number, component, first, states.shape[1], registers)
            moves = component.expander.moves(states, registers)
            idle = np.ones(states.shape[1], dtype=np.bool_)
            for action, rows, _ in moves.spans:
                component.generated += len(rows)
                self._fired[component.model.actions[action].step.action] += len(rows)
                self._check_steps(number, component, first, action, rows, registers)
                idle[rows] = False
            component.deadlocks += int(idle.sum())
            component.visited.add(moves.successors)
            self._check_limits(components)
        component.levels.append(end)
        return component.visited.count > end

    def _check_states(self, number: int, component: Component, first: int, count: int, registers: Registers) -> None:
        for prop in self._states:
            if prop.name not in self._sightings:
                holds = _column(registers[component.model.conditions[prop.name]], count)
                wanted = holds if prop.kind == REACHABLE else ~holds
                if wanted.any():
                    state, level = first + int(np.flatnonzero(wanted)[0]), len(component.levels) - 1
                    self._sightings[prop.name] = Sighting(prop.name, number, level, state, None)

    def _check_steps(
        self, number: int, component: Component, first: int, action: int, rows: Rows, registers: Registers
    ) -> None:
        for prop in self._steps:
            condition = component.model.steps[prop.name].get(action)
            if condition is not None and prop.name not in self._sightings:
                holds = registers[condition]
                broken = rows if isinstance(holds, int) and not holds else rows[~_column(holds, 0)[rows]]
                if len(broken):
                    state, level = first + int(broken[0]), len(component.levels) - 1
                    self._sightings[prop.name] = Sighting(prop.name, number, level, state, action)

    def _violated(self) -> bool:
        return any(p.kind != REACHABLE and p.name in self._sightings for p in self._checked)

    def _end(self) -> str:
        if self._stop and self._violated():
            return "a violation"
        if self._checked and all(p.name in self._sightings for p in self._checked):
            return "everything asked for having been seen"
        return ""

    def _check_limits(self, components: list[Component]) -> None:
        states = sum(c.visited.count for c in components)
        if self._limits.states is not None and states >= self._limits.states:
            raise _LimitError(f"the limit of {self._limits.states:,} states")
        memory = sum(c.visited.bytes for c in components)
        if self._limits.memory is not None and memory >= self._limits.memory:
            raise _LimitError(f"the limit of {self._limits.memory / 1e6:,.0f} MB")

    def _tell(self, components: list[Component]) -> None:
        if self._report is not None:
            states = sum(c.visited.count for c in components)
            generated = sum(c.generated for c in components)
            frontier = sum(c.visited.count - c.levels[-1] for c in components)
            level = max(len(c.levels) - 1 for c in components)
            self._report(Progress(level, states, generated, frontier, time.perf_counter() - self._start))


def _column(value: Any, count: int) -> npt.NDArray[np.bool_]:
    if isinstance(value, int | bool):
        return np.full(count, bool(value))
    result: npt.NDArray[np.bool_] = value.astype(np.bool_)
    return result
