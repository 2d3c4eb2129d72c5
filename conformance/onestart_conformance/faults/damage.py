"""Faults of what is made of damage: each is seeded into the library and the damaged ledger is asked again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from onestart import evidence, lines
from onestart.health import Health
from onestart.jsonl.journal import Journal
from onestart.jsonl.reached import Reached
from onestart.jsonl.references import References
from onestart.jsonl.stores import Stores
from onestart.ports import LedgerUnavailableError, View
from onestart.records import KINDS
from onestart.verification import StoreReport
from onestart_conformance.damage.oracles import ABSENCE, REPORT, UNRELATED_HELD
from onestart_conformance.faults.fault import ONE_START, Fault, Patch
from onestart_conformance.judgement import CRASH, READ, START

REPORTED = "a_degraded_read_is_reported"


def _anew() -> list[Patch]:
    """Nothing that was made of a line before is remembered, nor is anything afterwards."""
    return [
        (lines, "_outline_cached", lru_cache(1024)(lines._outline)),
        (lines, "_decode_cached", lru_cache(1024)(lines._decode)),
    ]


def _body_not_covered() -> list[Patch]:
    def of_head(data: bytes) -> bytes:
        head = lines._HEAD.match(data)
        return blake2b(data[: head.end() if head else None], digest_size=8).hexdigest().encode()

    return [(lines, "_sum", of_head), *_anew()]


def _version_not_looked_at() -> list[Patch]:
    headed = lines._headed

    def lax(match: Any) -> lines.Line:
        line = headed(match)
        if line.health is not Health.UNSUPPORTED_VERSION:
            return line
        refs, end = lines._refs(match.string, match.end())
        return lines.Line(Health.INTACT, line.seq, line.kind, line.key, line.task, line.prev, refs or {}, end)

    return [(lines, "_headed", lax), *_anew()]


def _wrong_shape_raises() -> list[Patch]:
    def strict(kind: str, body: bytes) -> Any:
        text = body.decode("ascii")
        value, _ = lines._parse(text)
        return KINDS[kind](**value)

    return [(lines, "_record", strict), *_anew()]


def _count_not_read() -> list[Patch]:
    return [(Reached, "read", lambda self: {})]


def _refs_not_compared() -> list[Patch]:
    """Either would do to notice that something is gone; only these say whose it was."""
    return [(References, "told", lambda self, owner, refs: None), *_count_not_read()]


def _end_forgotten() -> list[Patch]:
    return [(References, "gaps", lambda self, journal: list(journal.gaps))]


def _strays_dropped() -> list[Patch]:
    return [(Stores, "stray", lambda self: ())]


def _anybodys_is_everybodys() -> list[Patch]:
    refresh = Stores.refresh

    def strict(self: Stores) -> None:
        refresh(self)
        for finding in self.stray():
            raise LedgerUnavailableError(finding.store, f"there is damage: {finding}")

    return [(Stores, "refresh", strict)]


def _stray_lease_is_every_lease() -> list[Patch]:
    def damaged(view: View, task: str) -> bool:
        return view.lease(task).health.degraded or "leases" in evidence.astray(view)

    return [(evidence, "lease_damaged", damaged)]


def _own_checksum_is_enough() -> list[Patch]:
    def settle(self: Journal, line: Any) -> None:
        self.unowned += self.pending
        self.pending = []

    return [(Journal, "_settle", settle), (References, "told", lambda self, owner, refs: None)]


def _gap_ignored() -> list[Patch]:
    settle = Journal._settle

    def gapless(self: Journal, line: Any) -> None:
        settle(self, line)
        self.gaps.clear()

    return [(Journal, "_settle", gapless)]


def _backward_ignored() -> list[Patch]:
    return [(StoreReport, "damage", property(lambda self: self.corrupt + self.unsupported + self.missing))]


def _folder_is_emptiness() -> list[Patch]:
    stale = Journal.stale

    def lax(self: Journal) -> bool:
        try:
            return stale(self)
        except OSError:
            self.forget()
            self._now = 0
            return False

    return [(Journal, "stale", lax), *_count_not_read()]


def _intents_lost_in_both() -> list[Patch]:
    return [(evidence, "INTENTS", frozenset({"nowhere"}))]


def _of_damage() -> Iterator[Fault]:
    yield Fault("body-not-covered", "the sum of a record covers its head alone", REPORTED, READ, _body_not_covered)
    yield Fault(
        "version-not-looked-at", "a later version is read as this one", REPORTED, REPORT, _version_not_looked_at
    )
    yield Fault(
        "wrong-shape-raises", "a field of a wrong type is not reckoned with", REPORTED, CRASH, _wrong_shape_raises
    )
    yield Fault("count-not-read", "how far a store had got is not known", REPORTED, READ, _count_not_read)
    yield Fault(
        "refs-not-compared",
        "what other stores had seen is not missed, nor how far they had got",
        REPORTED,
        ABSENCE,
        _refs_not_compared,
    )
    yield Fault(
        "end-forgotten", "of a store's end only that is missed which others had seen", REPORTED, READ, _end_forgotten
    )
    yield Fault("strays-dropped", "damage that is nobody's is not reported", REPORTED, ABSENCE, _strays_dropped)
    yield Fault(
        "own-checksum-is-enough",
        "a record with a right sum is taken for the one whose place it has",
        REPORTED,
        READ,
        _own_checksum_is_enough,
    )
    yield Fault("gap-ignored", "numbers that are missing are not missed", REPORTED, ABSENCE, _gap_ignored)
    yield Fault("backward-ignored", "records in another order are fine", REPORTED, REPORT, _backward_ignored)
    yield Fault(
        "folder-read-as-empty",
        "a folder in the place of a store is taken for one that is not there yet",
        REPORTED,
        ABSENCE,
        _folder_is_emptiness,
    )
    yield Fault(
        "intents-lost-in-both",
        "a key is fresh as long as no store shows its intent, whatever else they have lost",
        ONE_START,
        START,
        _intents_lost_in_both,
    )
    yield Fault(
        "any-damage-stops-all",
        "a ledger with damage in it is not used",
        "every_accepted_command_can_end",
        UNRELATED_HELD,
        _anybodys_is_everybodys,
    )
    yield Fault(
        "stray-lease-is-every-lease",
        "an illegible record among the leases may be anybody's, so no lease is taken",
        "every_accepted_command_can_end",
        UNRELATED_HELD,
        _stray_lease_is_every_lease,
    )


DAMAGE_FAULTS: Mapping[str, Fault] = {fault.name: fault for fault in _of_damage()}
