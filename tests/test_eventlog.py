"""Event logs: written line by line, read as streams, and refused in one line if they are none."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from onestart import Event
from onestart.eventlog import LONGEST, EventLog, EventLogError, Header, parse, read_events

DETAILS: dict[str, Any] = {"reason": "idempotent_replay", "outcome": "started", "result": None, "damage": []}
REPLAY = Event("replay", "p", 1, "k", "t", 4, 12.5, 0, "f", DETAILS)
CLAIM = Event("claim", "p", 1, "k\n\u2028", "t\U0001f600", 5, 13.0, 2, "f", {"ends": 43.0})


def written(path: Path, *events: Event, process: str = "") -> Path:
    with EventLog(path, process=process) as log:
        for event in events:
            log(event)
    assert not log.failure
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "log", REPLAY, CLAIM)
    reader = read_events(path)
    assert list(reader) == [Header("p"), REPLAY, CLAIM]
    assert (reader.line, reader.torn, reader.offset) == (3, [], path.stat().st_size)


def test_a_log_is_only_appended_to(tmp_path: Path) -> None:
    path = written(tmp_path / "log", REPLAY)
    before = path.read_bytes()
    written(path, CLAIM, process="q")
    assert path.read_bytes().startswith(before)
    assert list(read_events(path)) == [Header("p"), REPLAY, Header("q"), CLAIM]


def test_a_named_process_is_known_before_it_tells_anything(tmp_path: Path) -> None:
    assert list(read_events(written(tmp_path / "log", process="p"))) == [Header("p")]


def test_every_event_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        writes.append(data)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    written(tmp_path / "log", REPLAY, CLAIM)
    assert len(writes) == 2
    assert all(data.endswith(b"\n") for data in writes)


def _write_many(path: str, process: str) -> None:
    with EventLog(path, process=process) as log:
        for number in range(200):
            log(Event("replay", process, number, "k" * 50, "t", number, 1.0, 0, "f", DETAILS))


def test_processes_may_share_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    workers = [multiprocessing.get_context("fork").Process(target=_write_many, args=(path, f"p{n}")) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    events = [item for item in read_events(path) if isinstance(item, Event)]
    for number in range(4):
        own = [event.order for event in events if event.process == f"p{number}"]
        assert own == list(range(200))


def test_each_event_can_be_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with EventLog(tmp_path / "log", durable=True) as log:
        log(REPLAY)
        log(CLAIM)
    assert len(synced) == 2


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_last_line_that_was_cut_off_is_told_of(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path / "log", REPLAY, CLAIM)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    reader = read_events(path)
    items = list(reader)
    if cut == 1:
        assert (items, reader.torn) == ([Header("p"), REPLAY, CLAIM], [])
    else:
        assert (items, reader.torn) == ([Header("p"), REPLAY], [3])


def test_an_opening_after_a_cut_ends_the_line(tmp_path: Path) -> None:
    path = written(tmp_path / "log", REPLAY, CLAIM)
    path.write_bytes(path.read_bytes()[:-20])
    written(path, REPLAY, process="q")
    reader = read_events(path)
    assert list(reader) == [Header("p"), REPLAY, Header("q"), REPLAY]
    assert reader.torn == [3]


@pytest.mark.parametrize("size", range(1, 50))
def test_a_header_that_was_cut_off_is_an_empty_log(tmp_path: Path, size: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(written(tmp_path / "whole", REPLAY).read_bytes()[:size])
    reader = read_events(path)
    assert (list(reader), reader.torn) == ([], [1])


def test_what_a_full_disk_swallows_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    real, left = os.write, [None, 10, OSError(28, "No space left on device"), None]

    def write(descriptor: int, data: bytes) -> int:
        now = left.pop(0)
        if isinstance(now, OSError):
            raise now
        return real(descriptor, data if now is None else data[:now])

    monkeypatch.setattr(os, "write", write)
    with EventLog(path) as log:
        for event in (REPLAY, CLAIM, CLAIM, REPLAY):
            log(event)
    assert log.failure == "a line was written in part"
    reader = read_events(path)
    assert list(reader) == [Header("p"), REPLAY, Header("p", lost=2), REPLAY]
    assert reader.torn == [3]


def test_a_failing_write_stops_nothing(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log")
    log.close()
    log(REPLAY)
    log.close()
    assert log.failure == "Bad file descriptor"


def test_a_log_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        EventLog(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"root:x:0:0\n", "is no event log: it begins with root:x:0:0"),
        (b"\x00\xff\n", r"is no event log: it begins with \\x00\\xff"),
        (b"\n", "is no event log: it begins with an empty line"),
        (b'{"format":"onestart-ledger","version":1}\n', "is no event log: it begins with"),
        (b'{"format":"onestart-events","version":2,"process":"p"}\n', ":1: version 2 of the format is not known"),
        (b'{"format":"onestart-events","version":1}\n', ":1: it is no header"),
    ],
)
def test_what_is_no_log_of_this_version_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(EventLogError, match=message) as caught:
        list(read_events(path))
    assert len(str(caught.value).splitlines()) == 1


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(EventLogError, match=f"cannot be read: {message}"):
            list(read_events(path))


def test_an_empty_file_is_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    assert list(read_events(tmp_path / "log")) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"\x1b[31m\n", r"it is not JSON: \\x1b\[31m"),
        (b"\n", "it is not JSON: an empty line"),
        (b"[1]\n", "it is no object"),
        (b"{" * 100_000 + b"\n", "it is not JSON"),
        (b"9" * LONGEST + b"\n", "it is longer than"),
    ],
)
def test_a_bad_line_in_the_middle_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    path = written(tmp_path / "log", REPLAY)
    path.write_bytes(path.read_bytes() + line + path.read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(EventLogError, match=f"log':3: {message}") as caught:
        list(read_events(path))
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"action": "explode"}, "its action 'explode' is not known"),
        ({"strand": True}, "its strand is not what it should be"),
        ({"key": ""}, "it is about no key"),
        ({"order": -1}, "a number is out of its range"),
        ({"at": 10**400}, "a number is out of its range"),
        ({"at": float("inf")}, "a number is out of its range"),
        ({"at": "now"}, "its at is not what it should be"),
        ({"key": "\ud800"}, "its text is no Unicode"),
        ({"details": []}, "its details is not what it should be"),
        ({"details": {}}, "its details are not those of replay"),
        ({"details": DETAILS | {"damage": "receipts"}}, "its details are not those of replay"),
        ({"action": "claim", "details": {"ends": float("nan")}}, "its details are not those of claim"),
    ],
)
def test_an_event_is_what_it_should_be(change: dict[str, object], problem: str) -> None:
    assert parse(json.dumps(REPLAY.to_json() | change).encode()) == problem


def test_a_missing_part_is_named() -> None:
    fields = REPLAY.to_json()
    del fields["token"]
    assert parse(json.dumps(fields).encode()) == "it has no token"


def test_reading_goes_on_after_a_pause(tmp_path: Path) -> None:
    reader = read_events(written(tmp_path / "log", REPLAY, CLAIM))
    assert next(reader) == Header("p")
    reader.close()
    assert next(reader) == REPLAY
    reader.close()
    assert list(reader) == [CLAIM]
