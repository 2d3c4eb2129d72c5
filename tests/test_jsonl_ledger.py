"""The ledger of JSON lines: what is damaged is noticed and attributed, what was acknowledged is kept, one at a time."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onestart.group_commit import MOST
from onestart.health import Health, Reading
from onestart.jsonl import Files, JsonlLedger, LocalFiles
from onestart.jsonl.files import Status
from onestart.jsonl.ledger import MARK
from onestart.jsonl.verify import verify
from onestart.lines import decode, encode
from onestart.ports import LedgerUnavailableError, NotALedgerError, View
from onestart.records import STORES, Approval, Attempt, Lease, Note, Receipt, Record, Session, Step
from onestart.verification import StoreReport

T = TypeVar("T")


class Crash(BaseException):
    """The machine stops."""


class Disk:
    """Files in memory. trouble: called before each operation with its name and path; may raise."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.notes: dict[str, bytes] = {}
        self.numbers: dict[str, int] = {}
        self.synced: dict[str, int] = {}
        self.named: set[str] = set()
        self.folders: set[str] = set()
        self.calls: list[tuple[str, str]] = []
        self.trouble: Callable[[str, str], None] = lambda what, path: None

    def put(self, path: str, data: bytes) -> None:
        """Another file in this place."""
        self.files[path] = bytearray(data)
        self.numbers[path] = self.numbers.get(path, 0) + 1
        self.synced[path] = len(data)

    def _begin(self, what: str, path: str) -> None:
        self.calls.append((what, path))
        self.trouble(what, path)

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        self._begin("lock", path)
        yield

    def note(self, path: str, length: int) -> bytes:
        self.trouble("note", path)
        return self.notes.get(path, b"")[:length]

    def leave_note(self, path: str, data: bytes) -> None:
        self.trouble("leave_note", path)
        self.notes[path] = data

    def make_folder(self, path: str) -> None:
        self._begin("make_folder", path)
        self.folders.add(path)

    def list(self, path: str) -> list[str]:
        return [os.path.basename(name) for name in self.files if os.path.dirname(name) == path]

    def status(self, path: str) -> Status | None:
        return Status(self.numbers[path], len(self.files[path])) if path in self.files else None

    def read(self, path: str, offset: int, length: int) -> bytes:
        self._begin("read", path)
        return bytes(self.files[path][offset : offset + length])

    def append(self, path: str, data: bytes) -> None:
        if path not in self.files:
            self.put(path, b"")
        self._begin("append", path)
        self.files[path] += data

    def write_again(self, path: str, offset: int, length: int) -> None:
        self._begin("write_again", path)
        assert offset + length <= len(self.files[path])

    def sync(self, path: str) -> None:
        self._begin("sync", path)
        self.synced[path] = len(self.files[path])

    def sync_folder(self, path: str) -> None:
        self._begin("sync_folder", path)
        self.named |= {name for name in [*self.files, *self.folders] if os.path.dirname(name) == path}

    def write_new(self, path: str, data: bytes) -> None:
        self._begin("write_new", path)
        assert path not in self.files
        self.put(path, data)


async def at_once(function: Callable[[], T]) -> T:
    return function()


def ledger_on(disk: Disk) -> JsonlLedger:
    return JsonlLedger("/l", files=disk, run=at_once)


def finish(waiting: Awaitable[T]) -> T:
    """Drive what never waits."""
    try:
        waiting.__await__().send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("it waits")


def look(ledger: JsonlLedger, see: Callable[[View], T]) -> T:
    return finish(ledger.step(lambda view: (None, see(view))))


def put(ledger: JsonlLedger, *records: Record) -> None:
    for record in records:
        finish(ledger.step(lambda view, record=record: (record, None)))  # type: ignore[misc]


def path_of(store: str) -> str:
    return f"/l/{store}.jsonl"


def attempt(key: str, state: Any = "offered") -> Attempt:
    return Attempt(key, "t", state, "f")


def receipt(key: str, state: Any = "pending") -> Receipt:
    return Receipt(key, "t", state, "f")


def whole(number: int) -> list[Record]:
    """All records of a command, in their order."""
    key, token = f"k{number}", number + 1
    return [
        receipt(key),
        Approval(key, "t", "d", "anna"),
        attempt(key),
        Lease("t", token, key, 9.5),
        Attempt(key, "t", "intended", "f", token),
        Note(key, "t", token),
        Session(key, "t", "live", "f", token),
        Step(key, "t", "index", "run-1", token, {"kind": "run"}),
        receipt(key, "completed"),
    ]


def filled(commands: int = 3) -> Disk:
    disk = Disk()
    put(ledger_on(disk), *(record for number in range(commands) for record in whole(number)))
    return disk


def lines_of(disk: Disk, store: str) -> list[bytes]:
    return bytes(disk.files[path_of(store)]).splitlines(keepends=True)


def shown(view: View) -> dict[str, tuple[Any, ...]]:
    """All that a view shows, for comparison."""
    keys = {
        key: (
            view.receipt(key),
            view.attempt(key),
            view.session(key),
            view.approval(key),
            view.note(key).exists,
            view.steps(key),
        )
        for key in ("k0", "k1", "k2", "k3")
    }
    return {**keys, "t": (view.lease("t"),), "stray": view.stray(), "order": (view.order,)}


def report(disk: Disk, store: str) -> StoreReport:
    return {one.store: one for one in verify("/l", disk)}[store]


# --- what is written is there -----------------------------------------------------------------------------------------


def test_records_come_back_to_everybody() -> None:
    disk = filled()
    ledger = ledger_on(disk)
    view = look(ledger, lambda view: (view.receipt("k1"), view.attempt("k1"), view.session("k1"), view.lease("t")))
    records = whole(1)
    assert view[0].records == (records[0], records[8])
    assert (view[0].newest, view[0].count, view[0].health, view[0].where) == (
        *(records[8], 2, Health.INTACT),
        "receipts.jsonl:4",
    )
    assert view[1].records == (records[2], records[4])
    assert view[2].records == (records[6],)
    assert view[3].records == tuple(whole(number)[3] for number in range(3))
    assert look(ledger, lambda view: view.approval("k1").records) == (records[1],)
    assert look(ledger, lambda view: (view.note("k1").exists, view.note("k3").exists)) == (True, False)
    assert look(ledger, lambda view: (view.stray(), view.order)) == ((), 27)
    assert look(ledger, lambda view: view.receipt("k3")).health is Health.ABSENT
    assert not any(one.damage or one.torn for one in verify("/l", disk))


def test_keys_and_tasks() -> None:
    disk = Disk()
    ledger = ledger_on(disk)
    for number in range(300):
        key = f"k{number}"
        put(ledger, Receipt(key, f"t{number % 100}", "pending", "f"), attempt(key))
    for opened in (ledger, ledger_on(disk)):
        assert look(opened, lambda view: list(view.keys("t7"))) == ["k7", "k107", "k207"]
        assert look(opened, lambda view: view.task_of("k142")) == "t42"
        assert look(opened, lambda view: view.task_of("k999")) is None
        assert look(opened, lambda view: list(view.all_keys())) == [f"k{number}" for number in range(300)]
        assert look(opened, lambda view: (list(view.keys("nothing")), view.order)) == ([], 600)


def test_a_step_is_one_fsync_of_one_file() -> None:
    """Only the first record of a store takes another, of the folder."""
    disk = filled(1)
    ledger = ledger_on(disk)
    look(ledger, lambda view: None)
    disk.calls.clear()
    put(ledger, receipt("k1"))
    assert [call for call in disk.calls if call[0] not in ("read", "lock")] == [
        ("append", path_of("receipts")),
        ("sync", path_of("receipts")),
    ]
    disk.calls.clear()
    look(ledger, shown)
    assert {what for what, _ in disk.calls} == {"lock", "read"}


def test_what_is_decided_on_is_durable() -> None:
    """Another process may have died between its write and its fsync."""
    disk = filled(1)
    disk.synced = dict.fromkeys(disk.files, 0)
    disk.named.clear()

    def see(view: View) -> None:
        assert disk.synced == {path: len(data) for path, data in disk.files.items()}
        assert {"/l", *disk.files} <= disk.named

    ledger = ledger_on(disk)
    look(ledger, see)
    other = ledger_on(disk)
    put(other, receipt("k1"))
    disk.synced[path_of("receipts")] -= 10
    look(ledger, see)


def test_names_that_others_made_are_durable() -> None:
    """Of a store that came up after this ledger was opened, and of a ledger in which nothing is recorded yet."""
    disk = Disk()
    live = ledger_on(disk)
    look(live, shown)
    assert {"/l", "/l/ledger.json"} <= disk.named
    disk.named.clear()
    look(ledger_on(disk), lambda view: None)
    assert {"/l", "/l/ledger.json"} <= disk.named
    put(ledger_on(disk), receipt("k0"))
    disk.named.discard(path_of("receipts"))
    assert look(live, lambda view: path_of("receipts") in disk.named)


def test_names_are_durable_before_a_record_is_acknowledged() -> None:
    disk = Disk()
    ledger = ledger_on(disk)
    for record in whole(0):
        put(ledger, record)
        assert {"/l", *disk.files} <= disk.named
        assert disk.synced == {path: len(data) for path, data in disk.files.items()}


def test_an_error_in_the_decision_writes_nothing() -> None:
    disk = filled(1)
    ledger = ledger_on(disk)
    before = {path: bytes(data) for path, data in disk.files.items()}

    def fail(view: View) -> tuple[None, None]:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        finish(ledger.step(fail))
    with pytest.raises(ValueError, match="JSON"):
        put(ledger, Lease("t", 1, "k", float("inf")))
    assert {path: bytes(data) for path, data in disk.files.items()} == before
    put(ledger, receipt("k1"))
    assert look(ledger, lambda view: view.receipt("k1").count) == 1


def test_of_many_leases_the_newest_are_read_unless_it_is_damaged() -> None:
    disk = Disk()
    ledger = ledger_on(disk)
    leases = [Lease("t", number, "k", 1.0) for number in range(1, 101)]
    put(ledger, *leases)
    reading = look(ledger, lambda view: view.lease("t"))
    assert (reading.records, reading.count) == (tuple(leases[-32:]), 100)
    disk.files[path_of("leases")][-9] ^= 1
    reading = look(ledger, lambda view: view.lease("t"))
    assert (reading.records, reading.count, reading.health) == (tuple(leases[:99]), 100, Health.CORRUPT)


# --- damage -----------------------------------------------------------------------------------------------------------


def essence(readings: tuple[Any, ...]) -> list[Any]:
    """What readings say, without where the lines are."""
    return [(one.records, one.count, one.health) if isinstance(one, Reading) else one for one in readings]


def damages(disk: Disk, store: str, number: int, made: bytes, live: JsonlLedger) -> tuple[Any, ...]:
    """What everybody sees of k1 while this stands for a line of its; nobody else may be concerned."""
    path, lines = path_of(store), lines_of(disk, store)
    sound = look(ledger_on(disk), shown)
    disk.files[path][:] = b"".join([*lines[:number], made, *lines[number + 1 :]])
    views = [look(ledger, shown) for ledger in (live, ledger_on(disk))]
    assert report(disk, store).damage >= 1
    disk.files[path][:] = b"".join(lines)
    for seen in views:
        for other in ("k0", "k2", "k3", "t"):
            assert essence(seen[other]) == essence(sound[other])
    assert essence(views[0]["k1"]) == essence(views[1]["k1"])
    return views[1]["k1"]


@pytest.mark.parametrize("store", ["receipts", "attempts", "sessions", "approvals"])
def test_every_damaged_byte_is_noticed_and_attributed(store: str) -> None:
    """In the middle of a file, by whoever opens it and by whoever had read it before: of this key and of no other."""
    disk = filled()
    live = ledger_on(disk)
    sound = look(live, shown)["k1"]
    lines = lines_of(disk, store)
    number = {"receipts": 3, "attempts": 3, "sessions": 1, "approvals": 1}[store]  # the newest of k1
    for position, byte in enumerate(lines[number]):
        for damage in {byte ^ 1 << position % 8, 0x0A} - {byte}:
            start, end = lines[number][:position], lines[number][position + 1 :]
            seen = damages(disk, store, number, start + bytes([damage]) + end, live)
            (pair,) = ((one, was) for one, was in zip(seen, sound, strict=True) if essence((one,)) != essence((was,)))
            assert pair[0].count == pair[1].count, (position, damage)
            assert pair[0].health.degraded, (position, damage)
            assert pair[0].records == pair[1].records[:-1]


@pytest.mark.parametrize("number", [2, 3])
def test_a_damaged_older_lease_or_note_changes_nothing(number: int) -> None:
    """The newest lease of a task counts, and of a note that there is one."""
    disk = filled()
    live = ledger_on(disk)
    sound = look(live, shown)
    data = disk.files[path_of("leases")]
    start, size = sum(map(len, lines_of(disk, "leases")[:number])), len(lines_of(disk, "leases")[number])
    for position in range(start, start + size):
        data[position] ^= 1 << position % 8
        for ledger in (live, ledger_on(disk)):
            seen = look(ledger, shown)
            assert [essence(seen[key]) for key in ("k0", "k1", "k2")] == [essence(sound[k]) for k in ("k0", "k1", "k2")]
            assert (seen["t"][0].newest, seen["t"][0].count) == (sound["t"][0].newest, 3)
            assert seen["stray"] == ()
        assert report(disk, "leases").damage == 1
        data[position] ^= 1 << position % 8


@pytest.mark.parametrize("store", ["attempts", "receipts", "leases"])
def test_every_flipped_bit_of_the_last_line_is_noticed(store: str) -> None:
    """Its head tells whose it is, or what other stores had seen, or whoever had read it; else it is stray."""
    disk = filled()
    put(ledger_on(disk), Lease("t", 4, "k3", 1.0), attempt("k3"), receipt("k3"), Session("k3", "t", "live", "f"))
    data, last = disk.files[path_of(store)], lines_of(disk, store)[-1]
    live = ledger_on(disk)
    look(live, shown)
    for position in range(len(data) - len(last), len(data)):
        data[position] ^= 1 << position % 8
        for ledger in (live, ledger_on(disk)):
            seen = look(ledger, shown)
            reading = {"attempts": seen["k3"][1], "receipts": seen["k3"][0], "leases": seen["t"][0]}[store]
            if store == "attempts" and reading.health is Health.ABSENT:
                assert seen["stray"], position
                assert ledger is not live
            else:
                assert (reading.count, reading.health.degraded) == (4 if store == "leases" else 1, True), position
                assert seen["stray"] == ()
        assert report(disk, store).damage >= 1
        data[position] ^= 1 << position % 8


@pytest.mark.parametrize("change", [lambda raw: bytes(len(raw) - 1) + b"\n", lambda raw: b"", lambda raw: raw[9:]])
def test_a_line_that_is_destroyed_wholly_is_attributed_by_its_successor(change: Callable[[bytes], bytes]) -> None:
    disk = filled()
    lines = lines_of(disk, "attempts")
    disk.put(path_of("attempts"), b"".join([*lines[:3], change(lines[3]), *lines[4:]]))
    seen = look(ledger_on(disk), shown)
    reading = seen["k1"][1]
    assert (reading.count, reading.health, reading.records) == (2, Health.CORRUPT, (whole(1)[2],))
    assert seen["stray"] == ()
    assert (seen["k0"][1].health, seen["k2"][1].health) == (Health.INTACT, Health.INTACT)
    assert report(disk, "attempts").damage == 1


def test_of_several_destroyed_lines_only_the_last_is_attributed() -> None:
    disk = filled()
    lines = lines_of(disk, "attempts")
    disk.put(path_of("attempts"), b"".join([*lines[:2], b"\n", b"\0\n", *lines[4:]]))
    seen = look(ledger_on(disk), shown)
    assert (seen["k1"][1].count, seen["k1"][1].health) == (1, Health.CORRUPT)
    assert [str(finding) for finding in seen["stray"]] == ["attempts.jsonl:3: corrupt, whose it was cannot be told"]
    assert report(disk, "attempts").damage == 2


@pytest.mark.parametrize("junk", [b"garbage\n", b"\n", b'{"a":1}\n', b"\0\0\0\n", b'["onestart",2,"x"]\n'])
def test_foreign_lines_are_reported_and_block_nobody(junk: bytes) -> None:
    """Wherever they are, and also when the ledger goes on behind them."""
    for number in range(7):
        disk = filled()
        sound = look(ledger_on(disk), shown)
        lines = lines_of(disk, "attempts")
        disk.put(path_of("attempts"), b"".join([*lines[:number], junk, *lines[number:]]))
        ledger = ledger_on(disk)
        for _ in range(2):
            for opened in (ledger, ledger_on(disk)):
                seen = look(opened, shown)
                assert len(seen["stray"]) == 1
                assert not seen["stray"][0].concerns
                assert [seen[f"k{key}"][1].health for key in range(3)] == [Health.INTACT] * 3
                assert all(seen[key][1].records == sound[key][1].records for key in ("k0", "k1", "k2"))
            put(ledger, attempt("k3"))
        assert report(disk, "attempts").damage == 1


def test_a_line_in_the_wrong_store_is_nobodys() -> None:
    disk = filled()
    disk.append(path_of("receipts"), lines_of(disk, "attempts")[0])
    ledger = ledger_on(disk)
    assert [str(one) for one in look(ledger, lambda view: view.stray())] == [
        "receipts.jsonl:7: corrupt, whose it was cannot be told"
    ]


def test_two_lines_without_a_newline_between_are_told_apart() -> None:
    """The second is trusted, since the first one shows by its checksum where it ends; not if both are damaged."""
    disk = filled()
    lines = lines_of(disk, "attempts")
    for before, health in ((lines[-2], Health.INTACT), (lines[-2][:-9] + b"x" + lines[-2][-8:], Health.CORRUPT)):
        disk.put(path_of("attempts"), b"".join(lines[:-2]) + before[:-1] + b"?" + lines[-1])
        reading = look(ledger_on(disk), lambda view: view.attempt("k2"))
        assert (reading.count, reading.health) == (2, health)
    first = b"".join(lines[:-2]) + lines[-2][:-1] + b"?"
    disk.put(path_of("attempts"), first + lines[-1][:-30])
    ledger = ledger_on(disk)
    assert look(ledger, lambda view: view.attempt("k2")).count == 1
    put(ledger, attempt("k3"))
    for opened in (ledger, ledger_on(disk)):
        assert look(opened, lambda view: (view.attempt("k2").count, view.attempt("k3").count)) == (1, 1)
    assert (report(disk, "attempts").torn, report(disk, "attempts").corrupt) == (1, 1)
    assert report(disk, "attempts").missing == 1  # other stores had seen what was torn


def test_a_payload_that_holds_a_line_is_nobody_elses_record() -> None:
    """Not even if the line around it is damaged, so that what begins where cannot be told for sure."""
    disk = filled()
    inner = json.loads(encode(receipt("k3"), 99, None, {}))
    put(ledger_on(disk), Receipt("k2", "t", "pending", "f", {"payload": inner}))
    data = disk.files[path_of("receipts")]
    data[-8] ^= 1
    seen = look(ledger_on(disk), shown)
    assert (seen["k2"][0].count, seen["k2"][0].health) == (3, Health.CORRUPT)
    assert (seen["k3"][0].health, seen["stray"]) == (Health.ABSENT, ())


def test_a_line_in_the_place_of_another_is_not_read_as_it() -> None:
    """Although it is intact: it is another key's, or an older one of the same key."""
    for key, record in (("k1", attempt("k2")), ("k1", attempt("k1"))):
        disk = Disk()
        live = ledger_on(disk)
        put(live, attempt("k0"), record, attempt("k1"), attempt("k2"))
        lines = lines_of(disk, "attempts")
        assert len({len(raw) for raw in lines[1:]}) == 1
        sound = look(live, lambda view: view.attempt(key))  # noqa: B023
        disk.files[path_of("attempts")][:] = b"".join([lines[0], lines[1], lines[1], lines[3]])
        reading = look(live, lambda view: view.attempt(key))  # noqa: B023
        assert (reading.count, reading.health) == (sound.count, Health.CORRUPT)
        assert reading.records == sound.records[:-1]


def test_a_line_that_is_repeated_does_not_turn_the_count_back() -> None:
    disk = filled()
    lines = lines_of(disk, "attempts")
    disk.append(path_of("attempts"), lines[1])
    ledger = ledger_on(disk)
    reading = look(ledger, lambda view: view.attempt("k0"))
    assert (reading.count, reading.newest) == (3, whole(0)[4])
    put(ledger, attempt("k3"))
    line = decode(lines_of(disk, "attempts")[-1][:-1])
    assert (line.seq, line.prev) == (7, ("attempt", "k2", "t"))
    assert report(disk, "attempts").backward == 1


def test_an_illegible_line_at_the_end_keeps_its_number() -> None:
    """It may be a record that nobody else has seen yet."""
    disk = filled()
    disk.append(path_of("attempts"), b"?\n")
    put(ledger_on(disk), attempt("k3"))
    line = decode(lines_of(disk, "attempts")[-1][:-1])
    assert (line.seq, line.prev) == (8, None)


def test_damage_to_the_newline_at_the_end_does_not_fuse_the_next_record() -> None:
    disk = filled()
    live = ledger_on(disk)
    look(live, shown)
    disk.files[path_of("attempts")][-1] ^= 1
    for ledger in (live, ledger_on(disk), live):
        reading = look(ledger, lambda view: view.attempt("k2"))
        assert (reading.count, reading.health) == (2, Health.CORRUPT)
        put(ledger, attempt("k3"))
    for ledger in (live, ledger_on(disk)):
        assert look(ledger, lambda view: view.attempt("k3").records) == (attempt("k3"),) * 3
        assert look(ledger, lambda view: view.attempt("k2").health) is Health.CORRUPT
    assert report(disk, "attempts").damage == 1


@pytest.mark.parametrize("damaged", [1, 30])
def test_a_newline_that_is_gone_is_made_up_for(damaged: int) -> None:
    """By whoever appends next, seen or not by those who had read the line; also if more of the line is damaged."""
    disk = filled()
    live, other = ledger_on(disk), ledger_on(disk)
    look(other, shown)
    disk.files[path_of("attempts")][-1] ^= 1
    look(live, shown)
    disk.files[path_of("attempts")][-damaged] ^= 2
    put(other, attempt("k3"))
    for ledger in (live, ledger_on(disk)):
        seen = look(ledger, shown)
        assert seen["stray"] == ()
        assert essence((seen["k3"][1],)) == [((attempt("k3"),), 1, Health.INTACT)]
        assert (seen["k2"][1].count, seen["k2"][1].health) == (2, Health.CORRUPT)


def test_another_version_is_not_read_as_this_one() -> None:
    """It is damage for its own key, and everybody else goes on."""
    disk = filled()
    lines = lines_of(disk, "attempts")
    lines[3] = lines[3].replace(b'["onestart",1,', b'["onestart",2,', 1)
    disk.put(path_of("attempts"), b"".join(lines))
    ledger = ledger_on(disk)
    reading = look(ledger, lambda view: view.attempt("k1"))
    assert (reading.health, reading.count, reading.newest) == (Health.UNSUPPORTED_VERSION, 2, None)
    assert look(ledger, lambda view: view.attempt("k2").health) is Health.INTACT
    put(ledger, attempt("k3"))
    assert look(ledger, lambda view: (view.attempt("k3").health, view.stray())) == (Health.INTACT, ())
    assert report(disk, "attempts").unsupported == 1


CHANGES = st.tuples(
    st.sampled_from(["flip", "insert", "cut", "drop", "append", "repeat"]),
    st.sampled_from(list(STORES)),
    st.floats(0, 1, exclude_max=True),
    st.binary(max_size=6) | st.sampled_from([b"\n", b'["onestart",1,2,"attempt",', b"\x18torn:3\n", b"\n\n"]),
)


def spoil(data: bytearray, change: tuple[str, str, float, bytes]) -> None:
    how, _, share, junk = change
    at = int(share * len(data))
    lines = bytes(data).splitlines(keepends=True)
    if how == "append":
        data += junk
    elif how == "insert":
        data[at:at] = junk
    elif how == "cut":
        del data[at:]
    elif how == "flip" and data:
        data[at] ^= 1 << len(junk) % 8
    elif how in ("drop", "repeat") and lines:
        line = int(share * len(lines))
        data[:] = b"".join([*lines[:line], *([lines[line]] * 2 if how == "repeat" else []), *lines[line + 1 :]])


@given(st.lists(CHANGES, min_size=1, max_size=6))
def test_whatever_is_in_the_files_a_ledger_goes_on(changes: list[tuple[str, str, float, bytes]]) -> None:
    """No record is made up, none that is new is lost, and no byte is ever changed."""
    disk = filled(2)
    live = ledger_on(disk)
    written = [record for number in range(3) for record in whole(number)]
    look(live, shown)
    for change in changes:
        spoil(disk.files[path_of(change[1])], change)
        before = {path: bytes(data) for path, data in disk.files.items()}
        for seen in [look(ledger, shown) for ledger in (ledger_on(disk), live)]:
            for reading in (one for key in ("k0", "k1", "k2", "t") for one in seen[key] if isinstance(one, Reading)):
                assert all(record in written for record in reading.records)
                assert reading.count >= len(reading.records)
        verify("/l", disk)
        assert before == {path: bytes(data) for path, data in disk.files.items()}
        for ledger, record in ((live, whole(2)[2]), (ledger_on(disk), whole(2)[4])):
            put(ledger, record)
            for opened in (ledger_on(disk), live):
                assert look(opened, lambda view: view.attempt("k2")).newest == record
        assert all(disk.files[path].startswith(data) for path, data in before.items())


# --- what is cut short or rolled back ---------------------------------------------------------------------------------


def test_every_cut_of_the_newest_record_is_seen_by_the_other_stores() -> None:
    """Also after the file has gone on, since no number is given twice; and though nothing is noted beside the files."""
    disk = Disk()
    put(ledger_on(disk), receipt("k0"), receipt("k1"), attempt("k1"))
    disk.notes.clear()
    data, last = bytes(disk.files[path_of("receipts")]), lines_of(disk, "receipts")[-1]
    for length in range(len(data) - len(last), len(data)):
        for newline in (b"", b"\n"):
            if newline and length in (len(data) - len(last), len(data) - 1):
                continue
            disk.put(path_of("receipts"), data[:length] + newline)
            disk.notes.clear()
            ledger = ledger_on(disk)
            assert look(ledger, lambda view: view.receipt("k0")).health is Health.INTACT
            for record in (receipt("k2"), receipt("k1")):
                reading = look(ledger, lambda view: view.receipt("k1"))
                assert (reading.count, reading.health) == (1, Health.CORRUPT), (length, newline)
                put(ledger, record)
            for opened in (ledger, ledger_on(disk)):
                reading = look(opened, lambda view: view.receipt("k1"))
                assert (reading.count, reading.health, reading.records) == (2, Health.INTACT, (receipt("k1"),))
                assert look(opened, lambda view: view.stray()) == ()
            assert report(disk, "receipts").damage == 1


@pytest.mark.parametrize("store", STORES)
def test_a_store_that_is_gone_or_rolled_back_is_seen(store: str) -> None:
    """For a record that others had seen: it reads as damaged, but an attempt as absent, with damage to report."""
    for kept in (0, 1):
        disk = filled()
        live = ledger_on(disk)
        look(live, shown)
        before = b"".join(lines_of(disk, store)[:kept])
        if kept:
            disk.put(path_of(store), before)
        else:
            del disk.files[path_of(store)], disk.numbers[path_of(store)]
        for ledger in (live, ledger_on(disk)):
            receipts, attempts, sessions, approvals, noted, steps = look(ledger, shown)["k2"]
            lease, stray = look(ledger, lambda view: view.lease("t")), look(ledger, lambda view: view.stray())
            lost = {"receipts": receipts, "sessions": sessions, "approvals": approvals, "leases": lease, "flows": steps}
            assert noted
            if store == "attempts":
                assert attempts.health is Health.ABSENT
                assert stray
            else:
                assert lost[store].health is Health.CORRUPT
                assert lost[store].exists
                assert all(finding.store == store and not finding.concerns for finding in stray)
            assert report(disk, store).missing >= 1


def test_what_is_gone_with_records_that_others_had_seen_may_be_anybodys() -> None:
    """Nobody had seen the first key's completion, but everybody that its store had got further."""
    disk = filled()
    disk.notes.clear()
    disk.put(path_of("receipts"), lines_of(disk, "receipts")[0])
    for ledger in (ledger_on(disk), ledger_on(disk)):
        assert look(ledger, lambda view: view.receipt("k0").newest) == receipt("k0")
        stray = look(ledger, lambda view: view.stray())
        assert [str(finding) for finding in stray] == [
            "receipts.jsonl (records 2 to 5, missing): corrupt, whose it was cannot be told"
        ]
        assert report(disk, "receipts").missing == 4
    put(ledger_on(disk), receipt("k3"))
    assert report(disk, "receipts").missing == 4


def test_a_file_of_the_same_length_in_the_same_place_is_read_anew() -> None:
    """A store that was rolled back, and has grown by another record since, is not taken for the one that was read."""
    disk = Disk()
    put(ledger_on(disk), attempt("k0"), attempt("k1"))
    live = ledger_on(disk)
    look(live, shown)
    data = disk.files[path_of("attempts")]
    data[:] = lines_of(disk, "attempts")[0]
    put(ledger_on(disk), attempt("k2"))
    assert look(live, lambda view: (view.attempt("k1").count, view.attempt("k2").count)) == (0, 1)


def test_a_file_that_was_replaced_is_read_anew() -> None:
    """Although it ends as the one did that was read, or has become so short that its end cannot be compared."""
    disk = filled()
    live = ledger_on(disk)
    look(live, shown)
    lines = lines_of(disk, "attempts")
    line = decode(lines[2][:-1])
    other = encode(attempt("k3"), line.seq, line.prev, line.refs)
    disk.put(path_of("attempts"), b"".join([*lines[:2], other, *lines[3:]]))
    assert look(live, lambda view: view.attempt("k1").records) == (whole(1)[4],)
    assert look(live, lambda view: view.attempt("k3").records) == (attempt("k3"),)
    disk.files[path_of("attempts")] += b"\n"
    look(live, shown)
    disk.files[path_of("attempts")][:] = lines[0]
    assert look(live, lambda view: (view.attempt("k0").count, view.attempt("k1").count)) == (1, 0)


def test_what_one_store_had_seen_is_handed_on() -> None:
    """The next record of the key notes what is missing, so that it does not take the one witness there was."""
    disk = filled(1)
    ledger = ledger_on(disk)
    put(ledger, receipt("k1"), attempt("k1"))
    lines = lines_of(disk, "receipts")
    disk.put(path_of("receipts"), b"".join(lines[:2]))
    put(ledger_on(disk), Session("k1", "t", "live", "f"))
    disk.put(path_of("attempts"), b"".join(lines_of(disk, "attempts")[:2]))
    assert look(ledger_on(disk), lambda view: view.receipt("k1").health) is Health.CORRUPT


def test_numbers_that_were_seen_are_not_given_again() -> None:
    disk = filled()
    del disk.files[path_of("attempts")], disk.numbers[path_of("attempts")]
    put(ledger_on(disk), attempt("k3"))
    (line,) = (decode(raw[:-1]) for raw in lines_of(disk, "attempts"))
    assert (line.seq, line.prev) == (7, None)
    assert look(ledger_on(disk), lambda view: [str(one) for one in view.stray()]) == [
        "attempts.jsonl (records 1 to 6, missing): corrupt, whose it was cannot be told"
    ]


def test_an_intent_is_noted_also_if_the_note_is_damaged_or_gone() -> None:
    for cut in (0, 1):
        disk = filled(1)
        lines = lines_of(disk, "leases")
        disk.put(path_of("leases"), lines[0] + (lines[1].replace(b"token", b"nekot") if cut else b""))
        assert look(ledger_on(disk), lambda view: (view.note("k0").exists, view.note("k1").exists)) == (True, False)


# --- writes that are cut off ------------------------------------------------------------------------------------------


def test_a_torn_write_is_no_record_and_no_damage() -> None:
    """Cut off anywhere, also just before its newline: nobody was told of it, and it must not turn up later."""
    base = filled(1)
    full = Disk()
    full.files = {path: bytearray(data) for path, data in base.files.items()}
    full.numbers = dict(base.numbers)
    put(ledger_on(full), attempt("k1"))
    torn = lines_of(full, "attempts")[-1][:-1]
    for length in range(1, len(torn) + 1):
        disk = Disk()
        for path, data in base.files.items():
            disk.put(path, bytes(data))
        disk.append(path_of("attempts"), torn[:length])
        ledger = ledger_on(disk)
        sound = {"k1": (0, Health.ABSENT), "k0": (2, Health.INTACT)}
        for _ in range(2):
            for opened in (ledger, ledger_on(disk)):
                seen = look(opened, shown)
                assert {key: (seen[key][1].count, seen[key][1].health) for key in sound} == sound
                assert seen["stray"] == ()
            assert (report(disk, "attempts").torn, report(disk, "attempts").damage) == (1, 0)
            put(ledger, attempt("k2"))
            sound["k2"] = (1, Health.INTACT)
        assert disk.files[path_of("attempts")].count(torn[:length]) >= 1


def test_a_crash_while_sealing_brings_nothing_to_light() -> None:
    """At every byte of what is written behind a torn record, and again behind what that leaves."""
    base = filled(1)
    full = filled(1)
    put(ledger_on(full), attempt("k1"))
    torn = lines_of(full, "attempts")[-1][:-1]
    base.append(path_of("attempts"), torn)
    ledger = ledger_on(base)
    start = len(base.files[path_of("attempts")])
    look(ledger, shown)
    base.calls.clear()
    put(ledger, attempt("k2"))
    writes = [what for what, path in base.calls if path == path_of("attempts") and what != "read"]
    assert writes == ["append", "sync", "append", "sync"]  # so that a crash cannot keep the second alone
    written = bytes(base.files[path_of("attempts")])
    for length in range(start, len(written)):
        disk = Disk()
        for path, data in base.files.items():
            disk.put(path, bytes(data) if path != path_of("attempts") else written[:length])
        for key in ("k3", "k4"):
            ledger = ledger_on(disk)
            assert look(ledger, lambda view: (view.attempt("k1").count, view.attempt("k2").count)) == (0, 0)
            put(ledger, attempt(key))
        seen = look(ledger_on(disk), lambda view: (view.attempt("k3").health, view.attempt("k4").health, view.stray()))
        assert seen == (Health.INTACT, Health.INTACT, ())
        assert report(disk, "attempts").damage == 0


@pytest.mark.parametrize("what", ["append", "sync", "sync_folder"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), Crash()])
def test_after_a_failed_write_nothing_is_believed(what: str, error: BaseException) -> None:
    """A later fsync may succeed without having written what an earlier one could not."""
    disk = filled(1)
    if what == "sync_folder":
        del disk.files[path_of("approvals")], disk.numbers[path_of("approvals")]
    ledger = ledger_on(disk)
    look(ledger, lambda view: None)

    def fail(name: str, path: str) -> None:
        if name == what:
            raise error

    disk.trouble = fail
    with pytest.raises(LedgerUnavailableError if isinstance(error, OSError) else Crash) as raised:
        put(ledger, Approval("k1", "t", "d", "anna"))
    if isinstance(raised.value, LedgerUnavailableError):
        assert raised.value.store == "approvals"
        assert "No space left on device; the outcome of a write is unknown" in raised.value.reason
    disk.trouble = lambda name, path: None
    disk.calls.clear()
    for _ in range(2):
        with pytest.raises(LedgerUnavailableError, match="the outcome of a write is unknown, so open the") as no:
            look(ledger, lambda view: view)
        assert no.value.store == "approvals"
    assert {name for name, _ in disk.calls} <= {"lock", "read"}
    assert look(ledger_on(disk), lambda view: view.approval("k1").count) == (0 if what == "append" else 1)


def test_what_others_wrote_and_cannot_be_made_durable_is_not_relied_on() -> None:
    disk = filled(1)
    ledger = ledger_on(disk)

    def fail(name: str, path: str) -> None:
        if (name, path) == ("sync", path_of("attempts")):
            raise OSError(5, "Input/output error")

    disk.trouble = fail
    with pytest.raises(LedgerUnavailableError, match="attempts: Input/output error"):
        look(ledger, lambda view: pytest.fail("decided"))
    disk.trouble = lambda name, path: None
    with pytest.raises(LedgerUnavailableError, match="open the ledger anew"):
        look(ledger, lambda view: pytest.fail("decided"))


def test_a_store_that_cannot_be_read_is_named_and_may_come_back() -> None:
    disk = filled(1)
    ledger = ledger_on(disk)
    look(ledger, shown)

    def fail(name: str, path: str) -> None:
        if (name, path) == ("read", path_of("sessions")):
            raise OSError(5, "Input/output error")

    disk.trouble = fail
    with pytest.raises(LedgerUnavailableError, match=r"^sessions: Input/output error$"):
        look(ledger, lambda view: view.session("k0"))
    with pytest.raises(LedgerUnavailableError, match=r"^sessions: Input/output error$"):
        look(ledger_on(disk), lambda view: view.session("k0"))
    disk.trouble = lambda name, path: None
    assert look(ledger, lambda view: view.session("k0").count) == 1


# --- what is a ledger -------------------------------------------------------------------------------------------------


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_ino, path.read_bytes() if path.is_file() else b"")
        for path in [folder, *folder.rglob("*")]
    }


async def stepped(ledger: JsonlLedger, *records: Record) -> int:
    for record in records:
        await ledger.step(lambda view, record=record: (record, None))  # type: ignore[misc]
    return await ledger.step(lambda view: (None, view.order))


@pytest.mark.parametrize("empty", [False, True])
def test_a_missing_or_empty_folder_becomes_a_ledger(tmp_path: Path, empty: bool) -> None:
    folder = tmp_path / "a" / "b"
    if empty:
        folder.mkdir(parents=True)
    ledger = JsonlLedger(folder)
    assert folder.exists() is empty
    assert asyncio.run(stepped(ledger)) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["ledger.json", "lock"]
    assert (folder / "ledger.json").read_text() == '{"format":"onestart-ledger","version":1}\n'
    assert asyncio.run(stepped(ledger, *whole(0))) == 9
    assert asyncio.run(stepped(JsonlLedger(folder), *whole(1))) == 18


def test_folders_that_are_made_are_durable(tmp_path: Path) -> None:
    synced: list[str] = []

    class Watched(LocalFiles):
        def sync_folder(self, path: str) -> None:
            assert Path(path).is_dir()
            synced.append(os.path.relpath(path, tmp_path))
            super().sync_folder(path)

    asyncio.run(stepped(JsonlLedger(tmp_path / "a" / "b" / "c", files=Watched())))
    assert {".", "a", "a/b", "a/b/c"} == set(synced)


FOREIGN = {
    "other things": ({"notes.txt": "mine"}, "holds other things and no ledger.json"),
    "stores alone": ({"receipts.jsonl": ""}, "holds other things and no ledger.json"),
    "a marker that is not JSON": ({"ledger.json": "{]"}, "cannot be read as JSON"),
    "a cut marker and stores": ({"ledger.json": '{"form', "receipts.jsonl": "x\n"}, "cannot be read as JSON"),
    "another format": ({"ledger.json": '{"version":1}'}, "does not say that this is a ledger"),
    "a list": ({"ledger.json": "[1]"}, "does not say that this is a ledger"),
    "another version": ({"ledger.json": '{"format":"onestart-ledger","version":2}'}, "is of version 2; this program"),
    "no version": ({"ledger.json": '{"format":"onestart-ledger","version":true}'}, "is of version True"),
    "deep nesting": ({"ledger.json": "[" * 4000}, "cannot be read as JSON"),
}


@pytest.mark.parametrize(("content", "message"), FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_folder_is_not_touched(tmp_path: Path, content: dict[str, str], message: str) -> None:
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    before = tree(tmp_path)
    with pytest.raises(NotALedgerError, match=message):
        asyncio.run(stepped(JsonlLedger(tmp_path)))
    assert tree(tmp_path) == before


def test_what_is_no_folder_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotALedgerError, match="is no folder"):
        asyncio.run(stepped(JsonlLedger(tmp_path / "file")))
    with pytest.raises(LedgerUnavailableError, match="ledger: "):
        asyncio.run(stepped(JsonlLedger(tmp_path / "file" / "inner")))


def test_a_marker_that_was_cut_off_is_finished() -> None:
    mark = bytes(filled(1).files["/l/ledger.json"])
    for length in range(len(mark)):
        disk = Disk()
        disk.put("/l/ledger.json", mark[:length])
        put(ledger_on(disk), receipt("k0"))
        assert disk.files["/l/ledger.json"] == mark
        assert "/l/ledger.json" in disk.named
        assert look(ledger_on(disk), lambda view: view.order) == 1


def test_what_there_is_of_a_marker_is_durable_before_it_is_finished() -> None:
    """Else a disk could keep the rest and lose the beginning, and the ledger could never be opened again."""
    disk = Disk()
    disk.put("/l/ledger.json", MARK[:10])
    put(ledger_on(disk), receipt("k0"))
    of_marker = [what for what, path in disk.calls if path == "/l/ledger.json" and what in ("append", "sync")]
    assert of_marker[:3] == ["sync", "append", "sync"]


@pytest.mark.parametrize("name", ["receipts.jsonl", "lock"])
def test_a_folder_in_the_place_of_a_file_is_reported(tmp_path: Path, name: str) -> None:
    asyncio.run(stepped(JsonlLedger(tmp_path)))
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).mkdir()
    with pytest.raises(LedgerUnavailableError) as raised:
        asyncio.run(stepped(JsonlLedger(tmp_path)))
    assert raised.value.store == name.removesuffix(".jsonl")


def test_a_ledger_that_was_removed_is_not_begun_again(tmp_path: Path) -> None:
    """Else all that was started could start again, unnoticed."""
    ledger = JsonlLedger(tmp_path)
    asyncio.run(stepped(ledger, receipt("k0")))
    for path in tmp_path.iterdir():
        path.unlink()
    for _ in range(2):
        with pytest.raises(NotALedgerError, match="was removed or replaced while it was open"):
            asyncio.run(stepped(ledger, receipt("k1")))
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


# --- many at once -----------------------------------------------------------------------------------------------------


def append_many(folder: str, name: str, count: int) -> None:
    async def go() -> None:
        ledger = JsonlLedger(folder)
        for number in range(count):
            seen = await ledger.step(lambda view: (receipt(f"{name}-{number}"), view.order))  # noqa: B023
            assert await ledger.step(lambda view: (None, view.order)) > seen

    asyncio.run(go())


def test_processes_append_one_after_the_other(tmp_path: Path) -> None:
    folder = str(tmp_path / "ledger")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=append_many, args=(folder, f"p{number}", 60)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    lines = [decode(raw) for raw in Path(folder, "receipts.jsonl").read_bytes().splitlines()]
    assert [line.seq for line in lines] == list(range(1, 181))
    assert [line.prev for line in lines[1:]] == [line.owner for line in lines[:-1]]
    assert {line.health for line in lines} == {Health.INTACT}
    assert not any(one.damage or one.torn for one in verify(folder))


def test_tasks_of_one_process_take_turns(tmp_path: Path) -> None:
    inside: list[int] = []

    def decide(view: View) -> tuple[Record, int]:
        inside.append(1)
        assert len(inside) == 1
        inside.pop()
        return receipt("k0"), view.receipt("k0").count

    async def go() -> list[int]:
        ledgers = [JsonlLedger(tmp_path) for _ in range(2)]
        return await asyncio.gather(*(ledgers[number % 2].step(decide) for number in range(40)))

    assert sorted(asyncio.run(go())) == list(range(40))


def test_a_step_ends_before_the_task_that_is_cancelled(tmp_path: Path) -> None:
    async def go() -> int:
        ledger = JsonlLedger(tmp_path)
        await stepped(ledger)
        entered = asyncio.Event()
        loop = asyncio.get_running_loop()
        done: list[str] = []

        def decide(view: View) -> tuple[Record, None]:
            loop.call_soon_threadsafe(entered.set)
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(10)
            done.append("decided")
            return receipt("k0"), None

        task = asyncio.create_task(ledger.step(decide))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done == ["decided"]
        return await stepped(ledger)

    assert asyncio.run(go()) == 1


def test_a_lock_whose_file_was_replaced_is_taken_again(tmp_path: Path) -> None:
    """Two holders of two files of one name would exclude nobody."""
    files, path = LocalFiles(), str(tmp_path / "lock")
    replaced: list[str] = []
    real = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        if not replaced:
            replaced.append(path)
            os.unlink(path)
        return real(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fstat", fstat)
        with files.lock(path):
            assert os.path.exists(path)


def test_files_write_all_bytes(tmp_path: Path) -> None:
    """Whatever share of them the system takes at a time."""
    files, path, real = LocalFiles(), str(tmp_path / "file"), os.write
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
        files.write_new(path, b"0123456789")
        files.append(path, b"abcdefgh")
    assert files.read(path, 8, 100) == b"89abcdefgh"
    assert files.read(path, 9, 3) == b"9ab"
    with pytest.raises(FileExistsError):
        files.write_new(path, b"")
    found, there = files.status(path), os.stat(path)
    assert (found, files.status(path + "x")) == (((there.st_dev, there.st_ino), 18), None)
    assert files.list(str(tmp_path / "nowhere")) == []
    public = {name for name in dir(files) if not name.startswith("_")}
    assert public == {name for name in dir(Files) if not name.startswith("_")}


def test_what_is_written_again_stays_as_it_is(tmp_path: Path) -> None:
    """Over chunks, in the middle of a file, and beyond its end; only the range is touched."""
    path, data = tmp_path / "file", bytes(range(256)) * 9000
    path.write_bytes(data)
    for start, length in ((0, len(data)), (5, 1), (len(data) - 3, 100), (7, 0)):
        LocalFiles().write_again(str(path), start, length)
        assert path.read_bytes() == data


def test_whoever_opens_a_ledger_writes_its_newest_group_again() -> None:
    """As many records as a group may have, and a seal, of each file; and the marker. Older ones are durable."""
    disk = Disk()
    ledger = ledger_on(disk)
    put(ledger, *(receipt(f"k{number}") for number in range(MOST + 3)), attempt("k0"))
    again: list[tuple[str, int, int]] = []

    def noted(path: str, offset: int, length: int) -> None:
        again.append((path, offset, length))

    disk.write_again = noted  # type: ignore[method-assign]
    look(ledger_on(disk), lambda view: view.order)
    lines = lines_of(disk, "receipts")
    size = len(disk.files[path_of("receipts")])
    left = sum(map(len, lines[-MOST - 1 :]))
    assert ("/l/ledger.json", 0, len(disk.files["/l/ledger.json"])) in again
    assert (path_of("receipts"), size - left, left) in again
    assert (path_of("attempts"), 0, len(disk.files[path_of("attempts")])) in again
    again.clear()
    look(ledger, lambda view: view.order)
    assert again == []
