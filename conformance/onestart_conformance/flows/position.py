"""Where a run stands on the model of flows, and the steps that take it further, or the objection if there is none."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from attrs import define, evolve, field

from onestart_conformance.flows.abstraction import Abstraction
from onestart_conformance.flows.names import MODEL, Names
from onestart_conformance.judgement import PROMISE, Objection
from onestart_conformance.rules import Rules
from onestart_model.execution import State, Step
from onestart_model.expression import Value

FOLLOWED = "followed to the end"
REFUSED_OTHERWISE = "followed to the end, with a refusal for what the model does not count"
MORE_ORDINALS = "a watermark moved the counter further than the instance has ordinals"


@define(eq=False)
class Position:
    """strict: the rules with every protection, if `rules` lack one; `noticed` is what they object to first.

    drivers: the model's, by attempt. uncovered: why it is followed no further, though nothing is wrong. refused:
    attempts that were refused for what the model does not have. A driver is called d, a call c, and its id x.
    """

    abstraction: Abstraction
    rules: Rules
    strict: Rules | None = None
    names: Names = field(init=False)
    state: State = field(init=False)
    objection: Objection | None = None
    noticed: Objection | None = None
    uncovered: str = ""
    steps: list[Step] = field(factory=list)
    drivers: dict[int, int] = field(factory=dict)
    refused: set[int] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.uncovered = self.abstraction.uncovered
        self.names = Names(self.abstraction)
        if not self.uncovered:
            self.state = self.rules.machine.initial(tuple(self.abstraction.fixed.items()))

    @property
    def stopped(self) -> bool:
        """Whether it is followed no further."""
        return self.objection is not None or bool(self.uncovered)

    def take(self, action: str, *arguments: Value) -> bool:
        """Take a step on the model, or object. Whether it was taken."""
        if self.stopped:
            return False
        stray = self.abstraction.stray
        if stray in arguments[2:] and (self.abstraction.plan.version < 3 or stray == self.abstraction.sizes["Id"]):
            self.uncovered = MORE_ORDINALS
            return False
        step = Step(action, arguments)
        after = self.rules.apply(self.state, step)
        self.steps.append(step)
        if self.strict is not None and self.noticed is None:
            self.noticed = self._notice(self.strict, step, after)
        if after is None:
            self.objection = objection_to(self.rules, self.state, step)
            return False
        if self.strict is not None and (promise := self.rules.broken(self.state, after)):
            what = f"{self.rules.machine.show_step(step)} breaks a promise"
            self.objection = Objection(PROMISE, what, (), promise)
        self.state = after
        return True

    def _notice(self, strict: Rules, step: Step, after: State | None) -> Objection | None:
        """Whether a step is another one, or none, by all rules."""
        meant = strict.apply(self.state, step)
        if meant is None:
            return objection_to(strict, self.state, step)
        if meant == after:
            return None
        what = f"{strict.machine.show_step(step)} changes something else than it may"
        return Objection(MODEL, what, tuple(sorted(self.rules.instance.without)))

    def _call(self, attempt: int, position: str) -> tuple[int, int] | None:
        """Driver and call, if the call was made in this attempt and is one of the model."""
        d, c = self.drivers.get(attempt), self.abstraction.calls.get(position)
        if self.stopped or d is None or c is None or self.state.read("taken", d, c) is None:
            return None
        return d, c

    def _latched(self, d: int) -> bool:
        return bool(self.state.read("latched", d))

    def _stage(self, d: int, c: int) -> Value:
        return self.state.read("stage", d, c)

    def _has_got(self, d: int, c: int, x: int, stage: str) -> bool:
        return self.state.read("taken", d, c) == x and self._stage(d, c) == stage

    def _taken(self, d: int, c: int) -> int:
        x = self.state.read("taken", d, c)
        assert isinstance(x, int)
        return x

    def _child_begins(self, d: int, c: int, carried: Iterable[str], *, whole: bool) -> None:
        """A child flow has its first record. whole: its calls are calls of the model themselves."""
        x = self._taken(d, c)
        if self._stage(d, c) == "DECLARED":
            self._admit(d, c, carried)
        if whole and self._stage(d, c) == "DOUBT":
            self.take("ask", d, c, x)
        if self._stage(d, c) == "QUEUED":
            self.take("enter", d, c, x)
        if whole and self._stage(d, c) == "ENTERED":
            self.take("step_of_child", d, c, x)

    def _child_goes_on(self, d: int, c: int, x: int) -> None:
        if self._stage(d, c) == "QUEUED":
            self.take("enter", d, c, x)
        self.take("step_of_child", d, c, x)

    def _to_the_queue(self, d: int, c: int, x: int) -> None:
        """An effect in doubt may be started: it never was before, or its executor says that it may run again."""
        if not self._never_started(d, c, x):
            self.take("repeat", d, c, x)

    def _never_started(self, d: int, c: int, x: int) -> bool:
        """Ask about an effect in doubt, if the answer is that it never was started."""
        asked = self.rules.apply(self.state, Step("ask", (d, c, x)))
        return asked is not None and asked.read("stage", d, c) == "QUEUED" and self.take("ask", d, c, x)

    def _admit(self, d: int, c: int, carried: Iterable[str] = ()) -> bool:
        """Ordinals are admitted in their order: before a call all lower ones that are on record, or go with its own."""
        x = self._taken(d, c)
        self._admit_others(d, x, {self.names.of(step) for step in carried})
        return self.take("admit", d, c, x)

    def _admit_others(self, d: int, x: int, going: Collection[int | None] = ()) -> None:
        ordinals = self.abstraction.ordinals
        below = tuple(ordinals)[: ordinals.index(x)] if x in ordinals else ()
        for y in range(self.abstraction.stray):
            o = self.state.read("claimed", d, y)
            if not isinstance(o, int) or y == x or not self._has_got(d, o, y, "DECLARED"):
                continue
            if y in going or (y in below and self.state.read("entry", y) != "ABSENT"):
                self.take("admit", d, o, y)

    def _refuse(self, attempt: int, d: int, c: int) -> None:
        """The call is refused under the id that it would take: at once, or as a conflict when it would be admitted."""
        for x in range(self.abstraction.stray):
            if self.rules.enabled(self.state, Step("refuse", (d, c, x))):
                self.take("refuse", d, c, x)
                self.names.lost[d] = self.names.lost.get(d, 0) + (x in self.abstraction.ordinals)
                return
            declared = self.rules.apply(self.state, Step("declare", (d, c, x)))
            if declared is not None and self.state.read("entry", x) != "ABSENT":
                self.take("declare", d, c, x)
                self._admit_others(d, x)
                if self.rules.enabled(self.state, Step("turn_away", (d, c, x))):
                    self.take("turn_away", d, c, x)
                    return
        self._refused_otherwise(attempt, d)

    def _refused_otherwise(self, attempt: int, d: int) -> None:
        """The library refuses what the model does not count. From here on the driver is taken as one that refused."""
        self.refused.add(attempt)
        row, column = self.rules.instance.places["latched", (d,)]
        rows = [list(cells) for cells in self.state.rows]
        rows[row][column] = True
        self.state = evolve(self.state, rows=tuple(map(tuple, rows)))


def how_far(position: Position) -> str:
    """How far a run was followed, in words: to its end, or why not."""
    if position.uncovered:
        return position.uncovered
    return REFUSED_OTHERWISE if position.refused else FOLLOWED


def objection_to(rules: Rules, state: State, step: Step) -> Objection:
    """Why a step is none of the model, and what it would break."""
    protections = rules.forbidden_by(state, step)
    after = rules.forced(state, step, protections[0] if protections else "")
    what = f"{rules.machine.show_step(step)} is not allowed: {rules.why_not(state, step)}"
    return Objection(MODEL, what, protections, rules.broken(state, after))
