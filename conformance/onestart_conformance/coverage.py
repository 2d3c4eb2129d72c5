"""How much of the model's graph a drive has been through, and what it never drove.

The denominator is every step that the model allows in the states that were reached. Some of them no library takes that
makes up its mind (it reports what stands in the way only where it cannot go on), so it is a bound, not a goal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from attrs import frozen

from onestart_conformance.machine import Tally
from onestart_conformance.rules import Rules
from onestart_conformance.systematic import Walk
from onestart_model.execution import State

MOST_STATES = 3000


@frozen
class Coverage:
    """told: how often each action was taken. driven, allowed: steps of the model in the states that were reached.

    allowed is empty if there are too many states to count them.
    """

    actions: tuple[str, ...]
    runs: int
    gates: int
    states: int
    told: Mapping[str, int]
    driven: Mapping[str, int]
    allowed: Mapping[str, int]
    complete: bool = False
    left: int = 0

    def rows(self) -> Iterator[tuple[str, int, int, int | None, str]]:
        """Each action: how often it was taken, its steps driven and allowed, and a remark."""
        for name in self.actions:
            told, driven = self.told.get(name, 0), self.driven.get(name, 0)
            allowed = self.allowed.get(name) if self.allowed else None
            yield name, told, driven, allowed, "never driven" if not told and not driven else ""

    def summary(self) -> str:
        """In one line."""
        never = [name for name, told, driven, _, _ in self.rows() if not told and not driven]
        driven = sum(self.driven.values())
        of = f" of {sum(self.allowed.values()):,} that the model allows there" if self.allowed else ""
        rest = (
            "nothing is left to take" if self.complete else f"{self.left:,} known moves not taken" if self.left else ""
        )
        parts = [
            f"{self.runs:,} runs, {self.gates:,} steps of the implementation, {self.states:,} states of the model",
            f"{driven:,} steps of the model driven{of}",
            f"{len(self.actions) - len(never)} of {len(self.actions)} actions",
        ]
        return "; ".join([*parts, *([rest] if self.complete or self.left else [])])


def of_walk(walk: Walk) -> Coverage:
    """Of a systematic drive."""
    actions = tuple(action.name for action in walk.rules.instance.model.actions)
    told = Counter(step.action for _, step in walk.driven)
    allowed = allowed_in(walk.rules, walk.states) if len(walk.states) <= MOST_STATES else {}
    return Coverage(
        actions, walk.worlds, walk.gates, len(walk.states), told, walk.edges, allowed, walk.complete, walk.left
    )


def of_tally(rules: Rules, tally: Tally) -> Coverage:
    """Of a random drive."""
    actions = tuple(action.name for action in rules.instance.model.actions)
    driven = Counter(step.action for _, step in tally.edges)
    states = {state for state, _ in tally.edges}
    allowed = allowed_in(rules, states) if len(states) <= MOST_STATES else {}
    return Coverage(actions, tally.examples, tally.gates, len(states), tally.taken, driven, allowed)


def allowed_in(rules: Rules, states: set[State]) -> Mapping[str, int]:
    """How many steps of each action the model allows in these states."""
    counts: Counter[str] = Counter()
    steps = list(rules.machine.steps())
    for state in states:
        counts.update(step.action for step in steps if rules.machine.why_not(state, step) is None)
    return counts
