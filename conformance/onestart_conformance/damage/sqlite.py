"""The ledger in SQLite as a medium: rows that are edited by hand, and the bytes of the file itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import apsw

from onestart.ledgers import Address
from onestart.ports import Ledger
from onestart.sql.sqlite import SqliteLedger
from onestart_conformance.damage.rows import OfRows
from onestart_conformance.storage import at_once

MEMORY = "/dev/shm"  # noqa: S108  # where a sync costs nothing, if there is such a place


class SqliteMedium(OfRows):
    """In a file of its own, which goes when the medium does."""

    name = "sqlite"

    def __init__(self) -> None:
        room = mkdtemp(prefix="onestart-", dir=MEMORY if os.path.isdir(MEMORY) else None)
        finalize(self, shutil.rmtree, room, ignore_errors=True)
        self._path = Path(room) / "ledger.db"
        self._ledgers: list[SqliteLedger] = []

    @property
    def address(self) -> Address:
        return Address("sqlite", str(self._path))

    def ledger(self) -> Ledger:
        ledger = SqliteLedger(self._path, run=at_once)
        self._ledgers.append(ledger)
        return ledger

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

    def run(self, sql: str, *values: Any) -> None:
        if self.readable:
            with self._connection() as connection, suppress(apsw.ConstraintError):
                connection.execute(sql, values)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            with self._connection() as connection:
                return connection.execute(sql).fetchall()
        except (apsw.Error, UnicodeDecodeError):  # pages of the file are damaged
            return []

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
