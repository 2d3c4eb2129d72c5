"""The monitor: follows a run step by step on the model of flows, and objects where it cannot.

What is decided here is only which step of the model something is that happened: a call that its author makes and what
it gives, an entry of the journal once it is durable, an effect that is started, a driver that dies. Whether the step is
allowed, what it changes and which protection stands in its way is read from the rules.

Some steps of the model are taken when the library shows that it must have taken them: a record that is found is
admitted when its call is awaited, or when a later one is; a hook is entered when it is on record; an effect in doubt is
asked about, or sent to the queue again, when it is started or its result is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define, field

from onestart import Event
from onestart.flow import Outcome, RefusedError, StepFailedError
from onestart.flow.errors import EndedError, LeaseLostError, StoreLostError
from onestart.flow.identity import admission_key
from onestart.flow.journal import Ended, Journal
from onestart.records import Step as Entry
from onestart_conformance.flows.abstraction import END
from onestart_conformance.flows.heard import Heard
from onestart_conformance.flows.names import MODEL, compare_journal
from onestart_conformance.flows.position import Position
from onestart_conformance.flows.program import ROOT, Placed
from onestart_conformance.judgement import Objection
from onestart_model.execution import Step

FIRST = ("index", "wait", "complete")
ACTIVITIES = ("memory", "on")
OUTSIDE = (EndedError, LeaseLostError, StoreLostError)  # no refusals of the guard


@define(eq=False)
class Monitor(Position):
    """acted: calls that were no calls any more, because of a refusal. results: what is recorded under step ids.

    heard: what the library has told, by attempt. recorded: steps that have an entry of their own. keys: which calls
    the commands of the chain are.
    """

    heard: dict[int, Heard] = field(factory=dict)
    recorded: set[str] = field(factory=set)
    keys: dict[str, str] = field(factory=dict)
    acted: set[tuple[int, str]] = field(factory=set)
    results: dict[str, Any] = field(factory=dict)
    _replay: tuple[int, str, Step] | None = None

    # What drivers and the world do -------------------------------------------------------------------------------

    def leased(self, attempt: int) -> None:
        """A driver has taken the root."""
        if self.stopped:
            return
        free = (d for d in range(self.abstraction.sizes["Driver"]) if not self.state.read("active", d))
        self.drivers[attempt] = next(free)
        self.names.lost.pop(self.drivers[attempt], None)
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
        self.objection = self._heard(attempt).over()
        if outcome.state == "refused" and not self._latched(d):  # no call was, so it is the completion marker
            self._refuse(attempt, d, self.abstraction.calls[END])
        over = any(
            self.state.read("filed", x) == "MARKER" and self.state.read("entry", x) == "COMPLETED"
            for x in range(self.abstraction.stray)
        )
        if (outcome.state == "refused") != self._latched(d) or (outcome.state == "completed") != over:
            said = "refused" if self._latched(d) else "complete" if over else "neither refused nor complete"
            self.objection = self.objection or Objection(MODEL, f"it is {outcome.state}, and in the model {said}")

    def looked(self, attempt: int, times: int) -> None:
        """How often the journal was asked for in an attempt; the first one needs no more than to see that it is new."""
        d = self.drivers.get(attempt)
        if self.stopped or d is None or attempt:
            return
        if (times > 1) != self.state.read("needless", d):
            what = f"a first attempt asks for the journal {times} times"
            self.objection = Objection(MODEL, what, ("reads-on-resume-only",), "a_first_attempt_reads_nothing_extra")

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
            self.acts(attempt, placed)
            return
        hook = self.abstraction.calls.get(self.abstraction.made[c].part_of)
        if hook is not None and self._stage(d, hook) == "QUEUED":
            self.take("enter", d, hook, self._taken(d, hook))
        self.keys[admission_key(ROOT, step)] = placed.position
        self.take("declare", d, c, self.names.declared(d, c, step, self.state))

    def acts(self, attempt: int, placed: Placed) -> None:
        """A finding or a subscription that is made although something was refused, or that is no call of the model."""
        d = self.drivers.get(attempt)
        self.acted.add((attempt, placed.position))
        if d is not None:
            self.take("act", d)

    def awaits(self, attempt: int, placed: Placed) -> None:
        """The author waits for a call: if it is on record, its record is found."""
        self._settle()
        found = self._call(attempt, placed.position)
        if found is None or self._latched(found[0]) or not self.state.read("leads", found[0]):
            return  # whoever was taken over knows what was on record when it began
        d, c = found
        x = self._taken(d, c)
        entry = self.state.read("entry", x)
        if self._stage(d, c) == "DECLARED" and entry != "ABSENT":
            self._admit(d, c)
            self._never_started(d, c, x)
        if placed.call.kind not in ("hook", "dispatch") or self._stage(d, c) != "QUEUED":
            return
        if entry == "ADMITTED":
            self.take("enter", d, c, x)
        elif placed.call.kind == "hook":
            self._replay = (attempt, placed.position, Step("replay", (d, c, x)))

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

    def tells(self, attempt: int, event: Event) -> None:
        """The library tells of a step: of one that was taken, and just once.

        That a command is accepted is a record of its call, which the guard does not see if there is no other.
        """
        if self.stopped:
            return
        self.objection = self._heard(attempt).tells(event)
        found = self._call(attempt, self.keys.get(event.key, "")) if event.action == "accept" else None
        if found is not None and self._stage(*found) == "DECLARED":
            self._admit(*found)

    def writes(self, attempt: int, entry: Entry, placed: Placed | None) -> None:
        """An entry of a driver is durable. placed: the call that it is of."""
        self._settle()
        self._heard(attempt).written.append(entry)
        if entry.what in FIRST and not self.stopped:
            if entry.step in self.recorded:
                self.objection = Objection(MODEL, f"{entry.what} {entry.step} is written although its record is there")
            self.recorded.add(entry.step)
        carried = tuple(entry.body.get("declared", {}))
        for name, spec in entry.body.get("declared", {}).items():
            self._asks(attempt, name, spec)
        match entry.what:
            case "index" | "wait":
                if placed is not None:
                    self._asks_placed(placed, entry.body.get("spec") or entry.body.get("digest", ""))
                    self._recorded(attempt, placed, carried)
            case "again":
                self._doubted(attempt, placed)
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

    def starts(self, attempt: int, placed: Placed, key: str) -> None:
        """A worker is asked to carry out a call."""
        self._settle()
        if not self.stopped:
            self.objection = self._heard(attempt).starts(key)
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

    def _heard(self, attempt: int) -> Heard:
        return self.heard.setdefault(attempt, Heard())

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

    def _doubted(self, attempt: int, placed: Placed | None) -> None:
        position = "" if placed is None else self.abstraction.only.get(placed.position, placed.position)
        found = self._call(attempt, position)
        if found is not None and self._stage(*found) == "DOUBT":
            self._to_the_queue(*found, self._taken(*found))

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
        if self.take("declare", d, c, self.names.declared(d, c, entry.step, self.state)):
            self._admit(d, c)

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
            self.names.specs.setdefault((placed.call.kind, spec), self.abstraction.specs[self.abstraction.made[c].asks])

    def _settle(self) -> None:
        """A verdict that was about to be replayed was not refused."""
        if self._replay is not None:
            step, self._replay = self._replay[2], None
            self.take(step.action, *step.arguments)
