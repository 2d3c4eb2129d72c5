"""Every row of a database read again, and held against what other rows have seen. In constant memory."""

from __future__ import annotations

from collections import Counter

from attrs import define, field

from onestart.command import escaped
from onestart.health import Health
from onestart.lines import Place, place
from onestart.records import STORES, store_of
from onestart.sql.rows import read
from onestart.sql.statements import Statements
from onestart.verification import MOST, Progress, StoreReport, silent

_EVERY = 1000


def verify(rows: Statements, *, also: tuple[str, ...] = (), progress: Progress = silent) -> tuple[StoreReport, ...]:
    """Read every row and report on each store. also: what the database itself says is wrong with its file."""
    tallies = {store: _Tally(store) for store in STORES}
    for tally in tallies.values():
        _read(rows, tally, tallies, progress)
    for tally in tallies.values():
        for (kind, name), (n, by) in tally.unseen.items():
            tally.missing += n - rows.last((kind, name))
            tally.find(f"{kind} {n} of {escaped(name)} is missing; {by} had seen it")
        for kind, name, gone in rows.gaps(tally.store):
            tally.missing += gone
            tally.find(f"{gone} of the records before the last {kind} of {escaped(name)} are missing")
    if not any(tally.missing for tally in tallies.values()) and rows.count() != rows.order:
        gone = rows.order - rows.count()
        tallies["receipts"].missing += abs(gone)
        tallies["receipts"].find(f"{gone} records of the ledger's {rows.order} are missing, of whatever store")
    tallies["receipts"].corrupt += len(also)
    for text in also:
        tallies["receipts"].find(f"the file: {text}")
    return tuple(tally.report() for tally in tallies.values())


@define
class _Tally:
    store: str
    seen: Counter[Health] = field(factory=Counter)
    corrupt: int = 0
    missing: int = 0
    lost: int = 0
    unseen: dict[Place, tuple[int, str]] = field(factory=dict)  # of places where something is missing alone
    found: list[str] = field(factory=list)

    def find(self, text: str) -> None:
        if len(self.found) < MOST:
            self.found.append(f"{self.store}: {text}")

    def report(self) -> StoreReport:
        return StoreReport(
            store=self.store,
            lines=self.seen.total() + self.lost,
            intact=self.seen[Health.INTACT],
            corrupt=self.seen[Health.CORRUPT] + self.corrupt,
            unsupported=self.seen[Health.UNSUPPORTED_VERSION],
            torn=0,
            missing=self.missing,
            backward=0,
            lost=self.lost,
            findings=tuple(self.found),
        )


def _read(rows: Statements, tally: _Tally, tallies: dict[str, _Tally], progress: Progress) -> None:
    total = rows.size(tally.store)
    for number, row in enumerate(rows.all(tally.store), 1):
        if number % _EVERY == 0:
            progress(tally.store, number, total)
        line = read(row)
        tally.seen[line.health] += not line.lost
        tally.lost += line.lost
        if line.lost:
            continue
        if line.health is not Health.INTACT:
            tally.find(f"{row.kind} {row.n} of {escaped(row.name)} is {line.health.replace('_', ' ')}")
            continue
        for kind, n in line.refs.items():
            where = place(kind, row.key, row.task)
            if rows.last(where) < n:
                unseen = tallies[store_of(kind)].unseen
                unseen[where] = max(unseen.get(where, (0, "")), (n, f"{row.kind} {row.n} of {escaped(row.name)}"))
    progress(tally.store, total, total)
