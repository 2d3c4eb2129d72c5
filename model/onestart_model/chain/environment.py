"""What the world does to the chain: crashes, time, damage, and stores that are lost or rolled back.

What is assumed of the stores has names, in `axioms`. In short: a step is atomic, durable once it is acknowledged, and
alone while it happens: one writer at a time. The executor, governance and approvals are outside of that, and asked in
steps of their own. Damage leaves visible whose record it was, and a store that lost records is seen through the others
(`a-store-that-lost-records-is-seen`): a receipt, session or lease that is rolled back reads as damaged, and the token
after a repair is above every token before it (`tokens-only-grow`). Beyond that:
- the notes beside a damaged lease are not read until it is repaired, and the repair restores them from the attempt
  records. A lost *attempt* record reads as absent, and the rules must cope. That both are lost, all stores rolled back
  together, nobody can notice.
"""

from __future__ import annotations

from onestart_model import NONE, environment, forget, ite, require
from onestart_model.chain.evidence import RESULTS
from onestart_model.chain.state import Attempt, Key, Process, Receipt, Session, State, Task


@environment("crash", source="design: a crash runs no finally")
def crash(s: State, p: Process) -> None:
    """A process dies and all that it had in memory is gone; it comes back idle, at once or never."""
    require(s.serving[p] != NONE)
    forget(s, p)


@environment("clock", source="design: leases")
def expire(s: State, t: Task) -> None:
    """A lease runs out, whether or not its holder still works."""
    require(s.holder[t] != NONE)
    s.holder[t] = NONE


@environment("executor", source="receipts, section 3")
def finish(s: State, k: Key) -> None:
    """What the executor ran comes to an end."""
    require(s.running[k])
    s.running[k] = False


@environment("damage", source="observations: R2, R3, R6")
def damage_receipt(s: State, k: Key) -> None:
    """The newest record of a receipt becomes illegible, of an unsupported version, or is rolled back."""
    require(s.receipt[k].one_of(Receipt.PENDING, *RESULTS))
    pending = s.receipt[k] == Receipt.PENDING
    s.receipt[k] = ite(pending, Receipt.PENDING_DAMAGED, Receipt.COMPLETION_DAMAGED)


@environment("damage", source="design: read health")
def damage_attempt(s: State, k: Key) -> None:
    """An attempt record becomes illegible."""
    require(~s.attempt[k].one_of(Attempt.ABSENT, Attempt.DAMAGED))
    s.attempt[k] = Attempt.DAMAGED


@environment("damage", source="observations: S1, S2")
def damage_session(s: State, k: Key) -> None:
    """A session record becomes illegible, or is rolled back: that there is one shows, but not that it was cancelled."""
    require(s.session[k] == Session.CANCELLED)
    s.session[k] = Session.LIVE


@environment("damage", source="design: read health")
def damage_lease(s: State, t: Task) -> None:
    """A lease record becomes illegible, or is rolled back: whom it named cannot be read any more."""
    require(~s.lease_damaged[t], s.token[t] != 0)
    s.lease_damaged[t] = True
    s.holder[t] = NONE


@environment("rollback", source="design: a store rolled back or cut short is seen")
def lose_attempt(s: State, k: Key) -> None:
    """An attempt record is gone: its store was rolled back, cut short or deleted."""
    require(s.attempt[k] != Attempt.ABSENT)
    s.attempt[k] = Attempt.ABSENT
