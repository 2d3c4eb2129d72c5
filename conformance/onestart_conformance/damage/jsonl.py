"""The ledger of JSON lines as a medium: on the simulated disk, and in a folder of this machine."""

from __future__ import annotations

import errno
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from pathlib import Path
from typing import TypeAlias, TypeVar

from onestart.jsonl.files import Files, LocalFiles, Status
from onestart.jsonl.ledger import LOCK, JsonlLedger
from onestart.jsonl.verify import verify
from onestart.ports import Ledger, LedgerUnavailableError
from onestart.records import STORES
from onestart_conformance.damage.medium import STORE, Verified
from onestart_conformance.disk import Disk, Image, SimulatedFiles
from onestart_conformance.disk_storage import PATH
from onestart_conformance.storage import at_once

T = TypeVar("T")

Contents: TypeAlias = Mapping[str, bytes]


class ObstructedFiles(SimulatedFiles):
    """The disk as a process sees it. covered: names that something else has. refused: what nobody may read or write."""

    def __init__(self, disk: Disk, covered: Set[str], refused: Set[str]) -> None:
        super().__init__(disk)
        self._covered, self._refused = covered, refused

    def status(self, path: str) -> Status | None:
        self._look(path)
        return super().status(path)

    def read(self, path: str, offset: int, length: int) -> bytes:
        self._open(path)
        return super().read(path, offset, length)

    def append(self, path: str, data: bytes) -> None:
        self._open(path)
        super().append(path, data)

    def sync(self, path: str) -> None:
        self._open(path)
        super().sync(path)

    def _look(self, path: str) -> None:
        if path in self._covered:
            raise OSError(None, "it is not a regular file", path)

    def _open(self, path: str) -> None:
        self._look(path)
        if path in self._refused:
            raise PermissionError(errno.EACCES, "Permission denied", path)


class OfLines(ABC):
    """What both have in common: a store is the bytes of one file, a record is a line with its newline."""

    name = "jsonl"
    stores = tuple(STORES)
    numbering = STORE
    readable = True

    @abstractmethod
    def data(self, store: str) -> bytes:
        """What the store's file holds, nothing if it cannot be read."""

    @abstractmethod
    def write(self, store: str, data: bytes) -> None:
        """Write the store's file anew in its place."""

    @abstractmethod
    def files(self) -> Files:
        """The files as a process sees them."""

    @property
    @abstractmethod
    def path(self) -> str:
        """The ledger's folder."""

    def records(self, store: str) -> tuple[bytes, ...]:
        *lines, rest = self.data(store).split(b"\n")
        return (*(line + b"\n" for line in lines), *((rest,) if rest else ()))

    def torn(self, store: str) -> bool:
        return not self.data(store).endswith(b"\n")

    def replace(self, store: str, record: int, data: bytes) -> None:
        records = self.records(store)
        self.write(store, b"".join((*records[:record], data, *records[record + 1 :])))

    def insert(self, store: str, record: int, data: bytes) -> None:
        records = self.records(store)
        self.write(store, b"".join((*records[:record], data, *records[record:])))

    def delete(self, store: str, record: int) -> None:
        self.replace(store, record, b"")

    def cut(self, store: str, record: int, byte: int) -> None:
        records = self.records(store)
        self.write(store, b"".join(records[:record]) + b"".join(records[record : record + 1])[:byte])

    def ledger(self) -> Ledger:
        return JsonlLedger(self.path, files=self.files(), run=at_once)

    def verify(self) -> Verified:
        try:
            reports = verify(self.path, self.files())
        except LedgerUnavailableError as error:
            return Verified({}, (), str(error))
        return Verified({r.store: r.damage for r in reports}, tuple(text for r in reports for text in r.findings))


class DiskMedium(OfLines):
    """On the simulated disk."""

    def __init__(self) -> None:
        self.disk = Disk()
        self._covered: set[str] = set()
        self._refused: set[str] = set()

    @property
    def path(self) -> str:
        return PATH

    def files(self) -> Files:
        return ObstructedFiles(self.disk, self._covered, self._refused)

    def data(self, store: str) -> bytes:
        image = self.disk.files.get(_file(store))
        return b"" if image is None else bytes(image.data)

    def write(self, store: str, data: bytes) -> None:
        (self.disk.files.get(_file(store)) or self.disk.new(_file(store))).data[:] = data

    def remove(self, store: str) -> None:
        self.disk.files.pop(_file(store), None)

    def cover(self, store: str) -> None:
        self._covered.add(_file(store))
        self.readable = False

    def refuse(self, store: str) -> None:
        self._refused.add(_file(store))
        self.readable = False

    def bytes(self) -> Mapping[str, bytes]:
        return self.disk.snapshot()

    def keep(self) -> object:
        return self.disk.snapshot(), dict(self.disk.notes)

    def restore(self, kept: object) -> None:
        assert isinstance(kept, tuple)
        files, notes = kept
        self._covered.clear()
        self._refused.clear()
        self.readable = True
        self.disk = Disk()
        self.disk.notes |= notes
        for number, (path, data) in enumerate(files.items(), 1):
            self.disk.files[path] = Image(number, bytearray(data), entered=True)


class FolderMedium(OfLines):
    """In a folder of this machine, which is made and removed at will."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def path(self) -> str:
        return str(self._folder)

    def files(self) -> Files:
        return LocalFiles()

    def data(self, store: str) -> bytes:
        path = self._path(store)
        return path.read_bytes() if path.is_file() and os.access(path, os.R_OK) else b""

    def write(self, store: str, data: bytes) -> None:
        with open(self._path(store), "r+b" if self._path(store).exists() else "wb") as file:
            file.truncate(0)
            file.write(data)

    def remove(self, store: str) -> None:
        self._path(store).unlink(missing_ok=True)

    def cover(self, store: str) -> None:
        self.remove(store)
        self._path(store).mkdir()
        self.readable = False

    def refuse(self, store: str) -> None:
        self._path(store).chmod(0)
        self.readable = False

    def bytes(self) -> Mapping[str, bytes]:
        return {name: data for name, data in self._all().items() if name != LOCK}

    def keep(self) -> object:
        return self._all()

    def _all(self) -> Contents:
        return {path.name: path.read_bytes() for path in sorted(self._folder.iterdir()) if path.is_file()}

    def restore(self, kept: object) -> None:
        assert isinstance(kept, dict)
        if self._folder.exists():
            shutil.rmtree(self._folder)
        self._folder.mkdir()
        self.readable = True
        for name, data in kept.items():
            (self._folder / name).write_bytes(data)

    def _path(self, store: str) -> Path:
        return self._folder / f"{store}.jsonl"


def _file(store: str) -> str:
    return f"{PATH}/{store}.jsonl"
