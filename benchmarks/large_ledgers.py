"""How long it takes to open a large ledger of JSON lines, to submit on it, and to verify it; and how much memory.

    python benchmarks/large_ledgers.py [RECEIPTS ...]

Each number is measured in a process of its own. The first opening reads all and writes the index.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from onestart.jsonl import JsonlLedger
from onestart.jsonl.indexing import NAME
from onestart.jsonl.ledger import MARK
from onestart.jsonl.verify import verify
from onestart.lines import Owner, encode
from onestart.ports import View
from onestart.records import Receipt

_STEPS = 300


def make(folder: Path, count: int) -> None:
    """A ledger of so many receipts, each of a key and a task of its own."""
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


async def opened(folder: Path) -> None:
    """Print the seconds of the first step, and the median milliseconds of a step that looks and records."""
    ledger = JsonlLedger(folder)
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


def verified(folder: Path) -> None:
    start = time.perf_counter()
    damage = sum(report.damage for report in verify(folder))
    print(f"{time.perf_counter() - start:.1f} s, {peak():.0f} MB, {damage} damaged")


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def measure(count: int, folder: Path) -> None:
    make(folder, count)
    for what in ("open", "open", "open", "verify"):
        done = subprocess.run([sys.executable, __file__, what, str(folder)], check=True, capture_output=True, text=True)
        print(f"{count} receipts, {what}: {done.stdout.strip()}", flush=True)
    index = folder / NAME
    sizes = [path.stat().st_size / 1e6 if path.exists() else 0.0 for path in (folder / "receipts.jsonl", index)]
    print(f"{count} receipts: files of {sizes[0]:.1f} MB, an index of {sizes[1]:.1f} MB", flush=True)


def main() -> None:
    match sys.argv[1:]:
        case ["open", folder]:
            asyncio.run(opened(Path(folder)))
        case ["verify", folder]:
            verified(Path(folder))
        case counts:
            for count in map(int, counts or ["1000", "1000000"]):
                with tempfile.TemporaryDirectory() as place:
                    measure(count, Path(place, "ledger"))


if __name__ == "__main__":
    main()
