"""The kernel: reads the receipt of a submission and decides whether the execution callback is entered.

What the kernel has read may be old by the time it acts, so no later rule relies on it: between taking a submission and
entering the callback a process is free, and `enter` asks nothing of the receipt but that the command was accepted.
"""

from __future__ import annotations

from onestart_model import Bool, action, environment, forget, require
from onestart_model.chain.evidence import (
    RESULTS,
    answer,
    binding_legible,
    binding_may_show,
    completed,
    in_kernel,
    never_intended,
    serves,
)
from onestart_model.chain.state import Attempt, Key, Process, Receipt, Session, Stage, State


@action(source="receipts, first round: intact completion")
def replay(s: State, p: Process, k: Key, foreign: Bool) -> None:
    """A completed receipt answers with its recorded result, and only the command that it was recorded for."""
    require(in_kernel(s, p), s.receipt[k].one_of(*RESULTS))
    require(~foreign, protection="fingerprint")
    s.leaked[k] = s.leaked[k] | foreign
    answer(s, k)


@action(source="observations: A4-command-actor-change")
def conflict(s: State, p: Process, k: Key, shown: Bool) -> None:
    """A submission of another command under a bound key is turned away: idempotency_key_conflict.

    shown: a record that is not followed here shows what the key is bound to.
    """
    require(in_kernel(s, p) | serves(s, p, k, Stage.ENTERED))
    require(binding_legible(s, k) | (shown & binding_may_show(s, k)))
    forget(s, p)
    answer(s, k)


@action(source="receipts, section 1")
def accept(s: State, p: Process, k: Key) -> None:
    """The command is promised: its pending receipt is appended, and binds the key from now on."""
    require(in_kernel(s, p), s.receipt[k] == Receipt.ABSENT)
    s.receipt[k] = Receipt.PENDING


@action(source="receipts, sections 2 and 5; observations: A0 to A3, J3")
def enter(s: State, p: Process, k: Key, in_force: Bool, approved: Bool) -> None:
    """An accepted command enters the execution callback, after two outside answers.

    in_force: governance says that the revision which the command expects is the current one. approved: the approval
    filed under the key is legible and its digest, of who asks for what, is that of this very submission; a submission
    of another command never matches it, even where damage hides what the key is bound to.
    """
    require(in_kernel(s, p), s.receipt[k] != Receipt.ABSENT)
    require(in_force, protection="revision-in-force")
    require(approved, protection="approval-digest")
    s.serving[p] = k
    s.stage[p] = Stage.ENTERED
    s.unconfirmed[p] = ~in_force
    s.unapproved[p] = ~approved


@environment("governance", source="receipts, section 2: rejects stale revision")
def refuse(s: State, p: Process, k: Key) -> None:
    """An accepted command whose revision is no longer in force, and that nobody meant to start, is closed.

    It counts as refused once its caller is told, which `report_closed` does after recording the result. The refusal is
    in the attempt record before that: a process that has claimed the attempt finds it there.
    """
    require(in_kernel(s, p), s.receipt[k] != Receipt.ABSENT)
    require(never_intended(s, k), s.attempt[k] != Attempt.DAMAGED)
    s.attempt[k] = Attempt.CLOSED


@environment("caller", source="receipts, section 3: I4 and I7")
def cancel(s: State, k: Key) -> None:
    """An accepted command that nobody meant to start is closed; it counts as cancelled once its caller is told."""
    require(s.receipt[k] != Receipt.ABSENT, never_intended(s, k), s.attempt[k] != Attempt.DAMAGED)
    s.attempt[k] = Attempt.CLOSED


@action(source="design: no start after a refusal")
def report_closed(s: State, p: Process, k: Key) -> None:
    """A closed command gets that as its recorded result, and from then on the caller counts on it."""
    require(in_kernel(s, p) | serves(s, p, k, Stage.ENTERED), s.receipt[k] != Receipt.ABSENT, ~completed(s, k))
    require(s.attempt[k] == Attempt.CLOSED, protection="refusal-before-answer")
    forget(s, p)
    s.receipt[k] = Receipt.CLOSED
    s.closed[k] = True
    answer(s, k)


@action(source="receipts, section 3: already dispatched")
def report_dispatched(s: State, p: Process, k: Key) -> None:
    """A command whose key has started is answered so, with a result recorded if none is.

    The kernel may do this too, so that a start is answered for even after the revision has moved on. Whether the answer
    says "created" or "already dispatched" is for the process to tell: the start is the same one.
    """
    require(in_kernel(s, p) | serves(s, p, k, Stage.ENTERED))
    require((s.session[k] != Session.ABSENT) | (s.attempt[k] == Attempt.ENDED))
    require(~completed(s, k), protection="result-recorded-once")
    forget(s, p)
    s.receipt[k] = Receipt.DISPATCHED
    answer(s, k)


@action(source="receipts, section 3; observations: R5, R7, I4")
def report(s: State, p: Process, k: Key) -> None:
    """A submission that cannot go on is answered with what stands in the way; nothing is recorded.

    Another key occupies the task, the key is in doubt or damaged, its revision is not in force any more or it is not
    approved, a store is unavailable, or a result is there.
    """
    require(in_kernel(s, p) | serves(s, p, k, Stage.ENTERED))
    forget(s, p)
    answer(s, k)
