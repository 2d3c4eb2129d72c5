"""What the chain promises. Each is proved for all sizes, enumerated for small ones, and broken by some removal."""

from __future__ import annotations

from onestart_model import NONE, Bool, can_still, exists, forall, implies, invariant, reachable, step_invariant
from onestart_model.chain.evidence import completed, holds_lease
from onestart_model.chain.state import Attempt, Key, Process, Receipt, Session, Stage, State, Task

DAMAGE = ("damage", "rollback")


@invariant(layer="start", source="design: one key at most one start")
def one_key_at_most_one_start(s: State) -> Bool:
    """No idempotency key is ever started twice."""
    return forall(Key, lambda k: s.starts[k] <= 1)


@invariant(layer="effect", source="receipts, section 4: one dispatcher serializes redispatch for the same task")
def one_task_at_most_one_execution(s: State) -> Bool:
    """No two commands of one task are executed at the same time."""
    return forall(Key, Key, lambda a, b: implies((a != b) & (s.task[a] == s.task[b]), ~(s.running[a] & s.running[b])))


@invariant(layer="attempt", source="design: one task at most one live lease")
def one_task_at_most_one_live_lease(s: State) -> Bool:
    """At most one process passes the fence of a task."""

    def passes(p: Process, t: Task) -> Bool:
        return (s.held[p, t] == s.token[t]) & (s.holder[t] != NONE) & ~s.lease_damaged[t]

    def disjoint(p: Process, q: Process) -> Bool:
        return forall(Task, lambda t: ~(passes(p, t) & passes(q, t)))

    return forall(Process, Process, lambda p, q: implies(p != q, disjoint(p, q)))


@step_invariant(layer="attempt", source="design: one task at most one live lease")
def a_live_lease_is_not_taken(s: State, after: State) -> Bool:
    """A lease passes to another acquisition only after it was given back, ran out or became illegible."""
    return forall(
        Task,
        lambda t: implies(
            (s.holder[t] != NONE) & (after.holder[t] != NONE),
            (after.holder[t] == s.holder[t]) & (after.token[t] == s.token[t]),
        ),
    )


@step_invariant(layer="attempt", source="design: tokens that only grow")
def tokens_only_grow(s: State, after: State) -> Bool:
    """No step makes a task's fencing token smaller."""
    return forall(Task, lambda t: s.token[t] <= after.token[t])


@step_invariant(layer="attempt", source="design: a stale holder's writes are refused")
def only_the_holder_writes(s: State, after: State) -> Bool:
    """Every intent, note and session is written by a process that passes the fence."""

    def written(k: Key) -> Bool:
        intent = (s.attempt[k] != Attempt.INTENDED) & (after.attempt[k] == Attempt.INTENDED)
        session = (s.session[k] == Session.ABSENT) & (after.session[k] != Session.ABSENT)
        return intent | (~s.noted[k] & after.noted[k]) | session

    def by_holder(k: Key) -> Bool:
        return exists(Process, lambda p: (s.serving[p] == k) & holds_lease(s, p, k))

    return forall(Key, lambda k: implies(written(k), by_holder(k)))


@step_invariant(layer="attempt", source="design: leases")
def a_lost_lease_stays_lost(s: State, after: State) -> Bool:
    """A process that has failed the fence never passes it again under the same token."""

    def passes(state: State, p: Process, t: Task) -> Bool:
        return (state.held[p, t] == state.token[t]) & (state.holder[t] != NONE)

    def kept(p: Process, t: Task) -> Bool:
        same_token = (s.held[p, t] != 0) & (after.held[p, t] == s.held[p, t])
        return implies(same_token & ~passes(s, p, t), ~passes(after, p, t))

    return forall(Process, Task, kept)


@step_invariant(layer="start", source="design: no start after a refusal; a cancelled key never starts again")
def no_start_after_refusal_or_cancellation(s: State, after: State) -> Bool:
    """Once a caller has been told that a key is closed, or its session was cancelled, it does not start."""

    def closed(k: Key) -> Bool:
        return s.closed[k] | (s.session[k] == Session.CANCELLED)

    return forall(Key, lambda k: implies(closed(k), after.starts[k] == s.starts[k]))


@step_invariant(layer="read", source="design: a replay returns exactly the recorded result", except_for=DAMAGE)
def a_recorded_result_stays(s: State, after: State) -> Bool:
    """The system never changes a completed receipt, so every replay returns the same."""
    return forall(Key, lambda k: implies(completed(s, k), after.receipt[k] == s.receipt[k]))


@invariant(layer="read", source="observations: A4-command-actor-change")
def a_result_reaches_only_its_command(s: State) -> Bool:
    """No submission of another command gets the result that is recorded under a key."""
    return forall(Key, lambda k: ~s.leaked[k])


@invariant(layer="read", source="receipts, section 6; design: a degraded read is always reported")
def a_degraded_read_is_reported(s: State) -> Bool:
    """No answer hides damage that reading the key's records met."""
    return forall(Key, lambda k: ~s.concealed[k])


@invariant(layer="callback", source="design: a stale revision never starts")
def a_stale_revision_never_starts(s: State) -> Bool:
    """No process gets into the callback, or further, unless governance has confirmed the expected revision."""
    return forall(Process, lambda p: implies(s.stage[p] != Stage.IDLE, ~s.unconfirmed[p]))


@invariant(layer="callback", source="receipts, section 5; observations: A1, J3")
def only_what_was_approved_starts(s: State) -> Bool:
    """No process gets into the callback, or further, with a command whose digest was not approved."""
    return forall(Process, lambda p: implies(s.stage[p] != Stage.IDLE, ~s.unapproved[p]))


@step_invariant(layer="bytes", source="design: recorded bytes are never destroyed", except_for=DAMAGE)
def bytes_are_never_destroyed(s: State, after: State) -> Bool:
    """No step of the system removes a record, or writes over a damaged one; it may only be closed or ended beside."""

    def attempt_kept(k: Key) -> Bool:
        damaged = implies(
            s.attempt[k] == Attempt.DAMAGED,
            after.attempt[k].one_of(Attempt.DAMAGED, Attempt.CLOSED, Attempt.ENDED),
        )
        return damaged & implies(s.attempt[k] != Attempt.ABSENT, after.attempt[k] != Attempt.ABSENT)

    def receipt_kept(k: Key) -> Bool:
        damaged = implies(s.receipt[k] == Receipt.COMPLETION_DAMAGED, after.receipt[k] == Receipt.COMPLETION_DAMAGED)
        return damaged & implies(s.receipt[k] != Receipt.ABSENT, after.receipt[k] != Receipt.ABSENT)

    def session_kept(k: Key) -> Bool:
        return implies(s.session[k] != Session.ABSENT, after.session[k] != Session.ABSENT)

    return forall(
        Key, lambda k: attempt_kept(k) & receipt_kept(k) & session_kept(k) & implies(s.noted[k], after.noted[k])
    )


@reachable(layer="start", source="receipts, section 3: I7")
def a_new_key_starts_after_a_cancelled_one(s: State) -> Bool:
    """After a started key of a task was cancelled, another key of the same task starts (I7)."""
    return exists(
        Key,
        Key,
        lambda a, b: (
            (a != b)
            & (s.task[a] == s.task[b])
            & (s.session[a] == Session.CANCELLED)
            & (s.starts[a] == 1)
            & (s.starts[b] == 1)
            & s.running[b]
        ),
    )


TROUBLE = ("crash", *DAMAGE, "caller", "governance")


@can_still(avoiding=(*TROUBLE, "operator"), source="design: every accepted command ends started, refused or held")
def every_accepted_command_can_end(s: State) -> Bool:
    """With an executor that can be asked, every accepted command can still end: started, refused or held.

    Held is only a command whose task has an illegible lease record; the rest needs nobody but governance and an
    approver, who may agree or not.
    """
    return forall(Key, lambda k: implies(s.receipt[k] != Receipt.ABSENT, completed(s, k) | s.lease_damaged[s.task[k]]))


@can_still(avoiding=(*TROUBLE, "look_up"), source="design: otherwise an operator does")
def every_accepted_command_can_end_with_an_operator(s: State) -> Bool:
    """With an executor that cannot be asked, an operator can still end every accepted command."""
    return forall(Key, lambda k: implies(s.receipt[k] != Receipt.ABSENT, completed(s, k)))


@can_still(avoiding=(*TROUBLE, "enter"), source="design: every accepted command ends started, refused or held")
def every_started_command_gets_its_result(s: State) -> Bool:
    """A start that is on record can still be answered for, even if governance and approvers never agree again."""
    return forall(Key, lambda k: implies(s.session[k] != Session.ABSENT, completed(s, k)))
