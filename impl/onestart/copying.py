"""A ledger copied to another place, of whatever kind, with its history; and two ledgers compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest

from onestart.history import History, Kept
from onestart.ledgers import Address, rows_of
from onestart.ports import LedgerUnavailableError
from onestart.records import STORES
from onestart.repair import save


class CopyRefusedError(Exception):
    """Nothing was copied; the message says why."""


class DifferentError(Exception):
    """Two ledgers do not hold the same; the message says where they part."""


def copy(source: Address, target: Address) -> int:
    """Copy every record to a new ledger, and read both again to see that they hold the same.

    Returns how many records there are. Raises CopyRefusedError if the source is damaged or the target is not new,
    DifferentError if the source was changed meanwhile, and what `onestart.ledgers.inspected` raises.
    """
    with history_of(source) as history:
        _check(history)
        _WRITE[target.scheme](target, history)
    return compare(source, target)


def compare(one: Address, other: Address) -> int:
    """Read both; returns how many records each holds. Raises DifferentError."""
    count = 0
    with history_of(one) as first, history_of(other) as second:
        for store in STORES:
            for here, there in zip_longest(first.records(store), second.records(store)):
                if here is None or there is None or not here.same(there):
                    raise DifferentError(_parting(one, here, other, there))
                count += 1
    return count


def _parting(one: Address, here: Kept | None, other: Address, there: Kept | None) -> str:
    return f"{one} has {here.where if here else 'no more'}, and {other} has {there.where if there else 'no more'}"


@contextmanager
def history_of(address: Address) -> Iterator[History]:
    """All that a ledger holds now. Raises what `onestart.ledgers.inspected` raises."""
    if address.scheme == "jsonl":
        from onestart.jsonl.history import FilesHistory
        from onestart.jsonl.ledger import open_for_reading

        yield FilesHistory(open_for_reading(address.place, index=False))
        return
    from onestart.sql.history import RowsHistory

    with rows_of(address) as rows:
        yield RowsHistory(rows)


def _check(history: History) -> None:
    for store in STORES:
        for kept in history.records(store):
            if not kept.sound:
                raise CopyRefusedError(f"{kept.where} is {kept.health.replace('_', ' ')}; see `onestart ledger doctor`")
        for health, where in history.strays(store):
            raise CopyRefusedError(f"{where} is {health.replace('_', ' ')}; see `onestart ledger doctor`")


def _to_files(target: Address, history: History) -> None:
    from onestart.jsonl.files import LocalFiles
    from onestart.jsonl.generations import MARKER
    from onestart.jsonl.history import FilesWriter, numbered
    from onestart.jsonl.ledger import MARK, inspect

    files, place = LocalFiles(), target.place
    if inspect(files, place) is not None:
        raise CopyRefusedError(f"{place} is a ledger already")
    try:
        files.make_folder(place)
        writer = FilesWriter(files, place, numbered(history))
        save(history, writer)
        writer.finish()
        files.sync_folder(place)
        files.write_new(f"{place}/{MARKER}", MARK)
        files.sync_folder(place)
    except OSError as error:
        raise LedgerUnavailableError("ledger", error.strerror or str(error)) from error


def _to_sqlite(target: Address, history: History) -> None:
    from onestart.locks import FileLock
    from onestart.sql.beside import Beside
    from onestart.sql.sqlite import locked
    from onestart.sql.sqlite_file import lock_of
    from onestart.sql.sqlite_repair import publish, write

    place = os.path.abspath(target.place)
    if os.path.exists(place):
        raise CopyRefusedError(f"{place} is there already")
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        write(f"{place}.draft", history)
        lock = FileLock(lock_of(place))
        with locked(lock):
            Beside(lock, place).end(0)  # what is known of a file that was deleted there says nothing of this one
            publish(f"{place}.draft", place)
    except OSError as error:
        raise LedgerUnavailableError("ledger", error.strerror or str(error)) from error


def _to_postgres(target: Address, history: History) -> None:
    from onestart.sql.postgres.generations import filling

    with filling(target.place, schema=target.schema) as writer:
        if writer is None:
            raise CopyRefusedError("the schema is a ledger with records already")
        save(history, writer)


_WRITE: dict[str, Callable[[Address, History], None]] = {
    "jsonl": _to_files,
    "sqlite": _to_sqlite,
    "postgresql": _to_postgres,
}
