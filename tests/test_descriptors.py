"""Files of a ledger that stay open: never another one than the path leads to, and none is left over."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest

from onestart.jsonl import JsonlLedger, LocalFiles
from onestart.jsonl.descriptors import Descriptors
from onestart.ports import LedgerUnavailableError
from onestart.records import Receipt


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def record(ledger: JsonlLedger, key: str) -> None:
    await ledger.step(lambda _: (Receipt(key, "t", "pending", "f"), None))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_ledger_that_is_gone_has_nothing_open(tmp_path: Path) -> None:
    """However many steps it has taken; and it opens nothing anew from one to the next."""

    async def steps() -> tuple[int, int]:
        ledger = JsonlLedger(tmp_path / "l")
        await record(ledger, "a")
        await record(ledger, "b")
        first = open_files()
        for number in range(20):
            await record(ledger, f"c{number}")
        return first, open_files()

    before = open_files()
    first, last = asyncio.run(steps())
    assert first == last
    for _ in range(200):
        gc.collect()
        if open_files() <= before:
            break
        os.sched_yield()
    assert open_files() <= before


def test_a_file_that_took_the_place_of_another_is_the_one_that_is_read(tmp_path: Path) -> None:
    """Whether its status was asked for or not since the lock was taken."""
    files, lock, path, other = LocalFiles(), str(tmp_path / "lock"), str(tmp_path / "file"), str(tmp_path / "other")
    files.write_new(path, b"old")
    for content in (b"new", b"newer"):
        with files.lock(lock):
            assert files.read(path, 0, 9) != content
        files.write_new(other, content)
        os.rename(other, path)
        with files.lock(lock):
            if content == b"newer":
                files.status(path)
            assert files.read(path, 0, 9) == content
            files.append(path, b"!")
            files.sync(path)
            assert files.read(path, 0, 9) == content + b"!"
        files.status(path)


def test_a_file_that_is_replaced_while_it_is_in_use_is_refused(tmp_path: Path) -> None:
    """What was read of one file must not decide what is appended to another."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    kept = Descriptors()
    kept.get(str(path), os.O_RDONLY)
    path.rename(tmp_path / "gone")
    path.write_bytes(b"new")
    with pytest.raises(OSError, match="replaced while it was in use"):
        kept.get(str(path), os.O_WRONLY | os.O_APPEND)
    kept.begin()
    assert os.pread(kept.get(str(path), os.O_RDONLY), 9, 0) == b"new"


def test_a_store_that_gives_way_to_a_folder_or_a_link_is_not_read_on(tmp_path: Path) -> None:
    """Although the old one is still open."""

    async def replaced(how: str) -> str:
        ledger = JsonlLedger(tmp_path / how)
        await record(ledger, "a")
        await record(ledger, "b")
        store = tmp_path / how / "receipts.jsonl"
        store.rename(tmp_path / f"{how}-old")
        if how == "folder":
            store.mkdir()
        else:
            store.symlink_to(tmp_path / f"{how}-old")
        with pytest.raises(LedgerUnavailableError) as raised:
            await record(ledger, "c")
        return str(raised.value)

    assert "regular file" in asyncio.run(replaced("folder"))
    assert "symbolic link" in asyncio.run(replaced("link"))


def test_a_forked_child_uses_what_it_has_inherited(tmp_path: Path) -> None:
    """Its records are behind those of its parent, and the parent's behind them."""

    ledger = JsonlLedger(tmp_path / "l")
    asyncio.run(record(ledger, "a"))
    asyncio.run(record(ledger, "b"))
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(record(ledger, "c"))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    asyncio.run(record(ledger, "d"))
    assert asyncio.run(ledger.step(lambda view: (None, list(view.all_keys())))) == ["a", "b", "c", "d"]
