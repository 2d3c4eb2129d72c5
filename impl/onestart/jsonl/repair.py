"""Repair of a ledger of JSON lines: a new generation of files beside the old ones, of which no byte changes."""

from __future__ import annotations

import os
import time
from typing import cast

from onestart.jsonl.files import Files, LocalFiles, Status
from onestart.jsonl.generations import MARKER, following
from onestart.jsonl.history import FilesHistory, FilesWriter, numbered
from onestart.jsonl.ledger import LOCK, MARK, Held, current, inspect, reached
from onestart.jsonl.stores import Stores
from onestart.ports import LedgerUnavailableError, NotALedgerError
from onestart.records import STORES
from onestart.repair import Repair, RepairRefusedError, save, survey

REPORT = "repair.json"


def repair(path: str | os.PathLike[str], files: Files | None = None) -> Repair:
    """Publish a new generation with all that can be read, while no step happens.

    Raises RepairRefusedError if nothing is wrong or a newer program has written to it, NotALedgerError if there is no
    ledger, LedgerUnavailableError if the new generation cannot be written; then the old one stays in force.
    """
    files = LocalFiles() if files is None else files
    base = os.fspath(path)
    if inspect(files, base) is None:
        raise NotALedgerError(f"{base} holds no ledger")
    with Held(files, f"{base}/{LOCK}"):
        try:
            return _repair(files, base)
        except OSError as error:
            raise LedgerUnavailableError("ledger", error.strerror or str(error)) from error


def _repair(files: Files, base: str) -> Repair:
    old = current(files, base)
    hidden = [store for store in STORES if not _readable(files, f"{old}/{store}.jsonl")]
    shown = _hiding(files, {f"{old}/{store}.jsonl" for store in hidden})
    stores = Stores(old, shown, durable=False, reached=reached(files, base, old))
    stores.look()
    history = FilesHistory(stores)
    salvage = survey(history, hidden)
    if not salvage.needed and not any(journal.backward for journal in stores.journals.values()):
        raise RepairRefusedError(f"{old}: nothing is wrong with it")
    new = f"{base}/{following(files.list(base))}"
    files.make_folder(new)
    writer = FilesWriter(files, new, numbered(history))
    kept = save(history, writer)
    writer.finish()
    gone = tuple(f"{store}.jsonl: it cannot be read at all" for store in hidden)
    done = Repair(new, kept, salvage.lost, (*salvage.left_out, *gone))
    files.write_new(f"{new}/{REPORT}", done.to_json(of=old, at=time.time()).encode())
    files.sync_folder(new)
    files.sync_folder(base)
    files.write_new(f"{new}/{MARKER}", MARK)  # from here on it is in force
    files.sync_folder(new)
    return done


def _readable(files: Files, path: str) -> bool:
    try:
        return files.status(path) is None or files.read(path, 0, 1) is not None
    except OSError:
        return False


def _hiding(files: Files, hidden: set[str]) -> Files:
    return cast(Files, _Hiding(files, hidden))


class _Hiding:
    """Files, of which some are as if they were not there."""

    def __init__(self, files: Files, hidden: set[str]) -> None:
        self._files, self._hidden = files, hidden

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)

    def status(self, path: str) -> Status | None:
        return None if path in self._hidden else self._files.status(path)
