"""A simulated disk under the real ledger: what is written is seen at once, and is durable only once it is synced.

A process can be killed at any operation, in the middle of a write too; then what was written stays. When the power
fails, of what was not synced any part may be kept, lost or torn, later writes without the earlier ones, and a file
whose folder was not synced may be gone.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import define, field

from onestart.jsonl.files import Status
from onestart_conformance.gates import ProcessDied


@define
class Image:
    """One file. unsynced: offset and length of each write since the last sync. entered: the folder knows it durably."""

    number: int
    data: bytearray = field(factory=bytearray)
    unsynced: list[tuple[int, int]] = field(factory=list)
    entered: bool = False


@define
class Fuse:
    """What goes wrong in the next operations of a process. left: how many still go well, None for all of them.

    torn: of the write at which it dies, the share that gets through, in 256ths. error: instead of dying, an I/O error.
    """

    left: int | None = None
    torn: int = 0
    error: bool = False


class Disk:
    """Files by path, shared by all processes."""

    def __init__(self) -> None:
        self.files: dict[str, Image] = {}
        self.notes: dict[str, bytes] = {}  # in the files of locks
        self._earlier: dict[str, bytes] = {}
        self._numbers = 0

    def new(self, path: str) -> Image:
        self._numbers += 1
        image = self.files[path] = Image(self._numbers)
        return image

    def note(self, path: str, data: bytes) -> None:
        """What is in a lock's file now, though not yet on the disk."""
        self._earlier[path] = self.notes.get(path, b"")
        self.notes[path] = data

    def snapshot(self) -> dict[str, bytes]:
        """Every byte of what is recorded, by path."""
        return {path: bytes(image.data) for path, image in self.files.items()}

    def power_failure(self, random: random.Random) -> None:
        """Lose what was not synced, as chance will have it."""
        for path, image in list(self.files.items()):
            for offset, length in reversed(image.unsynced):
                kept = random.choice((0, length, random.randint(0, length)))
                tail = offset + length
                if tail == len(image.data):
                    del image.data[offset + kept :]
                else:
                    image.data[offset + kept : tail] = bytes(length - kept)
            image.unsynced.clear()
            if not image.entered and random.random() < 0.5:
                del self.files[path]
        for path, note in self.notes.items():
            earlier = self._earlier.get(path, note)
            kept = random.choice((0, len(note), random.randint(0, len(note))))
            self.notes[path] = note[:kept] + earlier[kept:]
        self._earlier.clear()


class SimulatedFiles:
    """The disk as one process sees it; the interface of `onestart.jsonl.files.Files`."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.fuse = Fuse()
        self.dead = False
        self.operations = 0

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        self._operate()
        yield

    def note(self, path: str, length: int) -> bytes:
        self._alive()
        return self._disk.notes.get(path, b"")[:length]

    def leave_note(self, path: str, data: bytes) -> None:
        self._operate()
        self._disk.note(path, data)

    def make_folder(self, path: str) -> None:
        self._operate()

    def list(self, path: str) -> list[str]:
        self._alive()
        inside = [name[len(path) + 1 :] for name in self._disk.files if name.startswith(f"{path}/")]
        return list(dict.fromkeys(name.partition("/")[0] for name in inside))

    def status(self, path: str) -> Status | None:
        self._alive()
        image = self._disk.files.get(path)
        return None if image is None else Status(image.number, len(image.data))

    def read(self, path: str, offset: int, length: int) -> bytes:
        self._alive()
        return bytes(self._disk.files[path].data[offset : offset + length])

    def append(self, path: str, data: bytes) -> None:
        image = self._disk.files.get(path) or self._disk.new(path)
        try:
            self._operate()
        except (ProcessDied, OSError):
            part = len(data) * self.fuse.torn // 256
            image.unsynced.append((len(image.data), part))
            image.data += data[:part]
            raise
        image.unsynced.append((len(image.data), len(data)))
        image.data += data

    def write_again(self, path: str, offset: int, length: int) -> None:
        """On this disk a sync that failed forgets nothing, so there is nothing to do (see `stores.medium`)."""
        self._alive()

    def sync(self, path: str) -> None:
        self._operate()
        self._disk.files[path].unsynced.clear()

    def sync_folder(self, path: str) -> None:
        self._operate()
        for name, image in self._disk.files.items():
            if name.startswith(f"{path}/"):
                image.entered = True

    def write_new(self, path: str, data: bytes) -> None:
        self._operate()
        if path in self._disk.files:
            raise FileExistsError(errno.EEXIST, "it exists", path)
        image = self._disk.new(path)
        image.data += data

    def _alive(self) -> None:
        if self.dead:
            raise ProcessDied

    def rewrite(self, path: str, mend: Callable[[bytes], bytes]) -> None:
        """Write a file anew in its place, as a library must not."""
        image = self._disk.files.get(path)
        if image is not None:
            image.data[:] = mend(bytes(image.data))

    def _operate(self) -> None:
        self._alive()
        self.operations += 1
        left = self.fuse.left
        if left is None:
            return
        self.fuse.left = left - 1
        if left > 0:
            return
        if self.fuse.error:
            self.fuse.left = None
            raise OSError(errno.EIO, "Input/output error")
        self.dead = True
        raise ProcessDied
