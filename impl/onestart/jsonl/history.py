"""The files of a ledger as a history, and a history as files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from attrs import define, field

from onestart.health import Health
from onestart.history import History, Kept
from onestart.jsonl.files import Files
from onestart.jsonl.journal import Journal
from onestart.jsonl.places import Entry
from onestart.jsonl.stores import Stores
from onestart.lines import Line, Owner, Place, encode, encode_lost, place
from onestart.records import STORES, store_of

_CHUNK = 1 << 20


class FilesHistory:
    """What the files held when the stores were looked at, without an index. Keeps a number for each record."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        found = (where for journal in stores.journals.values() for where in journal.entries.new)
        self._places = {where: self._all(where) for where in found}
        for store in STORES:
            for where, _ in stores.lost(store):
                self._places.setdefault(where, self._all(where))
        self._owners: dict[Place, Owner] = {}

    def _all(self, where: Place) -> Sequence[Entry]:
        """Every record of a place, also those that are only known from other stores."""
        return self._stores.entries(where)

    def records(self, store: str) -> Iterator[Kept]:
        journal = self._stores.journals[store]
        found = [
            (entry.seq, n, where)
            for where, entries in self._places.items()
            if where[0] in STORES[store]
            for n, entry in enumerate(entries, 1)
        ]
        for _, n, where in sorted(found):
            yield self._kept(journal, where, n)

    def _kept(self, journal: Journal, where: Place, n: int) -> Kept:
        entry = self._places[where][n - 1]
        line = journal.read(entry, where)
        spot = journal.name + entry.where
        if line.record is None and not line.lost:
            return Kept(self._owner(where, line.owner), n, None, {}, line.health, spot)
        return Kept(line.owner, n, line.record, self._numbered(line.owner, line.refs), line.health, spot, line.lost)

    def _owner(self, where: Place, shown: Owner) -> Owner:
        """Whose a record is that cannot be read: what its head shows, or what is known of its place."""
        kind, name = where
        if shown[0] and place(*shown) == where:
            return shown
        if kind == "lease":
            return (kind, "", name)
        others = (line.task for entry in self._places[where] if (line := self._line(where, entry)).task)
        return (kind, name, self._stores.task_of(name) or next(others, ""))

    def _line(self, where: Place, entry: Entry) -> Line:
        return self._stores.journals[store_of(where[0])].read(entry, where)

    def _numbered(self, owner: Owner, refs: Mapping[str, int]) -> dict[str, int]:
        """References by number in the place instead of in the file."""
        found: dict[str, int] = {}
        for kind, seq in refs.items():
            entries = self._places.get(place(kind, *owner[1:]), [])
            n = bisect_right(entries, seq, key=attrgetter("seq"))
            if n:
                found[kind] = n
        return found

    def strays(self, store: str) -> Iterator[tuple[Health, str]]:
        journal = self._stores.journals[store]
        known = {entry.seq for where, entries in self._places.items() if where[0] in STORES[store] for entry in entries}
        for entry in (*journal.unowned, *journal.pending):
            if entry.seq not in known:
                yield entry.health, journal.name + entry.where
        for first, last in self._stores.gaps(store):
            if not known.issuperset(range(first, last + 1)):
                yield Health.CORRUPT, f"{journal.name} (records {first} to {last}, missing)"


@define(eq=False)
class FilesWriter:
    """A folder of JSON lines that is being filled; the files are made durable by `finish`.

    Records are numbered store by store before they are written, because they refer to each other across stores.
    """

    files: Files
    folder: str
    numbers: Mapping[tuple[Place, int], int]
    _pending: dict[str, bytearray] = field(factory=dict)
    _last: dict[str, tuple[int, Owner | None]] = field(factory=dict)

    def add(self, store: str, kept: Kept) -> None:
        seq, prev = self._last.get(store, (0, None))
        seq += 1
        if kept.record is None:
            line = encode_lost(kept.owner, seq, prev)
        else:
            line = encode(kept.record, seq, prev, self._refs(kept))
        self._last[store] = (seq, kept.owner)
        pending = self._pending.setdefault(store, bytearray())
        pending += line
        if len(pending) > _CHUNK:
            self._write(store)

    def finish(self) -> None:
        for store in list(self._pending):
            self._write(store)
            self.files.sync(f"{self.folder}/{store}.jsonl")

    def _refs(self, kept: Kept) -> dict[str, int]:
        of = {kind: place(kind, *kept.owner[1:]) for kind in kept.refs}
        found = {kind: self.numbers.get((of[kind], n)) for kind, n in kept.refs.items()}
        return {kind: number for kind, number in found.items() if number}

    def _write(self, store: str) -> None:
        self.files.append(f"{self.folder}/{store}.jsonl", bytes(self._pending[store]))
        self._pending[store].clear()


def numbered(history: History) -> dict[tuple[Place, int], int]:
    """The number that each record gets in the file of its store."""
    return {(kept.place, kept.n): seq for store in STORES for seq, kept in enumerate(history.records(store), 1)}
