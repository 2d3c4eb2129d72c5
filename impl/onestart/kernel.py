"""The kernel: reads the receipt of a submission and decides whether the execution callback is entered.

What the kernel has read may be old by the time it acts, so no later step relies on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from attrs import evolve, frozen

from onestart import evidence
from onestart.answers import Answer, Outcome, Reason, Result, reason_named
from onestart.command import Bound, Command
from onestart.evidence import ReceiptState
from onestart.health import Finding, Health
from onestart.outside import Decision, Outside, Strand
from onestart.ports import LedgerUnavailableError, Ruling, View
from onestart.records import Attempt, Receipt

ROUNDS = 3  # how often a submission that lost its lease goes through the kernel before its caller has to

Callback = Callable[[Strand, Command], Awaitable[Answer | None]]


@frozen
class Kernel:
    """callback: the execution callback; None as its answer means that it lost its lease and wants to be called anew."""

    outside: Outside
    callback: Callback

    async def submit(self, strand: Strand, command: Command) -> Answer:
        """Handle one submission, from reading the receipt to an answer."""
        try:
            for _ in range(ROUNDS):
                answer = await self._once(strand, command)
                if answer is not None:
                    return answer
            return await self.outside.step(strand, partial(report, command=command, reason=Reason.LEASE_LOST))
        except LedgerUnavailableError as error:
            self.outside.tell("dropped", strand, error=str(error))
            reason = Reason.RECEIPTS_UNAVAILABLE if error.store == "receipts" else Reason.STORE_UNAVAILABLE
            unread = Finding(error.store, Health.UNAVAILABLE, "")
            return Answer(command.key, Outcome.HELD, reason, findings=(unread,), detail=str(error))

    async def _once(self, strand: Strand, command: Command) -> Answer | None:
        received = await self.outside.step(strand, partial(receive, command=command, strand=strand))
        if isinstance(received, Answer):
            return received
        try:
            ruling = await self.outside.governance.rule(command)
        except Exception as error:
            failed = partial(report, command=command, reason=Reason.GOVERNANCE_UNAVAILABLE, detail=type(error).__name__)
            return await self.outside.step(strand, failed)
        current = in_force(command, ruling)
        self.outside.tell("ruled", strand, revision=ruling.revision, expected=command.revision)
        if not current:
            return await self._stale(strand, command, received)
        entered = await self.outside.step(strand, partial(enter, command=command, ruling=ruling))
        if entered is not None:
            return entered
        return await self.callback(strand, command)

    async def _stale(self, strand: Strand, command: Command, before: ReceiptState) -> Answer:
        reason = Reason.STATE_ADVANCED if before is ReceiptState.PENDING else Reason.STALE_REVISION
        return await close_and_tell(self.outside, strand, command, "refuse", reason)


async def close_and_tell(
    outside: Outside, strand: Strand, command: Command | Bound, action: str, reason: Reason
) -> Answer:
    """Close a command if nobody meant to start it, and answer with what it has come to."""
    step = partial(close, command=command, action=action, reason=reason, strand=strand)
    for _ in range(ROUNDS):
        answer = await outside.step(strand, step)
        if answer is not None:
            return answer
    return await outside.step(strand, partial(report, command=command, reason=reason))


def in_force(command: Command, ruling: Ruling) -> bool:
    """Whether governance's revision is the one that the command expects."""
    return command.revision is None or command.revision == ruling.revision


def receive(view: View, *, command: Command, strand: Strand) -> Decision[Answer | ReceiptState]:
    """First of all the binding; then a recorded result is replayed, or the command is accepted."""
    if evidence.bound_to_another(view, command):
        return conflict(view, command)
    if view.task_of(command.key) not in (None, command.task):
        return answered(view, command, "report", Reason.CONFLICT, Outcome.TURNED_AWAY)
    state = evidence.receipt_state(view.receipt(command.key))
    if state is ReceiptState.COMPLETED:
        return replay(view, command, created=strand.started)
    if state is not ReceiptState.ABSENT:
        return Decision(state)
    strand.fresh = "receipts" not in evidence.astray(view)
    receipt = Receipt(command.key, command.task, "pending", command.fingerprint, command.to_json())
    return Decision(state, "accept", receipt)


def conflict(view: View, command: Command | Bound) -> Decision[Answer]:
    """The key is bound to another command.

    It is looked for in every step, since two commands may have got this far while damage hid what the key is bound to.
    """
    return answered(view, command, "conflict", Reason.CONFLICT, Outcome.TURNED_AWAY)


def replay(view: View, command: Command, *, created: bool) -> Decision[Answer | ReceiptState]:
    """The recorded result, exactly; whoever started the key and lost the lease is told that it was the one.

    Unless an operator has settled the key in the meantime: that is the result then.
    """
    result = evidence.recorded_result(view, command.key)
    if result is None:
        return answered(view, command, "report", Reason.RESULT_DAMAGED, Outcome.HELD)
    reason = Reason.CREATED if created and result.outcome is Outcome.STARTED else Reason.REPLAY
    return answered(view, command, "replay", reason, result.outcome, result)


def enter(view: View, *, command: Command, ruling: Ruling) -> Decision[Answer | None]:
    """The callback is entered with a command that needs no approval, or whose own digest was approved."""
    if evidence.bound_to_another(view, command):
        return conflict(view, command)
    filed, problem = approval(view, command) if ruling.needs_approval else ("", None)
    if problem is not None:
        return answered(view, command, "report", problem, Outcome.HELD)
    details = {"required": ruling.needs_approval, "approved": filed, "digest": command.fingerprint}
    return Decision(None, "enter", None, details)


def approval(view: View, command: Command) -> tuple[str, Reason | None]:
    """The digest that was approved under the key, and what is wrong with it.

    Source: observations A0 to A3 and O1.
    """
    reading = view.approval(command.key)
    if reading.health.degraded:
        return "", Reason.APPROVALS_CORRUPT
    if reading.newest is None:
        return "", Reason.APPROVAL_REQUIRED
    stale = reading.newest.digest != command.fingerprint
    return reading.newest.digest, Reason.APPROVAL_STALE if stale else None


def close(
    view: View, *, command: Command | Bound, action: str, reason: Reason, strand: Strand
) -> Decision[Answer | None]:
    """Close a command that nobody meant to start, then record that as its result; a started one keeps its start.

    None: the closing is on record, and this is to be called again for the answer. action: refuse or cancel.
    """
    key, task = command.key, command.task
    if not view.receipt(key).exists:
        return answered(view, command, "report", Reason.UNKNOWN_KEY, Outcome.TURNED_AWAY)
    if evidence.bound_to_another(view, command):
        return conflict(view, command)
    attempt = view.attempt(key).newest
    if attempt is not None and attempt.state == "closed":
        return closed(view, command, reason_named(attempt.reason, reason))
    if evidence.started(view, key):
        return dispatched(view, command, Reason.CREATED if strand.started else reason)
    if evidence.never_intended(view, key, task, fresh=strand.fresh):
        record = Attempt(key, task, "closed", command.fingerprint, reason=str(reason))
        return Decision(None, action, record, {"reason": str(reason)})
    return answered(view, command, "report", Reason.IN_DOUBT if action == "cancel" else reason, Outcome.HELD)


def closed(view: View, command: Command | Bound, reason: Reason) -> Decision[Answer]:
    """The command will not start: recorded as its result, unless there is one."""
    result = Result(Outcome.CLOSED, reason)
    if evidence.completed(view, command.key):
        return answered(view, command, "report", reason, Outcome.CLOSED, evidence.recorded_result(view, command.key))
    return completing(view, command, "report_closed", result, reason)


def dispatched(view: View, command: Command | Bound, reason: Reason) -> Decision[Answer]:
    """The command has started: recorded as its result, unless there is one."""
    if evidence.completed(view, command.key):
        return answered(view, command, "report", reason, Outcome.STARTED, evidence.recorded_result(view, command.key))
    return completing(view, command, "report_dispatched", Result(Outcome.STARTED, Reason.CREATED), reason)


def completing(view: View, command: Command | Bound, action: str, result: Result, reason: Reason) -> Decision[Answer]:
    receipt = Receipt(command.key, command.task, "completed", command.fingerprint, result=result.to_json())
    answer = answer_with(command, reason, result.outcome, result, view)
    return Decision(answer, action, receipt, told(answer))


def report(view: View, *, command: Command | Bound, reason: Reason, detail: str = "") -> Decision[Answer]:
    """Tell what stands in the way; nothing is recorded."""
    decision = answered(view, command, "report", reason, Outcome.HELD)
    return evolve(decision, value=evolve(decision.value, detail=detail))


def answered(
    view: View, command: Command | Bound, action: str, reason: Reason, outcome: Outcome, result: Result | None = None
) -> Decision[Answer]:
    """A decision to answer, and to write nothing."""
    answer = answer_with(command, reason, outcome, result, view)
    return Decision(answer, action, None, told(answer))


def answer_with(
    command: Command | Bound, reason: Reason, outcome: Outcome, result: Result | None = None, view: View | None = None
) -> Answer:
    met = evidence.findings(view, command.key, command.task) if view is not None else ()
    return Answer(command.key, outcome, reason, result, met)


def told(answer: Answer) -> dict[str, Any]:
    """What an event tells of an answer."""
    damage = sorted({f.store for f in answer.findings if f.concerns and f.health is not Health.ABSENT})
    result = answer.result.to_json() if answer.result else None
    return {"reason": str(answer.reason), "outcome": str(answer.outcome), "result": result, "damage": damage}
