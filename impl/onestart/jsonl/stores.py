"""The stores together: what each shows of a key, judged by what the others had seen of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from onestart.health import Finding, Health, Reading
from onestart.jsonl.files import Files
from onestart.jsonl.index_format import UnusableIndexError
from onestart.jsonl.indexing import BesideFiles, Taken
from onestart.jsonl.journal import Journal
from onestart.jsonl.places import Entry, Names
from onestart.jsonl.reached import Reached
from onestart.jsonl.references import References, by_kind, catch_up
from onestart.lines import Owner, Place
from onestart.ports import LedgerUnavailableError
from onestart.records import STORES, Approval, Attempt, Lease, Note, Receipt, Record, Session, Step

T = TypeVar("T")

_NOTHING: Reading[Any] = Reading((), 0, Health.ABSENT)
_NO_NUMBERS: frozenset[int] = frozenset()
_NOT_KNOWN: Mapping[str, int] = {}
_MOST_LEASES = 32
_MOST_READINGS = 256


class Stores:
    """A `View`: valid as long as nobody appends, that is under the ledger's lock.

    A record that another store has seen, and that is not there, reads as damaged: its store was rolled back or cut
    short. An attempt record that is gone reads as absent instead, and is reported as damage that may be anybody's.

    index: what tells where most records are without reading all files, if there is anything. reached: how far the
    stores had got at least, as the lock's file tells; None if nothing does.
    """

    def __init__(
        self,
        folder: str,
        files: Files,
        *,
        durable: bool = True,
        index: BesideFiles | None = None,
        reached: Reached | None = None,
    ) -> None:
        self.journals = {store: Journal(store, folder, files, self._told, durable=durable) for store in STORES}
        self._of = by_kind(self.journals)
        self._index, self._durable = index, durable
        self._reached, self._numbers = reached, _NOT_KNOWN
        self._open_keys: set[str] = set()
        self._open_tasks: set[str] = set()
        self._forget()

    def _forget(self) -> None:
        for journal in self.journals.values():
            journal.forget()
        self._names = Names()
        self._references = References()
        self._taken: Taken | None = None
        self._begun = False
        self._readings: dict[Place, Reading[Any]] = {}

    def refresh(self) -> None:
        """Read what was appended since. Raises LedgerUnavailableError if a store cannot be read."""
        self._readings.clear()
        self._hear()
        if not self._begun:
            self._begin()
        if self._stale():
            self._forget()
            self._begin()
            if self._stale() and self._taken is not None:
                self._read_files()
                return
        try:
            self._catch_up()
        except UnusableIndexError:
            self._read_files()

    def _catch_up(self) -> None:
        catch_up(self.journals, self._of, self._references)
        self._references.reached(self._numbers)

    def _hear(self) -> None:
        """Before the files are read, so that they hold all that is told of by then."""
        try:
            self._numbers = _NOT_KNOWN if self._reached is None else self._reached.read()
        except OSError as error:
            raise LedgerUnavailableError("lock", error.strerror or str(error)) from error

    def tell(self) -> None:
        """Note how far the stores have got. Call it under the lock, when all is durable."""
        if self._reached is None:
            return
        numbers = {store: max(self._numbers.get(store, 0), j.last_seq) for store, j in self.journals.items()}
        if any(number > self._numbers.get(store, 0) for store, number in numbers.items()):
            with suppress(OSError):  # then less may be noticed, and nothing else
                self._reached.write(numbers)

    def _stale(self) -> bool:
        """Whether a file is not what it was; looks how much there is of all of them."""
        stale = False
        for journal in self.journals.values():
            try:
                stale |= journal.stale()
            except OSError as error:
                raise journal.unavailable(error) from error
        return stale

    def _begin(self) -> None:
        """Take up where an index ends, if there is one of these files."""
        self._begun = True
        self._take_up()

    def _take_up(self) -> None:
        taken = self._index.taken(self.journals) if self._index is not None else None
        if taken is not None:
            self._taken, self._names, self._references = taken, taken.names, taken.references
            self._readings.clear()

    def _read_files(self) -> None:
        """The index is of no use: read everything, also in the midst of a step."""
        if self._index is not None:
            self._index.refuse()
        self._forget()
        self._begun = True
        for journal in self.journals.values():
            try:
                journal.read_anew()
            except OSError as error:
                raise journal.unavailable(error) from error
        self._catch_up()

    def _sure(self, look: Callable[[], T]) -> T:
        """What there is to see, from the files alone if the index fails."""
        try:
            return look()
        except UnusableIndexError:
            self._read_files()
            if not self._durable:
                self.look()
            return look()

    def keep_index(self) -> None:
        """Write a new index if much was read beyond the old one. Call it under the lock, when all is durable."""
        if self._index is None or not self._index.due(self.journals, self._taken):
            return
        try:
            if self._index.renew(self.journals, self._taken, self._names, self._references):
                self._take_up()
        except UnusableIndexError:
            self._read_files()

    def _told(self, owner: Owner, refs: Mapping[str, int]) -> None:
        kind, key, task = owner
        if key and kind != "step":  # a flow's root is no key of a command
            self._names.told(key, task)
        if refs:
            self._references.told(owner, refs)

    def look(self) -> None:
        """Read all without the lock: a store may go on after it was read, and before one that refers to it is read.

        Therefore a record is missing only if it still is when all stores are read for the second time.
        """
        self.refresh()
        suspected = self._references.seen()
        self.refresh()
        self._sure(lambda: self._references.confirm(self._of, suspected))

    def append(self, record: Record) -> None:
        """Record it, durable after `commit`. Raises LedgerUnavailableError; it may then be there or not."""
        self._readings.clear()
        journal = self._of[record.kind]
        try:
            refs = self._sure(lambda: self._refs(record))
            journal.append(record, refs, self._references.furthest[journal.store])
        except OSError as error:
            raise journal.unavailable(error) from error
        self._references.forget_waiting()  # what was written just now refers to what is known already
        self._open_keys.add(record.key)
        self._open_tasks.add(record.task)

    def open_elsewhere(self, record: Record) -> bool:
        """Whether another store than this record's has something that is not durable yet.

        Stores are made durable one after the other, in the order of the records: else a crash could keep a record and
        lose an earlier one in another store, that the later one has seen.
        """
        journal = self._of[record.kind]
        return any(other.uncommitted for other in self.journals.values() if other is not journal)

    def open_related(self, record: Record) -> bool:
        """Whether a record of its key or task, on which it may rest, is not durable yet.

        A disk may keep the later sectors of a file and lose earlier ones, so two such records do not share a sync.
        """
        return record.task in self._open_tasks or (record.key != "" and record.key in self._open_keys)

    def commit(self) -> None:
        """Make what was appended durable. Raises LedgerUnavailableError."""
        for journal in self.journals.values():
            if journal.uncommitted:
                try:
                    journal.commit()
                except OSError as error:
                    raise journal.unavailable(error) from error
        self._open_keys.clear()
        self._open_tasks.clear()

    def _refs(self, record: Record) -> dict[str, int]:
        kind, refs, unmet = record.kind, dict[str, int](), self._references.unmet
        for other, journal in self._of.items():
            if other == kind:
                continue
            where = (other, record.task if other == "lease" else record.key)
            newest = journal.entries.last(where)
            if unmet and other != "attempt":
                newest = max(newest, *unmet.get(where, ()), 0)
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
        return self._sure(lambda: self._names.task_of(key))

    def keys(self, task: str) -> Iterable[str]:
        return self._sure(lambda: self._names.keys(task))

    def all_keys(self) -> Iterable[str]:
        return self._sure(lambda: self._names.all_keys())

    def all_tasks(self) -> Iterable[str]:
        """Every task with a record."""
        return self._sure(lambda: dict.fromkeys([*self._names.all_tasks(), *self._of["lease"].places("lease")]))

    def roots(self) -> Iterable[str]:
        """Every flow with a record."""
        return self._sure(lambda: dict.fromkeys(self._of["step"].places("step")))

    def lost(self, store: str) -> list[tuple[Place, set[int]]]:
        """The records that other stores have seen and that are not there: whose, and their numbers."""
        return [(where, seqs) for where, seqs in self._references.unmet.items() if self._of[where[0]].store == store]

    def gaps(self, store: str) -> list[tuple[int, int]]:
        """First and last number of records that are missing, whoever tells of them."""
        return self._references.gaps(self.journals[store])

    def _reading(self, where: Place, most: int = 0) -> Reading[Any]:
        reading = self._readings.get(where)
        if reading is None:
            if len(self._readings) == _MOST_READINGS:
                self._readings.clear()
            reading = self._sure(lambda: self._read_anew(where, most))
            self._readings[where] = reading
        return reading

    def _read_anew(self, where: Place, most: int) -> Reading[Any]:
        journal = self._of[where[0]]
        if where in self._references.unmet and where[0] != "attempt":
            entries = self._with_lost(journal, where)
            count = len(entries)
        else:
            count, entries = journal.entries.newest(where, most)
        if not count:
            return _NOTHING
        health, records = _read(journal, where, entries[-most:])
        if health is not Health.INTACT and most and count > most:
            health, records = _read(journal, where, self._with_lost(journal, where))
        return Reading(records, count, health, journal.name + entries[-1].where)

    def entries(self, where: Place) -> Sequence[Entry]:
        """Where the records of a place are, those included that other stores have seen and that are gone."""
        journal = self._of[where[0]]
        return self._sure(lambda: self._with_lost(journal, where))

    def _with_lost(self, journal: Journal, where: Place) -> Sequence[Entry]:
        """The entries and, for each record that is only known from other stores, what is in its place."""
        entries, lost = journal.entries.of(where), self._references.unmet.get(where)
        if not lost:
            return entries
        there = {entry.seq: entry for entry in (*journal.unowned, *journal.pending)}
        instead = [there.get(seq) or Entry(seq, 0, 0, 0, Health.CORRUPT) for seq in lost]
        return sorted([*entries, *instead])

    def stray(self) -> tuple[Finding, ...]:
        found: list[Finding] = []
        for journal in self.journals.values():
            if journal.unowned or journal.pending or self._references.unmet or self._references.gaps(journal):
                found += self._strays(journal)
        return tuple(found)

    def _strays(self, journal: Journal) -> list[Finding]:
        unmet = self._references.unmet
        known = {s for (kind, _), lost in unmet.items() if self._of[kind] is journal for s in lost}
        owned = _NO_NUMBERS if journal.store == "attempts" else known
        lines = [entry for entry in (*journal.unowned, *journal.pending) if entry.seq not in owned]
        found = [_stray(journal, entry.health, entry.where) for entry in lines]
        gone = [(a, b) for a, b in self._references.gaps(journal) if sum(a <= seq <= b for seq in owned) <= b - a]
        found += [_stray(journal, Health.CORRUPT, f" (records {a} to {b}, missing)") for a, b in gone]
        if journal.store == "attempts":
            shown = {entry.seq for entry in lines}
            rest = [s for s in sorted(known - shown) if not any(a <= s <= b for a, b in gone)]
            found += [_stray(journal, Health.CORRUPT, f" (record {s}, missing)") for s in rest]
        return found


def _read(journal: Journal, where: Place, entries: Sequence[Entry]) -> tuple[Health, tuple[Record, ...]]:
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
