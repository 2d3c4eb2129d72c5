"""An index of the files beside them, as it was when it was opened. It is derived: the files are the truth."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import TypeVar

from onestart.jsonl.index_format import (
    BUCKET,
    ENTRY,
    LINK,
    MAGIC,
    OF_KEY,
    OF_TASK,
    TEXT,
    TRAILER,
    Extent,
    Head,
    UnusableIndexError,
    bucket_of,
    checksum,
    entry_key,
    entry_of,
    identifier,
    said_in,
)
from onestart.jsonl.places import Entry
from onestart.lines import Place

K = TypeVar("K")
V = TypeVar("V")
Read = Callable[[int, int], bytes]

_CHUNK = 1 << 20
_LONG = 64  # entries of a place, or keys of a task, that are worth keeping
_MOST_KEPT = 64
_MOST_BUCKETS = 128
_LARGEST_BUCKET = 1 << 16


class Index:
    """A `Covered`. Keeps the file open, so it stays what it is when another one takes its place.

    Raises UnusableIndexError if it is not there, of another version, or damaged where it is read.
    """

    def __init__(self, path: str) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise UnusableIndexError(error.strerror or str(error)) from error
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)
        self.head = self._head()
        self.salt = bytes.fromhex(self.head.salt)
        self.entries_table = Table(self.read, self.head.entries, ENTRY.size)
        self.links_table = Table(self.read, self.head.links, LINK.size)
        self._long_places: dict[Place, Sequence[Entry]] = {}
        self._long_tasks: dict[str, Sequence[str]] = {}

    def _head(self) -> Head:
        try:
            size = os.fstat(self._descriptor).st_size
        except OSError as error:
            raise UnusableIndexError(error.strerror or str(error)) from error
        if size < len(MAGIC) + TRAILER.size or self.read(0, len(MAGIC)) != MAGIC:
            raise UnusableIndexError("it is no index")
        length, digest = TRAILER.unpack(self.read(size - TRAILER.size, TRAILER.size))
        if length > size - TRAILER.size:
            raise UnusableIndexError("it is damaged")
        data = self.read(size - TRAILER.size - length, length)
        if blake2b(data, digest_size=16).digest() != digest:
            raise UnusableIndexError("its head is damaged")
        return Head.decoded(data)

    def read(self, offset: int, length: int) -> bytes:
        """So many bytes of the file."""
        try:
            data = os.pread(self._descriptor, length, offset)
        except (OSError, OverflowError, ValueError) as error:
            raise UnusableIndexError(str(error)) from error
        if len(data) != length:
            raise UnusableIndexError("it is cut short")
        return data

    def entries(self, where: Place) -> Sequence[Entry]:
        found = self._long_places.get(where)
        if found is None:
            bucket, rows = self.entries_table.find(entry_key(where, self.salt))
            found = sorted([entry_of(bucket, at) for at in rows])
            if len(found) > _LONG:
                _keep(self._long_places, where, found)
        return found

    def task_of(self, key: str) -> str | None:
        return next((task for _, task in self._pairs(key, OF_KEY)), None)

    def keys(self, task: str) -> Sequence[str]:
        found = self._long_tasks.get(task)
        if found is None:
            found = list(dict.fromkeys(key for key, _ in self._pairs(task, OF_TASK)))
            if len(found) > _LONG:
                _keep(self._long_tasks, task, found)
        return found

    def _pairs(self, name: str, what: int) -> Iterator[tuple[str, str]]:
        """Key and task of each text that a name leads to."""
        bucket, rows = self.links_table.find(identifier(name, self.salt) + bytes((what,)))
        for at in rows:
            _, *pair = self._text(LINK.unpack_from(bucket, at)[2])
            if pair[what] != name:
                raise UnusableIndexError("a text is not what leads to it")
            yield pair[OF_KEY], pair[OF_TASK]

    def _text(self, offset: int) -> list[str]:
        start, _ = self.head.texts
        length, crc = TEXT.unpack(self.read(start + offset, TEXT.size))
        return said_in(self.read(start + offset + TEXT.size, length), crc)

    def all_keys(self) -> Iterator[str]:
        return (said[1] for said in self._texts() if said[0] == "key")

    def all_tasks(self) -> Iterator[str]:
        return (said[2] for said in self._texts() if said[0] == "key")

    def names(self, kind: str) -> Iterator[str]:
        return (said[1] for said in self._texts() if said[0] == kind)

    def _texts(self) -> Iterator[list[str]]:
        start, length = self.head.texts
        data, at = b"", start
        while at < start + length or data:
            chunk = self.read(at, min(_CHUNK, start + length - at))
            at += len(chunk)
            data += chunk
            used = 0
            while len(data) >= used + TEXT.size:
                size, crc = TEXT.unpack_from(data, used)
                end = used + TEXT.size + size
                if end > len(data):
                    break
                yield said_in(data[used + TEXT.size : end], crc)
                used = end
            if not used and not chunk:
                raise UnusableIndexError("the texts are damaged")
            data = data[used:]


class Table:
    """Rows of one size, found by what they begin with."""

    def __init__(self, read: Read, extent: Extent, size: int) -> None:
        self._read, self._size = read, size
        self.extent = extent
        self._directory = read(extent.offset, extent.buckets * BUCKET.size)
        if blake2b(self._directory, digest_size=16).hexdigest() != extent.digest:
            raise UnusableIndexError("a directory is damaged")
        self._kept: dict[int, bytes] = {}

    def bucket(self, number: int) -> bytes:
        """The rows of a bucket. Raises UnusableIndexError."""
        kept = self._kept.get(number)
        if kept is not None:
            return kept
        start, length, expected = BUCKET.unpack_from(self._directory, number * BUCKET.size)
        data = self._read(start, length)
        if checksum(data) != expected:
            raise UnusableIndexError("a bucket is damaged")
        if length <= _LARGEST_BUCKET:
            if len(self._kept) == _MOST_BUCKETS:
                self._kept.clear()
            self._kept[number] = data
        return data

    def find(self, beginning: bytes) -> tuple[bytes, list[int]]:
        """A bucket, and where in it the rows are that begin so. Raises UnusableIndexError."""
        data = self.bucket(bucket_of(beginning, self.extent.buckets))
        found: list[int] = []
        at = data.find(beginning)
        while at >= 0:
            if at % self._size == 0:
                found.append(at)
            at = data.find(beginning, at + 1)
        return data, found


def _keep(kept: dict[K, V], name: K, found: V) -> None:
    if len(kept) == _MOST_KEPT:
        kept.clear()
    kept[name] = found
