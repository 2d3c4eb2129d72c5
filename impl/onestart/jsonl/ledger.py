"""The ledger of JSON lines: a folder with one file for each store, a lock, and a marker that says what it is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from onestart.group_commit import GroupCommit, Run, Step, Take
from onestart.jsonl.files import Files, LocalFiles
from onestart.jsonl.generations import MARKER, in_force, names
from onestart.jsonl.indexing import BesideFiles, Indexing
from onestart.jsonl.reached import Reached
from onestart.jsonl.stores import Stores
from onestart.ports import LedgerUnavailableError, NotALedgerError, View
from onestart.records import Record

T = TypeVar("T")

LOCK = "lock"
_FORMAT, _VERSION = "onestart-ledger", 1
MARK = json.dumps({"format": _FORMAT, "version": _VERSION}, separators=(",", ":")).encode() + b"\n"


class JsonlLedger:
    """A `Ledger` in a folder, shared by any number of processes of one machine.

    A missing or empty folder becomes a ledger at the first step. A step is made durable by one fsync of one file, which
    steps that come meanwhile share if they write to the same one. After a failed write every step raises
    LedgerUnavailableError: what the file holds is unknown until it is opened anew.

    index: when an index is written beside the files; without any, files that are given have none. files: the file
    system, LocalFiles if None. run, thread: see `GroupCommit`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        files: Files | None = None,
        run: Run | None = None,
        thread: Run | None = None,
        index: Indexing | None = None,
    ) -> None:
        self._path = os.fspath(path)
        self._files: Files = LocalFiles() if files is None else files
        self._indexing = Indexing() if index is None and files is None else index
        self._lock = f"{self._path}/{LOCK}"
        self._marker = f"{self._path}/{MARKER}"
        self._marked: Hashable | None = None
        self._folder = self._path
        self._generations: list[str] = []
        self._stores = self._stores_in(self._path)
        self._group = GroupCommit(self._carry_out, run, thread)

    async def step(self, decide: Callable[[View], tuple[Record | None, T]]) -> T:
        """See `Ledger.step`. Raises NotALedgerError if the folder holds something else."""
        return await self._group.step(decide)

    def _carry_out(self, take: Take) -> None:
        if self._marked is None:
            self._prepare()
        with Held(self._files, self._lock):
            steps = take()
            self._open()
            self._stores.refresh()
            self._together(steps)
            self._stores.tell()
            self._stores.keep_index()

    def _together(self, steps: list[Step[Any]]) -> None:
        """Each decides on what those before it have appended; none is done before that is durable."""
        stores, decided = self._stores, list[Step[Any]]()
        for step in steps:
            record = step.decide(stores)
            if record is not None:
                if stores.open_elsewhere(record) or stores.open_related(record):
                    _commit(stores, decided)
                stores.append(record)
            decided.append(step)
        _commit(stores, decided)

    def _prepare(self) -> None:
        """Make the folder, unless something else is there already."""
        inspect(self._files, self._path)
        try:
            self._files.make_folder(self._path)
        except OSError as error:
            raise LedgerUnavailableError("ledger", f"the folder cannot be made: {error.strerror or error}") from error

    def _open(self) -> None:
        """Mark the folder as a ledger if it is new; from then on, see that it is still the same."""
        try:
            if self._marked is None:
                self._mark(inspect(self._files, self._path))
                self._marked = _identity(self._files, self._marker)
            elif _identity(self._files, self._marker) != self._marked:
                raise NotALedgerError(f"{self._path} was removed or replaced while it was open; open it anew")
            self._turn_to_newest()
        except OSError as error:
            raise LedgerUnavailableError("ledger", error.strerror or str(error)) from error

    def _turn_to_newest(self) -> None:
        """A repair may have put a new generation in force. One that is not finished by now never will be."""
        found = self._files.list(self._path)
        generations = names(found)
        if generations != self._generations:
            self._generations = generations
            folder = in_force(self._files, self._path, found, MARK)
            if folder != self._folder:
                self._folder, self._stores = folder, self._stores_in(folder)

    def _stores_in(self, folder: str) -> Stores:
        index = None if self._indexing is None else BesideFiles(folder, self._indexing)
        return Stores(folder, self._files, index=index, reached=reached(self._files, self._path, folder))

    def _mark(self, found: bytes | None) -> None:
        """found: what the marker holds, None if there is none. All names are made durable, whoever made them."""
        files = self._files
        if found is None:
            files.write_new(self._marker, MARK)
        else:
            files.write_again(self._marker, 0, len(found))
            if found != MARK and MARK.startswith(found):
                files.sync(self._marker)  # else the disk could keep the rest, and lose what is before it
                files.append(self._marker, MARK[len(found) :])
        files.sync(self._marker)
        files.sync_folder(self._path)
        files.sync_folder(os.path.dirname(self._path.rstrip("/")) or ("/" if self._path.startswith("/") else "."))


def _identity(files: Files, path: str) -> Hashable | None:
    found = files.status(path)
    return None if found is None else found.identity


def _commit(stores: Stores, decided: list[Step[Any]]) -> None:
    stores.commit()
    for step in decided:
        step.done()
    decided.clear()


class Held:
    """The ledger's lock, with its own errors told from those of what is done under it."""

    __slots__ = ("_lock",)

    def __init__(self, files: Files, path: str) -> None:
        self._lock = files.lock(path)

    def __enter__(self) -> None:
        try:
            self._lock.__enter__()
        except OSError as error:
            raise LedgerUnavailableError("lock", error.strerror or str(error)) from error

    def __exit__(self, *raised: object) -> None:
        self._lock.__exit__(*raised)  # type: ignore[arg-type]


def open_for_reading(path: str | os.PathLike[str], files: Files | None = None, *, index: bool | None = None) -> Stores:
    """What a ledger holds now. Takes no lock and writes nothing, not even to make durable what it reads.

    index: whether an index is used that is there; if None, not with files that are given.
    Raises NotALedgerError if there is none, LedgerUnavailableError if it cannot be read.
    """
    indexed = files is None if index is None else index
    files = LocalFiles() if files is None else files
    folder = os.fspath(path)
    if inspect(files, folder) is None:
        raise NotALedgerError(f"{folder} holds no ledger")
    generation = current(files, folder)
    beside = BesideFiles(generation, Indexing()) if indexed else None
    stores = Stores(generation, files, durable=False, index=beside, reached=reached(files, folder, generation))
    stores.look()
    return stores


def reached(files: Files, path: str, folder: str) -> Reached:
    """What tells how far the stores have got. path: of the ledger. folder: of the generation in force."""
    return Reached(files, f"{path}/{LOCK}", folder.removeprefix(path))


def current(files: Files, path: str) -> str:
    """The folder of the generation that is in force."""
    return in_force(files, path, files.list(path), MARK)


def inspect(files: Files, path: str) -> bytes | None:
    """The marker of the ledger in this folder, perhaps unfinished, or None if the folder is free to become one.

    Raises NotALedgerError if it is neither, LedgerUnavailableError if that cannot be seen.
    """
    try:
        there = set(files.list(path))
        found = files.read(f"{path}/{MARKER}", 0, 1 << 12) if MARKER in there else None
    except NotADirectoryError:
        raise NotALedgerError(f"{path} is no folder") from None
    except OSError as error:
        raise LedgerUnavailableError("ledger", error.strerror or str(error)) from error
    if found is not None and in_force(files, path, list(there), MARK) != path:
        return MARK
    if found is None:
        if there <= {LOCK}:
            return None
        raise NotALedgerError(f"{path} holds other things and no {MARKER}; choose a folder that is missing or empty")
    if found != MARK and not (MARK.startswith(found) and there <= {LOCK, MARKER}):
        _check(found, f"{path}/{MARKER}")
    return found


def _check(found: bytes, where: str) -> None:
    """Raises NotALedgerError unless this says that the folder is a ledger of the known version."""
    try:
        mark = json.loads(found)
    except (ValueError, RecursionError):
        raise NotALedgerError(f"{where} cannot be read as JSON") from None
    if not isinstance(mark, dict) or mark.get("format") != _FORMAT:
        raise NotALedgerError(f"{where} does not say that this is a ledger")
    version = mark.get("version")
    if type(version) is not int or version != _VERSION:
        raise NotALedgerError(f"{where} is of version {ascii(version)[:40]}; this program knows version {_VERSION}")
