"""Where whose records are, and which keys and tasks there are: what an index covers, and what was read since."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from onestart.health import Health
from onestart.lines import Place

_NONE: tuple[Entry, ...] = ()


class Entry(NamedTuple):
    """Where a record's line is. length: with its newline, 0 if it is gone. health: at best; it may read worse now."""

    seq: int
    offset: int
    length: int
    number: int
    health: Health

    @property
    def where(self) -> str:
        return f":{self.number}" if self.length else f" (record {self.seq}, missing)"


class Covered(Protocol):
    """What is known of the lines that an index covers. All methods raise UnusableIndexError."""

    def entries(self, where: Place) -> Sequence[Entry]:
        """Where the records of a place are, by number."""

    def task_of(self, key: str) -> str | None: ...

    def keys(self, task: str) -> Sequence[str]: ...

    def all_keys(self) -> Iterator[str]: ...

    def all_tasks(self) -> Iterator[str]:
        """Every task that a key is of."""

    def names(self, kind: str) -> Iterator[str]:
        """The names of all places of a kind, leases or steps; one may come several times."""


class Places:
    """Where the records of one store are, by kind and key (leases: by task)."""

    def __init__(self, covered: Covered | None = None) -> None:
        self.new: dict[Place, list[Entry]] = {}
        self._covered = covered

    def own(self, where: Place, entry: Entry, raw: bytes | None) -> None:
        """A record of this place was found. raw: its line, if that was just read."""
        entries = self.new.get(where)
        if entries is None:
            self.new[where] = [entry]
        elif entries[-1] < entry:
            entries.append(entry)
        else:
            insort(entries, entry)

    def of(self, where: Place) -> Sequence[Entry]:
        """All of a place, by number."""
        new = self.new.get(where, _NONE)
        covered = self._covered.entries(where) if self._covered is not None else _NONE
        if not covered or not new:
            return covered or new
        return [*covered, *new] if covered[-1] < new[0] else sorted([*covered, *new])

    def newest(self, where: Place, most: int) -> tuple[int, Sequence[Entry]]:
        """How many there are, and the last ones of them, at most so many."""
        if self._covered is None:
            entries: Sequence[Entry] = self.new.get(where, _NONE)
            return len(entries), entries[-most:]
        covered, new = self._covered.entries(where), self.new.get(where, _NONE)
        if covered and new and not covered[-1] < new[0]:
            return len(covered) + len(new), self.of(where)[-most:]
        return len(covered) + len(new), [*covered[-most:], *new[-most:]][-most:]

    def last(self, where: Place) -> int:
        """The number of the last one, 0 if there is none."""
        new = self.new.get(where)
        last = new[-1].seq if new else 0
        covered = _NONE if self._covered is None else self._covered.entries(where)
        return max(last, covered[-1].seq) if covered else last

    def has(self, where: Place, seq: int) -> bool:
        """Whether a line of this number is known to be there."""
        if any(entry.seq == seq for entry in reversed(self.new.get(where, _NONE))):
            return True
        return self._covered is not None and any(entry.seq == seq for entry in self._covered.entries(where))

    def names(self, kind: str) -> Iterator[str]:
        """Every key (leases: task) with a record of this kind. Of what an index covers, leases and steps alone."""
        if self._covered is not None:
            yield from self._covered.names(kind)
        yield from (name for of, name in self.new if of == kind)


class Names:
    """Keys by task, and tasks by key, in the order in which records told of them."""

    def __init__(self, covered: Covered | None = None) -> None:
        self.new: dict[str, dict[str, None]] = {}
        self.new_tasks: dict[str, str] = {}
        self._covered = covered

    def told(self, key: str, task: str) -> None:
        keys = self.new.setdefault(task, {})
        if key not in keys:
            keys[key] = None
            self.new_tasks.setdefault(key, task)

    def task_of(self, key: str) -> str | None:
        """The first task that the key was found with."""
        covered = None if self._covered is None else self._covered.task_of(key)
        return self.new_tasks.get(key) if covered is None else covered

    def keys(self, task: str) -> Iterable[str]:
        new = self.new.get(task, {}).keys()
        covered = () if self._covered is None else self._covered.keys(task)
        return dict.fromkeys([*covered, *new]).keys() if covered else new

    def all_keys(self) -> Iterable[str]:
        if self._covered is None:
            return self.new_tasks.keys()
        return dict.fromkeys([*self._covered.all_keys(), *self.new_tasks])

    def all_tasks(self) -> Iterable[str]:
        return self.new.keys() if self._covered is None else [*self._covered.all_tasks(), *self.new]
