"""The interface of `onestart.jsonl.files.Files` over a medium."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from onestart.jsonl.files import Status
from onestart_conformance.stores.medium import Medium


class MediumFiles:
    """The files of a medium as one process uses them."""

    def __init__(self, medium: Medium) -> None:
        self._medium = medium

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        if self._medium.dead:
            raise OSError(errno.EIO, "the process was killed")
        yield

    def note(self, path: str, length: int) -> bytes:
        found = self._medium.state.files.get(path)
        return b"" if found is None else found.seen[:length]

    def leave_note(self, path: str, data: bytes) -> None:
        self._medium.keep(path, data)

    def make_folder(self, path: str) -> None:
        """There is one folder, and it is there."""

    def list(self, path: str) -> list[str]:
        return [name.removeprefix(f"{path}/") for name in self._medium.state.files if name.startswith(f"{path}/")]

    def status(self, path: str) -> Status | None:
        found = self._medium.state.files.get(path)
        return None if found is None else Status(path, len(found.seen))

    def read(self, path: str, offset: int, length: int) -> bytes:
        return self._medium.state.files[path].seen[offset : offset + length]

    def append(self, path: str, data: bytes) -> None:
        found = self._medium.state.files.get(path)
        self._medium.write(path, 0 if found is None else len(found.seen), data)

    def write_again(self, path: str, offset: int, length: int) -> None:
        self._medium.write(path, offset, self.read(path, offset, length))

    def sync(self, path: str) -> None:
        self._medium.sync(path)

    def sync_folder(self, path: str) -> None:
        self._medium.sync_names()

    def write_new(self, path: str, data: bytes) -> None:
        if path in self._medium.state.files:
            raise FileExistsError(errno.EEXIST, "it exists", path)
        self._medium.write(path, 0, data)
        self._medium.sync(path)
