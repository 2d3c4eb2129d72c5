"""What the stores prove about a key. Every rule that decides on a start decides on these statements."""

from __future__ import annotations

from onestart_model import NONE, Bool, forall, implies, protected
from onestart_model.chain.state import Attempt, Key, Process, Receipt, Session, Stage, State

RESULTS = (Receipt.DISPATCHED, Receipt.CLOSED)


def completed(s: State, k: Key) -> Bool:
    """A completed receipt was written, legible or not."""
    return s.receipt[k].one_of(*RESULTS, Receipt.COMPLETION_DAMAGED)


def binding_legible(s: State, k: Key) -> Bool:
    """The newest record of the receipt or of the attempt shows which command the key is bound to."""
    in_receipt = s.receipt[k].one_of(Receipt.PENDING, *RESULTS)
    return in_receipt | ~s.attempt[k].one_of(Attempt.ABSENT, Attempt.DAMAGED)


def binding_may_show(s: State, k: Key) -> Bool:
    """A record that is not followed here may show it: one behind a damaged completion or attempt, or a session."""
    behind = (s.receipt[k] == Receipt.COMPLETION_DAMAGED) | (s.attempt[k] == Attempt.DAMAGED)
    return behind | (s.session[k] != Session.ABSENT)


def never_intended(s: State, k: Key) -> Bool:
    """Positive evidence that nobody ever meant to start the key, from every store that would know, and is healthy.

    The attempt record alone would do if its store could not be lost: the lease store's note and the completed receipt
    show that the key was further once. A session record would show it too, but it is never there without the note.
    """
    unread = (s.attempt[k] == Attempt.DAMAGED) & ~protected("damage-is-not-absence")
    no_attempt = s.attempt[k].one_of(Attempt.ABSENT, Attempt.OFFERED) | unread
    no_note = ~s.noted[k] | ~protected("notes-are-evidence")
    no_result = ~completed(s, k) | ~protected("results-are-evidence")
    return no_attempt & no_note & no_result & ~s.lease_damaged[s.task[k]]


def over(s: State, k: Key) -> Bool:
    """The attempt record shows that no execution of the key is under way, nor will be."""
    return s.attempt[k].one_of(Attempt.CLOSED, Attempt.ENDED)


def in_doubt(s: State, k: Key) -> Bool:
    """The key may have been started and no record says whether."""
    return ~never_intended(s, k) & ~over(s, k) & (s.session[k] == Session.ABSENT)


def quiet(s: State, k: Key) -> Bool:
    """No other key of the task can possibly be executing."""
    return forall(Key, lambda o: implies((o != k) & (s.task[o] == s.task[k]), never_intended(s, o) | over(s, o)))


def lease_free(s: State, k: Key) -> Bool:
    """The task's lease can be taken: its record is legible and names nobody."""
    return ~s.lease_damaged[s.task[k]] & (s.holder[s.task[k]] == NONE)


def holds_lease(s: State, p: Process, k: Key) -> Bool:
    """The process's token is the one in the lease record, which names the key: the fence that writes must pass."""
    t = s.task[k]
    return ~s.lease_damaged[t] & (s.holder[t] == k) & (s.held[p, t] == s.token[t])


def serves(s: State, p: Process, k: Key, *stages: Stage) -> Bool:
    """The process serves the key and has got exactly this far."""
    return (s.serving[p] == k) & s.stage[p].one_of(*stages)


def in_kernel(s: State, p: Process) -> Bool:
    """The process is free to handle a submission up to the callback; it keeps nothing of it that rules rely on."""
    return s.serving[p] == NONE


def answer(s: State, k: Key) -> None:
    """An answer goes to the caller; it reports the damage that reading the key's records met."""
    in_receipt = s.receipt[k].one_of(Receipt.PENDING_DAMAGED, Receipt.COMPLETION_DAMAGED)
    damaged = in_receipt | (s.attempt[k] == Attempt.DAMAGED) | s.lease_damaged[s.task[k]]
    s.concealed[k] = s.concealed[k] | (damaged & ~protected("degraded-read-reported"))
