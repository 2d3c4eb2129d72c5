"""The dispatcher, which is the execution callback: from an accepted command to one start, and from doubt to certainty.

Each ledger step writes one record, because no two stores can be written at once; the comments say what a crash between
two of them leaves.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from functools import partial

from attrs import field, frozen

from onestart import evidence, leases
from onestart.answers import Answer, Outcome, Reason, reason_named
from onestart.command import Command
from onestart.kernel import answered, closed, conflict, dispatched
from onestart.kernel import report as reported
from onestart.leases import Renewal
from onestart.outside import Decision, Outside, Strand
from onestart.ports import CannotTellError, FencedError, View
from onestart.records import Attempt, Note, Session


class Next(Enum):
    """What a strand does next, if it has no answer yet."""

    AGAIN = auto()
    BUSY = auto()
    CLAIMED = auto()
    ASK = auto()
    CONFIRM = auto()
    START = auto()
    RECORD = auto()
    LOST = auto()
    DROP = auto()


Decide = Callable[..., Decision[Answer | Next]]
Tidy = Callable[[Strand], Awaitable[None]]


@frozen
class Dispatcher:
    """tidy: looks after other keys of the task that may be over by now."""

    outside: Outside
    tidy: Tidy
    _turns: weakref.WeakValueDictionary[str, asyncio.Lock] = field(factory=weakref.WeakValueDictionary)

    async def dispatch(self, strand: Strand, command: Command) -> Answer | None:
        """Bring the command to a start, or say what stands in the way. One strand of a task at a time in a process.

        None: the lease was lost on the way, and somebody else may have got further.
        """
        turn = self._turns.setdefault(strand.task, asyncio.Lock())
        async with turn:
            return await self._dispatch(strand, command)

    async def _dispatch(self, strand: Strand, command: Command) -> Answer | None:
        try:
            strand.executor = await self.outside.identify()
        except Exception as error:  # what cannot say who it is could not be asked later on, so it starts nothing
            strand.failure = f"the executor: {error}"
            failed = partial(reported, command=command, reason=Reason.START_FAILED, detail=strand.failure)
            return await self.outside.step(strand, failed)
        tidied = False
        while True:
            step = partial(assess, strand=strand, outside=self.outside, command=command, busy=tidied)
            move = await self.outside.step(strand, step)
            if isinstance(move, Answer):
                return move
            if move is Next.BUSY:
                await self.tidy(strand)
                tidied = True
            elif move is Next.CLAIMED:
                after = await self._under_lease(strand, command)
                if after is Next.DROP:
                    return await self._dropped(strand, command)
                if after is Next.LOST:
                    return None
                if isinstance(after, Answer):
                    return after

    async def _dropped(self, strand: Strand, command: Command) -> Answer:
        """Whether it started is open: asking now, under the same token, would not bar a start that is on its way."""
        self.outside.tell("dropped", strand, error=strand.failure)
        step = partial(reported, command=command, reason=Reason.START_FAILED, detail=strand.failure)
        return await self.outside.step(strand, step)

    async def _under_lease(self, strand: Strand, command: Command) -> Answer | Next:
        renewal = Renewal(self.outside, strand)
        try:
            return await self._to_start(strand, command)
        finally:
            await renewal.stop()

    async def _to_start(self, strand: Strand, command: Command) -> Answer | Next:
        move = await self._step(strand, proceed, command)
        if move is Next.ASK:
            move = await self._ask(strand, command)
        if move is Next.CONFIRM:
            move = await self._step(strand, confirm, command)
        if move is Next.START:
            move = await self._start(strand, command)
        if move is Next.RECORD:
            move = await self._step(strand, record, command)
        return move

    async def _step(self, strand: Strand, decide: Decide, command: Command) -> Answer | Next:
        return await self.outside.step(strand, partial(decide, strand=strand, outside=self.outside, command=command))

    async def _ask(self, strand: Strand, command: Command) -> Answer | Next:
        try:
            if strand.elsewhere:
                raise CannotTellError("another executor was to start it, and that one alone can tell")
            known = await self.outside.executor.look_up(strand.key, strand.task, strand.token)
        except Exception as error:  # CannotTellError, FencedError, or whatever else keeps it from answering
            strand.failure = f"{type(error).__name__}: {error}"
            move = await self._step(strand, step_back, command)
            if move is Next.LOST:
                return move
            doubt = partial(reported, command=command, reason=Reason.IN_DOUBT, detail=strand.failure)
            return await self.outside.step(strand, doubt)
        self.outside.tell("look_up", strand, started=known)
        return Next.RECORD if known else Next.CONFIRM

    async def _start(self, strand: Strand, command: Command) -> Answer | Next:
        try:
            await self.outside.executor.start(strand.order_of(command))
        except FencedError:
            return await self._step(strand, drop, command)
        except Exception as error:
            strand.failure = f"{type(error).__name__}: {error}"
            return Next.DROP
        strand.started = True
        self.outside.tell("start", strand)
        return Next.RECORD


def assess(view: View, *, strand: Strand, outside: Outside, command: Command, busy: bool) -> Decision[Answer | Next]:
    """What the records allow for a command in the callback; an answer if they allow nothing more."""
    key, task = strand.key, strand.task
    if evidence.bound_to_another(view, command):
        return conflict(view, command)
    attempt = view.attempt(key).newest
    if attempt is not None and attempt.state == "closed":
        return closed(view, command, reason_named(attempt.reason, Reason.CANCELLED))
    if evidence.started(view, key):
        return dispatched(view, command, Reason.CREATED if strand.started else Reason.ALREADY_DISPATCHED)
    if evidence.lease_damaged(view, task):
        return reported(view, command=command, reason=Reason.LEASE_DAMAGED)
    fresh = evidence.never_intended(view, key, task, fresh=strand.fresh)
    if fresh and evidence.attempt_state(view, key) != "offered":
        return Decision(Next.AGAIN, "offer", Attempt(key, task, "offered", command.fingerprint))
    if not evidence.lease_free(view, task, outside.now(view)):
        return waiting(view, command, Reason.LEASE_CONFLICT, busy)
    if fresh and not evidence.quiet(view, key, task):
        return waiting(view, command, Reason.TASK_BUSY, busy)
    return claim(view, strand=strand, outside=outside)


def claim(view: View, *, strand: Strand, outside: Outside) -> Decision[Answer | Next]:
    """Take the task's lease: to start an offered attempt, or to resolve a doubt."""
    lease = leases.acquire(view, strand=strand, outside=outside)
    strand.token = lease.token
    return Decision(Next.CLAIMED, "claim", lease, {"ends": lease.ends})


def waiting(view: View, command: Command, reason: Reason, busy: bool) -> Decision[Answer | Next]:
    """Somebody else occupies the task: look once whether that is still so, then say it."""
    if not busy:
        return Decision(Next.BUSY)
    return answered(view, command, "report", reason, Outcome.HELD)


def proceed(view: View, *, strand: Strand, outside: Outside, command: Command) -> Decision[Answer | Next]:
    """Under the lease: record the intent to start, or find out whether somebody else has."""
    key, task = strand.key, strand.task
    if not leases.holds(view, strand=strand, outside=outside):
        return abandon(strand)
    fresh = evidence.never_intended(view, key, task, fresh=strand.fresh)
    if fresh and evidence.attempt_state(view, key) == "offered":
        if not evidence.quiet(view, key, task) or evidence.bound_to_another(view, command):
            return withdraw(view, strand, Next.LOST)
        record = Attempt(key, task, "intended", command.fingerprint, strand.token, executor=strand.executor)
        return Decision(Next.CONFIRM, "intend", record)
    if evidence.in_doubt(view, key, task):
        strand.elsewhere = evidence.elsewhere(view, key, strand.executor)
        return Decision(Next.ASK, "ask")
    return withdraw(view, strand, Next.LOST)


def confirm(view: View, *, strand: Strand, outside: Outside, command: Command) -> Decision[Answer | Next]:
    """Note the intent beside the lease, while its record stands; from here on a crash leaves the key in doubt."""
    if not leases.holds(view, strand=strand, outside=outside):
        return abandon(strand)
    state = evidence.attempt_state(view, strand.key)
    if state == "intended":
        return Decision(Next.START, "note", Note(strand.key, strand.task, strand.token, strand.executor))
    if state == "closed":
        return withdraw(view, strand, Next.LOST)
    return give_up(strand, command)


def give_up(strand: Strand, command: Command) -> Decision[Answer | Next]:
    """A key that certainly never started, and whose intent cannot be read, is closed beside the damage."""
    reason = str(Reason.NEVER_STARTED)
    record = Attempt(strand.key, strand.task, "closed", command.fingerprint, strand.token, reason)
    return Decision(Next.AGAIN, "give_up", record)


def record(view: View, *, strand: Strand, outside: Outside, command: Command) -> Decision[Answer | Next]:
    """Record the start as a session, if there is none."""
    if not leases.holds(view, strand=strand, outside=outside):
        return abandon(strand)
    if view.session(strand.key).exists:
        return Decision(Next.AGAIN, "record")
    session = Session(strand.key, strand.task, "live", command.fingerprint, strand.token, executor=strand.executor)
    return Decision(Next.AGAIN, "record", session)


def step_back(view: View, *, strand: Strand, outside: Outside, command: Command) -> Decision[Answer | Next]:
    """The executor gave no answer: leave the doubt as it is, for somebody who can resolve it."""
    if not leases.holds(view, strand=strand, outside=outside):
        return abandon(strand)
    return withdraw(view, strand, Next.ASK)


def drop(view: View, *, strand: Strand, outside: Outside, command: Command) -> Decision[Answer | Next]:
    """The executor refused the start, so somebody newer is at work."""
    if not leases.holds(view, strand=strand, outside=outside):
        return abandon(strand)
    strand.token = 0
    return Decision(Next.LOST, "dropped")


def withdraw(view: View, strand: Strand, then: Answer | Next) -> Decision[Answer | Next]:
    """A holder that does not start gives its lease back."""
    lease = leases.given_back(view, strand)
    strand.token = 0
    return Decision(then, "withdraw", lease)


def abandon(strand: Strand) -> Decision[Answer | Next]:
    """A strand whose lease is gone drops what it was doing."""
    strand.token = 0
    return Decision(Next.LOST, "abandon")
