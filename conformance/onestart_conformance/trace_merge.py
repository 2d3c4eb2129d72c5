"""Several event logs as one sequence: in the order of the ledger's records, as far as it is known.

A step that wrote a record has a number of its own. A read carries the number of the last record that it saw, and so do
a start and a look-up, which may have happened at any time between two steps of their strand; they are taken as early as
possible, which is right because the executor refuses whoever comes later with an older token.
"""

from __future__ import annotations

import heapq
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from attrs import define, field

from onestart import Event
from onestart.eventlog import EventLogError, EventReader, Header, read_events
from onestart_conformance.trace_flows import ENTRIES, LEASES

WINDOW = 1000
MOST_MISSING = 1 << 16
MOST_OPEN = 200
MOST_USED = 100

WRITES = frozenset(
    (
        *("accept", "refuse", "cancel", "report_closed", "report_dispatched"),
        *("offer", "claim", "intend", "note", "record", "give_up", "renew", "withdraw"),
        *("cancel_session", "reconcile", "release", "settle", "repair_lease"),
        *LEASES,
        *ENTRIES,
    )
)

OUTSIDE = frozenset(("start", "look_up"))
UNNUMBERED = OUTSIDE | {"ruled", "renew", "stopped", "dropped"}
AFTER_FAILURE = OUTSIDE | {"ruled", "stopped", "dropped"}  # what a process may tell whose ledger has failed

Key = tuple[int, int, int, int]


class Told(NamedTuple):
    """An event and where it was told."""

    event: Event
    path: str
    line: int

    @property
    def where(self) -> str:
        return place(self.path, self.line)


def place(path: str, line: int) -> str:
    """Where something is, as editors understand it."""
    return f"{path if path.isprintable() else ascii(path)}:{line}"


@define
class Numbers:
    """Which record numbers no event tells of. floor: up to there nothing is known. fell: how often the count fell.

    forgotten: up to there nobody knows which were taken. used: those of steps that were assumed.
    """

    top: int = 0
    floor: int = 0
    forgotten: int = 0
    fell: int = 0
    missing: list[int] = field(factory=list)
    used: list[int] = field(factory=list)

    def take(self, number: int, *, wrote: bool, sure: bool = True) -> bool:
        """Take note of an event's number. False if it was taken before, so the ledger must have lost records.

        sure: whether an event that wrote is known to have written.
        """
        if number > self.top:
            self._jump(number, wrote=wrote)
            return True
        if not wrote:
            return True
        at = bisect_left(self.missing, number)
        if self.missing[at : at + 1] == [number]:
            del self.missing[at]
            return True
        if number <= self.forgotten or not sure:
            return True
        if number in self.used:
            self.used.remove(number)
            return True
        self.fall(number)
        return False

    def fall(self, number: int) -> None:
        """The ledger has lost records, so numbers begin anew."""
        self.missing.clear()
        self.floor = max(self.floor, self.top)
        self.top = number
        self.forgotten = 0
        self.fell += 1

    def _jump(self, number: int, *, wrote: bool) -> None:
        if number - self.top > MOST_MISSING:
            self.missing.clear()
            self.floor = self.forgotten = number
        elif number > self.top + wrote:
            self.missing.extend(range(self.top + 1, number + 1 - wrote))
        self.top = number
        if len(self.missing) > MOST_MISSING:
            half = len(self.missing) // 2
            self.floor = self.forgotten = self.missing[half - 1]
            del self.missing[:half]

    def between(self, low: int, high: int) -> bool:
        """Whether a record above `low`, up to `high`, may be one that no event tells of."""
        at = bisect_right(self.missing, low)
        unknown = low < self.floor or (self.fell > 0 and (low == self.floor or high < low))
        return unknown or (at < len(self.missing) and self.missing[at] <= high)

    def use(self, low: int, high: int) -> None:
        """Such a record is accounted for, though its event may still come."""
        at = bisect_right(self.missing, low)
        if at < len(self.missing) and self.missing[at] <= high:
            self.used = [*self.used[-MOST_USED:], self.missing.pop(at)]


class _Source:
    """One log, with the event that is next. Between its first event and its turn the file is closed."""

    def __init__(self, path: str, opened: Callable[[str], None]) -> None:
        self.reader: EventReader = read_events(path)
        self._opened = opened
        self.head: Told | None = None
        self.advance()
        self.reader.close()

    def __iter__(self) -> Iterator[Told]:
        while self.head is not None:
            yield self.head
            self.advance()

    def advance(self) -> None:
        """Go on to the next event."""
        reader = self.reader
        for item in reader:
            if not isinstance(item, Header):
                self.head = Told(item, reader.path, reader.line)
                return
            if item.lost:
                reader.close()
                what = f"{item.lost} events could not be written there, so nothing can be said"
                raise EventLogError(f"{place(reader.path, reader.line)}: {what}")
            self._opened(item.process)
        self.head = None


class Merge:
    """Iterates over the events of all logs, with memory for a window of them.

    opened: is told of the process of each header. window: how many events of all logs a line may come too late.
    Raises EventLogError, also at once.
    """

    def __init__(self, paths: Sequence[str], opened: Callable[[str], None], window: int = WINDOW) -> None:
        self.numbers = Numbers()
        self._window = window
        self._era = 0
        self._last: dict[tuple[str, int], tuple[int, int, Key | None]] = {}
        self._furthest: dict[str, int] = {}
        self._ahead: dict[str, int] = {}
        self._sources = [_Source(path, opened) for path in paths]
        self.size = sum(os.path.getsize(path) for path in paths)

    def close(self) -> None:
        """Close all files."""
        for source in self._sources:
            source.reader.close()

    @property
    def read(self) -> int:
        """How many bytes have been read."""
        return sum(source.reader.offset for source in self._sources)

    @property
    def torn(self) -> list[str]:
        """Where lines were cut off."""
        return [place(s.reader.path, line) for s in self._sources for line in s.reader.torn]

    def goes_on(self, process: str, strand: int | None = None) -> bool:
        """Whether another step of the process, or of the strand, is known to come."""
        return process in self._ahead if strand is None else (process, strand) in self._last

    def __iter__(self) -> Iterator[Told]:
        waiting: list[tuple[Key, Told]] = []
        for arrival, told in enumerate(self._fed()):
            heapq.heappush(waiting, (self._place(told, arrival), told))
            if len(waiting) > self._window:
                yield self._next(waiting)
        while waiting:
            yield self._next(waiting)

    def _next(self, waiting: list[tuple[Key, Told]]) -> Told:
        _, told = heapq.heappop(waiting)
        process = told.event.process
        strand = (process, told.event.strand)
        if told.event.action not in AFTER_FAILURE:
            self._ahead[process] -= 1
            if not self._ahead[process]:
                del self._ahead[process]
        left, seen, key = self._last[strand]
        if left == 1:
            del self._last[strand]
        else:
            self._last[strand] = (left - 1, seen, key)
        return told

    def _place(self, told: Told, arrival: int) -> Key:
        """Where an event belongs: by record number, whoever wrote the record first; a strand's own order is kept.

        A read that is told late is taken where it is told, since that makes no difference to it; so when the ledger has
        lost records, and numbers are low again, reads do not slip in front of what was before.
        """
        event = told.event
        wrote = event.action in WRITES
        strand = (event.process, event.strand)
        if event.action not in AFTER_FAILURE:
            self._ahead[event.process] = self._ahead.get(event.process, 0) + 1
        waiting, seen, last = self._last.get(strand, (0, -1, None))
        # A `record` that found a session has written nothing, so its number may be another step's.
        taken = not self.numbers.take(event.order, wrote=wrote, sure=event.action != "record")
        if taken or (event.order < seen and event.action not in UNNUMBERED):
            if not taken:
                self.numbers.fall(event.order)
            self._era += 1
            self._furthest.clear()
        furthest = self._furthest[told.path] = max(self._furthest.get(told.path, 0), event.order)
        order = event.order if wrote or event.action in OUTSIDE else furthest
        key = (self._era, order, 0 if wrote else 1, arrival)
        if last is not None and last > key:
            key = (*last[:3], arrival)
        self._last[strand] = (waiting + 1, max(seen, event.order), key)
        return key

    def _fed(self) -> Iterator[Told]:
        """The events of all logs, from whichever is the furthest behind."""
        if len(self._sources) == 1:
            yield from self._sources[0]
            return
        heads: list[tuple[int, float, int]] = []
        for number in range(len(self._sources)):
            self._push(heads, number)
        while heads:
            _, _, number = heads[0]
            source = self._sources[number]
            assert source.head is not None
            yield source.head
            source.advance()
            if len(self._sources) > MOST_OPEN:
                source.reader.close()
            heapq.heappop(heads)
            self._push(heads, number)

    def _push(self, heads: list[tuple[int, float, int]], number: int) -> None:
        head = self._sources[number].head
        if head is not None:
            heapq.heappush(heads, (head.event.order, head.event.at, number))
