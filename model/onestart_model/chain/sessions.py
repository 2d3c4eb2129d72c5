"""After the start: sessions, reconciliation, release of leases, and what an operator can do."""

from __future__ import annotations

from onestart_model import NONE, action, environment, forall, require
from onestart_model.chain.evidence import in_doubt, over, serves
from onestart_model.chain.state import Attempt, Key, Process, Receipt, Session, Stage, State, Task


@environment("caller", source="receipts, section 3: I4")
def cancel_session(s: State, k: Key) -> None:
    """A live session is cancelled; the executor is asked to stop."""
    require(s.session[k] == Session.LIVE)
    s.session[k] = Session.CANCELLED


@action(source="receipts, section 3: reconciliation moves the old attempt to a terminal state")
def reconcile(s: State, k: Key) -> None:
    """When the executor no longer runs a key that has a session, its attempt becomes terminal.

    A lost attempt record is written anew, and a damaged one gets its successor beside it. The executor may have been
    asked earlier: what has a session and no longer runs never runs again.
    """
    require(s.session[k] != Session.ABSENT, ~over(s, k))
    require(~s.running[k], protection="reconcile-asks-executor")
    s.attempt[k] = Attempt.ENDED


@action(source="receipts, section 4: leases")
def release(s: State, k: Key) -> None:
    """The lease of a key that is over is given back, by whoever notices."""
    require(s.holder[s.task[k]] == k, over(s, k))
    s.holder[s.task[k]] = NONE


@environment("operator", source="design: otherwise an operator does")
def settle(s: State, k: Key) -> None:
    """An operator closes a key in doubt, after making sure that nothing of it runs or is about to start.

    Here the promise rests on a person: no process may be between its last look at the records and the start.
    """
    require(s.receipt[k] != Receipt.ABSENT, in_doubt(s, k))
    nobody_about_to_start = forall(Process, lambda p: ~serves(s, p, k, Stage.CONFIRMED))
    require(~s.running[k] & nobody_about_to_start, protection="operator-looks-first")
    s.attempt[k] = Attempt.CLOSED


@environment("operator", source="design: repair publishes a new generation")
def repair_lease(s: State, t: Task) -> None:
    """An operator publishes a new lease record beside a damaged one; its tokens continue above all issued ones."""
    require(s.lease_damaged[t])
    s.lease_damaged[t] = False
    s.token[t] = s.token[t].next()
