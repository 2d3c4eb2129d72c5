"""Traces: the shortest way to a state, as steps that the reference machine takes.

Predecessors are not stored. Going back, each level is expanded again until it yields the wanted state; going forward,
the reference machine takes whichever enabled step leads to a state with the right representative. A trace is therefore
checked by the execution semantics while it is made.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onestart_model.counterexample import Counterexample
from onestart_model.execution import Machine, State, Step, renumber_stamps
from onestart_model.expression import RuleError
from onestart_proofs.ground import to_codes
from onestart_proofs.packing import Words
from onestart_proofs.search import Component, Exploration, Sighting


@frozen
class _Way:
    """Representatives from the initial state on, and the last step if it is given."""

    representatives: tuple[Words, ...]
    last: int | None


def trace(exploration: Exploration, sighting: Sighting) -> Counterexample:
    """The shortest trace to a sighting."""
    component = exploration.components[sighting.component]
    way = _Way(_back(component, sighting.level, sighting.state), sighting.move)
    states, steps = _forward(exploration, component, way, sighting)
    return Counterexample.of(exploration.instance, states, steps, broken=sighting.property, source="enumeration")


def _back(component: Component, level: int, state: int) -> tuple[Words, ...]:
    way = [component.visited[state : state + 1]]
    for earlier in reversed(range(level)):
        end = component.levels[earlier + 1] if earlier + 1 < len(component.levels) else component.visited.count
        way.append(_predecessor(component, component.levels[earlier], end, way[-1]))
    return tuple(reversed(way))


def _predecessor(component: Component, start: int, end: int, target: Words) -> Words:
    for _, states in component.blocks(start, end):
        moves = component.expander.moves(states, component.expander.evaluate(states))
        for span in moves.spans:
            hits = np.flatnonzero((moves.of(span) == target).all(axis=0))
            if len(hits):
                row = int(span[1][hits[0]])
                return states[:, row : row + 1]
    raise RuleError("internal: a state of the search has no predecessor")


def representative(component: Component, state: State) -> Words:
    """The packed representative of a concrete state."""
    packed = component.layout.pack(to_codes(component.model, renumber_stamps(state)))
    return component.canonical.states(packed[:, None])


def _forward(
    exploration: Exploration, component: Component, way: _Way, sighting: Sighting
) -> tuple[list[State], list[Step]]:
    machine = Machine(exploration.instance)
    states, steps = [machine.initial(component.model.fixing)], list[Step]()
    for target in way.representatives[1:]:
        step = _step_to(machine, component, states[-1], target)
        steps.append(step)
        states.append(machine.apply(states[-1], step))
    if way.last is not None:
        prop = exploration.instance.model.property_named(sighting.property)
        kind = component.model.actions[way.last].step.action
        for step in machine.enabled(states[-1]):
            successor = machine.successor(states[-1], step)
            if step.action == kind and not machine.holds(prop, states[-1], successor):
                return [*states, successor], [*steps, step]
        raise RuleError("internal: the last step of a trace is not enabled")
    return states, steps


def _step_to(machine: Machine, component: Component, state: State, target: Words) -> Step:
    for step in machine.enabled(state):
        if np.array_equal(representative(component, machine.successor(state, step)), target):
            return step
    raise RuleError("internal: the reference machine cannot follow a trace of the search")
