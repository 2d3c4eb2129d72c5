"""Files with an index beside them, and everything that stores show of them, for comparison."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onestart.jsonl.files import LocalFiles
from onestart.jsonl.indexing import NAME, BesideFiles, Indexing
from onestart.jsonl.stores import Stores
from onestart.records import KINDS, STORES, Record

ALWAYS = Indexing(least=0, share=1 << 40)


class QuickFiles(LocalFiles):
    """Real files that nobody waits for. read_of: how many bytes were read of each store's file."""

    def __init__(self) -> None:
        super().__init__()
        self.read_of = dict.fromkeys(STORES, 0)

    def sync(self, path: str) -> None:
        pass

    def sync_folder(self, path: str) -> None:
        pass

    def read(self, path: str, offset: int, length: int) -> bytes:
        found = super().read(path, offset, length)
        store = os.path.basename(path).removesuffix(".jsonl")
        if store in self.read_of:
            self.read_of[store] += len(found)
        return found


def stores_of(folder: Path, indexing: Indexing | None = None, *, durable: bool = True) -> Stores:
    """Stores that use an index, or none."""
    beside = None if indexing is None else BesideFiles(str(folder), indexing)
    return Stores(str(folder), QuickFiles(), durable=durable, index=beside)


def refreshed(stores: Stores) -> Stores:
    stores.refresh()
    return stores


def read_without(folder: Path) -> Stores:
    """What the files alone show."""
    return refreshed(stores_of(folder, durable=False))


def read_with(folder: Path) -> Stores:
    """What they show to whoever has an index."""
    return refreshed(stores_of(folder, ALWAYS, durable=False))


def put(stores: Stores, *records: Record) -> None:
    """Each in a step of its own."""
    for record in records:
        stores.refresh()
        stores.append(record)
        stores.commit()
        stores.keep_index()


def index_of(folder: Path) -> Path:
    return folder / NAME


def twin(stores: Stores) -> Stores:
    """Other stores that know the same."""
    files = next(iter(stores.journals.values()))._files
    return copy.deepcopy(stores, {id(files): files})


def everything(stores: Stores, keys: tuple[str, ...] = (), tasks: tuple[str, ...] = ()) -> dict[str, Any]:
    """All that stores show. keys, tasks: some that are looked at besides those that there are."""
    all_keys, all_tasks = sorted({*stores.all_keys(), *keys}), sorted({*stores.all_tasks(), *tasks})
    roots = sorted(stores.roots())
    by_key: tuple[Callable[[str], Any], ...] = (
        *(stores.receipt, stores.attempt, stores.session, stores.approval, stores.note, stores.steps, stores.task_of),
    )
    return {
        "order": stores.order,
        "keys": sorted(stores.all_keys()),
        "tasks": sorted(stores.all_tasks()),
        "roots": roots,
        "of keys": {key: [look(key) for look in by_key] for key in all_keys},
        "of tasks": {task: (sorted(stores.keys(task)), stores.lease(task)) for task in all_tasks},
        "entries": {
            (kind, name): list(stores.entries((kind, name))) for kind in KINDS for name in all_keys + all_tasks
        },
        "stray": stores.stray(),
        "lost": {store: sorted((where, sorted(seqs)) for where, seqs in stores.lost(store)) for store in STORES},
        "journals": {store: _kept(journal) for store, journal in stores.journals.items()},
    }


def _kept(journal: Any) -> tuple[Any, ...]:
    return (journal.position(), journal.open_tail, journal.count, journal.torn, journal.backward)
