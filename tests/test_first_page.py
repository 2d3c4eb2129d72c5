"""A SQLite ledger whose first page is damaged: all of it is saved, and nothing else is taken for a ledger."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import apsw
import pytest

from onestart.command_line import run
from onestart.ledgers import repair_ledger, verify_ledger
from onestart.ports import LedgerUnavailableError, NotALedgerError
from onestart.records import STORES, Attempt, Receipt, Record
from onestart.repair import RepairRefusedError
from onestart.sql.sqlite import SqliteLedger
from onestart.sql.sqlite_first_page import FIRST_PAGE

PAGE = 4096
KEYS = [f"key {number}" for number in range(40)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of several pages, closed."""
    path = tmp_path / "l.sqlite"
    ledger = SqliteLedger(path)
    for key in KEYS:
        put(ledger, Receipt(key, "t", "pending", "f"))
        put(ledger, Attempt(key, "t", "offered", "f"))
    ledger.close()
    return path


def put(ledger: SqliteLedger, record: Record) -> None:
    asyncio.run(ledger.step(lambda _: (record, None)))


def overwrite(path: Path, start: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(data)


def sql(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close(True)


@pytest.mark.parametrize(
    "page", [bytes(PAGE), random.Random(1).randbytes(PAGE), b"SQLite format 3\0" + bytes(PAGE - 16)]
)
def test_all_that_the_other_pages_hold_is_saved(path: Path, page: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """The old file stays as it is; no key is taken for a new one; a doctor says what to type."""
    overwrite(path, 0, page)
    left = path.parent / f"{path.name}.lent"  # by a repair that was killed
    left.mkdir()
    (left / "ledger").write_bytes(b"half of it")
    before = path.read_bytes()
    assert run(["ledger", "doctor", str(path)]) == 2
    assert "if it has been a ledger: onestart ledger repair" in capsys.readouterr().err
    done = repair_ledger(f"sqlite:///{path}")
    assert (done.kept, done.lost, done.left_out[0]) == (80, (), FIRST_PAGE)
    assert path.read_bytes() == before
    assert not any(report.damage for report in verify_ledger(f"sqlite:///{path}"))
    ledger = SqliteLedger(path)
    assert asyncio.run(ledger.step(lambda view: (None, [view.attempt(key).count for key in KEYS]))) == [1] * 40
    put(ledger, Receipt("another", "t", "pending", "f"))
    ledger.close()
    assert not [name for name in os.listdir(path.parent) if name.endswith(".lent")]


def test_whatever_bit_of_it_is_damaged(path: Path) -> None:
    """Of the header each byte, of the rest some: it does not matter, or all is saved."""
    whole = path.read_bytes()
    chance = random.Random(3)
    seen = set()
    for byte in (*range(100), *(chance.randrange(100, PAGE) for _ in range(60))):
        for leftover in path.parent.iterdir():
            leftover.unlink()
        path.write_bytes(whole)
        overwrite(path, byte, bytes([whole[byte] ^ 1 << chance.randrange(8)]))
        try:
            done = repair_ledger(f"sqlite:///{path}")
        except RepairRefusedError:
            assert [report.intact for report in verify_ledger(f"sqlite:///{path}")][:2] == [40, 40]
            seen.add("nothing wrong")
        else:
            assert (done.kept, done.lost) == (80, ())
            seen.add(FIRST_PAGE if FIRST_PAGE in done.left_out else "read as it is")
    assert seen == {"nothing wrong", FIRST_PAGE, "read as it is"}


def test_a_name_of_a_table_that_is_no_text_is_a_typed_error(path: Path) -> None:
    """For every command, not a traceback."""
    overwrite(path, path.read_bytes().index(b'"line" BLOB') + 2, b"\xff")
    with pytest.raises(NotALedgerError, match="other tables"):
        put(SqliteLedger(path), Receipt("a", "t", "pending", "f"))
    with pytest.raises(NotALedgerError, match="other tables"):
        verify_ledger(f"sqlite:///{path}")


def test_what_never_was_a_ledger_is_not_made_one(tmp_path: Path) -> None:
    """Neither any bytes, nor a database of something else; and nothing is left beside them."""
    noise, other, alike = tmp_path / "noise", tmp_path / "other", tmp_path / "alike"
    noise.write_bytes(random.Random(2).randbytes(30 * PAGE))
    sql(other, *(f"CREATE TABLE t{number} (a, b)" for number in range(30)), "INSERT INTO t3 VALUES (1, 2)")
    sql(alike, *(f"CREATE TABLE t{number} (a, b)" for number in range(30)), "INSERT INTO t0 VALUES (1, 0)")
    there = {path: path.read_bytes() for path in (noise, other, alike)}
    for path in there:
        with pytest.raises(LedgerUnavailableError):
            repair_ledger(f"sqlite:///{path}")
    assert {path: path.read_bytes() for path in there} == there
    assert not [name for name in os.listdir(tmp_path) if "generation" in name or name.endswith(".lent")]


def test_a_newer_ledger_is_left_to_the_program_that_wrote_it(path: Path) -> None:
    """Its version is not on the page that is lent."""
    sql(path, 'UPDATE "ledger" SET "version" = 2', "PRAGMA wal_checkpoint(TRUNCATE)")
    overwrite(path, 0, bytes(PAGE))
    with pytest.raises(LedgerUnavailableError):
        repair_ledger(f"sqlite:///{path}")
    assert not [name for name in os.listdir(path.parent) if "generation" in name]


def test_tables_that_are_elsewhere_are_not_taken_for_empty_ones(path: Path, tmp_path: Path) -> None:
    """Else their keys would be new ones."""
    moved = tmp_path / "moved"
    connection = apsw.Connection(str(path))
    made = [text for (text,) in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
    connection.execute("ATTACH ? AS moved", (str(moved),))
    for text in [made[0], *(f"CREATE TABLE filler{n} (a)" for n in range(3)), *made[4:], *made[1:4]]:
        connection.execute(text.replace("CREATE TABLE ", "CREATE TABLE moved.").replace(' INDEX "', ' INDEX moved."'))
    for table in ("ledger", *STORES):
        connection.execute(f'INSERT INTO moved."{table}" SELECT * FROM main."{table}"')
    assert "receipts" in made[1]
    connection.close(True)
    overwrite(moved, 0, bytes(PAGE))
    with pytest.raises(LedgerUnavailableError):
        repair_ledger(f"sqlite:///{moved}")
    assert not [name for name in os.listdir(tmp_path) if "moved-generation" in name]


def test_a_link_is_not_followed_for_it(path: Path, tmp_path: Path) -> None:
    """What a link leads to may be somebody else's."""
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(NotALedgerError, match="symbolic link"):
        repair_ledger(f"sqlite:///{link}")
    assert not [name for name in os.listdir(tmp_path) if name.startswith(("link-", "link."))]


def test_records_that_nothing_tells_of_are_spoken_of(path: Path) -> None:
    """The ledger counts its records, so a repair says how many it knows nothing about."""
    sql(path, 'DELETE FROM "receipts" WHERE "key" = \'key 7\'', 'DELETE FROM "attempts" WHERE "key" = \'key 7\'')
    done = repair_ledger(f"sqlite:///{path}")
    assert done.left_out == ("2 records of which nothing is left that tells whose they were",)
