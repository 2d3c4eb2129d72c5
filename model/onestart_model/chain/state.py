"""The command chain's state: what each store holds, what the executor knows, what a process keeps in memory.

Read health is part of every record: ABSENT, legible, or DAMAGED. Damage stands for a corrupt record and for one of an
unsupported version alike; the rules treat both the same, and only the report to the caller tells them apart. A damaged
record still shows whose it was, and its bytes stay.
"""

from __future__ import annotations

from onestart_model import (
    NONE,
    Bool,
    Enumeration,
    Fn,
    Maybe,
    Number,
    Sort,
    Stamp,
    durable,
    external,
    fixed,
    ghost,
    member,
    state,
    volatile,
)


class Key(Sort):
    """An idempotency key: one command, however often it is submitted."""


class Task(Sort):
    """What commands act on, one at a time."""


class Process(Sort):
    """A strand of execution that serves one submission at a time and can crash at any point."""


class Receipt(Enumeration):
    """What the newest records of a key's receipt show: pending first, then completed with the result of replays."""

    ABSENT = member("the command has not been accepted")
    PENDING = member("accepted, bound to a fingerprint")
    PENDING_DAMAGED = member("accepted, but what it was bound to cannot be read")
    DISPATCHED = member("completed: the command was dispatched, and started once")
    CLOSED = member("completed: refused, cancelled or settled; it will not start")
    COMPLETION_DAMAGED = member("completed, but the result cannot be read")


class Attempt(Enumeration):
    """The attempt record of a key: how far it may have got toward a start."""

    ABSENT = member()
    OFFERED = member("proposed; anyone may claim it")
    INTENDED = member("its holder was about to start it; whether it did, others have to find out")
    CLOSED = member("refused, cancelled or settled: it will not start any more")
    ENDED = member("started, and reconciled after its session was over")
    DAMAGED = member()


class Session(Enumeration):
    """The session record of a key, written once a start is known; its presence is what rules rely on."""

    ABSENT = member()
    LIVE = member("running as far as the record shows, or illegible and taken as running")
    CANCELLED = member("somebody asked the executor to stop it")


class Stage(Enumeration):
    """How far a process has got with the submission that it serves."""

    IDLE = member("no submission, or one that is still in the kernel")
    ENTERED = member("inside the execution callback, which is the dispatcher")
    CLAIMED = member("holds the task's lease, for a first start or to resolve a doubt")
    ASKING = member("holds the lease, has found the key in doubt, and is about to ask the executor")
    INTENDED = member("the intent is recorded, or adopted after the executor said that the key never started")
    CONFIRMED = member("the intent is noted in a second store: it may start")
    STARTED = member("knows that the executor has started the command")


@state
class State:
    task: Fn[Key, Task] = fixed()

    receipt: Fn[Key, Receipt] = durable("receipts", Receipt.ABSENT)
    attempt: Fn[Key, Attempt] = durable("attempts", Attempt.ABSENT)
    session: Fn[Key, Session] = durable("sessions", Session.ABSENT)
    holder: Fn[Task, Maybe[Key]] = durable("leases", NONE)
    token: Fn[Task, Stamp] = durable("leases", 0)
    lease_damaged: Fn[Task, Bool] = durable("leases", False)
    noted: Fn[Key, Bool] = durable("leases", False)  # an intent was recorded for the key

    launched: Fn[Key, Bool] = external(False)  # the executor has started it once
    running: Fn[Key, Bool] = external(False)
    barrier: Fn[Task, Stamp] = external(0)  # the newest token that the executor has answered to

    serving: Fn[Process, Maybe[Key]] = volatile(NONE)
    stage: Fn[Process, Stage] = volatile(Stage.IDLE)
    held: Fn[Process, Task, Stamp] = volatile(0)  # the token that the process got with the lease

    starts: Fn[Key, Number] = ghost(0, upto=2)
    closed: Fn[Key, Bool] = ghost(False)  # a caller was told that the key will not start
    leaked: Fn[Key, Bool] = ghost(False)  # another command got the key's result
    concealed: Fn[Key, Bool] = ghost(False)  # an answer hid damage that was read
    unconfirmed: Fn[Process, Bool] = ghost(False)  # it entered the callback under another revision
    unapproved: Fn[Process, Bool] = ghost(False)  # it entered the callback without approval
