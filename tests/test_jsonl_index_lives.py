"""A life of files and their index: whatever happens to either, the index knows what was known when it was written."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from indexed_files import everything, index_of, put, read_with, refreshed, stores_of, twin
from onestart.jsonl.indexing import Indexing
from onestart.jsonl.position import Position, digest
from onestart.jsonl.stores import Stores
from onestart.lines import decode, encode
from onestart.records import STORES, Record, Session
from test_jsonl_ledger import attempt, receipt, whole

KEYS = tuple(f"k{number}" for number in range(6))
COMMANDS = [record for number in range(4) for record in whole(number)]


def shown(stores: Stores) -> object:
    return everything(stores, KEYS, ("t", "u"))


class Life:
    """Files that much happens to. writer: writes indexes as it goes on; plain: does the same without one.

    known: what a process without an index knew when the index was written, which is all that the index can know.
    """

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.writer, self.plain = stores_of(folder, Indexing(2, 1 << 40)), stores_of(folder)
        self.known: Stores | None = None
        self.covered: dict[str, Position] = {}
        self.saved: dict[str, bytes] = {}
        self.number = 0

    def path(self) -> Path | None:
        there = [path for store in STORES if (path := self.folder / f"{store}.jsonl").exists()]
        return self.chance.choice(there) if there else None

    def append(self) -> None:
        """A few records by whoever writes indexes, or by a process that has none."""
        for _ in range(self.chance.randint(1, 6)):
            record = COMMANDS[self.number % len(COMMANDS)]
            self.number += 1
            if self.chance.random() < 0.3:
                put(stores_of(self.folder), record)
            else:
                self.step(record)

    def step(self, record: Record) -> None:
        before = self.identity()
        self.plain.refresh()
        put(self.writer, record)
        self.plain.refresh()
        if self.identity() != before:
            self.known = twin(self.plain)
            self.covered = {store: at for store, j in self.plain.journals.items() if (at := j.position())}

    def identity(self) -> tuple[int, int] | None:
        path = index_of(self.folder)
        return (path.stat().st_ino, path.stat().st_mtime_ns) if path.exists() else None

    def usable(self) -> bool:
        """Whether each file is the one that was covered, by size, identity and last line."""
        for store, at in self.covered.items():
            path = self.folder / f"{store}.jsonl"
            if at.identity is None:
                continue
            if not path.exists() or (path.stat().st_dev, path.stat().st_ino) != at.identity:
                return False
            last = path.read_bytes()[at.last_offset :][: at.last_length + 1]
            if path.stat().st_size < at.offset:
                return False
            if at.last_length and (digest(last[:-1]) != at.last_digest or last[-1:] != b"\n"):
                return False
        return self.known is not None

    def opened(self) -> Stores:
        """What a process has to know that opens the ledger now."""
        if self.known is not None and self.usable():
            return refreshed(twin(self.known))
        return refreshed(stores_of(self.folder))

    def reopen(self) -> None:
        self.plain = self.opened()
        self.writer = refreshed(stores_of(self.folder, Indexing(2, 1 << 40)))

    def damage(self) -> None:
        """To lines; what has no newline is nothing yet, and whoever has seen it does not look again."""
        path = self.path()
        if path is None or not (end := (data := bytearray(path.read_bytes())).rfind(b"\n") + 1):
            return
        at = self.chance.randrange(end)
        for position in range(at, min(at + self.chance.choice((1, 1, 5, 300)), end)):
            data[position] = self.chance.choice((0, 10, data[position] ^ 1))
        with path.open("r+b") as file:
            file.write(data)

    def tear(self) -> None:
        path = self.path()
        if path is not None and (lines := path.read_bytes().splitlines(keepends=True)):
            whole = self.chance.choice(lines)
            with path.open("ab") as file:
                file.write(whole[: self.chance.randrange(len(whole))])

    def cut(self) -> None:
        path = self.path()
        if path is not None and (size := path.stat().st_size):
            os.truncate(path, self.chance.randrange(size))

    def delete(self) -> None:
        path = self.path()
        if path is not None:
            path.unlink()

    def save(self) -> None:
        self.saved = {path.name: path.read_bytes() for path in self.folder.glob("*.jsonl")}

    def restore(self) -> None:
        """An older state, in the same files or in others."""
        for name, data in self.saved.items():
            if self.chance.random() < 0.5:
                (self.folder / name).unlink(missing_ok=True)
            (self.folder / name).write_bytes(data)

    def replace(self) -> None:
        """Another file that ends in the same way: one of its lines is another's."""
        path = self.path()
        if path is None:
            return
        lines = path.read_bytes().splitlines(keepends=True)
        if len(lines) > 1 and lines[-1].endswith(b"\n"):
            at = self.chance.randrange(len(lines) - 1)
            made = encode(attempt("k5") if path.name[0] == "a" else receipt("k5"), at + 1, None, {})
            if len(made) <= len(lines[at]):
                lines[at] = made
        other = self.folder / "other"
        other.write_bytes(b"".join(lines))
        other.replace(path)

    def spoil(self) -> None:
        """Something happens to the index itself."""
        path = index_of(self.folder)
        if path.exists() and (data := bytearray(path.read_bytes())):
            data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
            path.unlink()
            path.write_bytes(data[: self.chance.choice((len(data), len(data) // 2, 0))])
            self.known = None


@pytest.mark.parametrize("seed", range(80))
def test_whatever_happens_the_index_knows_what_was_known(tmp_path: Path, seed: int) -> None:
    life = Life(tmp_path, random.Random(seed))
    moves: list[Callable[[], None]] = [
        *(life.append, life.append, life.append, life.damage, life.tear, life.cut, life.delete),
        *(life.save, life.restore, life.replace, life.spoil, life.reopen),
    ]
    life.append()
    for move in life.chance.choices(moves, k=life.chance.randint(1, 12)):
        move()
        if move != life.spoil:
            assert shown(refreshed(life.writer)) == shown(refreshed(life.plain)), move.__name__
        if life.known is not None or not index_of(tmp_path).exists():
            assert shown(read_with(tmp_path)) == shown(life.opened()), move.__name__


def test_a_line_that_is_there_twice_is_in_its_place(tmp_path: Path) -> None:
    """Also if only one of them is covered."""
    put(stores_of(tmp_path, Indexing(0, 1 << 40)), *whole(0))
    for store in ("receipts", "leases"):
        path = tmp_path / f"{store}.jsonl"
        first = path.read_bytes().splitlines(keepends=True)[0]
        with path.open("ab") as file:
            file.write(first)
    found = refreshed(stores_of(tmp_path, Indexing(0, 1 << 40), durable=False))
    assert shown(found) == shown(refreshed(stores_of(tmp_path)))
    assert [entry.seq for entry in found.entries(("receipt", "k0"))] == [1, 1, 2]


def test_numbers_that_other_stores_have_seen_are_not_given_again(tmp_path: Path) -> None:
    put(stores_of(tmp_path), *whole(0))
    (tmp_path / "sessions.jsonl").unlink()
    put(stores_of(tmp_path, Indexing(0, 1 << 40)), receipt("k4"))
    assert index_of(tmp_path).exists()
    put(stores_of(tmp_path, Indexing(0, 1 << 40)), Session("k4", "t", "live", "f"))
    assert decode((tmp_path / "sessions.jsonl").read_bytes()[:-1]).seq == 2
