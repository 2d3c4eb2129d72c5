"""Faults of deciding: who may claim, start, end and answer, made before here or elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onestart import dispatcher, evidence, kernel, leases, sessions
from onestart.answers import Outcome, Reason, Result
from onestart.chain import Chain
from onestart.command import Command, digest
from onestart.dispatcher import Dispatcher, Next
from onestart.outside import Decision, Outside, Strand
from onestart.ports import View
from onestart.records import Attempt, Lease
from onestart_conformance.faults.fault import NO_START, ONE_START, Fault, Patch
from onestart_conformance.judgement import ANSWER, READ, RULE, START


def _loser_releases() -> list[Patch]:
    waiting = dispatcher.waiting

    def released(view: View, command: Any, reason: Reason, busy: bool) -> Decision[Any]:
        decision = waiting(view, command, reason, busy)
        lease = view.lease(command.task).newest
        if lease is None or not busy:
            return decision
        return Decision(decision.value, decision.action, Lease(lease.task, lease.token, None, 0.0), decision.details)

    return [(dispatcher, "waiting", released)]


def _claimed_anew() -> list[Patch]:
    """Once the lease has run out, an intended attempt is offered and claimed as if it were new."""

    def forgetful(view: View, key: str, task: str, *, fresh: bool = False) -> bool:
        return not evidence.over(view, key) and not evidence.completed(view, key)

    return [(evidence, "never_intended", forgetful)]


def _ended_again() -> list[Patch]:
    def end(view: View, *, strand: Strand) -> Decision[None]:
        if evidence.attempt_state(view, strand.key) not in ("closed", "ended", "intended"):
            return Decision(None)
        return Decision(None, "reconcile", Attempt(strand.key, strand.task, "ended", strand.fingerprint))

    def always(view: View, *, key: str) -> Decision[bool]:
        return Decision(view.attempt(key).exists)

    return [(sessions, "end", end), (sessions, "may_be_over", always)]


def _recovery_takes_over() -> list[Patch]:
    """A process that comes up takes every lease for one of its former self."""
    recover = Chain.recover

    async def recovered(self: Chain) -> Any:
        def free(view: View) -> tuple[Any, None]:
            for key in view.all_keys():
                lease = view.lease(view.task_of(key) or "").newest
                if lease is not None and lease.holder is not None:
                    return Lease(lease.task, lease.token, None, 0.0), None
            return None, None

        await self._outside.ledger.step(free)
        return await recover(self)

    return [(Chain, "recover", recovered)]


def _no_end() -> list[Patch]:
    """A lease without an end, which is written as 0, is taken for one that ran out long ago."""

    def acquire(view: View, *, strand: Strand, outside: Outside) -> Lease:
        return Lease(strand.task, evidence.next_token(view, strand.task), strand.key, 0.0, outside.process)

    def claim(view: View, *, strand: Strand, outside: Outside) -> Decision[Any]:
        lease = acquire(view, strand=strand, outside=outside)
        strand.token = lease.token
        return Decision(Next.CLAIMED, "claim", lease, {"ends": float("inf")})

    return [(dispatcher, "claim", claim)]


def _zero_is_unset() -> list[Patch]:
    """Who asks is only looked at for rounds after the first, whose number is 0."""

    def fingerprint(self: Command) -> str:
        return digest([self.round and self.actor, self.function, self.task, self.round, self.payload])

    return [(Command, "fingerprint", property(fingerprint))]


def _start_tried_again() -> list[Patch]:
    start = Dispatcher._start

    async def twice(self: Dispatcher, strand: Strand, command: Any) -> Any:
        after = await start(self, strand, command)
        return await start(self, strand, command) if after is Next.DROP else after

    return [(Dispatcher, "_start", twice)]


def _closed_in_doubt() -> list[Patch]:
    close = kernel.close

    def rash(view: View, *, command: Any, action: str, reason: Reason, strand: Strand) -> Decision[Any]:
        if evidence.attempt_state(view, command.key) == "intended" and not evidence.started(view, command.key):
            record = Attempt(command.key, command.task, "closed", command.fingerprint, reason=str(reason))
            return Decision(None, action, record)
        return close(view, command=command, action=action, reason=reason, strand=strand)

    return [(kernel, "close", rash)]


def _released_at_the_end() -> list[Patch]:
    """The lease is given back as soon as the start is recorded, though the command runs."""
    record = dispatcher.record

    def released(view: View, *, strand: Strand, outside: Outside, command: Any) -> Decision[Any]:
        if view.session(strand.key).exists and leases.holds(view, strand=strand, outside=outside):
            return Decision(Next.AGAIN, "release", leases.given_back(view, strand))
        return record(view, strand=strand, outside=outside, command=command)

    async def again(self: Dispatcher, strand: Strand, command: Any) -> Any:
        after = await plain(self, strand, command)
        if after is Next.AGAIN and strand.started:
            await self._step(strand, released, command)
        return after

    plain = Dispatcher._to_start
    return [(Dispatcher, "_to_start", again)]


def _replay_is_guessed() -> list[Patch]:
    return [(evidence, "recorded_result", lambda view, key: Result(Outcome.STARTED, Reason.CREATED))]


def _always_created() -> list[Patch]:
    dispatched = kernel.dispatched

    def boastful(view: View, command: Any, reason: Reason) -> Decision[Any]:
        return dispatched(view, command, Reason.CREATED if reason is Reason.ALREADY_DISPATCHED else reason)

    return [(dispatcher, "dispatched", boastful)]


def _shortcut_to_start() -> list[Patch]:
    """A claimed attempt is taken as confirmed when its record already shows an intent: whoever's it was."""

    def proceed(view: View, *, strand: Strand, outside: Outside, command: Any) -> Decision[Any]:
        if evidence.attempt_state(view, strand.key) == "intended":
            return Decision(Next.START)
        return careful(view, strand=strand, outside=outside, command=command)

    careful = dispatcher.proceed
    return [(dispatcher, "proceed", proceed)]


def of_steps() -> Iterator[Fault]:
    """The faults of this kind."""
    yield Fault(
        "loser-releases",
        "whoever finds the task occupied gives the lease back",
        "a_live_lease_is_not_taken",
        READ,
        _loser_releases,
    )
    yield Fault(
        "claimed-anew",
        "an attempt whose lease ran out is claimed anew, without an end to the old one",
        ONE_START,
        RULE,
        _claimed_anew,
        "",
        ("pass_time", "die"),
    )
    yield Fault(
        "ended-again",
        "an attempt that is over, or in doubt, is ended",
        NO_START,
        RULE,
        _ended_again,
        "",
        ("reconcile",),
    )
    yield Fault(
        "recovery-takes-over",
        "a process that comes up takes the leases of live ones for orphans",
        "a_live_lease_is_not_taken",
        RULE,
        _recovery_takes_over,
        "",
        ("recover",),
    )
    yield Fault(
        "lease-without-end",
        "a lease without an end is taken for one that has run out",
        "a_live_lease_is_not_taken",
        RULE,
        _no_end,
    )
    yield Fault(
        "zero-is-unset",
        "what is false is left out of the fingerprint",
        "a_result_reaches_only_its_command",
        RULE,
        _zero_is_unset,
        "fingerprint",
        ("foreign",),
    )
    yield Fault(
        "start-tried-again",
        "a start whose response was lost is tried again",
        ONE_START,
        START,
        _start_tried_again,
        "",
        ("lost",),
    )
    yield Fault(
        "closed-in-doubt",
        "a refusal closes an attempt that may be about to start",
        NO_START,
        RULE,
        _closed_in_doubt,
        "",
        ("stale",),
    )
    yield Fault(
        "released-at-the-end",
        "the lease of a running command is given back",
        "a_live_lease_is_not_taken",
        RULE,
        _released_at_the_end,
    )
    yield Fault(
        "replay-is-guessed",
        "a replay answers what is likely, not what was recorded",
        "a_recorded_result_stays",
        ANSWER,
        _replay_is_guessed,
        "",
        ("stale",),
    )
    yield Fault(
        "always-created",
        "every answer says that it was the one that started the key",
        ONE_START,
        ANSWER,
        _always_created,
    )
    yield Fault(
        "shortcut-to-start",
        "an intent on record is taken for one's own",
        ONE_START,
        START,
        _shortcut_to_start,
        "intent-before-start",
        ("die", "pass_time"),
    )
