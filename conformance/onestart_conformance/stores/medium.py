"""What a ledger is kept on: files as processes see them, and as they are on the disk, over a tape of all that was done.

A write is seen at once and is on the disk when the file is synced. When the power fails, of the writes that were not
synced any may be there and any not, whole or in part; a new file whose folder was not synced may be gone, and a deleted
one back. A process that is killed loses nothing that it wrote. After a sync that failed, the pages may be clean and
never written: what was in them is seen, and no later sync brings it to the disk (PostgreSQL calls it fsyncgate).

Source: T. S. Pillai et al., All file systems are not created equal, OSDI 2014; A. Rebello et al., Can applications
recover from fsync failures?, ATC 2020.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import define, field, frozen

SYNC, WRITE, MAKE, NAMES, DELETE, CUT = "sync", "write", "make", "names", "delete", "cut"
MARK, KEPT = "mark", "kept"
APART = (MARK, KEPT)  # what is on a tape and is no operation that could fail


@frozen
class Operation:
    """One operation on a file, or a mark: what was acknowledged or done outside meanwhile. Or a file that is kept: this
    is in it now, and whatever is lost, it is not, which is the worst for who knows too much by it.

    offset, data: of a write. size: that a file is cut to. dropped: a sync that failed, and what it should have written
    is forgotten. durable: a deletion with its folder synced.
    """

    kind: str
    path: str = ""
    offset: int = 0
    data: bytes = b""
    size: int = 0
    dropped: bool = False
    durable: bool = False
    what: Any = None


@frozen
class Content:
    """One file. disk: what is durable. pending: writes and cuts since, in order. entered: its name is durable."""

    disk: bytes = b""
    seen: bytes = b""
    pending: tuple[Operation, ...] = ()
    entered: bool = False

    def after(self, operation: Operation) -> Content:
        """The file after a write, a cut or a sync."""
        if operation.kind == SYNC:
            disk = self.disk if operation.dropped else applied(self.disk, self.pending)
            return Content(disk, self.seen, (), self.entered)
        return Content(self.disk, applied(self.seen, (operation,)), (*self.pending, operation), self.entered)


Image: TypeAlias = dict[str, bytes]
"""Every file with its bytes, by path."""


def applied(data: bytes, operations: tuple[Operation, ...]) -> bytes:
    """The bytes after these writes and cuts; a hole is full of zeros."""
    for one in operations:
        if one.kind == CUT:
            data = data[: one.size].ljust(one.size, b"\0")
        else:
            data = data[: one.offset].ljust(one.offset, b"\0") + one.data + data[one.offset + len(one.data) :]
    return data


@define(eq=False)
class State:
    """All files at one moment. deleted: files that are gone for everybody, and would be back after a power failure."""

    files: dict[str, Content] = field(factory=dict)
    deleted: dict[str, Content] = field(factory=dict)

    @classmethod
    def of(cls, image: Image) -> State:
        """A disk as it is found when the machine is started."""
        return cls({path: Content(data, data, (), True) for path, data in image.items()})

    @property
    def seen(self) -> Image:
        """What processes see, and find when others were killed."""
        return {path: content.seen for path, content in self.files.items()}

    def copy(self) -> State:
        return State(dict(self.files), dict(self.deleted))

    def apply(self, operation: Operation) -> None:
        path = operation.path
        if operation.kind == NAMES:
            self.files = {
                name: Content(content.disk, content.seen, content.pending, True) for name, content in self.files.items()
            }
            self.deleted.clear()
        elif operation.kind == MAKE:
            self.files[path] = Content()
        elif operation.kind == DELETE:
            content = self.files.pop(path)
            if content.entered and not operation.durable:
                self.deleted[path] = content
        elif operation.kind == KEPT:
            self.files[path] = Content(operation.data, operation.data, (), True)
        elif operation.kind != MARK:
            self.files[path] = self.files[path].after(operation)


@frozen
class Trouble:
    """What goes wrong. at: which operation, counted from 1. how: eio, enospc, short, eintr, late, dropped, killed.

    late: the write is made, and an error reported all the same. dropped: a sync that fails and forgets what to write.
    killed: the same, and the process is killed before it does anything about it.
    """

    at: int
    how: str


KINDS = {
    WRITE: ("eio", "enospc", "short", "eintr", "late"),
    SYNC: ("eio", "dropped", "killed"),
    CUT: ("eio",),
    MAKE: ("enospc",),
}
ERRORS = {"enospc": errno.ENOSPC, "short": errno.ENOSPC, "eintr": errno.EINTR}


class TroubleError(OSError):
    """An operation failed as it was told to."""


@define(eq=False)
class Medium:
    """The files of one run, with the tape of all that was done to them.

    dead: the process that uses it was killed, and nothing of it reaches the files any more. observe: told of each
    operation once it is done.
    """

    state: State = field(factory=State)
    trouble: Trouble | None = None
    tape: list[Operation] = field(factory=list)
    operations: int = 0
    dead: bool = False
    observe: Callable[[Operation], None] | None = None

    def mark(self, what: Any) -> None:
        """Put on the tape that something was acknowledged, or done outside."""
        if not self.dead:
            self._take(Operation(MARK, what=what))

    def keep(self, path: str, data: bytes) -> None:
        """Put on the tape that this is in a file that is not lost, unless it is there already."""
        there = self.state.files.get(path)
        if not self.dead and (there is None or there.seen != data):
            self._take(Operation(KEPT, path, data=data))

    def make(self, path: str) -> None:
        self._do(Operation(MAKE, path))

    def write(self, path: str, offset: int, data: bytes) -> None:
        if path not in self.state.files:
            self.make(path)
        self._do(Operation(WRITE, path, offset, data))

    def cut(self, path: str, size: int) -> None:
        self._do(Operation(CUT, path, size=size))

    def sync(self, path: str) -> None:
        self._do(Operation(SYNC, path))

    def sync_names(self) -> None:
        self._do(Operation(NAMES))

    def delete(self, path: str, *, durable: bool) -> None:
        if path in self.state.files:
            self._do(Operation(DELETE, path, durable=durable))

    def _do(self, operation: Operation) -> None:
        if self.dead:
            return
        self.operations += 1
        how = self.trouble.how if self.trouble is not None and self.trouble.at == self.operations else ""
        if how not in KINDS.get(operation.kind, ()):
            self._take(operation)
            return
        data = operation.data
        if how == "short":
            self._take(Operation(WRITE, operation.path, operation.offset, data[: len(data) // 2]))
        elif how == "late":
            self._take(operation)
        elif how in ("dropped", "killed"):
            self._take(Operation(SYNC, operation.path, dropped=True))
            self.dead = how == "killed"
        raise TroubleError(ERRORS.get(how, errno.EIO), f"{how} at operation {self.operations}")

    def _take(self, operation: Operation) -> None:
        self.state.apply(operation)
        self.tape.append(operation)
        if self.observe is not None:
            self.observe(operation)
