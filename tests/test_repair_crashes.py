"""A repair that breaks off, at whatever point, leaves the old generation in force, and the next repair gets through."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from onestart.jsonl.ledger import JsonlLedger, current
from onestart.jsonl.repair import repair
from onestart.jsonl.verify import verify
from onestart.ledgers import repair_ledger, verify_ledger
from onestart.ports import LedgerUnavailableError, View
from onestart.records import Attempt, Note, Receipt, Record
from onestart.sql.sqlite import SqliteLedger
from onestart.sql.sqlite_file import in_force
from onestart_conformance.disk import Disk, Fuse, SimulatedFiles
from onestart_conformance.gates import ProcessDied

RECORDS: list[Record] = [
    Receipt("a", "t", "pending", "f"),
    Attempt("a", "t", "offered", "f"),
    Attempt("a", "t", "intended", "f", 1),
    Note("a", "t", 1),
    Receipt("b", "t", "pending", "f"),
]


async def at_once(function: Callable[[], Any]) -> Any:
    return function()


def finish(work: Any) -> Any:
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def put(ledger: Any, records: list[Record]) -> None:
    for record in records:
        finish(ledger.step(lambda view, record=record: (record, None)))


def attempt(ledger: Any) -> Any:
    def look(view: View) -> tuple[None, Any]:
        return None, (view.attempt("a").count, view.attempt("a").health, view.receipt("b").newest)

    return finish(ledger.step(look))


def damaged_disk() -> Disk:
    disk = Disk()
    put(JsonlLedger("l", files=SimulatedFiles(disk), run=at_once), RECORDS)
    image = disk.files["l/attempts.jsonl"]
    image.data[len(image.data) - 40] ^= 1
    return disk


def crashes() -> Iterator[tuple[Disk, bool]]:
    """The disk after a repair that died, or failed, at each of its operations; and whether the power went too."""
    for error in (False, True):
        for power in (False, True):
            for left in range(100):
                disk = damaged_disk()
                files = SimulatedFiles(disk)
                files.fuse = Fuse(left, torn=left * 37 % 256, error=error)
                try:
                    repair("l", files)
                except (ProcessDied, LedgerUnavailableError):
                    pass
                else:
                    break
                if power:
                    disk.power_failure(random.Random(left))
                yield disk, power


def test_files_of_a_repair_that_broke_off() -> None:
    """All that was recorded is there, in the old generation or in the new one; the damaged record is never absent."""
    seen = set()
    for disk, _ in crashes():
        before = deepcopy(disk.files["l/attempts.jsonl"].data)
        files = SimulatedFiles(disk)
        generation = current(files, "l")
        seen.add(generation)
        ledger = JsonlLedger("l", files=files, run=at_once)
        assert attempt(ledger) == (2, "corrupt", RECORDS[4])
        put(ledger, [Receipt("c", "t", "pending", "f")])
        if generation == "l":
            assert repair("l", files).place == current(files, "l") != "l"
        assert attempt(ledger) == (2, "corrupt", RECORDS[4])
        assert sum(report.damage for report in verify("l", files)) == 0
        assert disk.files["l/attempts.jsonl"].data == before
    assert seen == {"l", "l/generation-2"}


STEPS = ("open", "link", "unlink", "fsync")


@contextmanager
def breaking(patch: pytest.MonkeyPatch, name: str, left: int) -> Iterator[list[int]]:
    """Calls of a function of the operating system go well so often. Yields how many there were."""
    real, calls = getattr(os, name), [0]

    def broken(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] > left:
            raise OSError(errno.EIO, "Input/output error")
        return real(*arguments, **named)

    with patch.context() as patched:
        patched.setattr(os, name, broken)
        yield calls


@pytest.mark.parametrize("name", STEPS)
def test_a_file_of_a_repair_that_broke_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    tried = 0
    for left in range(20):
        path = tmp_path / str(left) / "ledger.sqlite"
        ledger = SqliteLedger(path, run=at_once)
        put(ledger, RECORDS)
        finish(ledger.step(lambda view: (None, None)))
        ledger._open.connection.execute("UPDATE attempts SET line = substr(line, 2) WHERE n = 2")  # type: ignore[union-attr]
        with breaking(monkeypatch, name, left) as calls:
            try:
                repair_ledger(f"sqlite:///{path}")
            except LedgerUnavailableError:
                tried += 1
        if calls[0] <= left:
            break
        assert attempt(ledger)[:2] == (2, "corrupt")
        if in_force(str(path)) == str(path):
            repair_ledger(f"sqlite:///{path}")
        assert attempt(ledger) == (2, "corrupt", RECORDS[4])
        assert sum(report.damage for report in verify_ledger(f"sqlite:///{path}")) == 0
    assert tried
