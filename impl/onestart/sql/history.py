"""The rows of a ledger as a history, and a history as rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from attrs import define

from onestart.health import Health
from onestart.history import Kept
from onestart.lines import Owner, Place, encode_lost, place
from onestart.records import STORES, store_of
from onestart.sql.rows import Row, read, row_of
from onestart.sql.statements import Statements


class RowsHistory:
    """What the rows were in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def records(self, store: str) -> Iterator[Kept]:
        last: dict[Place, Row] = {}
        incomplete = self._incomplete(store)
        for row in self._statements.all(store):
            if row.place in incomplete:
                yield from self._missing(row, last[row.place].n + 1 if row.place in last else 1, row.n)
                last[row.place] = row
            yield kept(row)
        for where, seen in self._unseen.items():
            if where[0] not in STORES[store]:
                continue
            newest = self._newest(where)
            owner = (where[0], newest.key, newest.task) if newest else self._owner(where)
            for n in range((newest.n if newest else 0) + 1, seen + 1):
                yield missing(owner, n)

    def strays(self, store: str) -> Iterator[tuple[Health, str]]:
        """Every row says whose it is."""
        return iter(())

    def _incomplete(self, store: str) -> set[Place]:
        return {(kind, name) for kind, name, _ in self._statements.gaps(store)}

    def _missing(self, row: Row, first: int, end: int) -> Iterator[Kept]:
        for n in range(first, end):
            yield missing((row.kind, row.key, row.task), n)

    @cached_property
    def _unseen(self) -> dict[Place, int]:
        """The places whose last records are gone, with the number of the last one that others have seen."""
        unseen: dict[Place, int] = {}
        for store in STORES:
            for row in self._statements.all(store):
                line = read(row)
                for kind, n in line.refs.items() if line.health is Health.INTACT else ():
                    where = place(kind, row.key, row.task)
                    if self._statements.last(where) < n:
                        unseen[where] = max(unseen.get(where, 0), n)
        return unseen

    def _newest(self, where: Place) -> Row | None:
        found = self._statements.of_place(where, 1)
        return found[-1] if found else None

    def _owner(self, where: Place) -> Owner:
        kind, name = where
        if kind == "lease":
            return (kind, "", name)
        return (kind, name, next((row.task for row in self._statements.of_keys([name]) if row.kind != "step"), ""))


def kept(row: Row) -> Kept:
    """A row as a record of a history."""
    line = read(row)
    spot = f"{store_of(row.kind)}:{row.kind} {row.n} of {row.name}"
    owner = (row.kind, row.key, row.task)
    refs = line.refs if line.record is not None else {}
    return Kept(owner, row.n, line.record, refs, line.health, spot, line.lost)


def missing(owner: Owner, n: int) -> Kept:
    """A record that is gone."""
    spot = f"{store_of(owner[0])}:{owner[0]} {n} of {place(*owner)[1]}, missing"
    return Kept(owner, n, None, {}, Health.CORRUPT, spot)


@define(eq=False)
class RowsWriter:
    """Rows that are being inserted, within one transaction."""

    statements: Statements
    order: int = 0

    def add(self, store: str, kept: Kept) -> None:
        self.order += 1
        if kept.record is not None:
            self.statements.insert(row_of(kept.record, order=self.order, n=kept.n, refs=kept.refs))
            return
        kind, key, task = kept.owner
        line = encode_lost(kept.owner, kept.n, None)[:-1]
        self.statements.insert(Row(self.order, kind, place(*kept.owner)[1], kept.n, key, task, 0, line))
