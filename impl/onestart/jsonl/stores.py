"""The stores together: what each shows of a key, judged by what the others had seen of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from onestart.health import Finding, Health, Reading
from onestart.jsonl.files import Files
from onestart.jsonl.journal import Entry, Journal
from onestart.lines import Owner, Place, place
from onestart.records import KINDS, STORES, Approval, Attempt, Lease, Note, Receipt, Record, Session, Step, store_of

_NOTHING: Reading[Any] = Reading((), 0, Health.ABSENT)
_NO_NUMBERS: frozenset[int] = frozenset()
_MOST_LEASES = 32
_MOST_READINGS = 256


class Stores:
    """A `View`: valid as long as nobody appends, that is under the ledger's lock.

    A record that another store has seen, and that is not there, reads as damaged: its store was rolled back or cut
    short. An attempt record that is gone reads as absent instead, and is reported as damage that may be anybody's.
    """

    def __init__(self, folder: str, files: Files, *, durable: bool = True) -> None:
        self.journals = {store: Journal(store, folder, files, self._told, durable=durable) for store in STORES}
        self._of = {kind: self.journals[store_of(kind)] for kind in KINDS}
        self._forget()

    def _forget(self) -> None:
        for journal in self.journals.values():
            journal.forget()
        self._keys: dict[str, dict[str, None]] = {}
        self._task_of: dict[str, str] = {}
        self._unmet: dict[Place, set[int]] = {}
        self._furthest = dict.fromkeys(STORES, 0)
        self._fresh: list[tuple[Owner, Mapping[str, int]]] = []
        self._readings: dict[Place, Reading[Any]] = {}

    def refresh(self) -> None:
        """Read what was appended since. Raises LedgerUnavailableError if a store cannot be read."""
        self._readings.clear()
        journal = self.journals["receipts"]
        try:
            stale = False
            for journal in self.journals.values():
                stale |= journal.stale()
            if stale:
                self._forget()
                for journal in self.journals.values():
                    journal.stale()  # to look again how much there is
            for journal in self.journals.values():
                journal.catch_up()
        except OSError as error:
            raise journal.unavailable(error) from error
        if self._fresh:
            self._compare()

    def _told(self, owner: Owner, refs: Mapping[str, int]) -> None:
        kind, key, task = owner
        if key and kind != "step":  # a flow's root is no key of a command
            keys = self._keys.setdefault(task, {})
            if key not in keys:
                keys[key] = None
                self._task_of.setdefault(key, task)
        if refs:
            self._fresh.append((owner, refs))

    def _compare(self) -> None:
        """Which records one store has seen in another that are not there."""
        for (_, key, task), refs in self._fresh:
            for kind, seq in refs.items():
                where, journal = place(kind, key, task), self._of[kind]
                self._furthest[journal.store] = max(self._furthest[journal.store], seq)
                if not journal.has(where, seq):
                    self._unmet.setdefault(where, set()).add(seq)
        self._fresh.clear()

    def look(self) -> None:
        """Read all without the lock: a store may go on after it was read, and before one that refers to it is read.

        Therefore a record is missing only if it still is when all stores are read for the second time.
        """
        self.refresh()
        suspected = {where: set(seqs) for where, seqs in self._unmet.items()}
        furthest = dict(self._furthest)
        self.refresh()
        self._furthest = furthest
        missing = {
            where: {seq for seq in seqs if not self._of[where[0]].has(where, seq)} for where, seqs in suspected.items()
        }
        self._unmet = {where: seqs for where, seqs in missing.items() if seqs}

    def append(self, record: Record) -> None:
        """Record it, durable after `commit`. Raises LedgerUnavailableError; it may then be there or not."""
        self._readings.clear()
        journal = self._of[record.kind]
        try:
            journal.append(record, self._refs(record), self._furthest[journal.store])
        except OSError as error:
            raise journal.unavailable(error) from error
        self._fresh.clear()  # what was written just now refers to what is known already

    def open_elsewhere(self, record: Record) -> bool:
        """Whether another store than this record's has something that is not durable yet.

        Stores are made durable one after the other, in the order of the records: else a crash could keep a record and
        lose an earlier one in another store, that the later one has seen.
        """
        journal = self._of[record.kind]
        return any(other.uncommitted for other in self.journals.values() if other is not journal)

    def commit(self) -> None:
        """Make what was appended durable. Raises LedgerUnavailableError."""
        for journal in self.journals.values():
            if journal.uncommitted:
                try:
                    journal.commit()
                except OSError as error:
                    raise journal.unavailable(error) from error

    def _refs(self, record: Record) -> dict[str, int]:
        kind, refs = record.kind, {}
        for other, journal in self._of.items():
            if other == kind:
                continue
            where = (other, record.task if other == "lease" else record.key)
            entries = journal.entries.get(where)
            newest = entries[-1].seq if entries else 0
            if self._unmet and other != "attempt":
                newest = max(newest, *self._unmet.get(where, ()), 0)
            if newest:
                refs[other] = newest
        return refs

    @property
    def now(self) -> None:
        return None

    @property
    def order(self) -> int:
        return sum(journal.count for journal in self.journals.values())

    def receipt(self, key: str) -> Reading[Receipt]:
        return self._reading(("receipt", key))

    def attempt(self, key: str) -> Reading[Attempt]:
        return self._reading(("attempt", key))

    def session(self, key: str) -> Reading[Session]:
        return self._reading(("session", key))

    def approval(self, key: str) -> Reading[Approval]:
        return self._reading(("approval", key))

    def lease(self, task: str) -> Reading[Lease]:
        """All that is known of a task's lease; of more than 32 records the newest ones, while the newest is intact."""
        return self._reading(("lease", task), _MOST_LEASES)

    def steps(self, root: str) -> Reading[Step]:
        return self._reading(("step", root))

    def note(self, key: str) -> Reading[Note]:
        return self._reading(("note", key))

    def task_of(self, key: str) -> str | None:
        return self._task_of.get(key)

    def keys(self, task: str) -> Iterable[str]:
        return self._keys.get(task, {}).keys()

    def all_keys(self) -> Iterable[str]:
        return self._task_of.keys()

    def all_tasks(self) -> Iterable[str]:
        """Every task with a record."""
        return dict.fromkeys([*self._keys, *self._of["lease"].places("lease")])

    def roots(self) -> Iterable[str]:
        """Every flow with a record."""
        return dict.fromkeys(self._of["step"].places("step"))

    def lost(self, store: str) -> list[tuple[Place, set[int]]]:
        """The records that other stores have seen and that are not there: whose, and their numbers."""
        return [(where, seqs) for where, seqs in self._unmet.items() if self._of[where[0]].store == store]

    def gaps(self, journal: Journal) -> list[tuple[int, int]]:
        """First and last number of records that are missing: within a store, and at its end if others had seen more."""
        there, furthest = journal.last_seq + len(journal.pending), self._furthest[journal.store]
        return [*journal.gaps, *([(there + 1, furthest)] if there < furthest else [])]

    def _reading(self, where: Place, most: int = 0) -> Reading[Any]:
        reading = self._readings.get(where)
        if reading is None:
            if len(self._readings) == _MOST_READINGS:
                self._readings.clear()
            reading = self._readings[where] = self._read_anew(where, most)
        return reading

    def _read_anew(self, where: Place, most: int) -> Reading[Any]:
        journal = self._of[where[0]]
        entries: list[Entry] = journal.entries.get(where, [])
        if self._unmet and where[0] != "attempt":
            entries = self._with_lost(journal, where, entries)
        if not entries:
            return _NOTHING
        count = len(entries)
        health, records = _read(journal, where, entries[-most:])
        if health is not Health.INTACT and most and count > most:
            health, records = _read(journal, where, entries)
        return Reading(records, count, health, journal.name + entries[-1].where)

    def entries(self, where: Place) -> list[Entry]:
        """Where the records of a place are, those included that other stores have seen and that are gone."""
        journal = self._of[where[0]]
        return self._with_lost(journal, where, journal.entries.get(where, []))

    def _with_lost(self, journal: Journal, where: Place, entries: list[Entry]) -> list[Entry]:
        """The entries and, for each record that is only known from other stores, what is in its place."""
        lost = self._unmet.get(where)
        if not lost:
            return entries
        there = {entry.seq: entry for entry in (*journal.unowned, *journal.pending)}
        instead = [there.get(seq) or Entry(seq, 0, 0, 0, Health.CORRUPT) for seq in lost]
        return sorted([*entries, *instead])

    def stray(self) -> tuple[Finding, ...]:
        found: list[Finding] = []
        for journal in self.journals.values():
            if journal.unowned or journal.pending or journal.gaps or self._unmet:
                found += self._strays(journal)
        return tuple(found)

    def _strays(self, journal: Journal) -> list[Finding]:
        known = {s for (kind, _), lost in self._unmet.items() if self._of[kind] is journal for s in lost}
        owned = _NO_NUMBERS if journal.store == "attempts" else known
        lines = [entry for entry in (*journal.unowned, *journal.pending) if entry.seq not in owned]
        found = [_stray(journal, entry.health, entry.where) for entry in lines]
        gone = [(a, b) for a, b in self.gaps(journal) if sum(a <= seq <= b for seq in owned) <= b - a]
        found += [_stray(journal, Health.CORRUPT, f" (records {a} to {b}, missing)") for a, b in gone]
        if journal.store == "attempts":
            shown = {entry.seq for entry in lines}
            rest = [s for s in sorted(known - shown) if not any(a <= s <= b for a, b in gone)]
            found += [_stray(journal, Health.CORRUPT, f" (record {s}, missing)") for s in rest]
        return found


def _read(journal: Journal, where: Place, entries: list[Entry]) -> tuple[Health, tuple[Record, ...]]:
    records: list[Record] = []
    health = Health.ABSENT
    try:
        for entry in entries:
            line = journal.read(entry, where)
            health = line.health
            if line.record is not None:
                records.append(line.record)
    except OSError as error:
        raise journal.unavailable(error) from error
    return health, tuple(records)


def _stray(journal: Journal, health: Health, where: str) -> Finding:
    return Finding(journal.store, health, journal.name + where, concerns=False)
