"""Seeded faults of stores: what the suite must find, each by the axiom that is named with it."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import frozen

from onestart import records
from onestart.jsonl import ledger as jsonl
from onestart.jsonl.files import LocalFiles
from onestart.jsonl.journal import Journal
from onestart.jsonl.reached import Reached
from onestart.jsonl.stores import Stores
from onestart.sql import sqlite, sqlite_file
from onestart.sql.beside import Beside
from onestart_conformance.faults.fault import Fault, Patch
from onestart_conformance.stores.crashes import LITTLE, Explored, Failing, crashes, failures, scene
from onestart_conformance.stores.jsonl_files import MediumFiles
from onestart_conformance.stores.judging import AGREED, DURABLE, OPENS, PREFIX, UNDAMAGED
from onestart_conformance.stores.machines import MACHINES
from onestart_conformance.stores.medium import TroubleError
from onestart_conformance.stores.pairs import pairs
from onestart_conformance.stores.places import PLACES
from onestart_conformance.stores.plays import play_named
from onestart_conformance.stores.probes import PROBES, ProbeError
from onestart_conformance.stores.survivals import Effort

RUNS = 20
PAIRS = "two processes"
LOST = "a-store-that-lost-records-is-seen"
EFFORTS = {"jsonl": Effort(grain=64, drawn=8), "sqlite": LITTLE}
MOST = {"jsonl": 400, "sqlite": 60}


@frozen
class StoreFault:
    """fault: what is patched; its oracle is the axiom that must be broken. ledger: the kind that has it.

    play: in which it shows, empty for a probe. hows: the ways in which operations fail, none if crashes are enough.
    """

    fault: Fault
    ledger: str
    play: str = ""
    hows: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.fault.name

    @property
    def axiom(self) -> str:
        return self.fault.oracle


@frozen
class StoreHunt:
    """What came of looking for a fault. broken: the axioms that did not hold, the first with where."""

    broken: tuple[str, ...]
    where: str = ""


def hunt_store(wanted: StoreFault, *, seed: int = 0) -> StoreHunt:
    """Look for one fault where it must show."""
    with wanted.fault.seeded():
        if not wanted.play:
            return _probed(wanted, seed)
        if wanted.play == PAIRS:
            return _told(pairs(wanted.ledger), wanted.axiom)
        start = scene(MACHINES[wanted.ledger], play_named(wanted.play))
        if wanted.hows:
            failing = Failing(later=6, images=9, hows=wanted.hows)
            done = failures(wanted.ledger, start, failing, seed=seed, wanted=wanted.axiom)
        else:
            done = crashes(
                wanted.ledger, start, EFFORTS[wanted.ledger], seed=seed, most=MOST[wanted.ledger], wanted=wanted.axiom
            )
    return _told(done, wanted.axiom)


def _told(done: Explored, axiom: str) -> StoreHunt:
    where = [f"{place}: {breach.what}" for breach, place in done.breaches if breach.axiom == axiom]
    return StoreHunt(tuple(done.axioms), next(iter(where), ""))


def _probed(wanted: StoreFault, seed: int) -> StoreHunt:
    probe = next(probe for probe in PROBES if probe.axiom == wanted.axiom)
    for number in range(RUNS):
        with tempfile.TemporaryDirectory(prefix="onestart-fault-") as folder:
            place = PLACES[wanted.ledger](Path(folder))
            try:
                asyncio.run(probe.run(place, random.Random(seed * RUNS + number)))  # noqa: S311
            except ProbeError as error:
                return StoreHunt((probe.axiom,), str(error))
            finally:
                asyncio.run(place.close())
    return StoreHunt(())


def _nothing(*_: object, **__: object) -> None:
    return None


def _no_names() -> list[Patch]:
    return [(MediumFiles, "sync_folder", _nothing)]


def _error_ignored() -> list[Patch]:
    commit = Journal.commit

    def careless(self: Journal) -> None:
        with suppress(OSError):
            commit(self)
        self._in_doubt = self.uncommitted = False

    return [(Journal, "commit", careless)]


def _too_early() -> list[Patch]:
    def acknowledged(stores: Stores, decided: list[Any]) -> None:
        for step in decided:
            step.done()
        decided.clear()

    return [(jsonl, "_commit", acknowledged)]


def _first_file_only() -> list[Patch]:
    def commit(self: Stores) -> None:
        for journal in self.journals.values():
            if journal.uncommitted:
                journal.commit()
                break
        for journal in self.journals.values():
            journal._in_doubt = journal.uncommitted = False

    return [(Stores, "commit", commit), (Stores, "open_elsewhere", lambda self, record: False)]


def _another_order() -> list[Patch]:
    def commit(self: Stores) -> None:
        for journal in reversed(self.journals.values()):
            if journal.uncommitted:
                journal.commit()

    def never(self: Stores, record: records.Record) -> bool:
        return False

    return [(Stores, "commit", commit), (Stores, "open_elsewhere", never), (Stores, "open_related", never)]


def _short_is_whole() -> list[Patch]:
    append = MediumFiles.append

    def careless(self: MediumFiles, path: str, data: bytes) -> None:
        with suppress(TroubleError):
            append(self, path, data)

    return [(MediumFiles, "append", careless)]


def _normal() -> list[Patch]:
    connected = sqlite_file.connected

    def lazily(path: str, vfs: str) -> Any:
        found = connected(path, vfs)
        found.execute("PRAGMA synchronous = NORMAL")
        return found

    return [(sqlite, "connected", lazily)]


@contextmanager
def _unlocked(self: LocalFiles, path: str) -> Iterator[None]:
    yield


def _seen_once() -> list[Patch]:
    refresh, known = Stores.refresh, set[int]()

    def once(self: Stores) -> None:
        if id(self) not in known:
            known.add(id(self))
            refresh(self)

    return [(Stores, "refresh", once)]


def _related() -> list[Patch]:
    return [(Stores, "open_related", lambda self, record: False)]


def _not_again() -> list[Patch]:
    return [(MediumFiles, "write_again", _nothing)]


def _no_checkpoint() -> list[Patch]:
    """Either would do: whoever finds that a transaction was broken off makes the log durable by writing to it."""
    return [(sqlite_file, "_make_durable", _nothing), *_comes_back()]


def _log_not_again() -> list[Patch]:
    return [(sqlite_file, "_write_log_again", _nothing)]


def _comes_back() -> list[Patch]:
    return [(Beside, "found", lambda self: False)]


def _counted_early() -> list[Patch]:
    begin = Beside.begin

    def early(self: Beside) -> None:
        self.end(self.records() + 1)
        begin(self)

    return [(Beside, "begin", early)]


def _noted_early() -> list[Patch]:
    append = Stores.append

    def early(self: Stores, record: records.Record) -> None:
        append(self, record)
        self.tell()

    return [(Stores, "append", early)]


def _not_noted() -> list[Patch]:
    return [(Reached, "read", lambda self: {})]


def _as_it_is() -> list[Patch]:
    return [(Beside, "records", lambda self: 0)]


def _eternal() -> list[Patch]:
    return [(records, "is_over", lambda now, ends, lasts: now >= ends)]


def _no_lock() -> list[Patch]:
    return [(LocalFiles, "lock", _unlocked)]


STORE_FAULTS = {
    name: StoreFault(Fault(name, statement, "", axiom, patches), ledger, play, tuple(hows))
    for name, statement, axiom, patches, ledger, play, *hows in (
        ("no-directory-sync", "names of new files are not synced", DURABLE, _no_names, "jsonl", "submit"),
        ("sync-error-ignored", "a failed sync is not noticed", DURABLE, _error_ignored, "jsonl", "submit", "dropped"),
        ("acknowledged-too-early", "the sync comes after the answer", DURABLE, _too_early, "jsonl", "group"),
        ("first-file-only", "one file of a group is synced", DURABLE, _first_file_only, "jsonl", "group-of-stores"),
        ("stores-in-another-order", "as they come", PREFIX, _another_order, "jsonl", "group-of-stores"),
        ("related-in-one-sync", "records of a task share a sync", PREFIX, _related, "jsonl", "group-of-a-task"),
        (
            "short-write-is-whole",
            "the rest of a write is dropped",
            DURABLE,
            _short_is_whole,
            "jsonl",
            "submit",
            "short",
        ),
        ("lines-not-written-again", "a later sync is believed", DURABLE, _not_again, "jsonl", "submit", "killed"),
        ("synchronous-normal", "the log is synced later", DURABLE, _normal, "sqlite", "group"),
        ("no-checkpoint-at-open", "the log counts as it is", DURABLE, _no_checkpoint, "sqlite", "group", "killed"),
        ("log-not-written-again", "a later sync is believed", OPENS, _log_not_again, "sqlite", "doubt", "killed"),
        ("broken-off-comes-back", "nobody clears the log", AGREED, _comes_back, "sqlite", PAIRS),
        ("counted-too-early", "the number is written before the commit", OPENS, _counted_early, "sqlite", "submit"),
        ("older-copy-is-sound", "what is beside the file is not read", LOST, _as_it_is, "sqlite", ""),
        (
            "noted-too-early",
            "the end of a file is noted before its sync",
            UNDAMAGED,
            _noted_early,
            "jsonl",
            "submit",
        ),
        ("older-file-is-sound", "where a file ended is not read", LOST, _not_noted, "jsonl", ""),
        ("clock-back-lease-eternal", "only its end counts", "a-lease-ends", _eternal, "jsonl", ""),
        ("no-lock", "nobody waits for anybody", "one-step-at-a-time", _no_lock, "jsonl", ""),
        (
            "files-read-once",
            "what others append is missed",
            "a-step-sees-what-was-acknowledged",
            _seen_once,
            "jsonl",
            "",
        ),
    )
}
