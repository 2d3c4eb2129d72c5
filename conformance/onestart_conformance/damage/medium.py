"""What a ledger keeps its bytes in, as somebody sees it who damages them by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from attrs import frozen

from onestart.ports import Ledger

STORE, PLACE = "store", "place"


@frozen
class Verified:
    """What a ledger's own check says. damage: how many things are wrong, by store. findings: in words.

    refused: why the check could not be made, if it could not. raised: what it should not have raised.
    """

    damage: Mapping[str, int]
    findings: tuple[str, ...] = ()
    refused: str = ""
    raised: str = ""

    @property
    def told(self) -> bool:
        """Whether it says that something is wrong."""
        return bool(self.refused) or any(self.damage.values())


class Medium(Protocol):
    """The bytes of one ledger: stores by name, each with records in order. What is done here, no library does.

    A record's bytes are those that stand for it alone, such as a line with its newline, or a row's encoded line.
    """

    @property
    def name(self) -> str:
        """The ledger's kind: jsonl, sqlite or postgres."""

    @property
    def stores(self) -> tuple[str, ...]: ...

    @property
    def numbering(self) -> str:
        """What a record's number counts: those of its store, or those of its kind and name."""

    @property
    def readable(self) -> bool:
        """Whether the system lets a process read what there is of every store."""

    def records(self, store: str) -> tuple[bytes, ...]:
        """What there is in place of each record, legible or not; none if the store is gone or cannot be read."""

    def torn(self, store: str) -> bool:
        """Whether the last of a store's records may be a part of a write that was cut off."""

    def replace(self, store: str, record: int, data: bytes) -> None:
        """Put these bytes in the place of a record."""

    def insert(self, store: str, record: int, data: bytes) -> None:
        """Put these bytes before a record; behind the last one, if there are so many."""

    def delete(self, store: str, record: int) -> None:
        """Leave nothing of a record."""

    def cut(self, store: str, record: int, byte: int) -> None:
        """Leave nothing from this byte of a record on, in the whole store."""

    def remove(self, store: str) -> None:
        """Leave nothing of a store, not even its name."""

    def cover(self, store: str) -> None:
        """Put something in the store's place that is of another nature, such as a folder."""

    def refuse(self, store: str) -> None:
        """Let nobody read the store."""

    def bytes(self) -> Mapping[str, bytes]:
        """Everything that was recorded, by place. A place's bytes may grow, and places may come."""

    def keep(self) -> object:
        """A copy of everything."""

    def restore(self, kept: object) -> None:
        """Everything as it was when it was kept."""

    def ledger(self) -> Ledger:
        """The ledger as a process opens it that has just come up."""

    def verify(self) -> Verified:
        """What the ledger's own check says."""


@runtime_checkable
class RowMedium(Medium, Protocol):
    """A medium whose records are rows, which can be edited by hand."""

    def edit(self, store: str, record: int, column: str, value: object) -> None:
        """Put another value into a column of a record's row, where the table takes it."""


@runtime_checkable
class FileMedium(Medium, Protocol):
    """A medium whose stores are in one file."""

    def image(self) -> bytes:
        """The bytes of the file."""

    def rewrite(self, image: bytes) -> None:
        """Write the file anew in its place."""
