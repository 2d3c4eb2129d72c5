"""Repair of a ledger in SQLite: a new file beside the old one, of which no byte changes.

The newest generation that has its final name is in force; a file gets that name when it is finished and durable.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, suppress

from onestart.health import Health
from onestart.history import History, Kept
from onestart.jsonl.files import LocalFiles
from onestart.lines import Owner, Place, place
from onestart.locks import FileLock
from onestart.ports import LedgerUnavailableError, NotALedgerError
from onestart.records import STORES, store_of
from onestart.repair import Repair, RepairRefusedError, save, survey
from onestart.sql.history import RowsWriter, kept, missing
from onestart.sql.rows import COLUMNS, TABLES, Row, from_values, read
from onestart.sql.sqlite import locked
from onestart.sql.sqlite_file import created, in_force, lock_of, reading, refuse_symlink
from onestart.sql.sqlite_first_page import FIRST_PAGE, lent
from onestart.sql.sqlite_rows import SqliteRows

_DRAFT = ".draft"
_UNUSED = "never used"  # what SQLite says of a page that nothing leads to


def repair(path: str | os.PathLike[str]) -> Repair:
    """Publish a new generation with all that can be read, while no step happens.

    Raises RepairRefusedError if nothing is wrong or a newer program has written to it, NotALedgerError if there is no
    ledger, LedgerUnavailableError if the new generation cannot be written; then the old one stays in force.
    """
    base = os.path.abspath(path)
    if not os.path.isfile(base):
        raise NotALedgerError(f"{base} holds no ledger")
    refuse_symlink(base)
    with locked(FileLock(lock_of(base))):
        try:
            return _repair(base)
        except OSError as error:
            raise LedgerUnavailableError("ledger", error.strerror or str(error)) from error


def _repair(base: str) -> Repair:
    old = in_force(base)
    with ExitStack() as stack:
        history, torn = _salvaged(old, stack)
        salvage = survey(history)
        if history.gone:
            torn += (f"{history.gone} records of which nothing is left that tells whose they were",)
        if not salvage.needed and not torn:
            raise RepairRefusedError(f"{old}: nothing is wrong with it")
        new = _following(base)
        count = write(f"{new}{_DRAFT}", history)
    done = Repair(new, count, salvage.lost, (*salvage.left_out, *torn))
    with open(f"{new}.json", "w", encoding="utf-8") as file:
        file.write(done.to_json(of=old, at=time.time()))
        file.flush()
        os.fsync(file.fileno())
    publish(f"{new}{_DRAFT}", new)
    return done


def _salvaged(path: str, stack: ExitStack) -> tuple[SalvagedHistory, tuple[str, ...]]:
    """What can be read of a file, as it is or with another first page, and what is wrong with its pages.

    Tables may be elsewhere than those of a new ledger, and would then look empty: nothing leads to their pages.
    """
    found: tuple[SalvagedHistory, tuple[str, ...]] | None = None
    try:
        rows = stack.enter_context(reading(path))
        found = SalvagedHistory(rows), rows.integrity()
    except LedgerUnavailableError as error:
        why = error
    else:
        if not found[1]:
            return found
        why = LedgerUnavailableError("ledger", found[1][0])
    try:
        rows = stack.enter_context(lent(path, why))
    except LedgerUnavailableError:
        if found is None:
            raise
        return found
    other, wrong = SalvagedHistory(rows), rows.integrity()
    elsewhere = other.gone or any(_UNUSED in text for text in wrong)
    if other.proven and not elsewhere and (found is None or other.kept > found[0].kept):
        return other, (FIRST_PAGE, *wrong)
    if found is None:
        raise why
    return found


def write(draft: str, history: History) -> int:
    """A finished, durable file with all that a history holds. Returns how many records were kept as they were."""
    with suppress(FileNotFoundError):
        os.unlink(draft)  # of a repair that broke off
    connection = created(draft)
    try:
        rows = SqliteRows(connection)
        with rows.transaction():
            count = save(history, RowsWriter(rows))
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()  # all of it in the one file, and synced
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    finally:
        connection.close()
    return count


def publish(draft: str, name: str) -> None:
    """Give a file its name, which nothing else may have."""
    os.link(draft, name)
    os.unlink(draft)
    LocalFiles().sync_folder(os.path.dirname(name))


def _following(base: str) -> str:
    number = 2
    while os.path.exists(f"{base}-generation-{number}"):
        number += 1
    return f"{base}-generation-{number}"


class SalvagedHistory:
    """A `History` of the rows that any way leads to: a table forward, backward, and row by row. Keeps all of them."""

    def __init__(self, rows: SqliteRows) -> None:
        self._rows: dict[str, dict[int, Row]] = {store: _reached(rows, store) for store in STORES}
        there = {order for found in self._rows.values() for order in found}
        for order in range(1, rows.order + 1):
            if order not in there:
                for store in STORES:
                    self._rows[store] |= {row.order: row for row in _one(rows, store, order)}
        self._order = rows.order
        self._owners: dict[Place, Owner] = {}
        self._last: dict[Place, int] = defaultdict(int)
        for row in self._all():
            self._owners[row.place] = (row.kind, row.key, row.task)
            self._last[row.place] = max(self._last[row.place], row.n)
        self._seen()
        self._indexed(rows)

    @property
    def gone(self) -> int:
        """How many records there have been of which nobody knows anything."""
        return max(0, self._order - sum(self._last.values()))

    @property
    def kept(self) -> int:
        """How many rows there are."""
        return sum(1 for _ in self._all())

    @property
    def proven(self) -> bool:
        """Whether any row says by itself that it is a record."""
        return any(read(row).health is not Health.CORRUPT for row in self._all())

    def _all(self) -> Iterator[Row]:
        for found in self._rows.values():
            yield from found.values()

    def _seen(self) -> None:
        """What rows have seen of others."""
        for row in self._all():
            line = read(row)
            for kind, n in line.refs.items() if line.health is Health.INTACT else ():
                where = place(kind, row.key, row.task)
                self._owners.setdefault(where, (kind, "" if kind == "lease" else row.key, row.task))
                self._last[where] = max(self._last[where], n)

    def _indexed(self, rows: SqliteRows) -> None:
        """What an index says of rows whose own page is gone."""
        tasks: dict[str, str] = {}
        for _, key, task in self._owners.values():
            tasks.setdefault(key, task)
        for table in TABLES:
            wanted = (
                f'SELECT "kind", "name", max("n") FROM "{table}" INDEXED BY "{table}_place" GROUP BY "kind", "name"'
            )
            with suppress(LedgerUnavailableError):
                for kind, name, n in rows.stream(wanted):
                    if [type(kind), type(name), type(n)] != [str, str, int]:
                        continue
                    owner = (kind, "", name) if kind == "lease" else (kind, name, tasks.get(name, ""))
                    self._owners.setdefault((kind, name), owner)
                    self._last[kind, name] = max(self._last[kind, name], n)

    def records(self, store: str) -> Iterator[Kept]:
        done: dict[Place, int] = defaultdict(int)
        for _, row in sorted(self._rows[store].items()):
            for n in range(done[row.place] + 1, row.n):
                yield missing((row.kind, row.key, row.task), n)
            done[row.place] = row.n
            yield kept(row)
        for where, last in list(self._last.items()):
            if store_of(where[0]) == store:
                for n in range(done[where] + 1, last + 1):
                    yield missing(self._owners[where], n)

    def strays(self, store: str) -> Iterator[tuple[Health, str]]:
        """Every row says whose it is."""
        return iter(())


def _reached(rows: SqliteRows, store: str) -> dict[int, Row]:
    found: dict[int, Row] = {}
    for direction in ("ASC", "DESC"):
        try:
            for values in rows.stream(f'SELECT {COLUMNS} FROM "{store}" ORDER BY "order" {direction}'):
                row = from_values(values)
                found[row.order] = row
            return found
        except LedgerUnavailableError:
            continue
    return found


def _one(rows: SqliteRows, store: str, order: int) -> Iterator[Row]:
    with suppress(LedgerUnavailableError):
        yield from map(from_values, rows.run(f'SELECT {COLUMNS} FROM "{store}" WHERE "order" = ?', [order]))
