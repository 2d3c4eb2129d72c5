"""How long it takes to open a large ledger, to take a step on it, and to verify it; and how much memory.

    python benchmarks/large_ledgers.py [jsonl|sqlite] [RECEIPTS ...]

Each number is measured in a process of its own. The first opening of JSON lines reads all and writes the index.
"""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from onestart.jsonl.ledger import MARK
from onestart.ledgers import Address, open_ledger, verify_ledger
from onestart.lines import Owner, encode
from onestart.ports import View
from onestart.records import Receipt
from onestart.sql.rows import row_of
from onestart.sql.sqlite_file import created
from onestart.sql.sqlite_rows import SqliteRows

_STEPS = 300


def make(kind: str, place: Path, count: int) -> None:
    """A ledger of so many receipts, each of a key and a task of its own."""
    if kind == "sqlite":
        make_file(place, count)
    else:
        make_folder(place, count)


def make_file(path: Path, count: int) -> None:
    connection = created(str(path))
    rows = SqliteRows(connection)
    with rows.transaction():
        for number in range(1, count + 1):
            rows.insert(row_of(receipt(f"key-{number}", f"task-{number}", number), order=number, n=1, refs={}))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def make_folder(folder: Path, count: int) -> None:
    folder.mkdir()
    (folder / "ledger.json").write_bytes(MARK)
    before: Owner | None = None
    with (folder / "receipts.jsonl").open("wb") as file:
        for number in range(1, count + 1):
            record = receipt(f"key-{number}", f"task-{number}", number)
            file.write(encode(record, number, before, {}))
            before = (record.kind, record.key, record.task)


def receipt(key: str, task: str, number: int) -> Receipt:
    command = {"key": key, "task": task, "function": "x", "actor": "a", "payload": {"a": number}}
    return Receipt(key, task, "pending", "f" * 32, command)


async def opened(address: str) -> None:
    """Print the seconds of the first step, and the median milliseconds of a step that looks and records."""
    ledger = open_ledger(address)
    start = time.perf_counter()
    await ledger.step(lambda view: (None, view.receipt("key-5").newest))
    first, taken = time.perf_counter() - start, list[float]()
    for number in range(_STEPS):
        key = f"new-{time.time_ns()}"

        def decide(view: View, key: str = key, number: int = number) -> tuple[Receipt, None]:
            assert not view.receipt(key).exists
            assert view.receipt(f"key-{number + 1}").exists
            return receipt(key, key, number), None

        start = time.perf_counter()
        await ledger.step(decide)
        taken.append(time.perf_counter() - start)
    print(f"{first:.2f} s, then {statistics.median(taken) * 1000:.2f} ms a step, {peak():.0f} MB")


def verified(address: str) -> None:
    start = time.perf_counter()
    damage = sum(report.damage for report in verify_ledger(address))
    print(f"{time.perf_counter() - start:.1f} s, {peak():.0f} MB, {damage} damaged")


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def measure(kind: str, count: int, place: Path) -> None:
    make(kind, place, count)
    os.sync()  # else the disk is still at it while steps are measured
    address = str(Address(kind, str(place)))
    for what in ("open", "open", "open", "verify"):
        done = subprocess.run([sys.executable, __file__, what, address], check=True, capture_output=True, text=True)
        print(f"{kind}, {count} receipts, {what}: {done.stdout.strip()}", flush=True)
    files = sorted(place.iterdir()) if place.is_dir() else [place]
    sizes = ", ".join(f"{file.name} {file.stat().st_size / 1e6:.1f} MB" for file in files)
    print(f"{kind}, {count} receipts: {sizes}", flush=True)


def main() -> None:
    match sys.argv[1:]:
        case ["open", address]:
            asyncio.run(opened(address))
        case ["verify", address]:
            verified(address)
        case ["jsonl" | "sqlite" as kind, *counts]:
            for count in map(int, counts or ["1000", "1000000"]):
                with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER", ".")) as place:
                    measure(kind, count, Path(place, "ledger").absolute())
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
