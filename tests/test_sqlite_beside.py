"""What a SQLite ledger knows from beside its file: records that are gone with the file, or with the end of its log."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

from onestart import LedgerUnavailableError
from onestart.copying import copy
from onestart.ledgers import Address, repair_ledger, verify_ledger
from onestart.ports import NotALedgerError, View
from onestart.records import Receipt, Record
from onestart.repair import RepairRefusedError
from onestart.sql.beside import Beside
from onestart.sql.sqlite import SqliteLedger

BIT = 1 << 3


def write(ledger: SqliteLedger, *keys: str) -> int:
    """How many records there were before the last one."""

    def decide(key: str) -> Any:
        def receipt(view: View) -> tuple[Record, int]:
            return Receipt(key, "task", "pending", "f" * 32), view.order

        return receipt

    async def go() -> list[int]:
        return [await ledger.step(decide(key)) for key in keys]

    return asyncio.run(go())[-1]


def order(path: Path) -> int:
    """How many records a process finds that has just come up. Raises what it raises."""
    ledger = SqliteLedger(path)
    try:
        return asyncio.run(ledger.step(lambda view: (None, view.order)))
    finally:
        ledger.close()


def told(path: Path) -> bool:
    return any(report.damage for report in verify_ledger(Address("sqlite", str(path))))


def killed(source: Path, target: Path) -> Path:
    """The files as a killed process has left them."""
    target.mkdir()
    for path in source.parent.glob(f"{source.name}*"):
        shutil.copyfile(path, target / path.name)
    return target / source.name


def test_an_older_copy_is_noticed(tmp_path: Path) -> None:
    """What was recorded since would start again; nothing does, until somebody says to go on with what is left."""
    path = tmp_path / "ledger"
    ledger = SqliteLedger(path)
    write(ledger, "a", "b")
    ledger.close()
    older = path.read_bytes()
    write(ledger, "c")
    ledger.close()
    path.write_bytes(older)
    for _ in range(2):
        with pytest.raises(NotALedgerError, match=r"had 3 records and has 2.*older copy.*onestart ledger repair"):
            order(path)
    assert told(path)
    repair_ledger(f"sqlite:///{path}")
    assert order(path) == 2
    assert not told(path)
    assert write(SqliteLedger(path), "d") == 2


def test_a_file_that_was_deleted_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = SqliteLedger(path)
    write(ledger, "a")
    ledger.close()
    path.unlink()
    with pytest.raises(NotALedgerError, match=r"had 1 records and has 0.*deleted"):
        order(path)
    for left in tmp_path.iterdir():
        left.unlink()
    assert order(path) == 0


def test_another_ledger_may_be_copied_to_where_one_was_deleted(tmp_path: Path) -> None:
    """What is known of the one that is gone says nothing of it."""
    path, other = tmp_path / "ledger", tmp_path / "other"
    for place, keys in ((path, "abc"), (other, "xy")):
        ledger = SqliteLedger(place)
        write(ledger, *keys)
        ledger.close()
    path.unlink()
    copy(Address("sqlite", str(other)), Address("sqlite", str(path)))
    assert order(path) == 2


def test_damage_to_the_log_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite reads it up to the first place where something is wrong, and takes the rest for never written."""
    ledger = SqliteLedger(tmp_path / "ledger")
    write(ledger, *"abcde")
    size = (tmp_path / "ledger-wal").stat().st_size
    lost = 0
    for number, byte in enumerate(range(0, size, size // 150)):
        path = killed(tmp_path / "ledger", tmp_path / str(number))
        log = path.with_name("ledger-wal")
        data = bytearray(log.read_bytes())
        data[byte] ^= BIT
        log.write_bytes(data)
        try:
            assert order(path) == 5, f"byte {byte}"
        except LedgerUnavailableError:
            lost += told(path)
        else:
            assert write(SqliteLedger(path), "f") == 5
    assert lost > 100
    ledger.close()


def test_it_is_what_is_beside_the_file_that_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, a log whose end is damaged is one that was never longer."""
    ledger = SqliteLedger(tmp_path / "ledger")
    write(ledger, *"abc")
    path = killed(tmp_path / "ledger", tmp_path / "killed")
    log = path.with_name("ledger-wal")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= BIT
    log.write_bytes(data)
    with monkeypatch.context() as blind:
        blind.setattr(Beside, "records", lambda self: 0)
        assert order(path) < 3
    with pytest.raises(NotALedgerError, match="had 3 records and has"):
        order(path)
    ledger.close()


@pytest.mark.parametrize("left", [b"", b" ", b"! 0", b"!" + b"9" * 20 + b"f" * 8, b" " * 60, b"\0" * 30, b"\xff" * 30])
def test_what_cannot_be_read_there_says_nothing(tmp_path: Path, left: bytes) -> None:
    """Nor does what is of another file, or less than there is: a process was killed before it could write more."""
    path = tmp_path / "ledger"
    ledger = SqliteLedger(path)
    write(ledger, "a", "b")
    ledger.close()
    Path(f"{path}-lock").write_bytes(left)
    assert order(path) == 2
    assert not told(path)
    assert write(ledger, "c") == 2
    ledger.close()
    assert order(path) == 3


def test_a_process_that_is_killed_after_its_commit_is_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    ledger = SqliteLedger(path)
    write(ledger, "a")
    with monkeypatch.context() as slow:
        slow.setattr(Beside, "end", lambda self, records: None)
        write(ledger, "b")
    assert order(killed(path, tmp_path / "killed")) == 2
    ledger.close()


def test_a_new_generation_is_counted_anew(tmp_path: Path) -> None:
    """It may have fewer records than the file that it takes the place of."""
    path = tmp_path / "ledger"
    ledger = SqliteLedger(path)
    write(ledger, "a", "b", "c")
    ledger.close()
    with apsw.Connection(str(path)) as connection:
        connection.execute("DELETE FROM receipts; UPDATE ledger SET records = 0")
    repair_ledger(f"sqlite:///{path}")
    assert order(path) == 0
    assert write(SqliteLedger(path), "d") == 0
    with pytest.raises(RepairRefusedError):
        repair_ledger(f"sqlite:///{path}")
