"""The ledger command: what a person sees of a ledger, what its exit code says, and that it changes nothing."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from onestart.command_line import run
from onestart.jsonl import JsonlLedger, LocalFiles
from onestart.jsonl.files import Status
from onestart.jsonl.ledger import open_for_reading
from onestart.lines import encode
from onestart.records import STORES, Approval, Attempt, Lease, Note, Receipt, Record, Session

RESULT = {"outcome": "started", "reason": "task_dispatch_attempt_created"}
RECORDS: list[Record] = [
    Receipt("k1", "t1", "pending", "f"),
    Approval("k1", "t1", "d", "anna"),
    Attempt("k1", "t1", "offered", "f"),
    Lease("t1", 1, "k1", 12.5, "p1"),
    Attempt("k1", "t1", "intended", "f", 1),
    Note("k1", "t1", 1),
    Session("k1", "t1", "live", "f", 1),
    Receipt("k1", "t1", "completed", "f", None, RESULT),
    Attempt("k1", "t1", "ended", "f", 1, "task_cancelled"),
    Session("k1", "t1", "cancelled", "f", 1, "asked"),
    Lease("t1", 1, None, 0.0),
    Receipt("k2\x1b[31m", "t2", "pending", "f"),
]


def fill(folder: Path, *records: Record) -> Path:
    async def go() -> None:
        ledger = JsonlLedger(folder)
        for record in records:
            await ledger.step(lambda view, record=record: (record, None))  # type: ignore[misc]

    asyncio.run(go())
    return folder


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    return fill(tmp_path / "ledger", *RECORDS)


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_ino, path.read_bytes() if path.is_file() else b"")
        for path in [folder, *folder.rglob("*")]
    }


def change(path: Path, make: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(make(path.read_bytes().splitlines(keepends=True))))


def test_show_is_for_people(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "show", str(filled)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{filled}: 12 records, 2 keys",
        "",
        "task t1",
        "  lease  token 1, free  intact  leases.jsonl:3",
        "  key k1",
        "    receipt   completed: started, task_dispatch_attempt_created  intact  receipts.jsonl:2",
        "    attempt   ended, token 1, task_cancelled                     intact  attempts.jsonl:3",
        "    session   cancelled, token 1, asked                          intact  sessions.jsonl:2",
        "    approval  by anna                                            intact  approvals.jsonl:1",
        "    note      token 1                                            intact  leases.jsonl:2",
        "",
        "task t2",
        "  lease  -  absent",
        r"  key k2\x1b[31m",
        "    receipt  pending  intact  receipts.jsonl:3",
        "    attempt  -        absent",
        "    session  -        absent",
    ]


def test_show_one_key(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "show", str(filled), "--key", "k1"]) == 0
    shown = capsys.readouterr().out
    assert "key k1" in shown
    assert "t2" not in shown
    assert run(["ledger", "show", str(filled), "--key", "k\n"]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"onestart: {filled} has no record of the key 'k\\n'\n"
    assert captured.out == ""


def test_show_says_what_is_damaged(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(filled / "receipts.jsonl", lambda lines: [lines[0], lines[1].replace(b"started", b"stopped"), *lines[2:]])
    change(filled / "sessions.jsonl", lambda lines: lines[:1])
    change(filled / "leases.jsonl", lambda lines: [*lines, b"\x1b[2J\n"])
    change(filled / "attempts.jsonl", lambda lines: [*lines[:2], lines[2].replace(b",1,", b",2,", 1)])
    assert run(["ledger", "show", str(filled), "--key", "k1"]) == 0
    shown = capsys.readouterr().out
    assert "receipt   of 2 records the newest is illegible  CORRUPT" in shown
    assert "session   live, token 1 " in shown
    assert "leases.jsonl:4: corrupt, whose it was cannot be told" in shown
    assert "attempts.jsonl:3: unsupported version, whose it was cannot be told" in shown
    assert "\x1b" not in shown


def test_verify_says_that_all_is_well(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (filled / "sessions.jsonl").open("ab") as file:
        file.write(b'["onestart",1,3,"ses')
    assert run(["ledger", "verify", str(filled)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "store      lines  intact  corrupt  unsupported  torn  missing  backward",
        "receipts   3      3       0        0            0     0        0",
        "attempts   3      3       0        0            0     0        0",
        "sessions   2      2       0        0            1     0        0",
        "leases     3      3       0        0            0     0        0",
        "approvals  1      1       0        0            0     0        0",
        "flows      0      0       0        0            0     0        0",
        "all is well",
    ]


DAMAGE: dict[str, tuple[str, Callable[[list[bytes]], list[bytes]], str, str]] = {
    "a changed byte": (
        "receipts",
        lambda lines: [lines[0].replace(b"pending", b"pendinG"), *lines[1:]],
        "receipts   3      2       1        0            0     0        0",
        "receipts.jsonl:1: corrupt, receipt of 'k1'",
    ),
    "an illegible line": (
        "attempts",
        lambda lines: [lines[0], b"\0\n", lines[2]],
        "attempts   3      2       1        0            0     0        0",
        "attempts.jsonl:2: corrupt, attempt of 'k1'",
    ),
    "a line behind the end": (
        "leases",
        lambda lines: [*lines, b"\x1b\n"],
        "leases     4      3       1        0            0     0        0",
        "leases.jsonl:4: corrupt, whose it is cannot be told",
    ),
    "another version": (
        "sessions",
        lambda lines: [lines[0].replace(b",1,", b",2,", 1), lines[1]],
        "sessions   2      1       0        1            0     0        0",
        "sessions.jsonl:1: unsupported version, session of 'k1'",
    ),
    "a line that is gone": (
        "attempts",
        lambda lines: [lines[0], lines[2]],
        "attempts   2      2       0        0            0     1        0",
        "attempts.jsonl (record 2, missing): corrupt, attempt of 'k1'",
    ),
    "lines that are gone": (
        "attempts",
        lambda lines: [lines[2]],
        "attempts   1      1       0        0            0     2        0",
        "attempts.jsonl: records 1 to 1 are missing",
    ),
    "a store cut short": (
        "sessions",
        lambda lines: [],
        "sessions   0      0       0        0            0     2        0",
        "sessions.jsonl: record 1 is missing, session of 'k1', seen by other stores",
    ),
    "a line twice": (
        "approvals",
        lambda lines: lines * 2,
        "approvals  2      2       0        0            0     0        1",
        "approvals.jsonl: 1 lines have a number that is not above the one before",
    ),
}


@pytest.mark.parametrize(("store", "make", "row", "finding"), DAMAGE.values(), ids=DAMAGE)
def test_verify_says_what_is_wrong(
    filled: Path,
    store: str,
    make: Callable[[list[bytes]], list[bytes]],
    row: str,
    finding: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill(filled, Approval("k1", "t1", "d", "bert")) if store == "sessions" else None
    change(filled / f"{store}.jsonl", make)
    assert run(["ledger", "verify", str(filled)]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert row in shown
    assert finding in shown
    assert shown[-1] == "damaged: nothing was changed"


def test_verify_reads_what_is_within_the_lines(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line may be as it was written, and yet hold no record."""
    line = encode(Attempt("k1", "t1", "ended", "f"), 4, ("attempt", "k1", "t1"), {})
    text = line[: line.rindex(b'"')].replace(b'"ended"', b'"begun"')[:-17]
    made = text + b'"' + hashlib.blake2b(text, digest_size=8).hexdigest().encode() + b'"]\n'
    change(filled / "attempts.jsonl", lambda lines: [*lines, made])
    assert run(["ledger", "verify", str(filled)]) == 1
    assert "attempts.jsonl:4: corrupt, attempt of 'k1'" in capsys.readouterr().out


def test_verify_shows_the_first_few_findings(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(filled / "attempts.jsonl", lambda lines: [*lines, *[b"junk\n"] * 5000])
    assert run(["ledger", "verify", str(filled)]) == 1
    shown = capsys.readouterr().out
    assert "attempts   5003   3       5000     0            0     0        0" in shown
    assert shown.count("cannot be told") == 10
    assert "attempts.jsonl:4: corrupt" in shown


@pytest.mark.parametrize("command", ["show", "verify"])
def test_what_is_no_ledger_is_one_line(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("nowhere", "holds no ledger"),
        ("empty", "holds no ledger"),
        ("full", "holds other things and no ledger.json"),
        ("full/x", "is no ledger"),
    ):
        before = tree(tmp_path)
        assert run(["ledger", command, str(tmp_path / name)]) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("onestart: ledger: ")
        assert message in captured.err
        assert captured.err.count("\n") == 1
        assert captured.out == ""
        assert tree(tmp_path) == before


def test_an_unreadable_store_is_one_line(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (filled / "sessions.jsonl").unlink()
    (filled / "sessions.jsonl").mkdir()
    for command in ("show", "verify"):
        assert run(["ledger", command, str(filled)]) == 2
        assert capsys.readouterr().err == "onestart: sessions: it is not a regular file\n"


def test_looking_changes_no_byte(
    filled: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a lock is made, a torn tail sealed or anything made durable."""
    change(filled / "receipts.jsonl", lambda lines: [lines[0], b"\0\n", lines[2]])
    with (filled / "sessions.jsonl").open("ab") as file:
        file.write(b"torn")
    (filled / "lock").unlink()
    before = tree(filled)

    def forbidden(*arguments: object) -> None:
        raise AssertionError("not by looking")

    for name in ("lock", "append", "sync", "sync_folder", "write_new", "make_folder"):
        monkeypatch.setattr(LocalFiles, name, forbidden)
    for arguments in (["show"], ["show", "--key", "k1"], ["verify"]):
        run(["ledger", *arguments, str(filled)])
    assert capsys.readouterr().err == ""
    assert tree(filled) == before


def test_looking_while_others_write_reports_no_damage(filled: Path) -> None:
    """A store that was read early may have gone on before one that refers to it was read."""
    written: list[int] = []

    class Busy(LocalFiles):
        def status(self, path: str) -> Status | None:
            if path.endswith("attempts.jsonl"):
                written.append(1)
                key = f"new{len(written)}"
                fill(filled, Receipt(key, "t", "pending", "f"), Attempt(key, "t", "offered", "f"))
            return super().status(path)

    stores = open_for_reading(filled, Busy())
    assert len(written) >= 2
    assert (stores.receipt("new1").count, stores.attempt("new1").count, stores.stray()) == (1, 1, ())
    assert not any(stores.receipt(key).health.degraded for key in stores.all_keys())
    assert not any(stores.lost(store) for store in STORES)


def test_the_library_is_all_it_needs() -> None:
    """Looking into a ledger imports nothing but attrs and click."""
    script = "import sys, onestart.commands.ledger; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert not {"numpy", "rich", "z3", "networkx", "cattrs", "itf_py"} & set(done.stdout.split())
