"""Faults that were made before, here or elsewhere, and that no single removed protection describes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from onestart import dispatcher, evidence, kernel, leases, sessions
from onestart.answers import Outcome, Reason, Result
from onestart.chain import Chain
from onestart.command import Command, digest
from onestart.dispatcher import Dispatcher, Next
from onestart.health import Health, Reading
from onestart.jsonl import lines
from onestart.jsonl.journal import Journal
from onestart.jsonl.ledger import JsonlLedger
from onestart.jsonl.stores import Stores
from onestart.outside import Decision, Outside, Strand
from onestart.ports import View
from onestart.records import Attempt, Lease
from onestart_conformance.disk import SimulatedFiles
from onestart_conformance.faults.fault import Fault, Patch
from onestart_conformance.judgement import ANSWER, BYTES, READ, RULE, START
from onestart_conformance.node import PATH


def _lenient_reader() -> list[Patch]:
    """Skips what it cannot read and shows what is older, as the article's reader does."""
    reading = Stores._reading

    def lenient(self: Stores, where: Any, most: int = 0) -> Reading[Any]:
        strict = reading(self, where, most)
        if not strict.health.degraded:
            return strict
        if not strict.records:
            return Reading((), 0, Health.ABSENT)
        return Reading(strict.records, len(strict.records), Health.INTACT, strict.where)

    return [(Stores, "_reading", lenient)]


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

    def forgetful(view: View, key: str, task: str) -> bool:
        return not evidence.over(view, key) and not evidence.completed(view, key)

    return [(evidence, "never_intended", forgetful)]


def _rewritten(matches: str) -> list[Patch]:
    """A file is written anew without the lines that it should not have."""
    step = JsonlLedger._step

    def tidied(self: JsonlLedger, decide: Any) -> Any:
        files = self._files
        if isinstance(files, SimulatedFiles):
            files.rewrite(f"{PATH}/attempts.jsonl", lambda raw: _mended(raw, matches))
        return step(self, decide)

    return [(JsonlLedger, "_step", tidied)]


def _mended(raw: bytes, matches: str) -> bytes:
    kept = []
    for line in raw.splitlines(keepends=True):
        health = lines.decode(line.rstrip(b"\n")).health
        if health.degraded and matches == "shape":
            continue
        if health is Health.UNSUPPORTED_VERSION and matches == "version":
            line = re.sub(rb'^\["onestart",2,', b'["onestart",1,', line)
        kept.append(line)
    return b"".join(kept)


def _two_step_ledger() -> list[Patch]:
    """Reads and decides, and writes later: no lock is held between the two."""

    async def step(self: JsonlLedger, decide: Any) -> Any:
        record, answer = await self._run(lambda: self._step(lambda view: (None, decide(view))))
        if record is not None:
            await self._run(lambda: self._step(lambda view: (record, None)))
        return answer

    return [(JsonlLedger, "step", step)]


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


def _fused_tail() -> list[Patch]:
    def unsealed(self: Journal) -> None:
        self._offset, self._tail, self._unended = self._offset, 0, False

    return [(Journal, "_seal", unsealed)]


def _not_synced() -> list[Patch]:
    return [(SimulatedFiles, "sync", lambda self, path: None)]


def _read_before_durable() -> list[Patch]:
    return [(Journal, "_make_durable", lambda self, *, first: None)]


def _no_checksum() -> list[Patch]:
    return [(lines, "_sum_holds", lambda raw: True)]


def _cached_reads() -> list[Patch]:
    read = Journal.read
    known: dict[Any, Any] = {}

    def cached(self: Journal, entry: Any, where: Any) -> Any:
        name = (id(self), self._identity, entry)
        if name not in known:
            known[name] = read(self, entry, where)
        return known[name]

    return [(Journal, "read", cached)]


def _start_tried_again() -> list[Patch]:
    start = Dispatcher._start

    async def twice(self: Dispatcher, strand: Strand, command: Any) -> Any:
        after = await start(self, strand, command)
        return await start(self, strand, command) if after is Next.DROP else after

    return [(Dispatcher, "_start", twice)]


def _session_must_be_legible() -> list[Patch]:
    def started(view: View, key: str) -> bool:
        return view.session(key).newest is not None or evidence.attempt_state(view, key) == "ended"

    return [(evidence, "started", started)]


def _damaged_lease_is_free() -> list[Patch]:
    return [
        (evidence, "lease_damaged", lambda view, task: False),
    ]


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


ONE_START = "one_key_at_most_one_start"
NO_START = "no_start_after_refusal_or_cancellation"
BYTES_STAY = "bytes_are_never_destroyed"


def made() -> Iterator[Fault]:
    """The faults, by what they damage."""
    yield Fault(
        "lenient-reader",
        "what cannot be read is skipped",
        "a_degraded_read_is_reported",
        READ,
        _lenient_reader,
        "",
        ("damage",),
    )
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
        "wrong-shape-dropped",
        "an attempt that has a wrong shape is dropped from its file",
        BYTES_STAY,
        BYTES,
        lambda: _rewritten("shape"),
        "",
        ("damage",),
    )
    yield Fault(
        "version-rewritten",
        "a record of an unknown version is rewritten as version 1",
        BYTES_STAY,
        BYTES,
        lambda: _rewritten("version"),
        "",
        ("damage",),
    )
    yield Fault(
        "two-step-ledger",
        "between reading and writing other processes may write",
        "one_task_at_most_one_live_lease",
        RULE,
        _two_step_ledger,
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
        "fused-tail", "a record is appended to the torn tail of another", BYTES_STAY, READ, _fused_tail, "", ("break",)
    )
    yield Fault(
        "not-synced",
        "records are acknowledged before they are durable",
        BYTES_STAY,
        READ,
        _not_synced,
        "",
        ("power_failure",),
    )
    yield Fault(
        "read-before-durable",
        "what another process wrote is relied on before it is durable",
        BYTES_STAY,
        READ,
        _read_before_durable,
        "",
        ("power_failure", "break"),
    )
    yield Fault(
        "no-checksum",
        "the sum of a record is not looked at",
        "a_degraded_read_is_reported",
        READ,
        _no_checksum,
        "",
        ("damage",),
    )
    yield Fault(
        "cached-reads",
        "a record that was read once is never read again",
        "a_degraded_read_is_reported",
        RULE,
        _cached_reads,
        "",
        ("damage",),
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
        "session-must-be-legible",
        "a session record that is damaged is taken for none",
        ONE_START,
        RULE,
        _session_must_be_legible,
        "",
        ("damage",),
    )
    yield Fault(
        "damaged-lease-is-free",
        "a lease that cannot be read is taken",
        "a_live_lease_is_not_taken",
        RULE,
        _damaged_lease_is_free,
        "",
        ("damage",),
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
