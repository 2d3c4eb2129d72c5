"""Records in tables, as somebody at the database meets them: what is there, damaged, and lost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from onestart.health import Health
from onestart.lines import place
from onestart.records import STORES, store_of
from onestart.sql.rows import COLUMNS, from_values, read
from onestart_conformance.damage.lines import damaged

Ask: TypeAlias = Callable[..., list[tuple[Any, ...]]]


class RowStorage(ABC):
    """The part of a `Storage` that is the same in every database. prefix: what stands before the name of a table."""

    @property
    def prefix(self) -> str:
        return ""

    @abstractmethod
    def by_hand(self) -> AbstractContextManager[Ask]:
        """Statements, a `?` for each value, whose results are returned; from no process of the library."""

    @abstractmethod
    def there(self, ask: Ask) -> Collection[str]:
        """The tables that there are."""

    def snapshot(self) -> Mapping[str, bytes]:
        with self.by_hand() as ask:
            each = [f'SELECT \'{store}\', "order", "line" FROM {self._table(store)}' for store in self._tables(ask)]
            found = ask(" UNION ALL ".join(each) + ' ORDER BY 1, "order"') if each else []
        return {f"{store} {order}": line for store, order, line in found}

    def damage(self, kind: str, key: str, task: str, how: str) -> bool:
        store, (_, name) = store_of(kind), place(kind, key, task)
        with self.by_hand() as ask:
            if store not in self._tables(ask):
                return False
            table = self._table(store)
            wanted = f'SELECT {COLUMNS} FROM {table} WHERE "kind" = ? AND "name" = ? ORDER BY "n" DESC LIMIT 1'
            rows = [from_values(values) for values in ask(wanted, kind, name)]
            if not rows or read(rows[0]).health is not Health.INTACT:
                return False
            ask(f'UPDATE {table} SET "line" = ? WHERE "order" = ?', damaged(rows[0].line, how), rows[0].order)
        return True

    def lose_attempts(self, key: str) -> Collection[str]:
        """Not if another key would be left with an older record: a store that lost all is what is modeled."""
        with self.by_hand() as ask:
            if "attempts" not in self._tables(ask):
                return ()
            table = self._table("attempts")
            owners = ask(f'SELECT "order", "name" FROM {table} ORDER BY "order"')
            first = next((order for order, name in owners if name == key), None)
            lost = {name for order, name in owners if first is not None and order >= first}
            if first is None or lost & {name for order, name in owners if order < first}:
                return ()
            ask(f'DELETE FROM {table} WHERE "order" >= ?', first)
        return lost

    def _tables(self, ask: Ask) -> list[str]:
        there = self.there(ask)
        return [store for store in STORES if store in there]

    def _table(self, store: str) -> str:
        return f'{self.prefix}"{store}"'
