"""Judges of a flow: each objects to one kind of wrong, and says which protection would have prevented it.

They know a call by its position in the text, and the library by what it writes, starts and returns.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field, frozen

from onestart.command import digest
from onestart.flow import Call as Carried
from onestart.flow import RefusedError, StepFailedError
from onestart.flow.identity import MARKER, StepId, parse
from onestart.records import Step as Entry
from onestart_conformance.flows.program import Placed
from onestart_conformance.flows.reference import FailsError, value_of_call
from onestart_conformance.flows.world import Effect, Told, World
from onestart_conformance.judgement import Objection

EFFECT = "effect"  # a completed effect is executed again, or one that nobody may run again
DELIVERY = "delivery"  # a result, an answer or a verdict reaches another call
ADMISSION = "admission"  # something is admitted after a refusal, in another's place, or without its record
IDENTITY = "identity"  # a call has another id than before, or that of another call
READING = "reading"  # a first attempt reads more than a new root needs
LEASE = "lease"  # a driver writes after another has taken over

HELPERS = ("helper", "mcp", "plugin")
ADMITTING = ("index", "wait", "verdict", "complete", "again")


@frozen
class Holder:
    """Who holds an ordinal that is counted. by: what shows it."""

    step: StepId
    by: str


@define(eq=False)
class Judges:
    """holders: of counted ordinals, by scope. specs: digests under which steps are recorded. questions: who asked.

    closed: entries of which there is one. done: whose result a step's is; settled: steps that have one. known: ids of
    calls. widths: how many calls there were in a place that was left, and in which attempt. token: the newest.
    """

    world: World
    holders: dict[tuple[str, int], Holder] = field(factory=dict)
    specs: dict[str, str] = field(factory=dict)
    questions: dict[str, Placed] = field(factory=dict)
    closed: set[tuple[str, str]] = field(factory=set)
    done: dict[str, str] = field(factory=dict)
    known: dict[str, str] = field(factory=dict)
    settled: set[str] = field(factory=set)
    widths: dict[tuple[str, str], tuple[int, int]] = field(factory=dict)
    token: int = 0

    def declared(self, told: Told, placed: Placed, step: str) -> None:
        """The author has got a step for a call."""
        if told.refused is not None:
            self._object(
                ADMISSION,
                f"{placed.identity} is declared as {step} after {told.refused.identity} was refused",
                _latch(told, placed, step),
            )
        if step in told.placed:
            other = told.placed[step].identity
            self._object(IDENTITY, f"{placed.identity} and {other} are both {step}", "stable-ids")
        before = self.known.setdefault(placed.identity, step)
        if self._fixed and before != step:
            self._object(IDENTITY, f"{placed.identity} was {before} and is {step} now", "stable-ids")
        told.ids[placed.position] = step
        told.placed[step] = placed

    def received(self, told: Told, placed: Placed, value: object) -> None:
        """A call has given a value to its author."""
        told.given.add(told.ids[placed.position])
        if told.refused is not None and placed.position not in told.waiting:
            self._object(
                ADMISSION,
                f"{placed.identity} is awaited after {told.refused.identity} was refused, and gives {value!r}",
                _latch(told, placed, told.ids[placed.position]),
            )
        if self.world.plan.changed is not None and self._may_have_changed(placed):
            return  # what it came to before the change is what it came to
        step = told.ids[placed.position]
        if placed.call.kind != "human" and step not in self.settled:
            self._object(ADMISSION, f"{placed.identity} is given {value!r}, and {step} has no result on record")
        if not self._due(placed, value):
            what = f"{placed.identity} is given {value!r}"
            self._object(DELIVERY, what, self._mixed(told, placed) if self._of_another(placed, value) else "")

    def _may_have_changed(self, placed: Placed) -> bool:
        fails = any(other.call.fails for other in self.world.plan.program.calls())
        return placed.call.kind == "dispatch" or (placed.call.kind == "hook" and fails)

    def _due(self, placed: Placed, value: object) -> bool:
        try:
            return bool(value == value_of_call(placed, self.world.name))
        except FailsError:
            return False

    def _of_another(self, placed: Placed, value: object) -> bool:
        plan, kind = self.world.plan, placed.call.kind
        programs = (plan.program, plan.changed) if plan.changed is not None else (plan.program,)
        others = (other for program in programs for other in program.calls() if other.call.kind == kind)
        return any(other.identity != placed.identity and self._due(other, value) for other in others)

    def raised(self, told: Told, placed: Placed, error: Exception) -> None:
        """A call has raised something in its author's code."""
        if isinstance(error, RefusedError):
            if told.refused is None:
                told.refused = placed
                self.world.note(told.number, f"{placed.identity} is refused: {error}")
        elif self.world.plan.changed is not None and self._may_have_changed(placed):
            return
        elif isinstance(error, StepFailedError) and not _may_fail(placed, error, self.world):
            self._object(DELIVERY, f"{placed.identity} fails with {error.diagnostic!r}")

    def starts(self, told: Told, effect: Effect, call: Carried) -> None:
        """A worker is asked to carry something out."""
        placed, step = effect.placed, call.step
        recorded = self.specs.get(step)
        if recorded is None:
            protection = "effects-indexed" if placed.call.kind in HELPERS else "index-at-admission"
            self._object(ADMISSION, f"{step} is carried out before it is indexed", protection)
        elif recorded != digest(call.spec):
            self._object(ADMISSION, f"{step} is carried out with another spec than is recorded", "spec-bound")
        if told.refused is not None and step not in told.indexed and placed.position not in told.waiting:
            what = f"{placed.identity} is carried out after {told.refused.identity} was refused"
            self._object(ADMISSION, what, _latch(told, placed, step))
        self._judge_effect(effect, step)

    def _judge_effect(self, effect: Effect, step: str) -> None:
        world, name = self.world, self.world.name(effect.placed)
        alike = [e for e in world.effects if world.name(e.placed) == name]
        if world.plan.changed is not None:
            alike = [e for e in alike if e.step == step]  # elsewhere in a changed text it may be another call
        many = sum(world.name(placed) == name for placed in world.plan.program.calls())
        finished = len({e.step for e in alike if self.done.get(e.step) == name})
        if alike and (finished >= max(many, 1) or (world.plan.in_flight != "again" and len(alike) >= max(many, 1))):
            why = "has its result on record" if finished else "was under way and its worker holds it"
            self._object(
                EFFECT,
                f"{effect.placed.identity} {why} as {alike[-1].step} and is carried out again as {step}",
                self._moved(alike[-1].step, step, bool(finished)),
            )

    def writes(self, told: Told, entry: Entry) -> None:
        """An entry of the journal is durable."""
        told.wrote.append(entry)
        self.world.note(told.number, f"records {entry.what} {entry.step}".rstrip())
        if entry.token and entry.token < self.token:
            self._object(LEASE, f"{_said(entry)} is written by a driver whose root was taken over", "driver-lease")
        self.token = max(self.token, entry.token)
        placed = told.placed.get(entry.step)
        concludes = entry.what == "done" and placed is not None and placed.call.kind == "dispatch"
        if told.refused is not None and (entry.what in ADMITTING or concludes):
            self._object(
                ADMISSION,
                f"{_said(entry)} is written after {told.refused.identity} was refused",
                _latch(told, placed, entry.step),
            )
        self._judge_place(entry, told.number)
        self._note(told, entry)

    def _judge_place(self, entry: Entry, now: int) -> None:
        step = parse(entry.step)
        if step is None or entry.what in ("answer", "again"):
            return
        if entry.what in ("done", "verdict", "wait", "complete") and (entry.what, entry.step) in self.closed:
            self._object(ADMISSION, f"{_said(entry)} is written twice")
        self.closed.add((entry.what, entry.step))
        calls, attempt = self.widths.get((step.scope, step.after), (step.ordinal + 1, -1))
        if step.kind != MARKER and entry.what in ("index", "wait") and step.ordinal >= calls and attempt < now:
            self._object(
                ADMISSION, f"{entry.step} is one more call in a place where {calls} were made before", "width-checked"
            )
        for held in self._held(step):
            if held.step.kind != step.kind:
                what = f"ordinal {step.ordinal} is that of {held.step} and is given to {entry.step}"
                self._object(ADMISSION, what, _keeper(held, step))

    def _held(self, step: StepId) -> Iterator[Holder]:
        holder = self.holders.get((step.scope, step.ordinal))
        if holder is not None and not step.after:
            yield holder

    def _note(self, told: Told, entry: Entry) -> None:
        step = parse(entry.step)
        if step is None:
            return
        if not step.after and entry.what in ("index", "wait", "done"):
            self.holders.setdefault((step.scope, step.ordinal), Holder(step, entry.what))
        parent = parse(step.scope)
        if parent is not None and not parent.after:
            self.holders.setdefault((parent.scope, parent.ordinal), Holder(parent, "child"))
        if "spec" in entry.body:
            self.specs.setdefault(entry.step, entry.body["spec"])
        if entry.what in ("index", "again"):
            told.indexed.add(entry.step)
        if entry.what == "wait" and entry.step in told.placed:
            self.questions.setdefault(entry.step, told.placed[entry.step])
        for after, (calls, _) in entry.body.get("closed", {}).items():
            self.widths.setdefault((step.scope, after), (calls, told.number))
        if entry.what in ("done", "verdict"):
            self.settled.add(entry.step)
        if entry.what in ("done", "verdict") and entry.step in told.placed:
            self.done.setdefault(entry.step, self.world.name(told.placed[entry.step]))

    def ends(self, told: Told, asked: int) -> None:
        """An attempt is over. asked: how often it asked for the journal."""
        if asked > 1:
            self._object(READING, f"attempt {told.number + 1} reads the journal {asked} times")

    @property
    def _fixed(self) -> bool:
        plan = self.world.plan
        return plan.version >= 3 and plan.changed is None and plan.program.ordered

    def _mixed(self, told: Told, placed: Placed) -> str:
        """Which protection keeps a recorded value from another call."""
        if self._fixed and self.known.get(placed.identity) != told.ids.get(placed.position):
            return "stable-ids"
        return {"human": "question-bound", "hook": "hook-input-bound"}.get(placed.call.kind, "spec-bound")

    def _moved(self, before: str, now: str, finished: bool) -> str:
        """Which protection keeps a call from being carried out under another id."""
        if before == now:
            return "" if finished else "in-flight-declared"
        step, was = parse(now), parse(before)
        if self.world.plan.version >= 3 or step is None or was is None:
            return "stable-ids"
        for held in self._held(step):
            if held.step.kind != step.kind:
                return _keeper(held, step)
        return "watermark" if step.ordinal > was.ordinal else ""

    def _object(self, oracle: str, what: str, protection: str = "") -> None:
        if self.world.objection is None and self.world.judged:
            self.world.note(self.world.told[-1].number, f"{oracle} objects: {what}")
        self.world.object_to(Objection(oracle, what, (protection,) if protection else ()))


def _keeper(held: Holder, step: StepId) -> str:
    """Which protection keeps another kind from an ordinal."""
    if step.kind == MARKER:
        return "marker-checked"
    return {"wait": "waits-hold", "child": "dispatches-hold"}.get(held.by, "ordinal-kind")


def _latch(told: Told, placed: Placed | None, step: str) -> str:
    """Which check of the latch should have stopped a step."""
    if placed is None:
        return ""
    if placed.call.kind in ("memory", "on"):
        return "latch-on-activities"
    parsed = parse(step)
    if parsed is not None and parsed.scope:
        return "latch-in-children"
    if placed.position not in told.ids:
        return "latch-at-declaration"
    return "latch-at-slot" if placed.position in told.waiting else "latch-at-start"


def _may_fail(placed: Placed, error: StepFailedError, world: World) -> bool:
    try:
        value_of_call(placed, world.name)
    except FailsError as fails:
        return str(fails) in error.diagnostic or placed.call.kind == "dispatch"
    return False


def _said(entry: Entry) -> str:
    return f"{entry.what} {entry.step}".rstrip()
