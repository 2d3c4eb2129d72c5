"""The ledger of JSON lines on the simulated disk."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping
from itertools import zip_longest

from attrs import define, field

from onestart.group_commit import Run
from onestart.health import Health
from onestart.jsonl.ledger import JsonlLedger
from onestart.lines import decode, outline, unsealed
from onestart.ports import Ledger
from onestart.records import store_of
from onestart_conformance.damage.lines import WHOLE, damaged
from onestart_conformance.disk import Disk, SimulatedFiles
from onestart_conformance.storage import Access, Opened, at_once

PATH = "ledger"


def path_of(kind: str) -> str:
    """The file of a kind of record."""
    return f"{PATH}/{store_of(kind)}.jsonl"


@define(eq=False)
class DiskStorage:
    """See `Storage`."""

    disk: Disk = field(factory=Disk)

    def open(self, run: Run) -> Opened:
        files = SimulatedFiles(self.disk)
        return Opened(JsonlLedger(PATH, files=files, run=run), files)

    def left(self, access: Access) -> None:
        access.dead = True

    def outside(self) -> Ledger:
        return JsonlLedger(PATH, files=SimulatedFiles(self.disk), run=at_once)

    def snapshot(self) -> Mapping[str, bytes]:
        return self.disk.snapshot()

    def power_failure(self, chance: random.Random) -> None:
        self.disk.power_failure(chance)

    def damage(self, kind: str, key: str, task: str, how: str) -> bool:
        image = self.disk.files.get(path_of(kind))
        found = None if image is None else _newest(bytes(image.data), kind, key, task)
        if image is None or found is None:
            return False
        start, end, told = found
        if how == WHOLE and not told:
            return False
        image.data[start:end] = damaged(bytes(image.data[start:end]), how)
        return True

    def lose_attempts(self, key: str) -> Collection[str]:
        """Not if an older copy would show an older record of another key: a store that lost all is what is modeled."""
        path = path_of("attempt")
        image = self.disk.files.get(path)
        if image is None:
            return ()
        lines = bytes(image.data).splitlines(keepends=True)
        owners = [decode(line.rstrip(b"\n")).key for line in lines]
        if key not in owners:
            return ()
        cut = owners.index(key)
        lost = set(owners[cut:])
        if lost & set(owners[:cut]) or "" in owners:
            return ()
        entered = image.entered
        image = self.disk.new(path)
        image.data += b"".join(lines[:cut])
        image.entered = entered
        return lost

    def close(self) -> None:
        """There is nothing outside of this object."""


def _newest(data: bytes, kind: str, key: str, task: str) -> tuple[int, int, bool] | None:
    """Where the newest intact record begins and ends, and whether the next one tells whose it was.

    It does unless records are missing between the two: then it does not know the one before it.
    """
    records = list(_records(data))
    found: tuple[int, int, bool] | None = None
    for (start, raw), (_, following) in zip_longest(records, records[1:], fillvalue=(0, b"")):
        line = decode(raw)
        mine = line.task == task if kind == "lease" else line.key == key
        if line.health is Health.INTACT and line.kind == kind and mine:
            found = (start, start + len(raw), outline(following).prev == line.owner)
    return found


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Where lines begin, and what they are; not of writes that were cut off, which are no records."""
    start = 0
    *lines, _ = data.split(b"\n")
    for raw in lines:
        if unsealed(raw) != b"":
            yield start, raw
        start += len(raw) + 1
