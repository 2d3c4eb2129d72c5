"""The graph of reachable states: what can still happen, and the graph itself for analysis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import networkx as nx
import numpy as np
import numpy.typing as npt
from attrs import frozen

from onestart_model.expression import RuleError
from onestart_model.rules import CAN_STILL, Property
from onestart_proofs.columns import Registers
from onestart_proofs.packing import Words
from onestart_proofs.search import BLOCK, Component, Exploration, Sighting

MOST_NODES = 200_000
Flags = npt.NDArray[np.bool_]
Graph: TypeAlias = "nx.MultiDiGraph[tuple[int, int]]"


@frozen
class Stuck:
    """The outcome of a can_still property: how many states cannot get there, and the first of them."""

    property: str
    states: int
    stuck: int
    first: Sighting | None


Report = Callable[[int, int], None]


def can_still(exploration: Exploration, prop: Property, *, report: Report | None = None) -> Stuck:
    """From which states the property's condition cannot be reached by the steps that it lets a way use.

    Nothing is stored but a flag for each state: blocks are expanded again, last found first, until no flag changes;
    most ways lead to states that were found later, so few rounds are needed. report: called with rounds done and states
    still open. Raises RuleError unless the exploration is complete.
    """
    if prop.kind != CAN_STILL:
        raise RuleError(f"{prop.name} does not say what can still happen")
    if any(prop.name not in c.model.conditions for c in exploration.components):
        raise RuleError(f"the exploration was not asked for {prop.name}")
    if not exploration.complete:
        raise RuleError("what can still happen is only known of a complete exploration")
    stuck, first = 0, None
    for number, component in enumerate(exploration.components):
        good = _good(component, prop, report)
        bad = np.flatnonzero(~good)
        stuck += len(bad)
        if len(bad) and first is None:
            first = Sighting(prop.name, number, level_of(component, int(bad[0])), int(bad[0]), None)
    return Stuck(prop.name, exploration.states, stuck, first)


def level_of(component: Component, state: int) -> int:
    """The distance of a state from the initial one."""
    return int(np.searchsorted(np.array(component.levels), state, side="right")) - 1


def _good(component: Component, prop: Property, report: Report | None) -> Flags:
    count = component.visited.count
    allowed = frozenset(i for i, a in enumerate(component.model.actions) if prop.concerns(a.action))
    condition = component.model.conditions[prop.name]
    good = np.zeros(count, dtype=np.bool_)
    for first, states in component.blocks(0, count):
        value = component.expander.evaluate(states)[condition]
        good[first : first + states.shape[1]] = value
    rounds, open_before = 0, -1
    while (still_open := int((~good).sum())) and still_open != open_before:
        rounds, open_before = rounds + 1, still_open
        if report is not None:
            report(rounds, still_open)
        _spread(component, good, allowed)
    return good


def _spread(component: Component, good: Flags, allowed: frozenset[int]) -> None:
    """One round: a state with an allowed step to a good one becomes good."""
    waiting = np.flatnonzero(~good)
    for start in reversed(range(0, len(waiting), BLOCK)):
        numbers = waiting[start : start + BLOCK]
        states = component.visited.rows(numbers)
        good[numbers[_reaches(component, states, good, allowed)]] = True


def _reaches(component: Component, states: Words, good: Flags, allowed: frozenset[int]) -> npt.NDArray[np.intp]:
    registers: Registers = component.expander.evaluate(states)
    moves = component.expander.moves(states, registers, allowed)
    found = good[component.visited.find(moves.successors)]
    hits = [rows[found[start : start + len(rows)]] for _, rows, start in moves.spans]
    return np.unique(np.concatenate(hits)) if hits else np.empty(0, dtype=np.intp)


def to_networkx(exploration: Exploration) -> Graph:
    """The reduced graph: nodes (component, number) with their level, edges with the action that makes them.

    Raises RuleError if it has more than 200,000 nodes, for which networkx is too slow.
    """
    if exploration.states > MOST_NODES:
        raise RuleError(f"{exploration.states:,} states are too many to export; the most is {MOST_NODES:,}")
    graph: Graph = nx.MultiDiGraph()
    for number, component in enumerate(exploration.components):
        graph.add_nodes_from(((number, n), {"level": level_of(component, n)}) for n in range(component.visited.count))
        for first, states in component.blocks(0, component.visited.count):
            moves = component.expander.moves(states, component.expander.evaluate(states))
            for action, rows, start in moves.spans:
                targets = component.visited.find(moves.successors[:, start : start + len(rows)])
                name = component.model.actions[action].step.action
                graph.add_edges_from(
                    ((number, first + int(a)), (number, int(b)), {"action": name})
                    for a, b in zip(rows, targets, strict=True)
                    if b >= 0
                )
    return graph
