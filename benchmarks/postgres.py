"""The ledger in PostgreSQL beside bare commits of the same server: one client, and 64 tasks that share transactions.

Takes where the server is, as psycopg does. Makes a schema of its own there and drops it. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from itertools import count

import psycopg

from onestart import evidence
from onestart.ports import View
from onestart.records import Receipt, Record
from onestart.sql.postgres import PostgresLedger

SCHEMA = "onestart_benchmark"
ROUNDS = 5


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("conninfo")
    parser.add_argument("--steps", type=int, default=300, help="in each measurement")
    options = parser.parse_args()
    with psycopg.connect(options.conninfo, autocommit=True) as server:
        server.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        try:
            for prepared in (False, True):
                report(options.conninfo, options.steps, prepared=prepared)
        finally:
            server.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")


def report(conninfo: str, steps: int, *, prepared: bool) -> None:
    """Interleaved, and the median of each."""
    numbers = count()
    measured: dict[str, list[float]] = {"commits": [], "one": [], "many": []}
    for _ in range(ROUNDS):
        measured["commits"].append(commits(conninfo, steps))
        measured["one"].append(asyncio.run(written(conninfo, numbers, 1, steps, prepared=prepared)))
        measured["many"].append(asyncio.run(written(conninfo, numbers, 64, steps, prepared=prepared)))
    bare, one, many = (statistics.median(times) for times in measured.values())
    print(f"{'prepared' if prepared else 'as shipped'}:")
    print(f"  bare commits a second         {1 / bare:8,.0f}")
    print(f"  steps a second, one client    {1 / one:8,.0f}   {one / bare:.2f} x the time of a bare commit")
    print(f"  steps a second, 64 tasks      {1 / many:8,.0f}   {one / many:.1f} x the rate of one client")


def commits(conninfo: str, number: int) -> float:
    """Seconds that an insert takes in a transaction of its own."""
    with psycopg.connect(conninfo, autocommit=True, prepare_threshold=None) as server:
        server.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}_bare")
        try:
            server.execute(f"CREATE TABLE {SCHEMA}_bare.bare (line bytea)")
            insert = f"INSERT INTO {SCHEMA}_bare.bare VALUES (%s)"  # noqa: S608
            start = time.perf_counter()
            for _ in range(number):
                server.execute(insert, (b"x" * 200,))
            return (time.perf_counter() - start) / number
        finally:
            server.execute(f"DROP SCHEMA {SCHEMA}_bare CASCADE")


async def written(conninfo: str, numbers: count[int], tasks: int, steps: int, *, prepared: bool) -> float:
    """Seconds that a step takes that looks whether a key is new, and records a receipt."""
    ledger = PostgresLedger(conninfo, schema=SCHEMA, prepared=prepared)

    async def some() -> None:
        for _ in range(max(1, steps // tasks)):
            key = f"key {next(numbers)}"

            def decide(view: View, key: str = key) -> tuple[Record | None, bool]:
                fresh = evidence.never_intended(view, key, f"task of {key}")
                return Receipt(key, f"task of {key}", "pending", "print", {"payload": "x" * 50}), fresh

            await ledger.step(decide)

    await ledger.step(lambda view: (None, None))
    start = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(tasks)))
    seconds = time.perf_counter() - start
    ledger.close()
    return seconds / (max(1, steps // tasks) * tasks)


if __name__ == "__main__":
    main()
