"""What the stores prove about a key. Every step that decides on a start decides on these statements.

A start needs positive evidence: the stores that would know, all healthy, say that the key never got as far as an
intent. A record that cannot be read is never taken for one that is not there.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from onestart.answers import Outcome, Reason, Result
from onestart.command import Bound, Command
from onestart.health import Finding, Reading
from onestart.ports import View
from onestart.records import Receipt

OVER = ("closed", "ended")
INTENTS = frozenset({"attempts", "leases"})  # the stores that an intent leaves a record in


class ReceiptState(Enum):
    """What the newest records of a key's receipt show."""

    ABSENT = auto()
    PENDING = auto()
    PENDING_DAMAGED = auto()
    COMPLETED = auto()
    COMPLETION_DAMAGED = auto()


def receipt_state(reading: Reading[Receipt]) -> ReceiptState:
    """A damaged record behind another one is a completion; nothing else is ever appended to a receipt."""
    if not reading.exists:
        return ReceiptState.ABSENT
    newest = reading.newest
    if newest is not None:
        return ReceiptState.COMPLETED if newest.state == "completed" else ReceiptState.PENDING
    return ReceiptState.COMPLETION_DAMAGED if reading.count > 1 else ReceiptState.PENDING_DAMAGED


def completed(view: View, key: str) -> bool:
    """A completed receipt was written, legible or not."""
    return receipt_state(view.receipt(key)) in (ReceiptState.COMPLETED, ReceiptState.COMPLETION_DAMAGED)


def recorded_result(view: View, key: str) -> Result | None:
    """The result that the receipt records, if it can be read."""
    newest = view.receipt(key).newest
    if newest is None or newest.result is None:
        return None
    try:
        return Result(Outcome(newest.result["outcome"]), Reason(newest.result["reason"]))
    except (KeyError, ValueError):
        return None


def binding(view: View, key: str) -> frozenset[str]:
    """The fingerprints that legible records of the key show, older ones too: none of them may name another command."""
    receipts = {record.fingerprint for record in view.receipt(key).records}
    attempts = {record.fingerprint for record in view.attempt(key).records}
    sessions = {record.fingerprint for record in view.session(key).records}
    return frozenset((receipts | attempts | sessions) - {""})


def bound_to_another(view: View, command: Command | Bound) -> bool:
    """A legible record shows that the key is bound to another command than this one."""
    return any(fingerprint != command.fingerprint for fingerprint in binding(view, command.key))


def attempt_state(view: View, key: str) -> str:
    """absent, damaged, or the state of the newest record."""
    reading = view.attempt(key)
    if reading.newest is None:
        return "damaged" if reading.health.degraded else "absent"
    return reading.newest.state


def lease_damaged(view: View, task: str) -> bool:
    """The task's lease record cannot be read, so nobody knows who holds it."""
    return view.lease(task).health.degraded


def lease_holder(view: View, task: str, now: float) -> str | None:
    """The key that holds the task's lease, as far as a legible record shows."""
    lease = view.lease(task).newest
    return lease.held_at(now) if lease else None


def lease_free(view: View, task: str, now: float) -> bool:
    """The lease can be taken: its record is legible and names nobody, or has run out."""
    return not lease_damaged(view, task) and lease_holder(view, task, now) is None


def holds_lease(view: View, task: str, key: str, token: int, now: float) -> bool:
    """The fence: the lease record names the key under this very token, and has not run out."""
    lease = view.lease(task).newest
    return lease is not None and lease.held_at(now) == key and lease.token == token


def next_token(view: View, task: str) -> int:
    """A token above every one that was issued for the task, also by records that cannot be read.

    Every acquisition wrote a record, so the number of records bounds the tokens of the illegible ones.
    """
    reading = view.lease(task)
    tokens = [lease.token for lease in reading.records]
    if reading.health.degraded:
        tokens += [reading.count, *(a.token for key in view.keys(task) for a in view.attempt(key).records)]
    return max(tokens, default=0) + 1


def astray(view: View) -> frozenset[str]:
    """The stores that have lost something, or hold something illegible, of which nobody can tell whose it was."""
    return frozenset(finding.store for finding in view.stray())


def every_key_in_doubt(view: View) -> bool:
    """A key of which nothing is on record may have had records, and may have been started."""
    return astray(view) >= INTENTS | {"receipts"}


def never_intended(view: View, key: str, task: str, *, fresh: bool = False) -> bool:
    """Positive evidence, from every store that would know, that nobody ever meant to start the key.

    The attempt record alone would do if its store could not be lost: notes and completed receipts outlive it. fresh:
    this submission was the first of the key, so that nothing of it can be lost.
    """
    if attempt_state(view, key) not in ("absent", "offered"):
        return False
    if view.note(key).exists or completed(view, key) or lease_damaged(view, task):
        return False
    return fresh or not astray(view) >= INTENTS


def elsewhere(view: View, key: str, executor: str) -> bool:
    """Another executor was to start the key, or may have been: this one, if it has a name, cannot tell of it.

    A key of which no note was made was started by nobody, so nobody need be asked in particular.
    """
    attempts = {record.executor for record in view.attempt(key).records}
    notes = {record.executor for record in view.note(key).records}
    known = (attempts | notes | {record.executor for record in view.session(key).records}) - {""}
    return known != {executor} if known else bool(executor) and view.note(key).exists


def over(view: View, key: str) -> bool:
    """The attempt record shows that no execution of the key is under way, nor will be."""
    return attempt_state(view, key) in OVER


def started(view: View, key: str) -> bool:
    """A session record, or an ended attempt, shows that the key was started."""
    return view.session(key).exists or attempt_state(view, key) == "ended"


def in_doubt(view: View, key: str, task: str) -> bool:
    """The key may have been started and no record says whether."""
    return not never_intended(view, key, task) and not over(view, key) and not view.session(key).exists


def quiet(view: View, key: str, task: str) -> bool:
    """No other key of the task can possibly be executing."""
    return all(o == key or never_intended(view, o, task) or over(view, o) for o in view.keys(task))


def findings(view: View, key: str, task: str) -> tuple[Finding, ...]:
    """The damage that reading the key's records met."""
    met = (
        *_damage("receipts", view.receipt(key)),
        *_damage("attempts", view.attempt(key)),
        *_damage("sessions", view.session(key)),
        *_damage("approvals", view.approval(key)),
        *_damage("leases", view.lease(task)),
        *_damage("leases", view.note(key)),
    )
    return met + view.stray()


def _damage(store: str, reading: Reading[Any]) -> tuple[Finding, ...]:
    return (Finding(store, reading.health, reading.where),) if reading.health.degraded else ()
