"""The monitor: follows an implementation event by event on the model, and objects where it cannot.

What is decided here is only which step of the model an event claims to be, and which process of the model took it. A
process of the model is a strand that has entered the callback; in the kernel strands are nobody in particular.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from onestart import Event
from onestart.ports import View
from onestart_conformance.doubles import Asked
from onestart_conformance.judgement import ANSWER, PROMISE, RULE, START, Objection
from onestart_conformance.rules import Rules
from onestart_model.execution import State, Step
from onestart_model.expression import Value

Strand = tuple[str, int]

BINDING = (
    *("accept", "replay", "conflict", "enter", "refuse", "report_closed", "report_dispatched"),
    *("offer", "claim", "intend", "ask", "note", "record", "give_up"),
)
OF_KEY = ("cancel", "cancel_session", "reconcile", "release", "settle")
FENCED = ("intend", "ask", "note", "start", "look_up", "record", "give_up", "renew", "withdraw")
ANSWERS = ("replay", "conflict", "report", "report_closed", "report_dispatched")
SILENT = ("stopped",)


def takes_process(step: Step, rules: Rules) -> bool:
    """Whether the first argument of the step is a process."""
    parameters = rules.instance.model.action_named(step.action).parameters
    return str(parameters[0].type) == "Process"


@define
class Slot:
    """What is known of a process of the model. node: who it was last."""

    strand: Strand | None = None
    token: int = 0


@define
class Monitor:
    """keys, tasks: the names that elements of the model have in the implementation.

    strict: the rules with every protection, if `rules` lack one: then `noticed` is what they object to first, and the
    monitor goes on until a promise is broken. named: what events call the command that records call by its fingerprint.
    external: whether starts and look-ups are reported by the executor itself, so that events are only compared.
    """

    rules: Rules
    keys: Mapping[str, int]
    tasks: Mapping[str, int]
    external: bool = True
    named: Callable[[str], str] = str
    strict: Rules | None = None
    noticed: Objection | None = None
    state: State = field(init=False)
    objection: Objection | None = None
    steps: list[Step] = field(factory=list)
    edges: set[tuple[State, Step]] = field(factory=set)
    slots: list[Slot] = field(init=False)
    ends: dict[str, float] = field(factory=dict)
    issued: dict[str, int] = field(factory=dict)
    ruled: dict[Strand, bool] = field(factory=dict)
    bound: dict[str, str] = field(factory=dict)
    unnamed: set[str] = field(factory=set)
    results: dict[str, Mapping[str, Any]] = field(factory=dict)
    recorded_for: dict[str, str] = field(factory=dict)
    created: set[str] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.state = self.rules.initial()
        sizes = {sort.name: n for sort, n in self.rules.instance.sizes.items()}
        self.slots = [Slot() for _ in range(sizes["Process"])]

    @property
    def stopped(self) -> bool:
        """Whether it has objected; it follows no further then."""
        return self.objection is not None

    # What happens ------------------------------------------------------------------------------------------------

    def observe(self, event: Event) -> None:
        """Take an event of the implementation."""
        if self.stopped or event.action in SILENT:
            return
        self.time(event.at)
        strand = (event.process, event.strand)
        if event.action == "ruled":
            expected = event.details["expected"]
            self.ruled[strand] = expected is None or expected == event.details["revision"]
            return
        if event.action in (START, "look_up") and self.external:
            self._compare(event, strand)
            return
        self._check_binding(event)
        step = self._step(event, strand)
        if step is not None and not self.stopped:
            self._follow(event, strand, step)

    def asked(self, asked: Asked, strand: Strand) -> None:
        """Take what the executor itself reports."""
        if self.stopped:
            return
        slot = self.slot(strand)
        step = Step(asked.action, (slot, self.keys[asked.key]))
        self.take(step, strand, oracle=START if asked.action == "start" else RULE)
        if asked.action == "look_up" and self.objection is None and self.strict is None:
            self._expect_look_up(slot, asked.answer)

    def world(self, action: str, *arguments: Value) -> bool:
        """Take a step of the world; one that the model does not allow now has no meaning and is left out."""
        after = self.rules.apply(self.state, Step(action, arguments))
        if after is None:
            return False
        step = Step(action, arguments)
        self.steps.append(step)
        self.edges.add((self.state, step))
        self.state = after
        return True

    def died(self, process: str) -> None:
        """A process has died with all its strands."""
        for index, slot in enumerate(self.slots):
            if slot.strand is not None and slot.strand[0] == process:
                self.world("crash", index)
                slot.strand = None

    def caught_up(self, step: Step, after: State, view: View) -> None:
        """A step was taken of which no event tells; what an event would have told is in the records."""
        self.steps.append(step)
        self.state = after
        self.look_at_leases(view)
        for key in self.keys:
            receipt = view.receipt(key).newest
            if receipt is not None and receipt.result is not None:
                self.results.setdefault(key, {"result": receipt.result})
                self.recorded_for.setdefault(key, self.named(receipt.fingerprint))
            if receipt is not None:
                self.bound.setdefault(key, self.named(receipt.fingerprint))
        self._free()

    def look_at_leases(self, view: View) -> None:
        """Until when leases last, as the records say."""
        for task, index in self.tasks.items():
            lease = view.lease(task).newest
            if lease is not None and self.state.read("holder", index) is not None:
                self.ends[task] = lease.ends
                self.issued[task] = max(self.issued.get(task, 0), lease.token)

    def time(self, now: float) -> None:
        """Leases run out when their time has come."""
        for task, ends in list(self.ends.items()):
            if now >= ends:
                del self.ends[task]
                self.world("expire", self.tasks[task])

    # How an event is a step of the model -------------------------------------------------------------------------

    def _step(self, event: Event, strand: Strand) -> Step | None:
        action, key = event.action, self.keys.get(event.key, -1)
        if action == "repair_lease":
            return Step(action, (self.tasks[event.task],))
        if action in OF_KEY:
            return Step(action, (key,))
        if action == "dropped" and self.slot_of(strand) is None:
            return None
        slot = self.slot(strand)
        if action == "dropped":
            return Step("crash", (slot,))
        if action == "replay":
            foreign = event.fingerprint != self.recorded_for.get(event.key, event.fingerprint)
            return Step(action, (slot, key, foreign))
        if action == "conflict":
            certain = Step(action, (slot, key, False))
            return certain if self.rules.enabled(self.state, certain) else Step(action, (slot, key, True))
        if action == "enter":
            details = event.details
            approved = not details["required"] or details["approved"] == details["digest"]
            return Step(action, (slot, key, self.ruled.get(strand, False), approved))
        return Step(action, (slot, key))

    def _follow(self, event: Event, strand: Strand, step: Step) -> None:
        before = self.state
        self.take(step, strand if takes_process(step, self.rules) else None)
        if self.stopped:
            return
        if event.action in ("claim", "repair_lease"):
            self._issue(event, strand)
        elif event.action in FENCED:
            self._check_token(event, strand)
        if event.action in ("claim", "renew"):
            self.ends[event.task] = event.details["ends"]
        elif event.action in ("withdraw", "release", "repair_lease"):
            self.ends.pop(event.task, None)
        if event.action in ANSWERS:
            self._check_answer(event, before, step)

    def take(self, step: Step, strand: Strand | None = None, oracle: str = RULE) -> None:
        """Take the step on the model, by this strand if it is one of a process, or object."""
        after = self.rules.apply(self.state, step)
        self.steps.append(step)
        if self.strict is not None and self.noticed is None and not self.strict.enabled(self.state, step):
            self.noticed = self._objection_to(self.strict, step, oracle)
        if after is None:
            self.objection = self._objection_to(self.rules, step, oracle)
            return
        if self.strict is not None and (promise := self.rules.broken(self.state, after)):
            what = f"{self.rules.machine.show_step(step)} breaks a promise"
            self.objection = Objection(PROMISE, what, (), promise)
        self.edges.add((self.state, step))
        self.state = after
        if strand is not None and isinstance(step.arguments[0], int):
            self.slots[step.arguments[0]].strand = strand
        self._free()

    def _objection_to(self, rules: Rules, step: Step, oracle: str) -> Objection:
        protections = rules.forbidden_by(self.state, step)
        after = rules.forced(self.state, step, protections[0] if protections else "")
        promise = rules.broken(self.state, after)
        what = f"{rules.machine.show_step(step)} is not allowed: {rules.why_not(self.state, step)}"
        return Objection(oracle, what, protections, promise)

    # Who is who --------------------------------------------------------------------------------------------------

    def slot_of(self, strand: Strand) -> int | None:
        """The process of the model that the strand is, if it has entered the callback."""
        return next((i for i, slot in enumerate(self.slots) if slot.strand == strand), None)

    def slot(self, strand: Strand) -> int:
        """The process of the model that the strand is; a free one if it has not entered the callback."""
        known = self.slot_of(strand)
        if known is not None:
            return known
        free = [index for index, slot in enumerate(self.slots) if slot.strand is None]
        if not free:
            raise RuntimeError("more strands at once than the instance has processes")
        preferred = self._preferred(strand)
        return preferred if preferred in free else free[0]

    def _preferred(self, strand: Strand) -> int:
        """process2.1 is process 2 of the model if that is free, so that traces can be followed by name."""
        digits = strand[0].removeprefix("process").split(".")[0]
        return int(digits) - 1 if digits.isdigit() else -1

    def _free(self) -> None:
        for index, slot in enumerate(self.slots):
            if slot.strand is not None and self.state.read("serving", index) is None:
                slot.strand = None

    # What is compared besides ------------------------------------------------------------------------------------

    def _compare(self, event: Event, strand: Strand) -> None:
        """An event of a call to the executor tells what the executor did."""
        slot = self.slot(strand)
        stage = self.state.read("stage", slot)
        told = "STARTED" if event.action == "start" or event.details["started"] else "INTENDED"
        if stage != told:
            removed = ("ask-before-restart",) if event.action == "look_up" else ()
            what = f"{event.action} is told as {told}, and the executor says {stage}"
            self.objection = Objection(ANSWER, what, removed)
        self._check_token(event, strand)

    def _expect_look_up(self, slot: int, answer: bool) -> None:
        stage = self.state.read("stage", slot)
        if (stage == "STARTED") != answer:
            self.objection = Objection(START, f"the executor says {answer} of a key that is {stage}")

    def _issue(self, event: Event, strand: Strand) -> None:
        last = self.issued.get(event.task, 0)
        if event.token <= last:
            what = f"{event.action} under token {event.token}, and {last} was issued before"
            self.objection = Objection(RULE, what, ("token-per-acquisition",), "a_lost_lease_stays_lost")
        self.issued[event.task] = max(event.token, last)
        if event.action == "claim":
            self.slots[self.slot(strand)].token = event.token

    def _check_token(self, event: Event, strand: Strand) -> None:
        index = self.slot_of(strand)
        if index is not None and event.token not in (0, self.slots[index].token):
            what = f"{event.action} under token {event.token}, and the strand acquired {self.slots[index].token}"
            self.objection = Objection(RULE, what, ("fencing-token",))

    def _check_binding(self, event: Event) -> None:
        """A step for another command than the key is bound to is let in only where nobody can tell that it is one."""
        if event.action in OF_KEY and not event.fingerprint:
            self.unnamed.add(event.key)  # the newest record does not say what the key is bound to
        if event.action not in BINDING or not event.fingerprint or event.key in self.unnamed:
            return
        known = self.bound.setdefault(event.key, event.fingerprint)
        legible = self._legible(self.keys[event.key])
        if event.action == "conflict":
            if known == event.fingerprint and legible:
                what = f"the very command that {event.key} is bound to is turned away"
                self.objection = Objection(ANSWER, what)
        elif known != event.fingerprint and legible and event.action != "replay":
            what = f"{event.action}: another command is let in under a key that is bound"
            self.objection = Objection(RULE, what, ("fingerprint",), "a_result_reaches_only_its_command")
        elif known != event.fingerprint:
            self.bound[event.key] = event.fingerprint

    def _legible(self, key: int) -> bool:
        """Whether every reader can tell what the key is bound to: then the model turns other commands away."""
        free = (i for i in range(len(self.slots)) if self.state.read("serving", i) is None)
        return any(self.rules.enabled(self.state, Step("conflict", (i, key, False))) for i in free)

    def _check_answer(self, event: Event, before: State, step: Step) -> None:
        details, key = event.details, self.keys[event.key]
        hidden = self._hides(before, step, key)
        if hidden and not details["damage"]:
            what = f"{event.action}: damage was read and the answer does not say so"
            promise = "a_degraded_read_is_reported"
            self.objection = Objection(ANSWER, what, ("degraded-read-reported",), promise)
            return
        wrong = self._wrong_answer(event, key)
        if wrong:
            self.objection = Objection(ANSWER, f"{event.action}: {wrong}")
        if event.action in ("report_closed", "report_dispatched"):
            self.results[event.key] = details
            self.recorded_for[event.key] = event.fingerprint
        if details["reason"] == "task_dispatch_attempt_created":
            self.created.add(event.key)

    def _hides(self, before: State, step: Step, key: int) -> bool:
        """Whether an answer without a report would conceal damage: what the model says without the protection."""
        machine = self.rules.without("degraded-read-reported")
        after = machine.successor(before, step)
        return bool(after.read("concealed", key)) and not before.read("concealed", key)

    def _wrong_answer(self, event: Event, key: int) -> str:
        details, state = event.details, self.state
        outcome, reason, result = details["outcome"], details["reason"], details["result"]
        recorded = self.results.get(event.key)
        if event.action == "replay" and recorded is not None and result != recorded["result"]:
            return f"replays {result}, and {recorded['result']} was recorded"
        if event.action == "report_dispatched" and outcome != "started":
            return f"a dispatched command is answered with {outcome}"
        if event.action == "report_closed" and outcome != "closed":
            return f"a closed command is answered with {outcome}"
        started = state.read("session", key) != "ABSENT" or state.read("attempt", key) == "ENDED"
        closed = state.read("attempt", key) == "CLOSED"
        if event.action == "report" and outcome == "started" and not (started or recorded):
            return "says started, and no record shows it"
        if event.action == "report" and outcome == "closed" and not (closed or recorded):
            return "says closed, and no record shows it"
        if reason == "task_dispatch_attempt_created" and event.key in self.created:
            return "a second attempt is said to have been created"
        return ""
