"""Where ledgers of a kind are kept while they are probed: a folder, a file, a schema, a piece of memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import apsw

from onestart.jsonl.ledger import JsonlLedger
from onestart.memory import MemoryLedger
from onestart.ports import Ledger
from onestart.records import STORES
from onestart.sql.sqlite import SqliteLedger

Contents = Mapping[str, list[bytes]]


class Place(ABC):
    """One ledger, that any number of processes may open."""

    can_lose = True

    @abstractmethod
    def open(self) -> Ledger:
        """The ledger as another process opens it."""

    @abstractmethod
    async def contents(self) -> Contents:
        """The lines of each store, in the order of their writing, read around the ledger."""

    @abstractmethod
    async def lose(self, store: str) -> None:
        """Empty a store behind the ledger's back."""

    async def keep(self) -> bytes | None:
        """A copy of a file that holds records, of all if there is one, after every process has ended; None if nobody
        but the ledger can make one.
        """
        return None

    async def put_back(self, kept: bytes) -> None:
        """Put a copy in the place of that file, after every process has ended."""
        raise NotImplementedError

    async def reopen(self) -> None:
        """Let every process end, and another one look."""
        await self.open().step(lambda view: (None, view.order))

    @abstractmethod
    async def close(self) -> None:
        """Let everything go that is still open."""


class MemoryPlace(Place):
    """A ledger in memory: one process, nothing lasting."""

    can_lose = False

    def __init__(self, folder: Path) -> None:
        self._ledger = MemoryLedger()

    def open(self) -> Ledger:
        return self._ledger

    async def contents(self) -> Contents:
        return {"records": [repr(record).encode() for record in self._ledger.records]}

    async def lose(self, store: str) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        return


class JsonlPlace(Place):
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "ledger"

    def open(self) -> Ledger:
        return JsonlLedger(self._folder)

    async def contents(self) -> Contents:
        files = {store: self._folder / f"{store}.jsonl" for store in STORES}
        return {s: file.read_bytes().splitlines() if file.exists() else [] for s, file in files.items()}

    async def lose(self, store: str) -> None:
        (self._folder / f"{store}.jsonl").unlink()

    async def keep(self) -> bytes | None:
        return (self._folder / "receipts.jsonl").read_bytes()

    async def put_back(self, kept: bytes) -> None:
        (self._folder / "receipts.jsonl").write_bytes(kept)

    async def close(self) -> None:
        return


class SqlitePlace(Place):
    """A file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ledger.sqlite"
        self._opened: list[SqliteLedger] = []

    def open(self) -> Ledger:
        self._opened.append(SqliteLedger(self._path))
        return self._opened[-1]

    async def contents(self) -> Contents:
        if not self._path.exists():
            return {store: [] for store in STORES}
        rows = self._execute('SELECT "line" FROM "{}" ORDER BY "order"')
        return {store: [bytes(line) for (line,) in rows(store)] for store in STORES}

    async def lose(self, store: str) -> None:
        self._execute('DELETE FROM "{}"')(store)

    async def keep(self) -> bytes | None:
        await self.close()
        return self._path.read_bytes()

    async def put_back(self, kept: bytes) -> None:
        await self.close()
        self._path.write_bytes(kept)

    async def reopen(self) -> None:
        await self.close()
        await super().reopen()

    async def close(self) -> None:
        for ledger in self._opened:
            ledger.close()
        self._opened.clear()

    def _execute(self, sql: str) -> Callable[[str], list[Any]]:
        connection = apsw.Connection(str(self._path))

        def run(store: str) -> list[Any]:
            return connection.execute(sql.format(store)).fetchall()

        return run


PLACES: Mapping[str, Callable[[Path], Place]] = {"memory": MemoryPlace, "jsonl": JsonlPlace, "sqlite": SqlitePlace}
