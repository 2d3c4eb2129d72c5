"""What is asked of a database, in the SQL that SQLite and PostgreSQL share. All values are parameters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from onestart.lines import Place
from onestart.records import STORES, store_of
from onestart.sql.rows import COLUMNS, TABLES, Row, from_values, number

_BY_KEY = tuple(table for table, kinds in STORES.items() if kinds not in (("lease", "note"), ("step",)))

SELECT_LEDGER = 'SELECT "version", "records" FROM "ledger"'


def schema(*, number: str, blob: str, primary: str, text: str = "TEXT", prefix: str = "") -> tuple[str, ...]:
    """The statements that make the tables.

    number, blob, text: types. primary: the type of a number that is a primary key. prefix: see `Statements`.
    """
    made = [f'CREATE TABLE {prefix}"ledger" ("version" {number} NOT NULL, "records" {number} NOT NULL)']
    for table in TABLES:
        made += [
            f'CREATE TABLE {prefix}"{table}" ("order" {primary} PRIMARY KEY, "kind" {text} NOT NULL, '
            f'"name" {text} NOT NULL, "n" {number} NOT NULL, "key" {text} NOT NULL, "task" {text} NOT NULL, '
            f'"lease" {number} NOT NULL, "line" {blob} NOT NULL)',
            f'CREATE UNIQUE INDEX "{table}_place" ON {prefix}"{table}" ("kind", "name", "n")',
            f'CREATE INDEX "{table}_task" ON {prefix}"{table}" ("task", "lease", "key")',
        ]
    made.append(f'CREATE INDEX "leases_key" ON {prefix}"leases" ("key", "kind", "n")')
    return tuple(made)


class Statements:
    """`Rows` in SQL; a database brings how a statement is run. A `?` stands for each parameter.

    prefix: what stands before the name of a table, to say in which schema it is.
    """

    order: int
    now: float | None = None
    prefix: str = ""

    @abstractmethod
    def run(self, sql: str, parameters: Sequence[Any] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows of a statement's result. Raises LedgerUnavailableError."""

    @abstractmethod
    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The same, a few at a time."""

    def integrity(self) -> tuple[str, ...]:
        """What the database itself finds wrong with what it keeps."""
        return ()

    @abstractmethod
    def insert(self, row: Row) -> None:
        """See `Rows.insert`."""

    def of_keys(self, keys: Sequence[str]) -> Iterable[Row]:
        return map(from_values, self.run(_of_keys(len(keys), self.prefix), [*keys] * (len(_BY_KEY) + 3)))

    def of_place(self, place: Place, most: int | None = None) -> Sequence[Row]:
        limited = () if most is None else (most,)
        found = self.run(_of_place(place[0], self.prefix) + " LIMIT ?" * len(limited), (*place, *limited))
        return [from_values(values) for values in found][::-1]

    def lease_seen(self, task: str) -> int:
        (seen,) = self.run(_lease_seen(self.prefix), [task] * len(TABLES))
        return max(map(number, seen))

    def keys_of(self, task: str) -> Iterable[str]:
        each = [
            f'SELECT "key" FROM {self.prefix}"{table}" WHERE "task" = ? AND "key" <> \'\''
            for table in TABLES
            if table != "flows"
        ]
        found = self.run(" UNION ".join(each) + ' ORDER BY "key"', [task] * len(each))
        return [key for (key,) in found]

    def all_keys(self) -> Iterable[str]:
        return self._all("key", [table for table in TABLES if table != "flows"])

    def all_tasks(self) -> Iterable[str]:
        return self._all("task", [table for table in TABLES if table != "flows"])

    def roots(self) -> Iterable[str]:
        return self._all("key", ["flows"])

    def _all(self, column: str, tables: Sequence[str]) -> Iterable[str]:
        each = " UNION ".join(f'SELECT "{column}" AS "name" FROM {self.prefix}"{table}"' for table in tables)
        found = self.run(f'SELECT DISTINCT "name" FROM ({each}) AS "each" WHERE "name" <> \'\' ORDER BY "name"')
        return [name for (name,) in found]

    def all(self, store: str) -> Iterator[Row]:
        return map(from_values, self.stream(f'SELECT {COLUMNS} FROM {self.prefix}"{store}" ORDER BY "order"'))

    def last(self, place: Place) -> int:
        ((last,),) = self.run(_last(place[0], self.prefix), place)
        return number(last)

    def size(self, store: str) -> int:
        """How many rows a store has."""
        ((count,),) = self.run(f'SELECT count(*) FROM {self.prefix}"{store}"')
        return int(count)

    def gaps(self, store: str) -> Iterator[tuple[str, str, int]]:
        """The places of a store where numbers are missing before the last one, with how many."""
        return self.stream(
            f'SELECT "kind", "name", max("n") - count(*) FROM {self.prefix}"{store}" GROUP BY "kind", "name" '
            'HAVING max("n") <> count(*)'
        )

    def count(self) -> int:
        """How many rows there are."""
        return sum(map(self.size, TABLES))


@cache
def _of_place(kind: str, prefix: str) -> str:
    return f'SELECT {COLUMNS} FROM {prefix}"{store_of(kind)}" WHERE "kind" = ? AND "name" = ? ORDER BY "n" DESC'


@cache
def _last(kind: str, prefix: str) -> str:
    return f'SELECT max("n") FROM {prefix}"{store_of(kind)}" WHERE "kind" = ? AND "name" = ?'


@cache
def _lease_seen(prefix: str) -> str:
    # Not one maximum over a union of them: PostgreSQL takes three times as long to plan that.
    each = (f'(SELECT max("lease") FROM {prefix}"{table}" WHERE "task" = ?)' for table in TABLES)
    return f"SELECT {', '.join(each)}"


@cache
def _of_keys(count: int, prefix: str) -> str:
    some = ", ".join("?" * count)
    each = [
        f'SELECT {COLUMNS} FROM {prefix}"{table}" WHERE "kind" = \'{STORES[table][0]}\' AND "name" IN ({some})'
        for table in _BY_KEY
    ]
    each.append(f'SELECT {COLUMNS} FROM {prefix}"leases" WHERE "kind" = \'note\' AND "name" IN ({some})')
    for table, kind, column in (("leases", "lease", "key"), ("flows", "step", "name")):
        same = f'"u"."{column}" = "t"."{column}" AND "u"."kind" = \'{kind}\''
        newest = f'SELECT max("n") FROM {prefix}"{table}" AS "u" WHERE {same}'
        those = f'"{column}" IN ({some}) AND "kind" = \'{kind}\' AND "n" = ({newest})'
        each.append(f'SELECT {COLUMNS} FROM {prefix}"{table}" AS "t" WHERE {those}')
    return " UNION ALL ".join(each) + ' ORDER BY "kind", "n"'
