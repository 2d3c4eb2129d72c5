"""The monitor: follows a run step by step on the model of flows, and objects where it cannot.

What is decided here is only which step of the model something is that happened: a call that its author makes and what
it gives, an entry of the journal once it is durable, an effect that is started, a driver that dies. Whether the step is
allowed, what it changes and which protection stands in its way is read from the rules.

Four steps of the model are taken when the library shows that it must have taken them: a record that is found is admitted
when its call is awaited, or when a later one is; a hook is entered when it is on record; an effect in doubt is asked
about, or sent to the queue again, when it is started or its result is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define, evolve, field

from onestart.flow import Outcome, RefusedError, StepFailedError
from onestart.flow.errors import EndedError, LeaseLostError, StoreLostError
from onestart.flow.journal import Ended, Journal
from onestart.records import Step as Entry
from onestart_conformance.flows.abstraction import END, Abstraction
from onestart_conformance.flows.names import MODEL, Names, compare_journal
from onestart_conformance.flows.program import Placed
from onestart_conformance.judgement import Objection
from onestart_conformance.rules import Rules
from onestart_model.execution import State, Step
from onestart_model.expression import Value

ACTIVITIES = ("memory", "on")
OUTSIDE = (EndedError, LeaseLostError, StoreLostError)  # no refusals of the guard
MORE_ORDINALS = "a watermark moved the counter further than the instance has ordinals"
ANOTHER_REFUSAL = "a refusal for what the model does not count"


@define(eq=False)
class Monitor:
    """strict: the rules with every protection, if `rules` lack one; `noticed` is what they object to first.

    drivers: the model's, by attempt. acted: calls that were no calls any more, because of a refusal. uncovered: why it
    follows no further, though nothing is wrong. refused: attempts that were refused for what the model does not have.
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
    acted: set[tuple[int, str]] = field(factory=set)
    results: dict[str, Any] = field(factory=dict)
    refused: set[int] = field(factory=set)
    _replay: tuple[int, str, Step] | None = None

    def __attrs_post_init__(self) -> None:
        self.uncovered = self.abstraction.uncovered
        self.names = Names(self.abstraction)
        if not self.uncovered:
            self.state = self.rules.machine.initial(tuple(self.abstraction.fixed.items()))

    @property
    def stopped(self) -> bool:
        """Whether it follows no further."""
        return self.objection is not None or bool(self.uncovered)

    # What drivers and the world do -------------------------------------------------------------------------------

    def leased(self, attempt: int) -> None:
        """A driver has taken the root."""
        if self.stopped:
            return
        free = (d for d in range(self.abstraction.sizes["Driver"]) if not self.state.read("active", d))
        self.drivers[attempt] = next(free)
        self.take("begin", self.drivers[attempt])

    def ended(self, attempt: int) -> None:
        """A driver has died, or has come to the end of its attempt; either way it knows nothing any more."""
        self._settle()
        driver = self.drivers.pop(attempt, None)
        if driver is not None:
            self.take("crash", driver)

    def answered(self, step: str) -> None:
        """A person has answered a question."""
        x = self.names.of(step)
        if x is not None:
            self.take("answer", x)

    def concluded(self, attempt: int, outcome: Outcome) -> None:
        """What an attempt has come to, which has to be what the model has come to."""
        self._settle()
        d = self.drivers.get(attempt)
        if self.stopped or d is None:
            return
        if outcome.state == "refused" and not self._latched(d):  # no call was, so it is the completion marker
            self._refuse(attempt, d, self.abstraction.calls[END])
        over = any(
            self.state.read("filed", x) == "MARKER" and self.state.read("entry", x) == "COMPLETED"
            for x in range(self.abstraction.stray)
        )
        if (outcome.state == "refused") != self._latched(d) or (outcome.state == "completed") != over:
            said = "refused" if self._latched(d) else "complete" if over else "neither refused nor complete"
            self.objection = self.objection or Objection(MODEL, f"it is {outcome.state}, and in the model {said}")

    def at_rest(self, journal: Journal | None) -> None:
        """Nothing goes on by itself: what is on record has to be what the model has."""
        self._settle()
        if self.stopped:
            return
        for objection in compare_journal(self.state, journal, self.names, self.abstraction.calls[END]):
            self.objection = self.objection or objection

    # What the author sees ----------------------------------------------------------------------------------------

    def declared(self, attempt: int, placed: Placed, step: str) -> None:
        """A call has got its id."""
        self._settle()
        d, c = self.drivers.get(attempt), self.abstraction.calls.get(placed.position)
        if self.stopped or d is None or c is None:
            return
        if self._latched(d) and placed.call.kind in ACTIVITIES:
            self.acted.add((attempt, placed.position))
            self.take("act", d)
            return
        hook = self.abstraction.calls.get(self.abstraction.made[c].part_of)
        if hook is not None and self._stage(d, hook) == "QUEUED":
            self.take("enter", d, hook, self._taken(d, hook))
        self.take("declare", d, c, self.names.declared(c, step, self.state))

    def awaits(self, attempt: int, placed: Placed) -> None:
        """The author waits for a call: if it is on record, its record is found."""
        self._settle()
        found = self._call(attempt, placed.position)
        if found is None or self._latched(found[0]) or self._stage(*found) != "DECLARED":
            return
        d, c = found
        if not self.state.read("leads", d):
            return  # it knows what was on record when it began
        entry = self.state.read("entry", self._taken(d, c))
        if entry == "ABSENT" or not self._admit(d, c):
            return
        if placed.call.kind == "hook" and entry == "COMPLETED":
            self._replay = (attempt, placed.position, Step("replay", (d, c, self._taken(d, c))))
        elif placed.call.kind == "hook":
            self.take("enter", d, c, self._taken(d, c))

    def received(self, attempt: int, placed: Placed, step: str, value: object) -> None:
        """A call has given a value to its author, or the diagnostic of its failure."""
        self._settle()
        found = self._call(attempt, placed.position)
        if found is None:
            return
        if self._stage(*found) != "DONE":
            self.take("receive", *found, self._taken(*found))
        if not self.stopped and (step not in self.results or self.results[step] != value):
            recorded = repr(self.results[step]) if step in self.results else "nothing"
            self.objection = Objection(MODEL, f"{step} gives {value!r}, and {recorded} is on record")

    def raised(self, attempt: int, placed: Placed, error: Exception) -> None:
        """A call was refused: when it was made, or when it was awaited."""
        if isinstance(error, StepFailedError):
            self.received(attempt, placed, error.step, Ended(failed=error.diagnostic))
            return
        c, d = self.abstraction.calls.get(placed.position), self.drivers.get(attempt)
        if not isinstance(error, RefusedError) or isinstance(error, OUTSIDE) or self.stopped or d is None or c is None:
            self._settle()
            return
        replay, self._replay = self._replay, None
        if self._latched(d):
            return
        if replay is not None and replay[:2] == (attempt, placed.position):
            self.take("refuse_skip", *replay[2].arguments)
        elif self._stage(d, c) == "IDLE":
            self._refuse(attempt, d, c)
        else:
            self._refused_otherwise(attempt, d)

    # What is on record, and what is done -------------------------------------------------------------------------

    def writes(self, attempt: int, entry: Entry, placed: Placed | None) -> None:
        """An entry of a driver is durable. placed: the call that it is of."""
        self._settle()
        carried = tuple(entry.body.get("declared", {}))
        for name, spec in entry.body.get("declared", {}).items():
            self._asks(attempt, name, spec)
        match entry.what:
            case "index" | "wait":
                if placed is not None:
                    self._asks_placed(placed, entry.body.get("spec") or entry.body.get("digest", ""))
                    self._recorded(attempt, placed, carried)
            case "again":
                self._doubted(attempt, placed, "repeat")
            case "done":
                failed = entry.body.get("failed")
                self.results[entry.step] = entry.body.get("result") if failed is None else Ended(failed=failed)
                self._done(attempt, placed, carried)
            case "verdict":
                self.results[entry.step] = entry.body["verdict"]
                self._decided(attempt, placed, entry)
            case "complete":
                self._completed(attempt, entry)
            case _:
                return

    def answers(self, step: str, value: object) -> None:
        """What a person answers is what whoever asks is to get."""
        self.results[step] = value
        self._settle()
        self.answered(step)

    def starts(self, attempt: int, placed: Placed) -> None:
        """A worker is asked to carry out a call."""
        self._settle()
        found = self._call(attempt, self.abstraction.only.get(placed.position, placed.position))
        if found is None or (attempt, placed.position) in self.acted:
            return
        d, c = found
        x = self._taken(d, c)
        if self._stage(d, c) == "DECLARED":  # the command's own record is there, if nothing else is
            self._admit(d, c)
        if self._stage(d, c) == "DOUBT":
            self._to_the_queue(d, c, x)
        if placed.position in self.abstraction.only:
            self._child_goes_on(d, c, x)
        else:
            self.take("start", d, c, x)

    # Parts of these ----------------------------------------------------------------------------------------------

    def _recorded(self, attempt: int, placed: Placed, carried: Iterable[str]) -> None:
        """A call is on record, and with it all dispatches that it is a step of."""
        only = self.abstraction.only.get(placed.position)
        c = self.abstraction.calls.get(only or placed.position)
        around = () if c is None else self.abstraction.made[c].around
        for position in (*around, only) if only else around:
            found = self._call(attempt, position)
            if found is not None:
                self._child_begins(*found, carried, whole=position != only)
        found = self._call(attempt, placed.position)
        if found is None or (attempt, placed.position) in self.acted:
            return
        d, c = found
        if self._stage(d, c) == "DECLARED":
            self._admit(d, c, carried)
        if placed.call.kind == "hook" and self._stage(d, c) == "QUEUED":
            self.take("enter", d, c, self._taken(d, c))

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
        """An effect in doubt is started: it never was before, or its executor says that it may run again."""
        asked = self.rules.apply(self.state, Step("ask", (d, c, x)))
        never = asked is not None and asked.read("stage", d, c) == "QUEUED"
        self.take("ask" if never else "repeat", d, c, x)

    def _doubted(self, attempt: int, placed: Placed | None, action: str) -> None:
        position = "" if placed is None else self.abstraction.only.get(placed.position, placed.position)
        found = self._call(attempt, position)
        if found is not None:
            self.take(action, *found, self._taken(*found))

    def _done(self, attempt: int, placed: Placed | None, carried: Iterable[str]) -> None:
        found = None if placed is None else self._call(attempt, placed.position)
        if found is None or placed is None or (attempt, placed.position) in self.acted:
            return
        d, c = found
        x = self._taken(d, c)
        if placed.call.kind == "dispatch":
            for position in (*self.abstraction.made[c].around, placed.position):
                begun = self._call(attempt, position)
                if begun is not None:
                    self._child_begins(*begun, carried, whole=True)
        if self._stage(d, c) == "DOUBT":
            self.take("ask", d, c, x)
        self.take("finish", d, c, x)

    def _decided(self, attempt: int, placed: Placed | None, entry: Entry) -> None:
        found = None if placed is None else self._call(attempt, placed.position)
        if found is None:
            return
        d, c = found
        x = self._taken(d, c)
        if not self.take("decide", d, c, x) or "after_step" not in entry.body or x not in self.abstraction.ordinals:
            return
        passed = [y for y in self.abstraction.ordinals if self.state.read("passed", x, y)]
        told = [*self.abstraction.ordinals[: int(entry.body["after_step"])]]
        if passed != told:
            what = f"the verdict of {entry.step} counts {len(told)} ordinals, and {len(passed)} are on record"
            self.objection = Objection(MODEL, what, ("watermark-of-admitted",) if passed == told[: len(passed)] else ())

    def _completed(self, attempt: int, entry: Entry) -> None:
        d, c = self.drivers.get(attempt), self.abstraction.calls[END]
        if self.stopped or d is None:
            return
        if self.take("declare", d, c, self.names.declared(c, entry.step, self.state)):
            self._admit(d, c)

    def _admit(self, d: int, c: int, carried: Iterable[str] = ()) -> bool:
        """Ordinals are admitted in their order: before a call all lower ones that are on record, or go with its own."""
        x, ordinals = self._taken(d, c), self.abstraction.ordinals
        below = ordinals[: ordinals.index(x)] if x in ordinals else range(0)
        going = {self.names.of(step) for step in carried}
        for y in range(self.abstraction.stray):
            o = self.state.read("claimed", d, y)
            if isinstance(o, int) and y != x and self._has_got(d, o, y, "DECLARED"):
                if y in going or (y in below and self.state.read("entry", y) != "ABSENT"):
                    self.take("admit", d, o, y)
        return self.take("admit", d, c, x)

    def _refuse(self, attempt: int, d: int, c: int) -> None:
        """The call is refused under the id that it would take: at once, or as a conflict when it would be admitted."""
        for x in range(self.abstraction.stray):
            if self.rules.enabled(self.state, Step("refuse", (d, c, x))):
                self.take("refuse", d, c, x)
                return
            declared = self.rules.apply(self.state, Step("declare", (d, c, x)))
            if declared is not None and self.state.read("entry", x) != "ABSENT":
                self.take("declare", d, c, x)
                self._found_below(d, x)
                if self.rules.enabled(self.state, Step("turn_away", (d, c, x))):
                    self.take("turn_away", d, c, x)
                    return
        self._refused_otherwise(attempt, d)

    def _found_below(self, d: int, x: int) -> None:
        for o in range(len(self.abstraction.made)):
            y = self.state.read("taken", d, o)
            lower = y in self.abstraction.ordinals and isinstance(y, int) and y < x
            if lower and self._stage(d, o) == "DECLARED" and self.state.read("entry", self._taken(d, o)) != "ABSENT":
                self._admit(d, o)

    def _refused_otherwise(self, attempt: int, d: int) -> None:
        """The library refuses what the model does not count. From here on the driver is taken as one that refused."""
        self.refused.add(attempt)
        row, column = self.rules.instance.places["latched", (d,)]
        rows = [list(cells) for cells in self.state.rows]
        rows[row][column] = True
        self.state = evolve(self.state, rows=tuple(map(tuple, rows)))

    def _asks(self, attempt: int, step: str, spec: str) -> None:
        """What a call asks for that was declared before, and goes on record with another."""
        x, d = self.names.of(step), self.drivers.get(attempt)
        if self.stopped or x is None or d is None:
            return
        claimed = self.state.read("claimed", d, x)
        if isinstance(claimed, int):
            self._asks_placed(self.abstraction.made[claimed].placed, spec)

    def _asks_placed(self, placed: Placed, spec: str) -> None:
        c = self.abstraction.calls.get(placed.position)
        if spec and c is not None and not self.stopped:
            self.names.specs.setdefault((placed.call.kind, spec), self.abstraction.fixed["asks"][c])

    # One step ----------------------------------------------------------------------------------------------------

    def take(self, action: str, *arguments: Value) -> bool:
        """Take a step on the model, or object. Whether it was taken."""
        if self.stopped:
            return False
        if any(argument == self.abstraction.stray for argument in arguments[2:]) and self.abstraction.plan.version < 3:
            self.uncovered = MORE_ORDINALS
            return False
        step = Step(action, arguments)
        after = self.rules.apply(self.state, step)
        self.steps.append(step)
        if self.strict is not None and self.noticed is None and not self.strict.enabled(self.state, step):
            self.noticed = objection_to(self.strict, self.state, step)
        if after is None:
            self.objection = objection_to(self.rules, self.state, step)
            return False
        self.state = after
        return True

    def _settle(self) -> None:
        """A verdict that was about to be replayed was not refused."""
        if self._replay is not None:
            step, self._replay = self._replay[2], None
            self.take(step.action, *step.arguments)

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


def objection_to(rules: Rules, state: State, step: Step) -> Objection:
    """Why a step is none of the model, and what it would break."""
    protections = rules.forbidden_by(state, step)
    after = rules.forced(state, step, protections[0] if protections else "")
    what = f"{rules.machine.show_step(step)} is not allowed: {rules.why_not(state, step)}"
    return Objection(MODEL, what, protections, rules.broken(state, after))
