"""A ledger on a medium: how each kind of ledger is opened there, by one process or another."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

from onestart.jsonl.ledger import JsonlLedger
from onestart.ports import Ledger
from onestart.sql.sqlite import SqliteLedger
from onestart_conformance.stores.jsonl_files import MediumFiles
from onestart_conformance.stores.medium import Medium
from onestart_conformance.stores.sqlite_vfs import MediumVfs
from onestart_conformance.stores.stage import in_turn

Open: TypeAlias = Callable[[], Ledger]
"""A process opens the ledger."""

Machine: TypeAlias = Callable[[Medium], AbstractContextManager[Open]]
"""The machine is started with these files; at the end all its processes are killed."""

DATABASE = "ledger.sqlite"
BESIDE = f"{DATABASE}-lock"
_NUMBERS = itertools.count(1)


@contextmanager
def jsonl(medium: Medium) -> Iterator[Open]:
    """The ledger of JSON lines."""
    yield lambda: JsonlLedger("ledger", files=MediumFiles(medium), thread=in_turn)
    medium.dead = True


@contextmanager
def sqlite(medium: Medium) -> Iterator[Open]:
    """The ledger in SQLite, in a folder that holds what the medium shows. At the end all processes are killed."""
    folder = tempfile.mkdtemp(prefix="onestart-medium-")
    beside = Path(folder, BESIDE)
    vfs = MediumVfs(f"onestart-medium-{next(_NUMBERS)}", medium)
    opened: list[SqliteLedger] = []

    def process() -> Ledger:
        opened.append(SqliteLedger(f"{folder}/{DATABASE}", vfs=vfs.name, thread=in_turn))
        return opened[-1]

    try:
        for name, data in medium.state.seen.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        medium.observe = lambda _: medium.keep(BESIDE, beside.read_bytes()) if beside.exists() else None
        yield process
    finally:
        medium.dead = True
        for ledger in opened:
            ledger.close()
        vfs.unregister()
        shutil.rmtree(folder)


MACHINES: Mapping[str, Machine] = {"jsonl": jsonl, "sqlite": sqlite}
