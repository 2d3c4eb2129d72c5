"""A view of rows: what each store shows of a key, judged by what the others had seen of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from onestart.group_commit import Step as Pending
from onestart.health import Finding, Health, Reading
from onestart.lines import Line, Place, place
from onestart.records import KINDS, Approval, Attempt, Lease, Note, Receipt, Record, Session, Step, store_of
from onestart.sql.rows import Row, Rows, read, row_of

_NOTHING: Reading[Any] = Reading((), 0, Health.ABSENT)
_MOST_LEASES = 32
_AT_ONCE = 100


class _Read(NamedTuple):
    """A row that was read: its number among those of its place, and what its line says."""

    n: int
    line: Line


class _Known(NamedTuple):
    """The rows of a key, and for each kind the number of the newest record that any of them has seen."""

    rows: dict[str, list[_Read]]
    seen: dict[str, int]
    task: str | None

    def last(self, kind: str, *, lost: bool = True) -> int:
        """The number of the newest record. lost: also one that only others have seen; an attempt record that is lost is
        not spoken of again.
        """
        rows = self.rows.get(kind)
        there = rows[-1].n if rows else 0
        return max(there, self.seen.get(kind, 0)) if lost else there


class RowsView:
    """A `View` of one moment. Remembers what it has read until it is told that another step begins.

    A record that others have seen, and that is not there, reads as damaged. An attempt record that is gone reads as
    absent instead, and is reported as damage that may be anybody's.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.forget()

    def forget(self) -> None:
        """Another step begins, or a record was added."""
        self._known: dict[str, _Known] = {}
        self._readings: dict[Place, Reading[Any]] = {}

    @property
    def order(self) -> int:
        return self._rows.order

    @property
    def now(self) -> float | None:
        return self._rows.now

    def receipt(self, key: str) -> Reading[Receipt]:
        return self._of_key("receipt", key)

    def attempt(self, key: str) -> Reading[Attempt]:
        return self._of_key("attempt", key)

    def session(self, key: str) -> Reading[Session]:
        return self._of_key("session", key)

    def approval(self, key: str) -> Reading[Approval]:
        return self._of_key("approval", key)

    def note(self, key: str) -> Reading[Note]:
        return self._of_key("note", key)

    def lease(self, task: str) -> Reading[Lease]:
        """All that is known of a task's lease; of more than 32 records the newest ones, while the newest is intact."""
        where = ("lease", task)
        if where not in self._readings:
            seen = self._rows.lease_seen(task)
            reading = _reading(where, self._place(where, _MOST_LEASES), seen)
            if reading.health.degraded and reading.count > _MOST_LEASES:
                reading = _reading(where, self._place(where), seen)
            self._readings[where] = reading
        return self._readings[where]

    def steps(self, root: str) -> Reading[Step]:
        where = ("step", root)
        if where not in self._readings:
            self._readings[where] = _reading(where, self._place(where), self._of(root).seen.get("step", 0))
        return self._readings[where]

    def _place(self, where: Place, most: int | None = None) -> list[_Read]:
        return [_Read(row.n, read(row)) for row in self._rows.of_place(where, most)]

    def task_of(self, key: str) -> str | None:
        return self._of(key).task

    def keys(self, task: str) -> Iterable[str]:
        found = iter(self._rows.keys_of(task))
        while some := list(islice(found, _AT_ONCE)):
            self._load([key for key in some if key not in self._known])
            yield from some

    def all_keys(self) -> Iterable[str]:
        return self._rows.all_keys()

    def all_tasks(self) -> Iterable[str]:
        """Every task with a record."""
        return self._rows.all_tasks()

    def roots(self) -> Iterable[str]:
        """Every flow with a record."""
        return self._rows.roots()

    def stray(self) -> tuple[Finding, ...]:
        return tuple(finding for key, known in self._known.items() for finding in _lost_attempts(key, known))

    def decide(self, steps: Iterable[Pending[Any]]) -> None:
        """Let each step decide on what those before it have appended, and append what it records."""
        for step in steps:
            self.forget()
            record = step.decide(self)
            if record is not None:
                self.append(record)

    def append(self, record: Record) -> None:
        """Record it, durable with the transaction."""
        n = self._count(place(record.kind, record.key, record.task)) + 1
        self._rows.insert(row_of(record, order=self._rows.order + 1, n=n, refs=self._refs(record)))
        self.forget()

    def _refs(self, record: Record) -> dict[str, int]:
        """The number of the newest record of each other kind that concerns the same key, or task."""
        known, refs = self._of(record.key), dict[str, int]()
        for kind in KINDS:
            if kind == record.kind:
                continue
            n = self._last_lease(record.task) if kind == "lease" else known.last(kind, lost=kind != "attempt")
            if n:
                refs[kind] = n
        return refs

    def _last_lease(self, task: str) -> int:
        """Not those that only others have seen, if there is no telling yet: they still tell."""
        where = ("lease", task)
        reading = self._readings.get(where)
        return self._rows.last(where) if reading is None else reading.count

    def _count(self, where: Place) -> int:
        """How many records there are, legible or not, lost ones too."""
        kind, name = where
        if kind == "lease":
            return self.lease(name).count
        return self._of(name).last(kind)

    def _of(self, key: str) -> _Known:
        if key not in self._known:
            self._load([key])
        return self._known[key]

    def _load(self, keys: Sequence[str]) -> None:
        rows = list(self._rows.of_keys(keys)) if keys else []
        found: dict[str, list[Row]] = {key: [] for key in keys}
        if not all(_found_by(row) in found for row in rows):  # pages are damaged, so each key gets what is found by it
            found = {key: list(self._rows.of_keys([key])) for key in keys}
            rows = []
        for row in rows:
            found[_found_by(row)].append(row)
        self._known |= {key: _known(rows) for key, rows in found.items()}

    def _of_key(self, kind: str, key: str) -> Reading[Any]:
        where = (kind, key)
        if where not in self._readings:
            known = self._of(key)
            seen = 0 if kind == "attempt" else known.seen.get(kind, 0)
            self._readings[where] = _reading(where, known.rows.get(kind, []), seen)
        return self._readings[where]


def _reading(where: Place, rows: Sequence[_Read], seen: int) -> Reading[Any]:
    """seen: the number of the newest record that others have seen."""
    if not rows and not seen:
        return _NOTHING
    records = tuple(line.record for _, line in rows if line.record is not None)
    last, health = (rows[-1].n, rows[-1].line.health) if rows else (0, Health.CORRUPT)
    if seen > last:
        return Reading(records, seen, Health.CORRUPT, f"{_spot(*where, seen)}, missing")
    return Reading(records, last, health, _spot(*where, last))


def _found_by(row: Row) -> str:
    """The key that a row is found by."""
    return row.key if row.kind == "lease" else row.name


def _known(rows: Iterable[Row]) -> _Known:
    of_kind: dict[str, list[_Read]] = {}
    seen: dict[str, int] = {}
    task: str | None = None
    for row in rows:
        line = read(row)
        of_kind.setdefault(row.kind, []).append(_Read(row.n, line))
        if row.kind != "step" and task is None:
            task = row.task
        if line.health is Health.INTACT:
            for kind, n in line.refs.items():
                seen[kind] = max(seen.get(kind, 0), n)
    return _Known(of_kind, seen, task)


def _lost_attempts(key: str, known: _Known) -> Iterator[Finding]:
    rows, seen = known.rows.get("attempt"), known.seen.get("attempt", 0)
    if seen > (rows[-1].n if rows else 0):
        yield Finding("attempts", Health.CORRUPT, f"{_spot('attempt', key, seen)}, missing", concerns=False)


def _spot(kind: str, name: str, n: int) -> str:
    """Where a row is, for a person: the store, and the record's number among those of its kind and name."""
    shown = name if name.isprintable() else ascii(name)[1:-1]
    return f"{store_of(kind)}:{kind} {n} of {shown}"
