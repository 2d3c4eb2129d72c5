"""Faults of the guard: something of the journal that a resumed call is not held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onestart.flow.guard import Asked, Guard
from onestart.flow.journal import Journal
from onestart.flow.steps import Hook, Human
from onestart.flow.tasks import FlowFuture
from onestart_conformance.faults.fault import Fault, Patch
from onestart_conformance.flows.drawing import CAUSAL, CHANGED, COUNTED, FAILS
from onestart_conformance.flows.faults.promises import ANY_ORDER, EFFECT_ONCE, IN_ORDER, OWN_PLACE, OWN_RESULT, WHOLE
from onestart_conformance.flows.judges import ADMISSION, DELIVERY, EFFECT
from onestart_conformance.flows.outcomes import FIT, ORDER


def _not_held(unheld: Callable[[Journal, str, str], bool]) -> list[Patch]:
    """Holders of which one takes no notice: of a step and its kind."""
    check = Guard._check_ordinal

    def lax(self: Guard, asked: Asked) -> None:
        holder = self.holders.get(asked.id.ordinal)
        if holder is None or holder[1] == asked.id.kind or not unheld(self.journal, *holder):
            check(self, asked)

    return [(Guard, "_check_ordinal", lax)]


def _indexed(journal: Journal, step: str, kind: str) -> bool:
    return step in journal.index


def _waiting(journal: Journal, step: str, kind: str) -> bool:
    return kind == "human"


def _dispatched(journal: Journal, step: str, kind: str) -> bool:
    return kind == "dispatch" and step not in journal.index


def _nothing(name: str) -> list[Patch]:
    return [(Guard, name, lambda self, *arguments: None)]


def _spec_bound() -> list[Patch]:
    def only_questions(self: Guard, asked: Asked) -> None:
        wait = self.journal.waits.get(asked.step)
        if wait is not None:
            self._check_question(asked, wait)

    return [(Guard, "_check_spec", only_questions)]


def _hook_input_bound() -> list[Patch]:
    check, restore = Guard._check_spec, Hook._restore

    def but_hooks(self: Guard, asked: Asked) -> None:
        if asked.id.kind != "hook":
            check(self, asked)

    start = Hook.start

    def unbound(self: Hook, future: FlowFuture) -> None:
        journal = self.root.journal
        verdict = journal.verdicts.get(self.id) if journal is not None else None
        if verdict is None:
            start(self, future)
            return
        restore(self, verdict.after_step)
        future.set_result(verdict.verdict)

    return [(Guard, "_check_spec", but_hooks), (Hook, "start", unbound)]


def _nobodys_own() -> list[Patch]:
    """A verdict passes over nothing, not even over what its own hook did."""
    check = Guard.check_restored

    def strict(self: Guard, hook: str, counter: int, after_step: int) -> None:
        check(self, "", counter, after_step)

    return [(Guard, "check_restored", strict)]


def _answer_without_digest() -> list[Patch]:
    async def ask(self: Human) -> None:
        self.root.latch.check()
        body = {"question": self.spec["question"], "to": self.spec["to"]}
        await self.root.append("wait", self.id, body | self.standing())

    return [(Human, "_ask", ask)]


def _width_checked() -> list[Patch]:
    def place(self: Guard, asked: Asked) -> None:
        held = self.journal.places.get((self.scope, *asked.id.place))
        if held is not None and held != asked.step:
            raise self._mismatch(asked.id, f"its place is journaled as step {held!r}")

    return [(Guard, "_check_place", place), *_nothing("_check_widths"), *_nothing("check_fork")]


TWINS = Fault(
    "twins-wait",
    "a call does not wait for a journaled one that asks for the same: it hides what other faults let through",
    EFFECT_ONCE,
    EFFECT,
    lambda: _nothing("twin"),
)


def of_guards() -> list[Fault]:
    """One for each thing that the guard holds a call against."""

    def fault(
        name: str,
        statement: str,
        promise: str,
        oracle: str,
        patches: Any,
        *uses: str,
        protection: str | None = None,
    ) -> Fault:
        return Fault(name, statement, promise, oracle, patches, name if protection is None else protection, uses)

    return [
        fault(
            "ordinal-kind",
            "an ordinal of an indexed step may be taken by another kind",
            OWN_PLACE,
            ADMISSION,
            lambda: _not_held(_indexed),
            COUNTED,
        ),
        fault(
            "waits-hold",
            "an open question does not hold its ordinal",
            OWN_PLACE,
            ADMISSION,
            lambda: _not_held(_waiting),
            COUNTED,
            "human",
        ),
        fault(
            "dispatches-hold",
            "an unfinished child flow does not hold its dispatch's ordinal",
            OWN_PLACE,
            ADMISSION,
            lambda: _not_held(_dispatched),
            COUNTED,
            "dispatch",
        ),
        fault(
            "marker-checked",
            "the completion marker may stand on a journaled ordinal",
            OWN_PLACE,
            ADMISSION,
            lambda: [*_nothing("check_marker"), *_nothing("check_complete")],
            COUNTED,
            CHANGED,
            "dispatch",
        ),
        fault("spec-bound", "a step's id is not bound to what it asks for", OWN_RESULT, DELIVERY, _spec_bound, COUNTED),
        fault(
            "question-bound",
            "an answer is given to whatever is asked under its id",
            OWN_RESULT,
            DELIVERY,
            lambda: _nothing("_check_question"),
            COUNTED,
            CHANGED,
            "human",
        ),
        fault(
            "hook-input-bound",
            "a verdict is given to whatever hook has its id",
            OWN_RESULT,
            DELIVERY,
            _hook_input_bound,
            COUNTED,
            CHANGED,
            "hook",
        ),
        fault(
            "watermark",
            "a verdict takes the counter past steps that were not reached",
            EFFECT_ONCE,
            EFFECT,
            lambda: [*_nothing("check_restored"), *_nothing("twin")],
            COUNTED,
            "hook",
        ),
        fault(
            "hook-calls-pass",
            "a verdict does not pass over the steps of its own hook",
            IN_ORDER,
            ORDER,
            _nobodys_own,
            COUNTED,
            "hook",
            protection="",
        ),
        fault(
            "answer-without-digest",
            "an open question is recorded without its digest",
            OWN_RESULT,
            DELIVERY,
            _answer_without_digest,
            COUNTED,
            CHANGED,
            "human",
            protection="question-bound",
        ),
        fault(
            "width-checked",
            "more calls than are journaled may stand in a place that was left",
            OWN_PLACE,
            ADMISSION,
            _width_checked,
            CAUSAL,
            CHANGED,
        ),
        fault(
            "broken-off-branches-count",
            "a branch that its group breaks off has to get as far as it once did",
            ANY_ORDER,
            ORDER,
            lambda: [(Guard, "_left_behind", lambda self, step: False)],
            CAUSAL,
            FAILS,
            "group",
            "within",
            protection="stable-ids",
        ),
        fault(
            "journal-reached",
            "a flow may complete without steps that are journaled",
            WHOLE,
            FIT,
            lambda: _nothing("check_complete"),
            CHANGED,
        ),
    ]
