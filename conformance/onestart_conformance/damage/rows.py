"""A ledger of rows as a medium: what every database has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

from onestart.ledgers import Address, verify_ledger
from onestart.ports import LedgerUnavailableError
from onestart.records import STORES
from onestart.sql.rows import COLUMNS, Row
from onestart_conformance.damage.medium import PLACE, Verified

T = TypeVar("T")

FAR = 1_000_000  # so much higher is the number of a row that was put in by hand


class OfRows(ABC):
    """A store is a table, a record is the line of a row."""

    name: str
    stores = tuple(STORES)
    numbering = PLACE
    prefix = ""
    readable = True

    @property
    @abstractmethod
    def address(self) -> Address:
        """Where the ledger is."""

    @abstractmethod
    def run(self, sql: str, *values: Any) -> None:
        """Change the database with this, as somebody might by hand; nothing happens if it does not let them."""

    @abstractmethod
    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a result, none if it cannot be had."""

    def verify(self) -> Verified:
        try:
            reports = verify_ledger(self.address)
        except LedgerUnavailableError as error:
            return Verified({}, (), str(error))
        return Verified({r.store: r.damage for r in reports}, tuple(text for r in reports for text in r.findings))

    def rows(self, store: str) -> list[Row]:
        """All rows of a table, in the order of their writing."""
        if not self.readable:
            return []
        return [
            Row._make(values) for values in self.ask(f'SELECT {COLUMNS} FROM {self._table(store)} ORDER BY "order"')
        ]

    def records(self, store: str) -> tuple[bytes, ...]:
        return tuple(_bytes(row.line) for row in self.rows(store))

    def torn(self, store: str) -> bool:
        return False

    def replace(self, store: str, record: int, data: bytes) -> None:
        self.edit(store, record, "line", data)

    def edit(self, store: str, record: int, column: str, value: object) -> None:
        """Put another value into a column of a record's row, where the table takes it."""
        order = self.rows(store)[record].order
        self.run(f'UPDATE {self._table(store)} SET "{column}" = ? WHERE "order" = ?', value, order)

    def insert(self, store: str, record: int, data: bytes) -> None:
        """As a row of its own, at the end: a place takes no two rows of one number."""
        rows = self.rows(store)
        like = next((row for row in rows if row.line == data), None)
        kind, name, key, task = (like.kind, like.name, like.key, like.task) if like else (STORES[store][0], *"???")
        n = 1 + max((row.n for row in rows if row.place == (kind, name)), default=0)
        order = 1 + max((row.order for row in rows), default=0) + FAR
        row = Row(order, kind, name, n, key, task, like.lease if like else 0, data)
        self.run(f"INSERT INTO {self._table(store)} ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *row)

    def delete(self, store: str, record: int) -> None:
        order = self.rows(store)[record].order
        self.run(f'DELETE FROM {self._table(store)} WHERE "order" = ?', order)

    def cut(self, store: str, record: int, byte: int) -> None:
        rows = self.rows(store)
        if record >= len(rows):
            return
        if byte:
            self.replace(store, record, rows[record].line[:byte])
        self.run(f'DELETE FROM {self._table(store)} WHERE "order" >= ?', rows[record].order + bool(byte))

    def remove(self, store: str) -> None:
        self.run(f"DROP TABLE {self._table(store)}")
        self.readable = False

    def cover(self, store: str) -> None:
        self.run(f"DROP TABLE {self._table(store)}")
        self.run(f'CREATE VIEW {self._table(store)} AS SELECT 1 AS "order"')
        self.readable = False

    def bytes(self) -> Mapping[str, bytes]:
        rows = [(store, row) for store in self.stores for row in self.rows(store)]
        return {f"{store}:{row.order}": f"{tuple(row)}".encode() for store, row in rows}

    def _table(self, store: str) -> str:
        return f'{self.prefix}"{store}"'


def _bytes(value: object) -> bytes:
    """The bytes of a line, none if damage has made something else of it."""
    return value if isinstance(value, bytes) else b""
