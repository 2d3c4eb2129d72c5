"""The index beside a ledger's files: stores show the same with it as without, whatever happens to either."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from hashlib import blake2b
from pathlib import Path

import pytest

from indexed_files import (
    ALWAYS,
    QuickFiles,
    everything,
    index_of,
    put,
    read_with,
    read_without,
    refreshed,
    stores_of,
    twin,
)
from onestart.health import Health
from onestart.jsonl import JsonlLedger, LocalFiles
from onestart.jsonl.index import Index
from onestart.jsonl.index_format import TRAILER, UnusableIndexError
from onestart.jsonl.indexing import Indexing
from onestart.jsonl.repair import repair
from onestart.jsonl.stores import Stores
from onestart.jsonl.verify import verify
from onestart.ledgers import inspected
from onestart.lines import encode
from onestart.records import STORES, Lease, Receipt, Record
from test_jsonl_ledger import attempt, receipt, whole

KEYS = tuple(f"k{number}" for number in range(6))
COMMANDS = [record for number in range(4) for record in whole(number)]


def shown(stores: Stores) -> object:
    return everything(stores, KEYS, ("t", "u"))


# --- equal, wherever the index ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("covered", range(0, len(COMMANDS) + 1, 2))
def test_an_index_of_every_prefix_changes_nothing(tmp_path: Path, covered: int) -> None:
    """And it is of use: of what it covers only the last line of each file is read."""
    put(stores_of(tmp_path), *COMMANDS[: max(covered - 1, 0)])
    put(stores_of(tmp_path, ALWAYS), *COMMANDS[max(covered - 1, 0) : covered])
    sizes = {store: (tmp_path / f"{store}.jsonl") for store in STORES}
    before = {store: path.stat().st_size if path.exists() else 0 for store, path in sizes.items()}
    put(stores_of(tmp_path), *COMMANDS[covered:])
    assert index_of(tmp_path).exists() is (covered > 0)
    found = stores_of(tmp_path, ALWAYS, durable=False)
    found.refresh()
    if covered == len(COMMANDS):
        files = next(iter(found.journals.values()))._files
        assert all(files.read_of[store] < before[store] for store in STORES if before[store] > 700)  # type: ignore[attr-defined]
    assert shown(found) == shown(read_without(tmp_path))


@pytest.mark.parametrize("least", [0, 1, 4, 11])
def test_a_ledger_that_goes_on_is_the_same(tmp_path: Path, least: int) -> None:
    """A process that writes indexes, and another one that opens the ledger after each step."""
    writer, plain = stores_of(tmp_path, Indexing(least, 1 << 40)), stores_of(tmp_path)
    for record in COMMANDS:
        put(writer, record)
        expected = shown(refreshed(plain))
        assert shown(refreshed(writer)) == expected
        assert shown(read_with(tmp_path)) == expected
    assert index_of(tmp_path).exists()


def test_many_keys_and_much_of_one(tmp_path: Path) -> None:
    """Buckets are parted when they grow; a task has more leases and keys than a bucket has rows."""
    texts = ["\ud800", "", "a\0b", "ключ", "k" * 300]
    writer = stores_of(tmp_path, Indexing(40, 3))
    for number in range(420):
        key = f"{texts[number % 5]}{number}"
        put(writer, Receipt(key, f"t{number % 150}" if number % 2 else "hot", "pending", "f"))
        if number % 2:
            put(writer, Lease("hot", number + 1, key, 1.0))
    found, plain = read_with(tmp_path), read_without(tmp_path)
    assert everything(found) == everything(plain)
    assert sum(1 for _ in found.all_keys()) == 420
    assert Index(str(index_of(tmp_path))).head.entries.buckets > 4


def test_a_key_of_two_tasks_is_of_the_first(tmp_path: Path) -> None:
    records = [Receipt("k", task, "pending", "f") for task in ("u", "t", "u", "v")]
    for count in range(5):
        folder = tmp_path / str(count)
        folder.mkdir()
        put(stores_of(folder, ALWAYS), *records[:count])
        put(stores_of(folder), *records[count:])
        assert shown(read_with(folder)) == shown(read_without(folder))
        assert read_with(folder).task_of("k") == "u"


# --- what the index is not believed about -----------------------------------------------------------------------------


def test_damage_behind_the_index_is_noticed(tmp_path: Path) -> None:
    put(stores_of(tmp_path, ALWAYS), *COMMANDS)
    path = tmp_path / "receipts.jsonl"
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    start = sum(map(len, lines[:3]))  # the newest of k1
    for position in range(start, start + len(lines[3])):
        with path.open("r+b") as file:
            file.seek(position)
            file.write(bytes([data[position] ^ 1]))
            file.flush()
            reading = read_with(tmp_path).receipt("k1")
            assert (reading.count, reading.health.degraded) == (2, True), position
            file.seek(position)
            file.write(data[position : position + 1])
    assert read_with(tmp_path).receipt("k1").health is Health.INTACT


def test_another_file_that_ends_in_the_same_way_is_read(tmp_path: Path) -> None:
    put(stores_of(tmp_path, ALWAYS), receipt("k0"), receipt("k1"), receipt("k2"))
    path = tmp_path / "receipts.jsonl"
    other = path.read_bytes().replace(b"k0", b"k5")
    first = encode(receipt("k5"), 1, None, {})
    assert len(first) == other.index(b"\n") + 1
    (tmp_path / "other").write_bytes(first + path.read_bytes()[len(first) :])
    (tmp_path / "other").replace(path)
    assert read_with(tmp_path).receipt("k5").health is Health.INTACT
    assert read_with(tmp_path).receipt("k0").health is Health.ABSENT


def test_the_same_file_with_another_content_is_read(tmp_path: Path) -> None:
    """Restored in place: as long as it was, or longer, with other records."""
    put(stores_of(tmp_path, ALWAYS), receipt("k0"), receipt("k1"))
    path = tmp_path / "receipts.jsonl"
    made, before = b"", None
    for number in (5, 4, 3, 2):
        record = receipt(f"k{number}")
        made += encode(record, made.count(b"\n") + 1, before, {})
        before = (record.kind, record.key, record.task)
    path.write_bytes(made)
    assert read_with(tmp_path).receipt("k5").health is Health.INTACT
    assert shown(read_with(tmp_path)) == shown(read_without(tmp_path))


def garbage(data: bytes) -> list[bytes]:
    flipped = [data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :] for at in range(0, len(data), 23)]
    cut = [data[:length] for length in range(0, len(data), 301)]
    newer = data.replace(b'"version":1', b'"version":2')
    return [*flipped, *cut, newer, b"", bytes(len(data)), data + b"x", data[::-1], b"SQLite format 3\0" + data]


def test_a_damaged_index_is_ignored(tmp_path: Path) -> None:
    """Nothing that is there becomes absent, whichever of its bytes is another."""
    put(stores_of(tmp_path, ALWAYS), *COMMANDS)
    expected = shown(read_without(tmp_path))
    path = index_of(tmp_path)
    for made in garbage(path.read_bytes()):
        path.write_bytes(made)
        assert shown(read_with(tmp_path)) == expected


def test_an_index_of_a_newer_program_is_ignored(tmp_path: Path) -> None:
    put(stores_of(tmp_path, ALWAYS), *COMMANDS)
    index = Index(str(index_of(tmp_path)))
    encoded = index.head.encoded()
    newer = encoded[: -TRAILER.size].replace(b'"version":1', b'"version":2')
    before = index_of(tmp_path).read_bytes()[: -len(encoded)]
    trailer = TRAILER.pack(len(newer), blake2b(newer, digest_size=16).digest())
    index_of(tmp_path).write_bytes(before + newer + trailer)
    with pytest.raises(UnusableIndexError, match="another version"):
        Index(str(index_of(tmp_path)))
    assert shown(read_with(tmp_path)) == shown(read_without(tmp_path))


@pytest.mark.parametrize("made", ["folder", "link", "fifo", "unreadable"])
def test_what_is_no_file_is_no_index(tmp_path: Path, made: str) -> None:
    put(stores_of(tmp_path, ALWAYS), *COMMANDS[:9])
    expected, path = shown(read_without(tmp_path)), index_of(tmp_path)
    content = path.read_bytes()
    path.unlink()
    if made == "folder":
        path.mkdir()
    elif made == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif made == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(content)
        path.chmod(0)
    writer = stores_of(tmp_path, ALWAYS)
    assert shown(refreshed(writer)) == expected
    put(writer, receipt("k4"))
    assert shown(read_with(tmp_path)) == shown(read_without(tmp_path))


def test_an_index_that_goes_bad_under_a_step_is_done_without(tmp_path: Path) -> None:
    """Also between a record that is appended and its fsync; then a new one is written."""
    put(stores_of(tmp_path, ALWAYS), *COMMANDS)
    path = index_of(tmp_path)
    content = path.read_bytes()
    for look in (
        lambda stores: stores.receipt("k2").count,
        lambda stores: stores.task_of("k2"),
        lambda stores: sorted(stores.keys("t")),
        lambda stores: sorted(stores.all_keys()),
        lambda stores: stores.lease("t").count,
        lambda stores: (stores.append(receipt("k2", "completed")), stores.commit(), stores.receipt("k2").count)[2] > 2,
    ):
        path.write_bytes(content)
        stores = refreshed(stores_of(tmp_path, ALWAYS))
        stores.append(attempt("k4"))
        path.write_bytes(bytes(len(content)))
        expected = look(twin(read_without(tmp_path)))
        assert look(stores) == expected
        stores.commit()
        assert stores.attempt("k4").health is Health.INTACT
        assert shown(refreshed(stores)) == shown(read_without(tmp_path))
    stores.keep_index()
    assert path.read_bytes() != bytes(len(content))
    assert shown(read_with(tmp_path)) == shown(read_without(tmp_path))


def test_an_index_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def full(source: str, target: str) -> None:
        tries.append(1)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        writer = stores_of(tmp_path, Indexing(3, 1 << 40))
        put(writer, *COMMANDS[:18])
    assert 1 < len(tries) < 7
    assert not index_of(tmp_path).exists()
    assert not list(tmp_path.glob("*.new"))
    assert shown(refreshed(writer)) == shown(read_without(tmp_path))
    (tmp_path / "index.new").write_bytes(b"of a process that was killed")
    put(writer, *COMMANDS[18:])
    assert shown(read_with(tmp_path)) == shown(read_without(tmp_path))
    assert Index(str(index_of(tmp_path))).head.lines > 18
    assert not (tmp_path / "index.new").exists()


def test_readers_write_nothing(tmp_path: Path) -> None:
    put(stores_of(tmp_path), *COMMANDS)
    stores_of(tmp_path, ALWAYS, durable=False).look()
    assert not index_of(tmp_path).exists()


def test_what_is_read_without_the_lock_may_have_grown(tmp_path: Path) -> None:
    """Another process appends, and writes an index, between the first and the second look."""
    put(stores_of(tmp_path, ALWAYS), *COMMANDS[:12])
    reader = stores_of(tmp_path, ALWAYS, durable=False)
    others = iter(COMMANDS[12:])

    class Busy(LocalFiles):
        def read(self, path: str, offset: int, length: int) -> bytes:
            found = super().read(path, offset, length)
            for record in [next(others, None)]:
                if record is not None:
                    put(stores_of(tmp_path, ALWAYS), record)
            return found

    for journal in reader.journals.values():
        journal._files = Busy()
    reader.look()
    assert not any(stores for stores in reader.stray())
    assert not any(reader.lost(store) for store in STORES)
    assert not any(reader.receipt(key).health.degraded for key in reader.all_keys())


# --- the ledger itself ------------------------------------------------------------------------------------------------


def append_indexed(folder: str, name: str, count: int) -> None:
    async def go() -> None:
        ledger = JsonlLedger(folder, index=Indexing(7, 1 << 40))
        for number in range(count):
            key = f"{name}-{number}"
            seen = await ledger.step(lambda view: (receipt(key), view.receipt(key).count))  # noqa: B023
            assert seen == 0
            assert await ledger.step(lambda view: (None, view.receipt(key).count)) == 1  # noqa: B023
            if number % 9 == 0:
                ledger = JsonlLedger(folder, index=Indexing(7, 1 << 40))

    asyncio.run(go())


def test_processes_write_indexes_while_others_append(tmp_path: Path) -> None:
    folder = str(tmp_path / "ledger")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=append_indexed, args=(folder, f"p{number}", 40)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    assert Index(str(tmp_path / "ledger" / "index")).head.lines > 100
    found, plain = read_with(tmp_path / "ledger"), read_without(tmp_path / "ledger")
    assert everything(found) == everything(plain)
    assert found.order == 120
    assert not any(one.damage or one.torn for one in verify(folder))


async def stepped(ledger: JsonlLedger, *records: Record) -> int:
    for record in records:
        await ledger.step(lambda view, record=record: (record, None))  # type: ignore[misc]
    return await ledger.step(lambda view: (None, view.order))


def test_files_that_are_given_have_no_index(tmp_path: Path) -> None:
    asyncio.run(stepped(JsonlLedger(tmp_path / "a", index=ALWAYS), *COMMANDS[:9]))
    asyncio.run(stepped(JsonlLedger(tmp_path / "b", files=QuickFiles()), *COMMANDS[:9]))
    asyncio.run(stepped(JsonlLedger(tmp_path / "c", files=QuickFiles(), index=ALWAYS), *COMMANDS[:9]))
    assert [(tmp_path / name / "index").exists() for name in "abc"] == [True, False, True]


def sealed(folder: Path) -> dict[str, bytes]:
    """The files of a generation; what is noted in the lock's file is of the one in force."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file() and file.name != "lock"}


def test_a_new_generation_gets_its_own_index(tmp_path: Path) -> None:
    ledger = JsonlLedger(tmp_path, index=ALWAYS)
    asyncio.run(stepped(ledger, *COMMANDS))
    path = tmp_path / "receipts.jsonl"
    path.write_bytes(path.read_bytes().replace(b"pending", b"gnidnep", 1))
    before = sealed(tmp_path)
    generation = Path(repair(tmp_path).place)
    assert asyncio.run(stepped(ledger, receipt("k5"))) == len(COMMANDS) + 1
    assert sealed(tmp_path) == before
    assert index_of(generation).exists()
    assert shown(read_with(generation)) == shown(read_without(generation))
    with inspected(f"jsonl:///{tmp_path}") as view:
        assert view.receipt("k5").health is Health.INTACT
        assert view.receipt("k0").health is Health.CORRUPT or view.receipt("k0").count == 2


def test_verify_believes_no_index_and_tells_of_its_progress(tmp_path: Path) -> None:
    asyncio.run(stepped(JsonlLedger(tmp_path, index=ALWAYS), *(receipt(f"k{number}") for number in range(1200))))
    path = tmp_path / "receipts.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[700] = lines[700].replace(b"pending", b"gnidnep")
    with path.open("r+b") as file:
        file.write(b"".join(lines))
    told: list[tuple[str, int, int]] = []
    (report, *_) = verify(tmp_path, progress=lambda *what: told.append(what))
    assert (report.lines, report.intact, report.corrupt) == (1200, 1199, 1)
    assert report.findings == ("receipts.jsonl:701: corrupt, receipt of 'k700'",)
    assert [(store, 0 < done < of == path.stat().st_size) for store, done, of in told] == [("receipts", True)]
