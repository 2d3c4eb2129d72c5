"""What is wrong with a ledger, store by store: every line read again, and each store held against the others."""

from __future__ import annotations

import os
from collections import Counter
from heapq import nsmallest

from onestart.command import escaped
from onestart.health import Health
from onestart.jsonl.files import Files
from onestart.jsonl.journal import Entry, Journal
from onestart.jsonl.ledger import open_for_reading
from onestart.jsonl.stores import Stores
from onestart.verification import MOST, Progress, StoreReport, silent

_EVERY = 1000


def verify(
    path: str | os.PathLike[str], files: Files | None = None, *, progress: Progress = silent
) -> tuple[StoreReport, ...]:
    """Read every line of the ledger and report on each store. Changes nothing and waits for nobody.

    Keeps where the lines are, but no record. Raises NotALedgerError if there is no ledger, LedgerUnavailableError if it
    cannot be read.
    """
    stores = open_for_reading(path, files)
    return tuple(_report(stores, journal, progress) for journal in stores.journals.values())


def _report(stores: Stores, journal: Journal, progress: Progress) -> StoreReport:
    seen: Counter[Health] = Counter()
    found: list[tuple[int, str]] = []
    gone = lost = 0
    for where, entries in journal.entries.items():
        for entry in entries:
            if seen.total() % _EVERY == 0:
                progress(journal.store, seen.total(), journal.count)
            if entry.length:
                line = journal.read(entry, where)
                health = line.health
                if line.lost:
                    lost += 1
                    continue
                seen[health] += 1
            else:
                health = Health.CORRUPT
                gone += 1
            if health is not Health.INTACT:
                found = _first(found, entry, f"{journal.name}{entry.where}: {_said(health)}, {_whose(where)}")
    for entry in (*journal.unowned, *journal.pending):
        seen[entry.health] += 1
        found = _first(found, entry, f"{journal.name}{entry.where}: {_said(entry.health)}, whose it is cannot be told")
    texts = [text for _, text in found]
    gaps = stores.gaps(journal)
    texts += [f"{journal.name}: records {first} to {last} are missing" for first, last in gaps]
    unmet = [(where, seq) for where, seqs in stores.lost(journal.store) for seq in sorted(seqs)]
    texts += [f"{journal.name}: record {seq} is missing, {_whose(where)}, seen by other stores" for where, seq in unmet]
    if journal.backward:
        texts.append(f"{journal.name}: {journal.backward} lines have a number that is not above the one before")
    return StoreReport(
        store=journal.store,
        lines=journal.count,
        intact=seen[Health.INTACT],
        corrupt=seen[Health.CORRUPT],
        unsupported=seen[Health.UNSUPPORTED_VERSION],
        torn=journal.torn + journal.open_tail,
        missing=gone + _absent(journal, gaps, {seq for _, seq in unmet}),
        backward=journal.backward,
        lost=lost,
        findings=tuple(texts[:MOST]),
    )


def _absent(journal: Journal, gaps: list[tuple[int, int]], lost: set[int]) -> int:
    """How many records are neither there nor in the place of an illegible line."""
    there = {entry.seq for entry in (*journal.unowned, *journal.pending)}
    outside = [seq for seq in lost - there if not any(first <= seq <= last for first, last in gaps)]
    return len(outside) + sum(last - first + 1 for first, last in gaps)


def _first(found: list[tuple[int, str]], entry: Entry, text: str) -> list[tuple[int, str]]:
    return nsmallest(MOST, [*found, (entry.number, text)])


def _said(health: Health) -> str:
    return health.replace("_", " ")


def _whose(where: tuple[str, str]) -> str:
    return f"{where[0]} of {escaped(where[1])}"
