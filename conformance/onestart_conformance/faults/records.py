"""Faults of reading and writing: damage taken for absence, bytes that are lost, records read too early."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from onestart import evidence, lines
from onestart.health import Health, Reading
from onestart.jsonl.journal import Journal
from onestart.jsonl.ledger import JsonlLedger
from onestart.jsonl.stores import Stores
from onestart.ports import View
from onestart_conformance.disk import SimulatedFiles
from onestart_conformance.disk_storage import PATH
from onestart_conformance.faults.fault import BYTES_STAY, ONE_START, Fault, Patch
from onestart_conformance.judgement import BYTES, READ, RULE


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


def _rewritten(matches: str) -> list[Patch]:
    """A file is written anew without the lines that it should not have."""
    carry_out = JsonlLedger._carry_out

    def tidied(self: JsonlLedger, take: Any) -> None:
        files = self._files
        if isinstance(files, SimulatedFiles):
            files.rewrite(f"{PATH}/attempts.jsonl", lambda raw: _mended(raw, matches))
        carry_out(self, take)

    return [(JsonlLedger, "_carry_out", tidied)]


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
        record, answer = await self._group.step(lambda view: (None, decide(view)))
        if record is not None:
            await self._group.step(lambda view: (record, None))
        return answer

    return [(JsonlLedger, "step", step)]


def _fused_tail() -> list[Patch]:
    def unsealed(self: Journal) -> None:
        self._offset, self._tail, self._unended = self._offset, 0, False

    return [(Journal, "_seal", unsealed)]


def _not_synced() -> list[Patch]:
    return [(SimulatedFiles, "sync", lambda self, path: None)]


def _read_before_durable() -> list[Patch]:
    return [(Journal, "_make_durable", lambda self, start, *, first: None)]


def _no_checksum() -> list[Patch]:
    return [
        (lines, "_sum_holds", lambda raw: True),
        (lines, "_outline_cached", lru_cache(1024)(lines._outline)),  # so that nothing of it is remembered afterwards
        (lines, "_decode_cached", lru_cache(1024)(lines._decode)),
    ]


def _cached_reads() -> list[Patch]:
    read = Journal.read
    known: dict[Any, Any] = {}

    def cached(self: Journal, entry: Any, where: Any) -> Any:
        name = (id(self), self._identity, entry)
        if name not in known:
            known[name] = read(self, entry, where)
        return known[name]

    return [(Journal, "read", cached)]


def _session_must_be_legible() -> list[Patch]:
    def started(view: View, key: str) -> bool:
        return view.session(key).newest is not None or evidence.attempt_state(view, key) == "ended"

    return [(evidence, "started", started)]


def _damaged_lease_is_free() -> list[Patch]:
    return [
        (evidence, "lease_damaged", lambda view, task: False),
    ]


def of_records() -> Iterator[Fault]:
    """The faults of this kind."""
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
