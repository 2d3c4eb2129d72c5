"""A new index: what an older one covers, and what was read since. It takes the older one's place when it is whole.

It is not made durable: after a power failure its checksums tell whether it is there, and the files can be read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import BinaryIO

from attrs import define, field

from onestart.jsonl.index import Index, Table
from onestart.jsonl.index_format import (
    BUCKET,
    ENTRY,
    LINK,
    MAGIC,
    OF_KEY,
    OF_TASK,
    Extent,
    Head,
    bucket_of,
    checksum,
    entry_key,
    entry_row,
    identifier,
    text_of,
)
from onestart.jsonl.places import Names, Places
from onestart.jsonl.position import Position
from onestart.lines import Place

_CHUNK = 1 << 20
_ROWS = 64  # of a bucket, when their number is chosen
_MOST_ROWS = 128  # of a bucket, on average, until it is chosen anew
_ENUMERATED = ("lease", "step")  # kinds whose places can be enumerated


@define
class Covering:
    """What an index is to cover, besides what an older one does."""

    stores: Mapping[str, Position]
    unmet: Mapping[Place, set[int]]
    furthest: Mapping[str, int]
    places: Iterable[Places]
    names: Names


def write(path: str, old: Index | None, covering: Covering) -> None:
    """Put a new index at this path. Raises OSError, and UnusableIndexError if the old one cannot be read."""
    new = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(new)  # of a process that was stopped in the midst of it
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb", buffering=_CHUNK) as out:
            _Writing(out, old, covering).write()
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise


@define
class _Writing:
    out: BinaryIO
    old: Index | None
    covering: Covering
    salt: bytes = field(init=False)
    at: int = 0

    def __attrs_post_init__(self) -> None:
        self.salt = os.urandom(16) if self.old is None else self.old.salt

    def write(self) -> None:
        self._put(MAGIC)
        links = _Rows(LINK.size)
        texts = self._texts(links)
        entries = _Rows(ENTRY.size)
        for places in self.covering.places:
            for where, found in places.new.items():
                key = entry_key(where, self.salt)
                for entry in found:
                    entries.add(entry_row(key, entry))
        head = Head(
            salt=self.salt.hex(),
            stores=dict(self.covering.stores),
            unmet=dict(self.covering.unmet),
            furthest=dict(self.covering.furthest),
            entries=self._table(self.old.entries_table if self.old else None, entries),
            links=self._table(self.old.links_table if self.old else None, links),
            texts=texts,
        )
        self._put(head.encoded())

    def _put(self, data: bytes | bytearray) -> int:
        """Write it; returns where."""
        at, self.at = self.at, self.at + self.out.write(data)
        return at

    def _texts(self, links: _Rows) -> tuple[int, int]:
        """Write all texts, those of the old index first, as they are; where they begin, and how many bytes they are."""
        start = self.at
        if self.old is not None:
            first, length = self.old.head.texts
            for done in range(0, length, _CHUNK):
                self._put(self.old.read(first + done, min(_CHUNK, length - done)))
        for key, task in self._pairs():
            where = self._put(text_of("key", key, task)) - start
            links.add(LINK.pack(identifier(key, self.salt), OF_KEY, where))
            links.add(LINK.pack(identifier(task, self.salt), OF_TASK, where))
        for places in self.covering.places:
            for kind, name in places.new:
                if kind in _ENUMERATED:
                    self._put(text_of(kind, name))
        return start, self.at - start

    def _pairs(self) -> Iterator[tuple[str, str]]:
        """Keys with their tasks, in the order in which they were found; then other tasks that a key was found with."""
        names = self.covering.names
        yield from names.new_tasks.items()
        for task, keys in names.new.items():
            yield from ((key, task) for key in keys if names.new_tasks[key] != task)

    def _table(self, old: Table | None, rows: _Rows) -> Extent:
        total = (old.extent.rows if old else 0) + rows.count
        before = old.extent.buckets if old else 1
        buckets = before
        while total > buckets * (_MOST_ROWS if old and buckets == before else _ROWS):
            buckets *= 2
        new = rows.by_bucket(buckets)
        directory = bytearray(buckets * BUCKET.size)
        for number in range(before):
            data = old.bucket(number) if old else b""
            for part, kept in _parted(data, number, before, buckets, rows.size):
                kept += new.get(part, b"")
                BUCKET.pack_into(directory, part * BUCKET.size, self._put(kept), len(kept), checksum(kept))
        digest = blake2b(directory, digest_size=16).hexdigest()
        return Extent(self._put(directory), buckets, total, digest)


@define
class _Rows:
    """New rows of a table."""

    size: int
    all: bytearray = field(factory=bytearray)

    def add(self, row: bytes) -> None:
        self.all += row

    @property
    def count(self) -> int:
        return len(self.all) // self.size

    def by_bucket(self, buckets: int) -> dict[int, bytearray]:
        found: dict[int, bytearray] = {}
        data = bytes(self.all)
        for at in range(0, len(data), self.size):
            row = data[at : at + self.size]
            found.setdefault(bucket_of(row, buckets), bytearray()).extend(row)
        return found


def _parted(data: bytes, number: int, before: int, buckets: int, size: int) -> Iterator[tuple[int, bytearray]]:
    """The rows of a bucket in those that it becomes when there are more of them."""
    if before == buckets:
        yield number, bytearray(data)
        return
    parts = {part: bytearray() for part in range(number, buckets, before)}
    for at in range(0, len(data), size):
        row = data[at : at + size]
        parts[bucket_of(row, buckets)] += row
    yield from parts.items()
