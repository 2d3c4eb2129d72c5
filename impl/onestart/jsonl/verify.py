"""What is wrong with a ledger, store by store: every line read once, and each store held against the others."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from heapq import nsmallest

from onestart.command import escaped
from onestart.health import Health
from onestart.jsonl.files import Files, LocalFiles
from onestart.jsonl.journal import Journal, as_known
from onestart.jsonl.ledger import current, inspect, reached
from onestart.jsonl.places import Entry
from onestart.jsonl.reached import Reached
from onestart.jsonl.references import References, by_kind, catch_up
from onestart.lines import Line, Owner, Place, decode
from onestart.ports import LedgerUnavailableError, NotALedgerError
from onestart.records import STORES
from onestart.verification import MOST, Progress, StoreReport, silent

_EVERY = 1000
_BLOCK = 6  # bits of a record's number that count within a block


def verify(
    path: str | os.PathLike[str], files: Files | None = None, *, progress: Progress = silent
) -> tuple[StoreReport, ...]:
    """Read every line of the ledger and report on each store. Changes nothing, waits for nobody, uses no index.

    Keeps eight bytes for each record. Raises NotALedgerError if there is no ledger, LedgerUnavailableError if it cannot
    be read.
    """
    files = LocalFiles() if files is None else files
    folder = os.fspath(path)
    if inspect(files, folder) is None:
        raise NotALedgerError(f"{folder} holds no ledger")
    generation = current(files, folder)
    return _Audit(generation, files, reached(files, folder, generation), progress).reports()


class _Audit:
    """Journals that are read to the end, and keep nothing of what they have read but tallies."""

    def __init__(self, folder: str, files: Files, reached: Reached, progress: Progress) -> None:
        self._reached = reached
        self._references = References()
        self._tallies = {store: _Tally(progress) for store in STORES}
        self._journals = {
            store: Journal(store, folder, files, self._told, durable=False, found=tally)
            for store, tally in self._tallies.items()
        }
        for store, journal in self._journals.items():
            self._tallies[store].journal = journal
        self._of = by_kind(self._journals)

    def _told(self, owner: Owner, refs: Mapping[str, int]) -> None:
        if refs:
            self._references.told(owner, refs)

    def reports(self) -> tuple[StoreReport, ...]:
        self._read()
        suspected = self._references.seen()
        self._read()
        self._references.confirm(self._of, suspected)
        return tuple(self._report(store) for store in STORES)

    def _read(self) -> None:
        """Read what is there by now; a file that was replaced is read anew."""
        numbers = self._numbers()
        for store, journal in self._journals.items():
            try:
                if journal.stale():
                    self._tallies[store].forget()
                    journal.read_anew()
            except OSError as error:
                raise journal.unavailable(error) from error
        catch_up(self._journals, self._of, self._references)
        self._references.reached(numbers)

    def _numbers(self) -> Mapping[str, int]:
        try:
            return self._reached.read()
        except OSError as error:
            raise LedgerUnavailableError("lock", error.strerror or str(error)) from error

    def _report(self, store: str) -> StoreReport:
        journal, tally = self._journals[store], self._tallies[store]
        for entry in (*journal.unowned, *journal.pending):
            tally.count(entry, entry.health, "whose it is cannot be told")
        texts = [text for _, text in tally.found]
        gaps = self._references.gaps(journal)
        texts += [f"{journal.name}: records {first} to {last} are missing" for first, last in gaps]
        unmet = [(where, s) for where, seqs in self._references.unmet.items() for s in sorted(seqs)]
        unmet = [(where, seq) for where, seq in unmet if self._of[where[0]] is journal]
        texts += [
            f"{journal.name}: record {seq} is missing, {_whose(where)}, seen by other stores" for where, seq in unmet
        ]
        if journal.backward:
            texts.append(f"{journal.name}: {journal.backward} lines have a number that is not above the one before")
        return StoreReport(
            store=store,
            lines=journal.count,
            intact=tally.seen[Health.INTACT],
            corrupt=tally.seen[Health.CORRUPT],
            unsupported=tally.seen[Health.UNSUPPORTED_VERSION],
            torn=journal.torn + journal.open_tail,
            missing=tally.gone + _absent(journal, gaps, {seq for _, seq in unmet}),
            backward=journal.backward,
            lost=tally.lost,
            findings=tuple(texts[:MOST]),
        )


class _Tally:
    """What is found in a file, counted. found: the first findings, by their lines."""

    journal: Journal

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.forget()

    def forget(self) -> None:
        self.seen: Counter[Health] = Counter()
        self.found: list[tuple[int, str]] = []
        self.gone = self.lost = self._told = 0
        self._numbers = _Numbers()

    def own(self, where: Place, entry: Entry, raw: bytes | None) -> None:
        self._numbers.add(where, entry.seq)
        self._told += 1
        if self._told % _EVERY == 0:
            self._progress(self.journal.store, *self.journal.bytes_read)
        if not entry.length:
            self.gone += 1
            self._find(entry, Health.CORRUPT, _whose(where))
            return
        line = self._line(where, entry, raw)
        if line.lost:
            self.lost += 1
        else:
            self.count(entry, line.health, _whose(where))

    def _line(self, where: Place, entry: Entry, raw: bytes | None) -> Line:
        if raw is None:
            return self.journal.read(entry, where)
        return as_known(decode(raw), entry, where, ended=True)

    def count(self, entry: Entry, health: Health, whose: str) -> None:
        self.seen[health] += 1
        if health is not Health.INTACT:
            self._find(entry, health, whose)

    def _find(self, entry: Entry, health: Health, whose: str) -> None:
        text = f"{self.journal.name}{entry.where}: {health.replace('_', ' ')}, {whose}"
        self.found = nsmallest(MOST, [*self.found, (entry.number, text)])

    def has(self, where: Place, seq: int) -> bool:
        return self._numbers.has(where, seq)


class _Numbers:
    """Of which place the record of each number is: eight bytes for each, in blocks, since numbers may be far apart."""

    def __init__(self) -> None:
        self._blocks: dict[int, array[int]] = {}
        self._others: set[tuple[int, int]] = set()
        self._salt = os.urandom(16)

    def add(self, where: Place, seq: int) -> None:
        block = self._blocks.get(seq >> _BLOCK)
        if block is None:
            block = self._blocks[seq >> _BLOCK] = array("Q", bytes(8 << _BLOCK))
        at, mark = seq & (1 << _BLOCK) - 1, self._mark(where)
        if block[at] and block[at] != mark:
            self._others.add((seq, mark))  # a number that is there twice
        else:
            block[at] = mark

    def has(self, where: Place, seq: int) -> bool:
        block, mark = self._blocks.get(seq >> _BLOCK), self._mark(where)
        return block is not None and (block[seq & (1 << _BLOCK) - 1] == mark or (seq, mark) in self._others)

    def _mark(self, where: Place) -> int:
        kind, name = where
        said = f"{kind} {name}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(said, digest_size=8, key=self._salt).digest(), "little") or 1


def _absent(journal: Journal, gaps: list[tuple[int, int]], lost: set[int]) -> int:
    """How many records are neither there nor in the place of an illegible line."""
    there = {entry.seq for entry in (*journal.unowned, *journal.pending)}
    outside = [seq for seq in lost - there if not any(first <= seq <= last for first, last in gaps)]
    return len(outside) + sum(last - first + 1 for first, last in gaps)


def _whose(where: Place) -> str:
    return f"{where[0]} of {escaped(where[1])}"
