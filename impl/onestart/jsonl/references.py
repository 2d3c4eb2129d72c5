"""What the stores have seen of each other, while they are read: a record that another one has seen was there."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import TypeAlias

from onestart.jsonl.journal import Journal
from onestart.lines import Owner, Place, place
from onestart.records import KINDS, STORES, store_of

_Seen: TypeAlias = tuple[Place, int]

_SLICE = 1 << 22
_MOST_WAITING = 1 << 16


class References:
    """unmet: records that one store has seen in another and that are not there. furthest: the last one seen of a store.

    Nearly all references are to what was read a moment before, if the stores are read side by side. So they are
    looked up as they come, and only those that meet nothing are kept until all is read.
    """

    def __init__(self) -> None:
        self.unmet: dict[Place, set[int]] = {}
        self.furthest = dict.fromkeys(STORES, 0)
        self._waiting: list[_Seen] = []
        self._left: list[_Seen] = []

    @property
    def settled(self) -> bool:
        """Whether all that was told has been looked up."""
        return not (self._waiting or self._left)

    def told(self, owner: Owner, refs: Mapping[str, int]) -> None:
        _, key, task = owner
        self._waiting += [(place(kind, key, task), seq) for kind, seq in refs.items()]

    def reached(self, numbers: Mapping[str, int]) -> None:
        """Each store has had records up to this number."""
        for store, number in numbers.items():
            if number > self.furthest[store]:
                self.furthest[store] = number

    def forget_waiting(self) -> None:
        """What was told since refers to what is known already."""
        self._waiting.clear()

    def look_up(self, of: Mapping[str, Journal]) -> None:
        """Drop the references to what is there. of: the journal of each kind."""
        for (kind, _), seq in self._waiting:
            store = of[kind].store
            if seq > self.furthest[store]:
                self.furthest[store] = seq
        self._waiting = [seen for seen in self._waiting if not of[seen[0][0]].has(*seen)]
        if len(self._waiting) > _MOST_WAITING:
            self._left += self._waiting
            self._waiting = []

    def settle(self, of: Mapping[str, Journal]) -> None:
        """All is read: what is not there now is missing."""
        self.look_up(of)
        for where, seq in [*self._left, *self._waiting]:
            if not of[where[0]].has(where, seq):
                self.unmet.setdefault(where, set()).add(seq)
        self._left, self._waiting = [], []

    def seen(self) -> References:
        """What is known by now."""
        known = References()
        known.unmet, known.furthest = dict(self.unmet), dict(self.furthest)
        return known

    def gaps(self, journal: Journal) -> list[tuple[int, int]]:
        """First and last number of records that are missing: within a store, and at its end if others had seen more."""
        there, furthest = journal.last_seq + len(journal.pending), self.furthest[journal.store]
        return [*journal.gaps, *([(there + 1, furthest)] if there < furthest else [])]

    def confirm(self, of: Mapping[str, Journal], before: References) -> None:
        """Missing is only what was missing before the stores were read again, and still is."""
        self.furthest, suspected = before.furthest, before.unmet
        missing = {where: {s for s in seqs if not of[where[0]].has(where, s)} for where, seqs in suspected.items()}
        self.unmet = {where: seqs for where, seqs in missing.items() if seqs}


def by_kind(journals: Mapping[str, Journal]) -> dict[str, Journal]:
    """The journal of each kind of record."""
    return {kind: journals[store_of(kind)] for kind in KINDS}


def catch_up(journals: Mapping[str, Journal], of: Mapping[str, Journal], references: References) -> None:
    """Read what was appended, all stores side by side. Raises LedgerUnavailableError."""
    parts = max(journal.ahead for journal in journals.values()) // _SLICE + 1
    for _ in zip_longest(*[journal.catch_up(parts) for journal in journals.values()]):
        references.look_up(of)
    references.settle(of)
