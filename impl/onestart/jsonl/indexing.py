"""When an index is used, and when a new one is written."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from onestart.jsonl.index import Index
from onestart.jsonl.index_format import UnusableIndexError
from onestart.jsonl.index_writer import Covering, write
from onestart.jsonl.journal import Journal
from onestart.jsonl.places import Names, Places
from onestart.jsonl.references import References

NAME = "index"


@frozen
class Indexing:
    """A new index is written when more lines than `least`, and more than one of `share`, were read beyond the old one.

    A new one is as long as what it covers, and whoever opens the ledger reads what is beyond.
    """

    least: int = 20_000
    share: int = 32


@frozen
class Taken:
    """An index that is in use, and what of it is kept in memory."""

    index: Index
    names: Names
    references: References


class BesideFiles:
    """The index in the folder of some files. Nothing that goes wrong with it is an error: then the files are read."""

    def __init__(self, folder: str, indexing: Indexing) -> None:
        self._path = f"{folder}/{NAME}"
        self._indexing = indexing
        self._refused = False
        self._not_before = 0

    def refuse(self) -> None:
        """It turned out to be damaged: use none until a new one is written."""
        self._refused = True
        self._not_before = 0

    def taken(self, journals: Mapping[str, Journal]) -> Taken | None:
        """Make the journals go on from where the index ends; None if there is none of these very files."""
        if self._refused:
            return None
        try:
            index = Index(self._path)
        except UnusableIndexError:
            return None
        last = _last_lines(index, journals)
        if last is None:
            return None
        for store, journal in journals.items():
            journal.go_on_from(index.head.stores[store], last[store], Places(index))
        references = References()
        references.unmet = {where: set(seqs) for where, seqs in index.head.unmet.items()}
        references.furthest |= index.head.furthest
        return Taken(index, Names(index), references)

    def due(self, journals: Mapping[str, Journal], taken: Taken | None) -> bool:
        """Whether much was read that the index does not cover."""
        count = _count(journals)
        if count < self._not_before:
            return False
        covered = taken.index.head.lines if taken else 0
        return self._much(count - covered, covered)

    def _much(self, beyond: int, covered: int) -> bool:
        return beyond > max(self._indexing.least, covered // self._indexing.share)

    def renew(self, journals: Mapping[str, Journal], taken: Taken | None, names: Names, references: References) -> bool:
        """Put a new index there, unless another process just has, or it cannot be written now. Whether there is one.

        Raises UnusableIndexError if the old one turns out to be damaged.
        """
        self._not_before = _count(journals) + self._indexing.least
        if self._written_by_another(journals, taken):
            return True
        stores = {store: at for store, journal in journals.items() if (at := journal.position()) is not None}
        if len(stores) < len(journals) or not references.settled:
            return False
        places = [journal.entries for journal in journals.values()]
        covering = Covering(stores, references.unmet, references.furthest, places, names)
        try:
            write(self._path, taken.index if taken else None, covering)
        except OSError:
            return False
        self._refused = False
        return True

    def _written_by_another(self, journals: Mapping[str, Journal], taken: Taken | None) -> bool:
        """Whether there is an index by now that covers more, so that a new one is not due beyond it."""
        if self._refused:
            return False
        try:
            index = Index(self._path)
        except UnusableIndexError:
            return False
        covered, lines = taken.index.head.lines if taken else 0, index.head.lines
        enough = lines > covered and not self._much(_count(journals) - lines, lines)
        return enough and _last_lines(index, journals) is not None


def _last_lines(index: Index, journals: Mapping[str, Journal]) -> dict[str, bytes] | None:
    """The last line that the index covers of each file; None if one of them is not the file that it covers."""
    if index.head.stores.keys() != journals.keys():
        return None
    found: dict[str, bytes] = {}
    for store, journal in journals.items():
        try:
            last = journal.last_line(index.head.stores[store])
        except OSError:
            return None
        if last is None:
            return None
        found[store] = last
    return found


def _count(journals: Mapping[str, Journal]) -> int:
    return sum(journal.count for journal in journals.values())
