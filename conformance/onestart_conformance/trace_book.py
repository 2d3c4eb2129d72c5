"""What is known of each key and task of a log, with memory for those that were in use last; the others are on disk."""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from attrs import define, field

from onestart_conformance.monitor import Strand
from onestart_model.expression import Value

IN_MEMORY = 8_000
UNKNOWN = ""  # the command that a key is bound to, if no event tells which


class BookError(Exception):
    """There is no room on disk for what must be remembered."""


class StrandRecord(NamedTuple):
    """A strand that has begun and not answered. seen: the record number of its last event.

    dropped: it told that it ended without knowing what its last step came to.
    """

    key: str
    serving: bool = False
    stage: Value = "IDLE"
    held: int = 0
    unconfirmed: Value = False
    unapproved: Value = False
    token: int = 0
    ruled: bool | None = None
    seen: int = 0
    dropped: bool = False


class Pending(NamedTuple):
    """A step that a strand may have taken, untold, before another one made it impossible.

    It matters only as long as nothing else has changed what it would have: `before` becomes `after`.
    """

    strand: Strand
    action: str
    key: str
    seen: int
    before: tuple[Value, ...]
    after: tuple[Value, ...]


class Need(NamedTuple):
    """An event that fits only with an assumption: where it is, its number, and why it does not fit without."""

    where: str
    number: int
    what: str
    guard: str
    protections: tuple[str, ...]
    promise: str


class Owed(NamedTuple):
    """A step that was assumed of a strand, which must not go on with another one; or damage, which must be told of.

    instead: what is the case if it was not so.
    """

    action: str
    key: str
    instead: str
    need: Need


@define
class KeyRecord:
    """cells: the model's values of the key. changed: the number of the record that changed them last.

    bound, unnamed, result, result_for, created: as the monitor has them.
    """

    name: str
    task: str
    cells: tuple[Value, ...]
    changed: int = 0
    bound: str | None = None
    result: Any = None
    result_for: str | None = None
    created: bool = False
    unnamed: bool = False

    def copy(self) -> KeyRecord:
        said = (self.bound, self.result, self.result_for, self.created, self.unnamed)
        return KeyRecord(self.name, self.task, self.cells, self.changed, *said)


@define
class TaskRecord:
    """holder to barrier: the model's values of the task. restless: keys that are not quiet, by name.

    suspected: damage that was assumed. last: the event before, in short.
    """

    name: str
    holder: str | None = None
    token: int = 0
    lease_damaged: Value = False
    barrier: int = 0
    ends: float | None = None
    issued: int = 0
    strands: dict[Strand, StrandRecord] = field(factory=dict)
    restless: list[str] = field(factory=list)
    pending: list[Pending] = field(factory=list)
    owed: dict[Strand, Owed] = field(factory=dict)
    suspected: list[Owed] = field(factory=list)
    last: tuple[Any, ...] = ()

    def copy(self) -> TaskRecord:
        fixed = (self.name, self.holder, self.token, self.lease_damaged, self.barrier, self.ends, self.issued)
        strands, restless, pending, owed = dict(self.strands), self.restless[:], self.pending[:], dict(self.owed)
        return TaskRecord(*fixed, strands, restless, pending, owed, self.suspected[:], self.last)

    @property
    def lease(self) -> tuple[Value, ...]:
        return self.holder, self.token, self.lease_damaged


def _key_row(key: KeyRecord) -> list[Any]:
    said = (key.bound, key.result, key.result_for, key.created, key.unnamed)
    return [key.name, key.task, key.cells, key.changed, *said]


def _key_of(row: list[Any]) -> KeyRecord:
    name, task, cells, *rest = row
    return KeyRecord(name, task, tuple(cells), *rest)


def _task_row(task: TaskRecord) -> list[Any]:
    strands = [(*strand, *record) for strand, record in task.strands.items()]
    owed = [(*strand, record) for strand, record in task.owed.items()]
    fixed = (task.name, task.holder, task.token, task.lease_damaged, task.barrier, task.ends, task.issued)
    return [*fixed, strands, task.restless, task.pending, owed, task.suspected, task.last]


def _task_of(row: list[Any]) -> TaskRecord:
    name, holder, token, damaged, barrier, ends, issued, strands, restless, pending, owed, suspected, last = row
    return TaskRecord(
        *(name, holder, token, damaged, barrier, ends, issued),
        {(p, n): StrandRecord(*rest) for p, n, *rest in strands},
        restless,
        [Pending((p[0], p[1]), a, k, s, tuple(b), tuple(c)) for p, a, k, s, b, c in pending],
        {(p, n): _owed_of(each) for p, n, each in owed},
        [_owed_of(each) for each in suspected],
        tuple(last),
    )


def _owed_of(row: list[Any]) -> Owed:
    action, key, instead, (where, number, what, guard, protections, promise) = row
    return Owed(action, key, instead, Need(where, number, what, guard, tuple(protections), promise))


class Book:
    """Records by name. in_memory: how many of them are kept at hand."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self.counts = {"key": 0, "task": 0, "process": 0}
        self._most = in_memory
        self._keys: OrderedDict[str, KeyRecord] = OrderedDict()
        self._tasks: OrderedDict[str, TaskRecord] = OrderedDict()
        self._processes: OrderedDict[str, None] = OrderedDict()
        self._spilled: set[str] = set()
        with _complaining():
            self._disk = sqlite3.connect("", isolation_level=None)
            for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -4000"):
                self._disk.execute(f"PRAGMA {setting}")
            for table in self.counts:
                self._disk.execute(f"CREATE TABLE {table} (name TEXT PRIMARY KEY, row TEXT) WITHOUT ROWID")

    def close(self) -> None:
        self._disk.close()

    def key(self, name: str) -> KeyRecord | None:
        """What is known of a key, None if nothing is."""
        found = self._keys.get(name)
        if found is not None:
            self._keys.move_to_end(name)
            return found
        row = self._row("key", name)
        if row is None:
            return None
        found = self._keys[name] = _key_of(row)
        self._spill("key", self._keys, _key_row)
        return found

    def keep_key(self, key: KeyRecord, *, new: bool = False) -> None:
        """Keep a key that is new, or a copy that takes the place of what was known."""
        self.counts["key"] += new
        self._keys[key.name] = key
        self._spill("key", self._keys, _key_row)

    def task(self, name: str) -> TaskRecord:
        """What is known of a task; a new record if nothing is."""
        found = self._tasks.get(name)
        if found is not None:
            self._tasks.move_to_end(name)
            return found
        row = self._row("task", name)
        if row is None:
            self.counts["task"] += 1
        found = self._tasks[name] = TaskRecord(name) if row is None else _task_of(row)
        self._spill("task", self._tasks, _task_row)
        return found

    def keep_task(self, task: TaskRecord) -> None:
        """Keep a copy that takes the place of what was known."""
        self._tasks[task.name] = task

    def see(self, process: str) -> None:
        """A process was heard of."""
        if process in self._processes:
            self._processes.move_to_end(process)
            return
        if self._row("process", process) is None:
            self.counts["process"] += 1
        self._processes[process] = None
        self._spill("process", self._processes, lambda _: [])

    @property
    def processes(self) -> Iterator[str]:
        """The processes that were heard of last, the last one first."""
        return reversed(self._processes)

    def _row(self, table: str, name: str) -> list[Any] | None:
        if table not in self._spilled:
            return None
        with _complaining():
            found = self._disk.execute(f"SELECT row FROM {table} WHERE name = ?", (name,)).fetchone()  # noqa: S608
        return None if found is None else json.loads(found[0])

    def _spill(self, table: str, records: OrderedDict[str, Any], row: Callable[[Any], Any]) -> None:
        """Write the records that were not used for the longest time, a tenth of all at once."""
        if len(records) <= self._most:
            return
        oldest = [records.popitem(last=False) for _ in range(max(self._most // 10, 1))]
        rows = [(name, json.dumps(row(record), separators=(",", ":"))) for name, record in oldest]
        with _complaining():
            self._disk.execute("BEGIN")
            self._disk.executemany(f"REPLACE INTO {table} VALUES (?, ?)", rows)  # noqa: S608
            self._disk.execute("COMMIT")
        self._spilled.add(table)


@contextmanager
def _complaining() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise BookError(f"what must be remembered cannot be kept in a temporary file: {error}") from None
