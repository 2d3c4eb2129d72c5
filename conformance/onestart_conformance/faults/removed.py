"""One fault for each protection of the model: the library without what the protection stands for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onestart import dispatcher, evidence, kernel, leases, sessions
from onestart.answers import Outcome, Reason, Result
from onestart.dispatcher import Dispatcher, Next
from onestart.evidence import ReceiptState
from onestart.outside import Decision, Outside, Strand
from onestart.ports import View
from onestart.records import Lease, Note
from onestart.sessions import Sessions
from onestart_conformance.doubles import Engine
from onestart_conformance.faults.fault import BYTES_STAY, NO_START, ONE_START, Fault, Patch
from onestart_conformance.judgement import ANSWER, RULE, START


def _fingerprint() -> list[Patch]:
    return [(evidence, "bound_to_another", lambda view, command: False)]


def _approval_digest() -> list[Patch]:
    checked = kernel.approval
    return [(kernel, "approval", lambda view, command: (checked(view, command)[0], None))]


def _revision_in_force() -> list[Patch]:
    return [(kernel, "in_force", lambda command, ruling: True)]


def _refusal_before_answer() -> list[Patch]:
    close = kernel.close

    def at_once(view: View, *, command: Any, action: str, reason: Reason, strand: Strand) -> Decision[Any]:
        pending = evidence.receipt_state(view.receipt(command.key)) is ReceiptState.PENDING
        if pending and not view.session(command.key).exists:
            return kernel.closed(view, command, reason)
        return close(view, command=command, action=action, reason=reason, strand=strand)

    return [(kernel, "close", at_once)]


def _result_recorded_once() -> list[Patch]:
    def again(view: View, command: Any, reason: Reason) -> Decision[Any]:
        result = Result(Outcome.STARTED, Reason.CREATED)
        return kernel.completing(view, command, "report_dispatched", result, reason)

    return [(kernel, "dispatched", again), (dispatcher, "dispatched", again)]


def _degraded_read_reported() -> list[Patch]:
    return [(evidence, "findings", lambda view, key, task: ())]


def _never_intended(*, damage: bool = False, notes: bool = True, results: bool = True) -> list[Patch]:
    def lax(view: View, key: str, task: str, *, fresh: bool = False) -> bool:
        states = ("absent", "offered", *(("damaged",) if damage else ()))
        if evidence.attempt_state(view, key) not in states or evidence.lease_damaged(view, task):
            return False
        return not (notes and view.note(key).exists) and not (results and evidence.completed(view, key))

    return [(evidence, "never_intended", lax)]


def _one_lease_per_task() -> list[Patch]:
    return [(evidence, "lease_free", lambda view, task, now: True)]


def _token_per_acquisition() -> list[Patch]:
    def same(view: View, task: str) -> int:
        records = view.lease(task).records
        return records[-1].token if records else 1

    return [(evidence, "next_token", same)]


def _task_serial() -> list[Patch]:
    return [(evidence, "quiet", lambda view, key, task: True)]


def _fencing_token() -> list[Patch]:
    holds, renew = leases.holds, leases.renew

    def fenced(view: View, *, strand: Strand, outside: Outside) -> Decision[bool]:
        return (
            renew(view, strand=strand, outside=outside)
            if holds(view, strand=strand, outside=outside)
            else Decision(False)
        )

    return [(leases, "holds", lambda view, *, strand, outside: True), (leases, "renew", fenced)]


def _renewal_fenced() -> list[Patch]:
    def renew(view: View, *, strand: Strand, outside: Outside) -> Decision[bool]:
        if not strand.token:
            return Decision(False)
        ends = outside.clock.now() + outside.lease_seconds
        record = Lease(strand.task, strand.token, strand.key, ends, outside.process)
        return Decision(True, "renew", record, {"ends": ends})

    return [(leases, "renew", renew)]


def _to_start(*, hasty: bool) -> list[Patch]:
    """From the claim of a fresh attempt, or from its recorded intent, straight to the executor."""
    claim = dispatcher.claim
    fresh: dict[int, bool] = {}

    def claimed(view: View, *, strand: Strand, outside: Outside) -> Decision[Any]:
        fresh[id(strand)] = evidence.never_intended(view, strand.key, strand.task)
        return claim(view, strand=strand, outside=outside)

    async def to_start(self: Dispatcher, strand: Strand, command: Any) -> Any:
        move = Next.START if hasty and fresh[id(strand)] else await self._step(strand, dispatcher.proceed, command)
        if move is Next.ASK:
            move = await self._ask(strand, command)
        if move is Next.CONFIRM and hasty:
            move = await self._step(strand, dispatcher.confirm, command)
        if move in (Next.START, Next.CONFIRM):
            move = await self._start(strand, command)
        return await self._step(strand, dispatcher.record, command) if move is Next.RECORD else move

    return [(dispatcher, "claim", claimed), (Dispatcher, "_to_start", to_start)]


def _intent_stands() -> list[Patch]:
    def blind(view: View, *, strand: Strand, outside: Outside, command: Any) -> Decision[Any]:
        if not leases.holds(view, strand=strand, outside=outside):
            return dispatcher.abandon(strand)
        return Decision(Next.START, "note", Note(strand.key, strand.task, strand.token))

    return [(dispatcher, "confirm", blind)]


def _ask_before_restart() -> list[Patch]:
    async def ask(self: Dispatcher, strand: Strand, command: Any) -> Any:
        await self.outside.executor.look_up(strand.key, strand.task, strand.token)
        self.outside.tell("look_up", strand, started=False)
        return Next.CONFIRM

    return [(Dispatcher, "_ask", ask)]


def _lookup_bars_older_starts() -> list[Patch]:
    return [(Engine, "bar", lambda self, task, token: None)]


def _executor_fence() -> list[Patch]:
    return [(Engine, "barred", lambda self, task, token: False)]


def _reconcile_asks_executor() -> list[Patch]:
    async def reconcile(self: Sessions, strand: Strand) -> bool:
        await self.outside.step(strand, lambda view: sessions.end(view, strand=strand))
        return await self.outside.step(strand, lambda view: sessions.release(view, strand=strand, outside=self.outside))

    return [(Sessions, "reconcile", reconcile)]


def removed() -> Iterator[Fault]:
    """In the order of the model's protections."""
    yield Fault(
        "fingerprint",
        "what a key is bound to is not looked at",
        "a_result_reaches_only_its_command",
        RULE,
        _fingerprint,
        "fingerprint",
        ("foreign",),
    )
    yield Fault(
        "approval-digest",
        "any command passes as approved",
        "only_what_was_approved_starts",
        RULE,
        _approval_digest,
        "approval-digest",
        ("approval",),
    )
    yield Fault(
        "revision-in-force",
        "the answer of governance is not looked at",
        "a_stale_revision_never_starts",
        RULE,
        _revision_in_force,
        "revision-in-force",
        ("stale",),
    )
    yield Fault(
        "refusal-before-answer",
        "a refusal is answered before it is in the attempt record",
        NO_START,
        RULE,
        _refusal_before_answer,
        "refusal-before-answer",
        ("stale",),
    )
    yield Fault(
        "result-recorded-once",
        "a result is recorded anew whenever a started command is answered",
        "a_recorded_result_stays",
        RULE,
        _result_recorded_once,
        "result-recorded-once",
    )
    yield Fault(
        "degraded-read-reported",
        "answers keep quiet about damage",
        "a_degraded_read_is_reported",
        ANSWER,
        _degraded_read_reported,
        "degraded-read-reported",
        ("damage",),
    )
    yield Fault(
        "damage-is-not-absence",
        "a damaged attempt record is taken for none",
        BYTES_STAY,
        RULE,
        lambda: _never_intended(damage=True),
        "damage-is-not-absence",
        ("damage",),
    )
    yield Fault(
        "notes-are-evidence",
        "notes of intents are not looked at",
        ONE_START,
        RULE,
        lambda: _never_intended(notes=False),
        "notes-are-evidence",
        ("lose_attempt", "die"),
    )
    yield Fault(
        "results-are-evidence",
        "a completed receipt does not keep a lost attempt from starting over",
        NO_START,
        RULE,
        lambda: _never_intended(results=False),
        "results-are-evidence",
        ("lose_attempt", "cancel", "damage"),
    )
    yield Fault(
        "one-lease-per-task",
        "a lease is taken whoever holds it",
        "a_live_lease_is_not_taken",
        RULE,
        _one_lease_per_task,
        "one-lease-per-task",
    )
    yield Fault(
        "token-per-acquisition",
        "the token of a lease says who holds it, not which time",
        "a_lost_lease_stays_lost",
        RULE,
        _token_per_acquisition,
        "token-per-acquisition",
        ("pass_time",),
    )
    yield Fault(
        "task-serial",
        "a command is started while another of its task may be running",
        "one_task_at_most_one_execution",
        RULE,
        _task_serial,
        "task-serial",
    )
    yield Fault(
        "fencing-token",
        "whoever once held the lease goes on writing",
        "only_the_holder_writes",
        RULE,
        _fencing_token,
        "fencing-token",
        ("pass_time",),
    )
    yield Fault(
        "renewal-fenced",
        "a lease is renewed by whoever once held it",
        "a_lost_lease_stays_lost",
        RULE,
        _renewal_fenced,
        "renewal-fenced",
        ("pass_time", "wake"),
    )
    yield Fault(
        "intent-before-start",
        "the executor is asked to start before the intent is on record",
        NO_START,
        START,
        lambda: _to_start(hasty=True),
        "intent-before-start",
    )
    yield Fault(
        "intent-noted",
        "the executor is asked to start before a second store has noted the intent",
        NO_START,
        START,
        lambda: _to_start(hasty=False),
        "intent-noted",
    )
    yield Fault(
        "intent-stands",
        "an intent is noted whatever its record shows by then",
        NO_START,
        RULE,
        _intent_stands,
        "intent-stands",
        ("lose_attempt", "damage"),
    )
    yield Fault(
        "ask-before-restart",
        "a key in doubt is started again whatever the executor says",
        ONE_START,
        ANSWER,
        _ask_before_restart,
        "ask-before-restart",
        ("die", "pass_time"),
    )
    yield Fault(
        "lookup-bars-older-starts",
        "the executor forgets whom it has answered to",
        ONE_START,
        START,
        _lookup_bars_older_starts,
        "executor-fence",
        ("pass_time",),
    )
    yield Fault(
        "executor-fence",
        "the executor starts whatever it is asked to",
        ONE_START,
        START,
        _executor_fence,
        "executor-fence",
        ("pass_time",),
    )
    yield Fault(
        "reconcile-asks-executor",
        "an attempt is ended without asking whether it runs",
        "one_task_at_most_one_execution",
        RULE,
        _reconcile_asks_executor,
        "reconcile-asks-executor",
        ("reconcile",),
    )
    yield Fault(
        "operator-looks-first",
        "an operator settles a key that may be about to start",
        NO_START,
        RULE,
        list,
        "operator-looks-first",
        ("settle",),
        careless=True,
    )
