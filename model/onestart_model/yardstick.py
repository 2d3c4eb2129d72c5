"""The yardstick: a whole model on one page, with state counts on which nine tools agree.

One idempotency key, at most one start, with receipts that are damaged, leases that expire and workers that crash. It
follows a TLA+ model, IdemStart, action by action: so an action here writes several stores at once, which the chain's
may not, and `resubmit` is that model's BUG, possible only without the protection "no fresh offer over damage".
"""

import sys

from onestart_model import (
    NONE,
    Bool,
    Enumeration,
    Fn,
    Maybe,
    Model,
    Number,
    Protection,
    Sort,
    action,
    durable,
    environment,
    forall,
    forget,
    ghost,
    implies,
    invariant,
    ite,
    limit,
    member,
    protected,
    require,
    state,
    volatile,
)  # fmt: skip


class Key(Sort):
    """An idempotency key."""


class Worker(Sort):
    """A process that starts commands."""


class Receipt(Enumeration):
    ABSENT, PENDING, COMPLETED = member(), member(), member()
    PENDING_DAMAGED, BOTH_DAMAGED = member(), member()


class Attempt(Enumeration):
    NONE, OFFERED, CLAIMED, RUNNING, TERMINAL = member(), member(), member(), member(), member()


@state
class State:
    receipt: Fn[Key, Receipt] = durable("receipts", Receipt.ABSENT)
    attempt: Fn[Key, Attempt] = durable("attempts", Attempt.NONE)
    holder: Fn[Key, Maybe[Worker]] = durable("leases", NONE)
    epoch: Fn[Key, Number] = durable("leases", 0, upto=limit("expiries"))
    job: Fn[Worker, Maybe[Key]] = volatile(NONE)
    job_epoch: Fn[Worker, Number] = volatile(0, upto=limit("expiries"))
    starts: Fn[Key, Number] = ghost(0, upto=2)


@action
def submit(s: State, k: Key) -> None:
    """A command is accepted: its receipt says pending."""
    require(s.receipt[k] == Receipt.ABSENT)
    s.receipt[k] = Receipt.PENDING


@action
def resubmit(s: State, k: Key) -> None:
    """Without the protection, a damaged receipt is read as if there were none, and the ended attempt offered afresh."""
    require(s.receipt[k].one_of(Receipt.PENDING_DAMAGED, Receipt.BOTH_DAMAGED), s.attempt[k] == Attempt.TERMINAL)
    require(~protected("no fresh offer over damage"))
    s.receipt[k] = Receipt.PENDING
    s.attempt[k] = Attempt.NONE


@action
def offer(s: State, k: Key) -> None:
    """A pending command gets its attempt."""
    require(s.receipt[k] == Receipt.PENDING, s.attempt[k] == Attempt.NONE)
    s.attempt[k] = Attempt.OFFERED


@action
def claim(s: State, k: Key, w: Worker) -> None:
    """An idle worker takes an offered attempt under a lease of the current epoch."""
    require(s.attempt[k] == Attempt.OFFERED, s.holder[k] == NONE, s.job[w] == NONE)
    s.attempt[k] = Attempt.CLAIMED
    s.holder[k] = w
    s.job[w] = k
    s.job_epoch[w] = s.epoch[k]


@action
def start(s: State, k: Key, w: Worker) -> None:
    """The worker that still owns the lease starts the command."""
    require(s.job[w] == k, s.job_epoch[w] == s.epoch[k], s.holder[k] == w)
    require(s.attempt[k] == Attempt.CLAIMED, s.receipt[k] == Receipt.PENDING)
    s.attempt[k] = Attempt.RUNNING
    s.starts[k] = ite(s.starts[k] < 2, s.starts[k] + 1, 2)


@action
def complete(s: State, k: Key, w: Worker) -> None:
    """The worker that still owns the lease ends the attempt and completes the receipt if that is legible."""
    require(s.job[w] == k, s.job_epoch[w] == s.epoch[k], s.holder[k] == w, s.attempt[k] == Attempt.RUNNING)
    forget(s, w)
    s.attempt[k] = Attempt.TERMINAL
    s.holder[k] = NONE
    s.receipt[k] = ite(s.receipt[k] == Receipt.PENDING, Receipt.COMPLETED, s.receipt[k])


@action
def cancel(s: State, k: Key) -> None:
    """A command that has not started is cancelled."""
    require(s.attempt[k].one_of(Attempt.OFFERED, Attempt.CLAIMED))
    s.attempt[k] = Attempt.TERMINAL
    s.holder[k] = NONE
    s.receipt[k] = ite(s.receipt[k] == Receipt.PENDING, Receipt.COMPLETED, s.receipt[k])


@environment("crash")
def crash(s: State, w: Worker) -> None:
    """A busy worker crashes and forgets its job."""
    require(s.job[w] != NONE)
    forget(s, w)


@environment("clock")
def expire(s: State, k: Key) -> None:
    """A lease runs out: what was only claimed is offered again, what was running is over."""
    require(s.holder[k] != NONE, s.epoch[k] < limit("expiries"))
    s.holder[k] = NONE
    s.epoch[k] = s.epoch[k] + 1
    over = ite(s.attempt[k] == Attempt.RUNNING, Attempt.TERMINAL, s.attempt[k])
    s.attempt[k] = ite(s.attempt[k] == Attempt.CLAIMED, Attempt.OFFERED, over)


@environment("damage")
def corrupt(s: State, k: Key) -> None:
    """The newest legible record of a receipt becomes illegible."""
    require(s.receipt[k].one_of(Receipt.PENDING, Receipt.COMPLETED, Receipt.PENDING_DAMAGED))
    s.receipt[k] = ite(s.receipt[k] == Receipt.PENDING, Receipt.PENDING_DAMAGED, Receipt.BOTH_DAMAGED)


@invariant(layer="start")
def at_most_one_start(s: State) -> Bool:
    """No key is ever started twice."""
    return forall(Key, lambda k: s.starts[k] <= 1)


@invariant(supporting=True)
def no_start_before_running(s: State) -> Bool:
    """A key whose attempt is not yet running has not been started."""
    waiting = (Attempt.NONE, Attempt.OFFERED, Attempt.CLAIMED)
    return forall(Key, lambda k: implies(s.attempt[k].one_of(*waiting), s.starts[k] == 0))


YARDSTICK = Model.of(
    "yardstick", State, sys.modules[__name__],
    protections=[Protection("no fresh offer over damage", "An ended attempt is never offered again.")],
)  # fmt: skip
