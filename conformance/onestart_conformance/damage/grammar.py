"""The grammar of damage: each a frozen value that says what becomes of which bytes, and does it to any medium.

Where an earlier damage has left nothing that it could be done to, nothing is done.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from attrs import field, frozen

from onestart_conformance.damage import forgery
from onestart_conformance.damage.medium import FileMedium, Medium, RowMedium

JSON = b'{"kind":"nobody\'s","of":[1,2.5,null]}'


@frozen
class OfRecord:
    """record: which one of the store, from 0."""

    name: ClassVar[str]
    store: str
    record: int

    def apply(self, medium: Medium) -> None:
        """Do it."""
        records = medium.records(self.store)
        if self.record < len(records):
            medium.replace(self.store, self.record, self.changed(records[self.record]))

    def changed(self, data: bytes) -> bytes:
        """What becomes of the record's bytes."""
        raise NotImplementedError


@frozen
class Flipped(OfRecord):
    """One bit of one byte has another value."""

    name = "flipped bit"
    byte: int
    bit: int

    def changed(self, data: bytes) -> bytes:
        flipped = bytes(value ^ 1 << self.bit for value in data[self.byte : self.byte + 1])
        return data[: self.byte] + flipped + data[self.byte + 1 :]


@frozen
class Shortened(OfRecord):
    """The rest of the record is gone from this byte on, and what comes behind has moved up."""

    name = "shortened"
    byte: int

    def changed(self, data: bytes) -> bytes:
        return data[: self.byte]


@frozen
class Zeroed(OfRecord):
    """A block of so many bytes is zero; it may reach into the records behind."""

    name = "zeroed block"
    start: int
    length: int

    def apply(self, medium: Medium) -> None:
        left, start = self.length, self.start
        changed: list[bytes] = []
        for data in medium.records(self.store)[self.record :]:
            part = max(0, min(left, len(data) - start))
            changed.append(data[:start] + bytes(part) + data[start + part :])
            left, start = left - part, 0
        for number, data in reversed(list(enumerate(changed, self.record))):
            medium.replace(self.store, number, data)


@frozen
class UnknownVersion(OfRecord):
    """A later release has written it."""

    name = "unknown version"

    def changed(self, data: bytes) -> bytes:
        return forgery.of_version(data, 2)


@frozen
class WrongShape(OfRecord):
    """Valid JSON, and no record. summed: a line whose checksums are right, with a field of a wrong type."""

    name = "wrong shape"
    summed: bool

    def changed(self, data: bytes) -> bytes:
        return forgery.of_wrong_shape(data) if self.summed else JSON + b"\n" * data.endswith(b"\n")


@frozen
class Duplicated(OfRecord):
    """The record is there again, before the record with the number `to`."""

    name = "duplicated"
    to: int

    def apply(self, medium: Medium) -> None:
        records = medium.records(self.store)
        if max(self.record, self.to - 1) < len(records):
            medium.insert(self.store, self.to, records[self.record])


@frozen
class Reordered(OfRecord):
    """Two records have changed places."""

    name = "reordered"
    other: int

    def apply(self, medium: Medium) -> None:
        records = medium.records(self.store)
        if max(self.record, self.other) < len(records):
            medium.replace(self.store, self.record, records[self.other])
            medium.replace(self.store, self.other, records[self.record])


@frozen
class Swapped(OfRecord):
    """Another valid record stands in this one's place, which is gone."""

    name = "swapped"
    source: str
    other: int

    def apply(self, medium: Medium) -> None:
        sources = medium.records(self.source)
        if self.record < len(medium.records(self.store)) and self.other < len(sources):
            medium.replace(self.store, self.record, sources[self.other])


@frozen
class Removed(OfRecord):
    """Nothing is left of the record, and what comes behind has moved up."""

    name = "removed"

    def apply(self, medium: Medium) -> None:
        if self.record < len(medium.records(self.store)):
            medium.delete(self.store, self.record)


@frozen
class Cut(OfRecord):
    """The store ends at this byte."""

    name = "cut off"
    byte: int

    def apply(self, medium: Medium) -> None:
        medium.cut(self.store, self.record, self.byte)


@frozen
class TornTail(Cut):
    """The store ends within its last record."""

    name = "torn tail"


@frozen
class OfStore:
    """What happens to a whole store."""

    name: ClassVar[str]
    store: str

    def apply(self, medium: Medium) -> None:
        """Do it."""
        raise NotImplementedError


@frozen
class RolledBack(OfStore):
    """The store is an older copy, which had so many records."""

    name = "rolled back"
    records: int

    def apply(self, medium: Medium) -> None:
        medium.cut(self.store, self.records, 0)


@frozen
class Deleted(OfStore):
    """The store is gone."""

    name = "deleted"

    def apply(self, medium: Medium) -> None:
        medium.remove(self.store)


@frozen
class Covered(OfStore):
    """Something of another nature has the store's name."""

    name = "replaced by a folder"

    def apply(self, medium: Medium) -> None:
        medium.cover(self.store)


@frozen
class Refused(OfStore):
    """The system lets nobody read the store."""

    name = "made unreadable"

    def apply(self, medium: Medium) -> None:
        medium.refuse(self.store)


@frozen
class Garbage(OfStore):
    """Something was written behind the last record."""

    name = "trailing garbage"
    data: bytes = field(repr=lambda data: f"{data[:20]!r}")

    def apply(self, medium: Medium) -> None:
        medium.insert(self.store, len(medium.records(self.store)), self.data)


@frozen
class Edited(OfRecord):
    """A column of the record's row has another value."""

    name = "edited column"
    column: str
    value: object

    def apply(self, medium: Medium) -> None:
        if isinstance(medium, RowMedium) and self.record < len(medium.records(self.store)):
            medium.edit(self.store, self.record, self.column, self.value)


@frozen
class OfFile:
    """What happens to the file that a whole ledger is in. byte: from its beginning."""

    name: ClassVar[str]
    byte: int
    store: ClassVar[str] = "(file)"

    def apply(self, medium: Medium) -> None:
        """Do it."""
        if isinstance(medium, FileMedium):
            medium.rewrite(self.changed(medium.image()))

    def changed(self, image: bytes) -> bytes:
        """What becomes of the file's bytes."""
        raise NotImplementedError


@frozen
class FlippedInFile(OfFile):
    """One bit of the file has another value."""

    name = "flipped bit of a page"
    bit: int

    def changed(self, image: bytes) -> bytes:
        return image[: self.byte] + bytes([image[self.byte] ^ 1 << self.bit]) + image[self.byte + 1 :]


@frozen
class ZeroedInFile(OfFile):
    """A sector of the file is zero."""

    name = "zeroed sector"

    def changed(self, image: bytes) -> bytes:
        return image[: self.byte] + bytes(min(SECTOR, len(image) - self.byte)) + image[self.byte + SECTOR :]


@frozen
class CutFile(OfFile):
    """The file ends at this byte."""

    name = "file cut off"

    def changed(self, image: bytes) -> bytes:
        return image[: self.byte]


SECTOR = 512
Damage: TypeAlias = OfRecord | OfStore | OfFile
