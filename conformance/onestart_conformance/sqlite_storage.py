"""The ledger in SQLite, as it is shipped, over a file system of which the operations of each process can fail.

The engine works on real files in a folder that nobody else has; what it writes and syncs goes onto a tape as well, from
which a power failure takes what is left. A process that dies in an operation gets errors from then on: nothing more of
it is written, and its connection is closed, as the system does with what a killed process has open.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

import apsw
from attrs import define, field

from onestart.group_commit import Run
from onestart.ports import Ledger
from onestart.sql.sqlite import SqliteLedger
from onestart_conformance.disk import Fuse
from onestart_conformance.gates import ProcessDied
from onestart_conformance.row_storage import Ask, RowStorage
from onestart_conformance.storage import Access, Opened, at_once
from onestart_conformance.stores.medium import SYNC, WRITE, Medium, Operation, State, TroubleError
from onestart_conformance.stores.sqlite_vfs import MediumVfs
from onestart_conformance.stores.survivals import drawn

R = TypeVar("R")

DATABASE = "ledger.sqlite"
MEMORY = "/dev/shm"  # noqa: S108  # where files cost least, if there is such a place
AT_ONCE, IN_A_WRITE, AT_SYNC, AFTER_SYNC = range(4)
WRITES = 16  # of a step, at one of which it may break off
_NUMBERS = itertools.count(1)


class FusedMedium(Medium):
    """The medium as one process uses it: everything reaches the one that all share, unless the fuse blows.

    A step of SQLite takes many writes, so `left` of its fuse says where it blows: 0 at once, 1 at a write (`torn` says
    at which, and how much of it gets through), 2 at a sync, 3 once that is done and nobody has heard of it.
    """

    def __init__(self, shared: Medium) -> None:
        super().__init__(shared.state, tape=shared.tape)
        self.shared = shared
        self.fuse = Fuse()
        self.name = f"onestart-process-{next(_NUMBERS)}"
        self.vfs = MediumVfs(self.name, self)
        self.ledger: SqliteLedger | None = None
        self._writes = 0

    def _do(self, operation: Operation) -> None:
        if self.dead:
            raise TroubleError(errno.EIO, "the process was killed")
        if not self._blows(operation):
            self.shared._do(operation)
            return
        fuse, self._writes = self.fuse, 0
        if fuse.left == AFTER_SYNC:
            self.shared._do(operation)
        elif operation.kind == WRITE:
            part = operation.data[: len(operation.data) * fuse.torn // 256]
            self.shared._do(Operation(WRITE, operation.path, operation.offset, part))
        self.fuse = Fuse()
        self.dead = not fuse.error
        raise TroubleError(errno.EIO, "Input/output error")

    def _blows(self, operation: Operation) -> bool:
        left = self.fuse.left
        if left == IN_A_WRITE and operation.kind == WRITE:
            self._writes += 1
            return self._writes > self.fuse.torn % WRITES
        return left == AT_ONCE or (left in (AT_SYNC, AFTER_SYNC) and operation.kind == SYNC)


@define(eq=False)
class SqliteStorage(RowStorage):
    """See `Storage`."""

    folder: str = field(factory=lambda: tempfile.mkdtemp(prefix="onestart-world-", dir=_where()))
    medium: Medium = field(factory=Medium)
    _alive: list[FusedMedium] = field(factory=list)
    _outsider: FusedMedium | None = None

    @property
    def path(self) -> str:
        return f"{self.folder}/{DATABASE}"

    def open(self, run: Run) -> Opened:
        access = self._access()

        async def alive(function: Callable[[], R]) -> R:
            try:
                return await run(function)
            finally:
                if access.dead:
                    raise ProcessDied  # whatever the engine made of it

        access.ledger = SqliteLedger(self.path, vfs=access.name, run=alive)
        self._alive.append(access)
        return Opened(access.ledger, access)

    def left(self, access: Access) -> None:
        """Who comes next finds the file as it is when nobody has it open, if nobody has."""
        access.dead = True
        for gone in [one for one in self._alive if one is access]:
            self._alive.remove(gone)
            _close(gone)
        self._let_outsider_go()

    def outside(self) -> Ledger:
        if self._outsider is None:
            self._outsider = self._access()
            self._outsider.ledger = SqliteLedger(self.path, vfs=self._outsider.name, run=at_once)
        assert self._outsider.ledger is not None
        return self._outsider.ledger

    @contextmanager
    def by_hand(self) -> Iterator[Ask]:
        """Through the medium, so that it is on the tape."""
        access = self._access()
        connection = apsw.Connection(self.path, vfs=access.name)
        try:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            yield lambda sql, *values: connection.execute(sql, values).fetchall()
        finally:
            connection.close(True)
            access.vfs.unregister()

    def there(self, ask: Ask) -> Collection[str]:
        return [name for (name,) in ask("SELECT name FROM sqlite_schema WHERE type = 'table'")]

    def power_failure(self, chance: random.Random) -> None:
        image = drawn(self.medium.state, chance)
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        for name, data in image.items():
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(data)
        self.medium.state = State.of(image)
        for access in self._alive:
            access.state = self.medium.state

    def close(self) -> None:
        for access in list(self._alive):
            self.left(access)
        self._let_outsider_go()
        shutil.rmtree(self.folder)

    def _access(self) -> FusedMedium:
        return FusedMedium(self.medium)

    def _let_outsider_go(self) -> None:
        gone, self._outsider = self._outsider, None
        if gone is not None:
            gone.dead = True
            _close(gone)


def _where() -> str | None:
    return MEMORY if os.access(MEMORY, os.W_OK) else None


def _close(access: FusedMedium) -> None:
    """As the system does: nobody checkpoints."""
    if access.ledger is not None:
        access.ledger._abandon()
    access.vfs.unregister()
