"""Where the records of a test live: files of JSON lines, a file of SQLite, a schema of PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import apsw

from onestart.jsonl.ledger import JsonlLedger
from onestart.ports import Clock, Ledger, View
from onestart.records import Record
from onestart.sql.sqlite import SqliteLedger

if TYPE_CHECKING:
    import pytest

    from onestart.sql.postgres import PostgresLedger
    from postgres_server import RealServer

T = TypeVar("T")

KINDS = ("jsonl", "sqlite", "postgres")
HANG = 20.0  # seconds


class Store(Protocol):
    """A ledger's records, seen from outside."""

    def ledger(self, clock: Clock) -> Ledger:
        """Opened anew."""

    def lines(self, name: str) -> list[bytes]:
        """The lines of a store, none if there is none yet."""

    def put(self, name: str, number: int, line: bytes) -> None:
        """Put a line in the place of another; they are counted from 0."""

    def lose(self, name: str) -> None:
        """Lose a store."""

    def spot(self, name: str, number: int, place: str) -> str:
        """Where a finding says that a record is, the line of that number, or the place."""

    @property
    def address(self) -> str:
        """As it is typed."""

    def close(self) -> None:
        """Close what was opened."""


class JsonlStore:
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "ledger"

    def ledger(self, clock: Clock) -> Ledger:
        return JsonlLedger(self._folder)

    def lines(self, name: str) -> list[bytes]:
        return self._file(name).read_bytes().splitlines() if self._file(name).exists() else []

    def put(self, name: str, number: int, line: bytes) -> None:
        lines = self._file(name).read_bytes().splitlines(keepends=True)
        lines[number] = line + b"\n"
        self._file(name).write_bytes(b"".join(lines))

    def lose(self, name: str) -> None:
        self._file(name).unlink()

    def spot(self, name: str, number: int, place: str) -> str:
        return f"{name}.jsonl:{number}"

    @property
    def address(self) -> str:
        return f"jsonl:///{self._folder}"

    def close(self) -> None:
        """Files are not kept open between tests."""

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.jsonl"


class SqliteStore:
    """A file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ledger.sqlite"

    def ledger(self, clock: Clock) -> Ledger:
        return SqliteLedger(self._path)

    def lines(self, name: str) -> list[bytes]:
        if not self._path.exists():
            return []
        found = apsw.Connection(str(self._path)).execute(f'SELECT "line" FROM "{name}" ORDER BY "order"')
        return [bytes(line) for (line,) in found]

    def put(self, name: str, number: int, line: bytes) -> None:
        with apsw.Connection(str(self._path)) as connection:
            where = f'"order" = (SELECT "order" FROM "{name}" ORDER BY "order" LIMIT 1 OFFSET {number})'
            connection.execute(f'UPDATE "{name}" SET "line" = ? WHERE {where}', (line,))

    def lose(self, name: str) -> None:
        with apsw.Connection(str(self._path)) as connection:
            connection.execute(f'DELETE FROM "{name}"')

    def spot(self, name: str, number: int, place: str) -> str:
        return f"{name}:{place}"

    @property
    def address(self) -> str:
        return f"sqlite:///{self._path}"

    def close(self) -> None:
        """The file is closed with its last reference."""


class PostgresStore:
    """A schema of its own, on the server of all tests."""

    def __init__(self, server: RealServer) -> None:
        self.server = server
        self.schema = server.schema()
        self._opened: list[PostgresLedger] = []

    def open(self, **more: Any) -> PostgresLedger:
        """The ledger, closed with the store."""
        from onestart.sql.postgres import PostgresLedger

        ledger = PostgresLedger(**({"conninfo": self.server.conninfo, "schema": self.schema} | more))
        self._opened.append(ledger)
        return ledger

    def ledger(self, clock: Clock) -> Ledger:
        return ClockedLedger(self.open(), clock)

    def lines(self, name: str) -> list[bytes]:
        if not self.exists(name):
            return []
        return [line for (line,) in self.ask(f'SELECT "line" FROM "{name}" ORDER BY "order"')]

    def put(self, name: str, number: int, line: bytes) -> None:
        where = f'"order" = (SELECT "order" FROM "{name}" ORDER BY "order" LIMIT 1 OFFSET {number})'
        self.ask(f'UPDATE "{name}" SET "line" = %s WHERE {where}', [line])

    def lose(self, name: str) -> None:
        self.ask(f'DELETE FROM "{name}"')

    def spot(self, name: str, number: int, place: str) -> str:
        return f"{name}:{place}"

    def ask(self, text: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """What the server answers."""
        return self.server.ask(text, parameters or [], self.schema)

    @property
    def address(self) -> str:
        return f"{self.server.conninfo}&schema={self.schema}"

    def until_locked(self, *, until: Callable[[], bool] = lambda: False) -> None:
        """Until a session waits for a lock on this ledger, or until something else has come about."""
        waits = "wait_event_type = 'Lock' AND strpos(query, %s) > 0"
        self._until(f"SELECT count(*) FROM pg_stat_activity WHERE {waits}", 1, until)

    def until_quiet(self) -> None:
        """Until no session is within a transaction on this ledger."""
        held = "SELECT count(*) FROM pg_locks WHERE relation = to_regclass(%s || '.ledger') AND pid <> pg_backend_pid()"
        self._until(held, 0, lambda: False)

    def exists(self, name: str) -> bool:
        return self.ask(f"SELECT to_regclass('{self.schema}.{name}') IS NOT NULL") == [(True,)]

    def _until(self, wanted: str, number: int, until: Callable[[], bool]) -> None:
        end = time.monotonic() + HANG
        with self.server.connection() as connection:
            while connection.execute(wanted, [f'"{self.schema}"']).fetchone() != (number,) and not until():
                assert time.monotonic() < end, "it never came about"

    def close(self) -> None:
        for ledger in self._opened:
            ledger.close()


class ClockedLedger:
    """A ledger with a clock of its own, whose time goes on as the test's does beside real time."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger, self._clock, self._began = ledger, clock, clock.now()

    async def step(self, decide: Callable[[View], tuple[Record | None, T]]) -> T:
        return await self._ledger.step(lambda view: decide(_ClockedView(view, self._clock)))


class _ClockedView:
    def __init__(self, view: View, clock: Clock) -> None:
        self._view, self._clock = view, clock

    @property
    def now(self) -> float:
        assert self._view.now is not None
        return self._view.now + self._clock.now()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


def store(kind: str, folder: Path, request: pytest.FixtureRequest | None = None) -> Store:
    """An empty one. request: of the test, which has the server."""
    if kind == "postgres":
        assert request is not None
        return PostgresStore(request.getfixturevalue("postgres"))
    return SqliteStore(folder) if kind == "sqlite" else JsonlStore(folder)
