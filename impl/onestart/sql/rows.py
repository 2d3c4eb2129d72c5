"""What a database keeps of a record, and what a ledger asks of a database.

Each store is a table. A row holds a record's line, the very bytes that a file would hold, and beside it what the line
is found by. The line counts: it has a checksum, and names its place and its number there, so a row that was edited,
moved or swapped by hand is found out when it is read. The columns only say where to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from onestart.health import Health
from onestart.lines import CORRUPT, Line, Place, decode, encode, place
from onestart.ports import LedgerUnavailableError
from onestart.records import STORES, Record

TABLES = tuple(STORES)
SCHEMA_VERSION = 1


class Row(NamedTuple):
    """order: the record's number in the whole ledger. n: its number among those of its kind and name, from 1.

    name: what it is looked up by, its key or for a lease its task. lease: number of the newest lease record of its task
    that there was when it was written, 0 if none.
    """

    order: int
    kind: str
    name: str
    n: int
    key: str
    task: str
    lease: int
    line: bytes

    @property
    def place(self) -> Place:
        return (self.kind, self.name)


COLUMNS = ", ".join(f'"{column}"' for column in Row._fields)


class Rows(Protocol):
    """The rows of a ledger, within one transaction. All methods raise LedgerUnavailableError."""

    @property
    def order(self) -> int:
        """The number of the newest record in the whole ledger."""

    @property
    def now(self) -> float | None:
        """The time of the database's own clock, None if it has none."""

    def of_keys(self, keys: Sequence[str]) -> Iterable[Row]:
        """Every row with one of these keys but leases and steps, and of the leases' and steps' the newest of each."""

    def of_place(self, place: Place, most: int | None = None) -> Sequence[Row]:
        """The rows of a kind and name by number, the last ones if there are more than most."""

    def last(self, place: Place) -> int:
        """The number of the last row of a kind and name, 0 if there is none."""

    def lease_seen(self, task: str) -> int:
        """The number of the newest lease record of the task that any record of the task has seen."""

    def keys_of(self, task: str) -> Iterable[str]:
        """Every key with a row of this task; a flow's root is none."""

    def all_keys(self) -> Iterable[str]:
        """Every key with a row."""

    def all_tasks(self) -> Iterable[str]:
        """Every task with a row."""

    def roots(self) -> Iterable[str]:
        """Every flow with a row."""

    def all(self, store: str) -> Iterator[Row]:
        """Every row of a store, in the order of their writing."""

    def insert(self, row: Row) -> None:
        """Add a row, durable with the transaction."""


def from_values(values: Sequence[Any]) -> Row:
    """The row that a database returns. Raises LedgerUnavailableError if it has what the table does not take.

    Damage to a database's own pages can make anything of a value. A line that is no bytes is an illegible one.
    """
    if [type(value) for value in values[:-1]] != [int, str, str, int, str, str, int]:
        raise _of_another_type()
    return Row._make((*values[:-1], values[-1] if isinstance(values[-1], bytes) else b""))


def number(value: object) -> int:
    """The number that a database returns, 0 for none. Raises LedgerUnavailableError if it is no number."""
    if value is None:
        return 0
    if type(value) is not int:
        raise _of_another_type()
    return value


def _of_another_type() -> LedgerUnavailableError:
    return LedgerUnavailableError("ledger", "a row has a value of another type than its column")


def row_of(record: Record, *, order: int, n: int, refs: Mapping[str, int]) -> Row:
    """The row of a new record. refs: the number of the newest record of each other kind."""
    line = encode(record, n, None, refs)[:-1]
    kind, name = place(record.kind, record.key, record.task)
    return Row(order, kind, name, n, record.key, record.task, refs.get("lease", 0), line)


def read(row: Row) -> Line:
    """The line of a row; damaged if it is not what the row is found by."""
    line = decode(row.line)
    if line.health is not Health.INTACT and not line.lost:
        return line
    there = (line.kind, place(*line.owner)[1], line.seq, line.key, line.task, line.refs.get("lease", 0))
    return line if there == (row.kind, row.name, row.n, row.key, row.task, row.lease) else CORRUPT
