"""One file, one store: an index of whose its lines are, that grows as the file does. Bytes are only ever appended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import pairwise
from typing import Protocol, TypeAlias, cast

from onestart.group_commit import MOST
from onestart.health import Health
from onestart.jsonl.files import Files
from onestart.jsonl.places import Entry, Places
from onestart.jsonl.position import Identity, Position, digest
from onestart.lines import (
    CORRUPT,
    Line,
    Owner,
    Place,
    decode,
    embedded,
    encode,
    outline,
    overrun,
    place,
    seal,
    unsealed,
)
from onestart.ports import LedgerUnavailableError
from onestart.records import STORES, Record

Told: TypeAlias = Callable[[Owner, Mapping[str, int]], None]

_CHUNK = 1 << 22
_OUTCOME = "the outcome of a write is unknown, so open the ledger anew"


class Found(Protocol):
    """Who is told where records are, and can tell whether one is there. `Places` remembers all of it."""

    def own(self, where: Place, entry: Entry, raw: bytes | None) -> None:
        """A record of this place was found. raw: its line, if that was just read."""

    def has(self, where: Place, seq: int) -> bool:
        """Whether a line of this number is known to be there."""


class Journal:
    """The records of one store, by kind and key (leases: by task).

    told: called for each record that is found, with whose it is and how far other stores had got for it.
    durable: whether what others wrote is made durable before it is relied on; False never writes anything.
    found: who is told where the records are, `entries` if None.
    """

    def __init__(
        self, store: str, folder: str, files: Files, told: Told, *, durable: bool = True, found: Found | None = None
    ) -> None:
        self.store = store
        self.name = f"{store}.jsonl"
        self._path = f"{folder}/{self.name}"
        self._folder, self._files, self._told, self._durable = folder, files, told, durable
        self._kinds = STORES[store]
        self._elsewhere = found
        self._in_doubt = self.uncommitted = False
        self._now = 0
        self._here: Hashable | None = None
        self.forget()

    def forget(self) -> None:
        """Know nothing about the file."""
        self.entries = Places()
        self._found: Found = self._elsewhere or self.entries
        self.pending: list[Entry] = []
        self.unowned: list[Entry] = []
        self.gaps: list[tuple[int, int]] = []
        self.count = self.torn = self.backward = 0
        self.last_seq = 0
        self._identity: Hashable | None = None
        self._size = self._offset = self._newlines = self._tail = 0
        self._unended = False
        self._prev: Owner | None = None
        self._last = b""
        self._last_offset = 0
        self._opening = True
        self._newest: deque[int] = deque(maxlen=MOST + 1)  # where lines begin: a group's, and a seal before it

    def stale(self) -> bool:
        """Whether the file is not the one that was read before, or that with more behind it."""
        if self._in_doubt:
            raise LedgerUnavailableError(self.store, _OUTCOME)
        self._look()
        if self._identity is None:
            return False
        if self._now < self._size or self._here != self._identity:
            return True
        if not self._last:
            return False
        last = self._files.read(self._path, self._last_offset, len(self._last) + 1)
        if last[-1:] != b"\n":
            self._unended = True  # else the next record would be fused with it
        return not last.startswith(self._last) and self._replaced(last[: len(self._last)])

    def _look(self) -> None:
        """Note which file is there, and how long it is."""
        self._here, self._now = self._files.status(self._path) or (None, 0)

    def _replaced(self, last: bytes) -> bool:
        """Whether the last line gave way to another one; if not, it is just damaged."""
        if b"\n" in last or len(last) < len(self._last):
            return True
        found = outline(last)
        known = outline(self._last)
        return found.seq != 0 and (found.seq, found.owner) != (known.seq, known.owner)

    @property
    def ahead(self) -> int:
        """How many bytes there were behind the last known line when `stale` looked."""
        return self._now - self._offset

    @property
    def bytes_read(self) -> tuple[int, int]:
        """How much of the file was read, and how much there is."""
        return self._offset, self._now

    def catch_up(self, parts: int = 1) -> Iterator[None]:
        """Read what was behind the last known line when `stale` looked, in so many parts, and make it durable.

        Raises LedgerUnavailableError.
        """
        if self._now == self._size:
            self._opening &= self._identity is None
            return
        first, known = self._identity is None, self._size
        try:
            if first:
                self._identity = self._here
            start, ahead = self._offset, self.ahead
            for part in range(1, parts):
                self._ingest(start + ahead * part // parts)
                yield
            self._take_tail(self._ingest(self._now))
            self._size = self._now
            if self._durable:
                self._make_durable(self._newest[0] if self._opening and self._newest else known, first=first)
        except OSError as error:
            raise self.unavailable(error) from error
        self._opening = False

    def read_anew(self) -> None:
        """Forget all, also where an index was of use, and look how much there is."""
        self.forget()
        self._look()

    def _make_durable(self, start: int, *, first: bool) -> None:
        """start: from where on a sync may have failed.

        Whoever comes after such a sync does this before it appends, and nobody appends more than a group at once, so it
        is known of all before the newest group that it was made durable; and of all that an index covers.
        """
        self._in_doubt = True
        self._files.write_again(self._path, start, self._now - start)
        self._files.sync(self._path)
        if first:
            self._files.sync_folder(self._folder)
        self._in_doubt = False

    def _ingest(self, size: int) -> bytes:
        """Read the lines up to there; returns what has no newline."""
        data, at = b"", self._offset
        while at < size and (chunk := self._files.read(self._path, at, min(_CHUNK, size - at))):
            at += len(chunk)
            data += chunk
            if b"\n" in chunk:
                data = self._take_lines(data)
        return data

    def _take_lines(self, data: bytes) -> bytes:
        *lines, rest = data.split(b"\n")
        for raw in lines:
            self._newest.append(self._offset)
            if raw or not self._unended:  # else it ends a line whose own newline is gone
                self._take(raw, self._offset)
            self._unended = False
            self._offset += len(raw) + 1
            self._newlines += 1
        return rest

    def _take_tail(self, tail: bytes) -> None:
        """What has no newline was never acknowledged, unless it is more than one line."""
        while length := overrun(tail):
            self._piece(tail[: length + 1], self._offset, trusted=False)
            self._offset += length + 1
            tail = tail[length + 1 :]
            self._unended = True
        self._tail = len(tail)

    def _take(self, raw: bytes, offset: int) -> None:
        line = outline(raw)
        if line.health is Health.INTACT and line.kind in self._kinds:
            self._add(line, raw, offset, Health.INTACT)
            return
        kept = unsealed(raw)
        if kept is not None:
            self.torn += 1
        if kept != b"":
            self._take_damaged(raw if kept is None else kept, offset)

    def _take_damaged(self, raw: bytes, offset: int) -> None:
        """A damaged line, or several that are one because a newline is gone."""
        expected = (outline(raw).seq or self._presumed()) + 1
        cuts = [0]
        for at, line in embedded(raw):
            if line.seq == expected:
                cuts.append(at)
                expected += 1
        trusted = False
        for start, end in pairwise([*cuts, len(raw)]):
            self._piece(raw[start:end], offset + start, trusted=trusted)
            trusted = decode(raw[start : end - 1]).health is Health.INTACT

    def _piece(self, raw: bytes, offset: int, *, trusted: bool) -> None:
        line = outline(raw)
        health = Health.CORRUPT if line.health is Health.INTACT and not trusted else line.health
        if line.seq and line.kind in self._kinds:
            self._add(line, raw, offset, health)
        else:
            self.pending.append(Entry(self._presumed(), offset, len(raw) + 1, self._newlines + 1, health))
            self.count += 1
            self._last, self._last_offset = raw, offset

    def _presumed(self) -> int:
        return self.last_seq + len(self.pending) + 1

    def _add(self, line: Line, raw: bytes, offset: int, health: Health) -> None:
        if line.seq != self.last_seq + 1 or self.pending:
            self._settle(line)
        owner = line.owner
        self._found.own(place(*owner), Entry(line.seq, offset, len(raw) + 1, self._newlines + 1, health), raw)
        self.count += 1
        if line.seq >= self.last_seq:
            self.last_seq, self._prev = line.seq, owner
        self._last, self._last_offset = raw, offset
        self._told(owner, line.refs if health is Health.INTACT else {})

    def _settle(self, line: Line) -> None:
        """Decide what the illegible lines before this one are, now that its number and predecessor are known."""
        before = line.seq - 1
        missing = before - self.last_seq
        if missing < 0:
            self.backward += 1
        pending, self.pending = self.pending, []
        fitting = [] if missing <= 0 else pending[-missing:]
        self.unowned += pending[: len(pending) - len(fitting)]
        numbered = [entry._replace(seq=line.seq - rank) for rank, entry in enumerate(reversed(fitting), 1)]
        if missing > 0 and line.prev is not None and line.prev[0] in self._kinds:
            entry = numbered.pop(0) if numbered else Entry(before, 0, 0, 0, Health.CORRUPT)
            self._found.own(place(*line.prev), entry, None)
            self._told(line.prev, {})
            missing -= 1
        self.unowned += reversed(numbered)
        gone = missing - len(numbered)
        if gone > 0:
            self.gaps.append((self.last_seq + 1, self.last_seq + gone))

    @property
    def open_tail(self) -> bool:
        """Whether the file ends in a write that was cut off, or that is just being made."""
        return self._tail > 0

    def has(self, where: Place, seq: int) -> bool:
        """Whether a line of this number is known to be there."""
        return self._found.has(where, seq)

    def read(self, entry: Entry, where: Place) -> Line:
        """The line as it is in the file now; damaged if it is not what it was known as. Raises OSError."""
        if not entry.length:
            return CORRUPT
        raw = self._files.read(self._path, entry.offset, entry.length)
        return as_known(decode(raw[:-1]), entry, where, ended=raw[-1:] == b"\n")

    def append(self, record: Record, refs: Mapping[str, int], furthest: int) -> None:
        """Put a record at the end, durable after `commit`. furthest: number of the last record known elsewhere.

        After an error nobody knows what is in the file, and every later use of this journal is refused.
        """
        seq = max(self.last_seq + len(self.pending), furthest) + 1
        raw = encode(record, seq, self._prev if seq == self.last_seq + 1 else None, refs)
        self._in_doubt = self.uncommitted = True
        if self._tail or self._unended:
            self._seal()
        self._files.append(self._path, raw)
        line = Line(Health.INTACT, seq, record.kind, record.key, record.task)
        self._add(line, raw[:-1], self._offset, Health.INTACT)
        self._offset += len(raw)
        self._size = self._offset
        self._newlines += 1

    def commit(self) -> None:
        """Make durable what was appended."""
        self._files.sync(self._path)
        if self._identity is None:
            self._files.sync_folder(self._folder)
            self._identity, _ = self._files.status(self._path) or (None, 0)
        self._in_doubt = self.uncommitted = False

    def _seal(self) -> None:
        """End what has no newline, in a way that it is never taken for a record."""
        data = seal(self._tail) if self._tail else b"\n"
        self._files.append(self._path, data)
        self._files.sync(self._path)  # so that a crash cannot fuse the next record with what is sealed
        self.torn += self._tail > 0
        self._offset += self._tail + len(data)
        self._newlines += 1
        self._tail, self._unended = 0, False

    def unavailable(self, error: OSError) -> LedgerUnavailableError:
        """What the system said, and whether something may have been written."""
        said = error.strerror or str(error)
        return LedgerUnavailableError(self.store, f"{said}; {_OUTCOME}" if self._in_doubt else said)

    def places(self, kind: str) -> Iterator[str]:
        """Every key (leases: task) with a record of this kind; see `Places.names`."""
        return self.entries.names(kind)

    def position(self) -> Position | None:
        """How far the file was read, for an index; None if there is no telling, or not yet."""
        identity = self._identity
        known = identity is None or (isinstance(identity, tuple) and list(map(type, identity)) == [int, int])
        if self._in_doubt or self._unended or not known:
            return None
        return Position(
            identity=cast("Identity | None", identity),
            offset=self._offset,
            lines=self._newlines,
            count=self.count,
            torn=self.torn,
            backward=self.backward,
            last_seq=self.last_seq,
            prev=self._prev,
            last_offset=self._last_offset,
            last_length=len(self._last),
            last_digest=digest(self._last),
            pending=tuple(self.pending),
            unowned=tuple(self.unowned),
            gaps=tuple(self.gaps),
        )

    def last_line(self, position: Position) -> bytes | None:
        """The last line that was read, if the file is the one of this position, or that with more behind it."""
        if position.identity is None:
            return b""
        files, path, length = self._files, self._path, position.last_length
        found = files.status(path)
        if found is None or found.identity != position.identity or found.size < position.offset:
            return None
        if not length:
            return b""
        last = files.read(path, position.last_offset, length + 1)
        return last[:length] if digest(last[:length]) == position.last_digest and last[length:] == b"\n" else None

    def go_on_from(self, position: Position, last: bytes, entries: Places) -> None:
        """Know what was known there. last: see `last_line`. entries: where the records up to there are."""
        self.forget()
        self.entries = self._found = entries
        self.pending, self.unowned, self.gaps = list(position.pending), list(position.unowned), list(position.gaps)
        self.count, self.torn, self.backward = position.count, position.torn, position.backward
        self.last_seq, self._prev, self._identity = position.last_seq, position.prev, position.identity
        self._size = self._offset = position.offset
        self._newlines = position.lines
        self._last, self._last_offset = last, position.last_offset


def as_known(line: Line, entry: Entry, where: Place, *, ended: bool) -> Line:
    """The line that is there; damaged if it is not what it was known as. ended: whether it has its newline."""
    known = ended and entry.health is Health.INTACT and line.seq == entry.seq and line.place == where
    return line if known or not (line.lost or line.health is Health.INTACT) else CORRUPT
