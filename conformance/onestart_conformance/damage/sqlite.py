"""The ledger in SQLite as a medium: rows that are edited by hand, and the bytes of the file itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeVar
from weakref import finalize

import apsw

from onestart.ledgers import Address, verify_ledger
from onestart.ports import Ledger, LedgerUnavailableError
from onestart.records import STORES
from onestart.sql.rows import COLUMNS, Row
from onestart.sql.sqlite import SqliteLedger
from onestart_conformance.damage.medium import PLACE, Verified

T = TypeVar("T")

MEMORY = "/dev/shm"  # noqa: S108  # where a sync costs nothing, if there is such a place


async def at_once(function: Callable[[], T]) -> T:
    """How a ledger runs its work here."""
    return function()


class SqliteMedium:
    """In a file of its own, which goes when the medium does."""

    name = "sqlite"
    stores = tuple(STORES)
    numbering = PLACE
    counts = True

    def __init__(self) -> None:
        room = mkdtemp(prefix="onestart-", dir=MEMORY if os.path.isdir(MEMORY) else None)
        finalize(self, shutil.rmtree, room, ignore_errors=True)
        self._path = Path(room) / "ledger.db"
        self._ledgers: list[SqliteLedger] = []
        self.readable = True

    def ledger(self) -> Ledger:
        ledger = SqliteLedger(self._path, run=at_once)
        self._ledgers.append(ledger)
        return ledger

    def verify(self) -> Verified:
        try:
            reports = verify_ledger(Address("sqlite", str(self._path)))
        except LedgerUnavailableError as error:
            return Verified({}, (), str(error))
        return Verified({r.store: r.damage for r in reports}, tuple(text for r in reports for text in r.findings))

    def records(self, store: str) -> tuple[bytes, ...]:
        return tuple(_bytes(row.line) for row in self._rows(store))

    def torn(self, store: str) -> bool:
        return False

    def replace(self, store: str, record: int, data: bytes) -> None:
        self.edit(store, record, "line", data)

    def edit(self, store: str, record: int, column: str, value: object) -> None:
        """Put another value into a column of a record's row, where the table takes it."""
        order = self._rows(store)[record].order
        self.run(f'UPDATE OR IGNORE "{store}" SET "{column}" = ? WHERE "order" = ?', value, order)  # noqa: S608

    def insert(self, store: str, record: int, data: bytes) -> None:
        """As a row of its own, at the end: a place takes no two rows of one number."""
        rows = self._rows(store)
        like = next((row for row in rows if row.line == data), None)
        kind, name, key, task = (like.kind, like.name, like.key, like.task) if like else (STORES[store][0], *"???")
        n = 1 + max((row.n for row in rows if row.place == (kind, name)), default=0)
        order = 1 + max((row.order for row in rows), default=0) + 1_000_000
        row = Row(order, kind, name, n, key, task, like.lease if like else 0, data)
        self.run(f'INSERT INTO "{store}" ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)', *row)  # noqa: S608

    def delete(self, store: str, record: int) -> None:
        order = self._rows(store)[record].order
        self.run(f'DELETE FROM "{store}" WHERE "order" = ?', order)  # noqa: S608

    def cut(self, store: str, record: int, byte: int) -> None:
        rows = self._rows(store)
        if record >= len(rows):
            return
        if byte:
            self.replace(store, record, rows[record].line[:byte])
        self.run(f'DELETE FROM "{store}" WHERE "order" >= ?', rows[record].order + bool(byte))  # noqa: S608

    def remove(self, store: str) -> None:
        self.run(f'DROP TABLE "{store}"')
        self.readable = False

    def cover(self, store: str) -> None:
        self.run(f'DROP TABLE "{store}"; CREATE VIEW "{store}" AS SELECT 1 AS "order"')
        self.readable = False

    def refuse(self, store: str) -> None:
        """The whole file: a store has no name of its own that could be refused."""
        self._close()
        self._path.unlink()
        self._path.mkdir()
        self.readable = False

    def image(self) -> bytes:
        """The bytes of the file."""
        return self._path.read_bytes()

    def rewrite(self, image: bytes) -> None:
        """Write the file anew in its place."""
        with open(self._path, "r+b") as file:
            file.write(image)
            file.truncate(len(image))

    def bytes(self) -> Mapping[str, bytes]:
        rows = [(store, row) for store in self.stores for row in self._rows(store)]
        return {f"{store}:{row.order}": f"{tuple(row)}".encode() for store, row in rows}

    def keep(self) -> object:
        self._close()
        return self.image()

    def restore(self, kept: object) -> None:
        assert isinstance(kept, bytes)
        self._close()
        for path in self._path.parent.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        self._path.write_bytes(kept)
        self.readable = True

    def _rows(self, store: str) -> list[Row]:
        if not self.readable:
            return []
        try:
            with self._connection() as connection:
                found = connection.execute(f'SELECT {COLUMNS} FROM "{store}" ORDER BY "order"')  # noqa: S608
                return [Row._make(values) for values in found]
        except (apsw.Error, UnicodeDecodeError):  # pages of the file are damaged
            return []

    def run(self, sql: str, *values: Any) -> None:
        """Change the file with this, as somebody might by hand."""
        if self.readable:
            with self._connection() as connection:
                connection.execute(sql, values)

    @contextmanager
    def _connection(self) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(str(self._path))
        try:
            yield connection
        finally:
            connection.close()

    def _close(self) -> None:
        for ledger in self._ledgers:
            ledger.close()
        self._ledgers.clear()


def _bytes(value: object) -> bytes:
    """The bytes of a line, none if damage has made something else of it."""
    return value if isinstance(value, bytes) else b""
