"""A ledger in memory: for tests, and for work that need not outlive its process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, TypeVar

from onestart.health import Finding, Health, Reading
from onestart.ports import View
from onestart.records import Approval, Attempt, Lease, Note, Receipt, Record, Session, Step

T = TypeVar("T")

_NOTHING: Reading[Any] = Reading((), 0, Health.ABSENT)
_MOST_LEASES = 32


class MemoryLedger:
    """A `Ledger` whose records are gone when it is. records: what it holds at first, in the order of their writing."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._lock = Lock()
        self._view = MemoryView()
        for record in records:
            self._view.append(record)

    @property
    def records(self) -> tuple[Record, ...]:
        """Everything that was written, oldest first."""
        return tuple(self._view.records)

    async def step(self, decide: Callable[[View], tuple[Record | None, T]]) -> T:
        """See `Ledger.step`."""
        with self._lock:
            record, answer = decide(self._view)
            if record is not None:
                self._view.append(record)
        return answer


class MemoryView:
    """A `View` of records in memory, where nothing is ever damaged."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._of: dict[tuple[str, str], list[Record]] = {}
        self._keys: dict[str, dict[str, None]] = {}
        self._task_of: dict[str, str] = {}

    def append(self, record: Record) -> None:
        self.records.append(record)
        name = record.task if record.kind == "lease" else record.key
        self._of.setdefault((record.kind, name), []).append(record)
        keys = self._keys.setdefault(record.task, {})
        if record.key and record.kind != "step":  # a flow's root is no key of a command
            keys[record.key] = None
            self._task_of.setdefault(record.key, record.task)

    @property
    def order(self) -> int:
        return len(self.records)

    @property
    def now(self) -> None:
        return None

    def receipt(self, key: str) -> Reading[Receipt]:
        return self._reading("receipt", key)

    def attempt(self, key: str) -> Reading[Attempt]:
        return self._reading("attempt", key)

    def session(self, key: str) -> Reading[Session]:
        return self._reading("session", key)

    def approval(self, key: str) -> Reading[Approval]:
        return self._reading("approval", key)

    def lease(self, task: str) -> Reading[Lease]:
        return self._reading("lease", task)

    def steps(self, root: str) -> Reading[Step]:
        return self._reading("step", root)

    def note(self, key: str) -> Reading[Note]:
        return self._reading("note", key)

    def task_of(self, key: str) -> str | None:
        return self._task_of.get(key)

    def keys(self, task: str) -> Iterable[str]:
        return self._keys.get(task, {}).keys()

    def all_keys(self) -> Iterable[str]:
        return self._task_of.keys()

    def stray(self) -> tuple[Finding, ...]:
        return ()

    def _reading(self, kind: str, name: str) -> Reading[Any]:
        records = self._of.get((kind, name))
        if not records:
            return _NOTHING
        newest = records[-_MOST_LEASES:] if kind == "lease" else records
        return Reading(tuple(newest), len(records), Health.INTACT, f"{kind} {len(records)}")
