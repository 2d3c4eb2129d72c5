"""Every damage in turn: which there are of a prepared ledger, and what came of trying them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from attrs import define, field, frozen

from onestart_conformance.damage import grammar
from onestart_conformance.damage.grammar import Damage
from onestart_conformance.damage.medium import PLACE, Medium
from onestart_conformance.damage.oracles import objections
from onestart_conformance.damage.prepared import ROOT, TASKS, Original, Prepared, subject_of
from onestart_conformance.damage.trial import How, Trial, attempt
from onestart_conformance.judgement import START, Objection

Case: TypeAlias = tuple[tuple[Damage, ...], str, How]

GARBAGE = (b"\n", b"\x00" * 64, b"}\n", b'["onestart",1,', b'{"kind":"nobody\'s"}\n', b"\xff\xfe\n")
KEYS = (*TASKS, ROOT)
EDITS: tuple[tuple[str, object], ...] = (
    ("kind", "other"),
    ("name", "somebody"),
    ("name", "\x07"),
    ("n", 99),
    ("n", "many"),
    ("key", "somebody"),
    ("key", "\x07"),
    ("task", "elsewhere"),
    ("lease", 99),
    ("lease", "many"),
    ("line", "a text"),
    ("line", 7),
)


@frozen
class Scope:
    """every: how far apart the bytes are that are flipped, and at which stores are cut off; 1 for each.

    pairs, records: how far apart the pairs of records are, and the records that are damaged in every other way.
    """

    every: int = 1
    pairs: int = 1
    records: int = 1


@define
class Count:
    """tried: trials. reported: by the ledger's check or an answer. held, proceeded: the subject, when first asked.

    hidden: told by nothing that is left, such as a last write that may have been cut off. starts: second ones.
    """

    tried: int = 0
    reported: int = 0
    held: int = 0
    proceeded: int = 0
    hidden: int = 0
    starts: int = 0

    def add(self, trial: Trial, objected: Sequence[Objection]) -> None:
        self.tried += 1
        told = trial.verified.told or any(said.findings for said in trial.answers)
        self.reported += told
        self.hidden += not told
        self.held += trial.answers[0].held
        self.proceeded += not trial.answers[0].held
        self.starts += sum(objection.oracle == START for objection in objected)

    def include(self, other: Count) -> None:
        for name in ("tried", "reported", "held", "proceeded", "hidden", "starts"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@define
class Tally:
    """counts: by store and damage. objected: the first few cases that an oracle objects to. oracles: how often each."""

    counts: dict[tuple[str, str], Count] = field(factory=dict)
    objected: list[tuple[Case, Objection]] = field(factory=list)
    oracles: Counter[str] = field(factory=Counter)

    def add(self, case: Case, trial: Trial, objected: Sequence[Objection]) -> None:
        first = case[0][0]
        name = first.name if len(case[0]) == 1 else "two together"
        self.counts.setdefault((first.store, name), Count()).add(trial, objected)
        self.oracles.update(objection.oracle for objection in objected)
        if objected and len(self.objected) < 20:
            self.objected.append((case, objected[0]))

    def include(self, other: Tally) -> None:
        for name, count in other.counts.items():
            self.counts.setdefault(name, Count()).include(count)
        self.oracles.update(other.oracles)
        self.objected = [*self.objected, *other.objected][:20]

    @property
    def tried(self) -> int:
        return sum(count.tried for count in self.counts.values())


def cases(prepared: Prepared, store: str, scope: Scope) -> Iterator[Case]:
    """Every damage to a store, with the key that is asked about."""
    records = prepared.records[store]
    for original in records:
        subject = subject_of(original.line)
        yield from (((damage,), subject, How(recovers=False)) for damage in _of_bytes(original, records, scope))
        each = original.number % scope.records == 0
        for damage in _of_record(original) if each else ():
            yield (damage,), subject, How(warm=original.number % 2 == 1)
        if prepared.numbering == PLACE and each:
            for column, value in EDITS:
                yield (grammar.Edited(store, original.number, column, value),), subject, How()
        for number, damage in enumerate(_of_pairs(original, prepared)):
            if (number + original.number) % scope.pairs == 0:
                yield (damage,), subject, How(warm=number % 2 == 1, recovers=number % 8 == 0)
    subjects = [subject_of(original.line) for original in records]
    for number in range(len(records)):
        for which, subject in enumerate(dict.fromkeys((subjects[number], subjects[0], subjects[-1]))):
            yield (grammar.RolledBack(store, number),), subject, How(tells=which != 1, warm=which > 0)
    for number, damage in enumerate(_of_store(store)):
        for which, subject in enumerate(dict.fromkeys(subjects), number):
            yield (damage,), subject, How(tells=which % 2 == 0, warm=which % 4 > 1, recovers=which % 3 == 0)


def cases_of_file(image: bytes, scope: Scope) -> Iterator[Case]:
    """Damage to the file that all stores are in. Not to nothing: an empty file is a ledger that has not begun."""
    for number, byte in enumerate(range(0, len(image), scope.every)):
        yield (grammar.FlippedInFile(byte, byte % 8),), KEYS[number % len(KEYS)], How(recovers=number % 2 == 0)
    for number, byte in enumerate(range(0, len(image), grammar.SECTOR * max(1, scope.every // 16))):
        subject = KEYS[number % len(KEYS)]
        yield (grammar.ZeroedInFile(byte),), subject, How()
        yield (grammar.CutFile(byte or 1),), subject, How()


def _of_bytes(original: Original, records: Sequence[Original], scope: Scope) -> Iterator[Damage]:
    store, number = original.store, original.number
    cut = grammar.TornTail if number == len(records) - 1 else grammar.Cut
    for byte in range(number % scope.every, len(original.raw), scope.every):
        yield grammar.Flipped(store, number, byte, byte % 8)
        yield cut(store, number, byte)


def _of_record(original: Original) -> Iterator[Damage]:
    store, number, size = original.store, original.number, len(original.raw)
    for byte in (0, 1, size // 4, size // 2, size - 21, size - 2, size - 1):
        yield grammar.Shortened(store, number, byte)
    for start, length in ((0, size), (0, size - 1), (0, size // 2), (size // 2, size), (size // 2, 2 * size)):
        yield grammar.Zeroed(store, number, start, length)
    yield grammar.UnknownVersion(store, number)
    yield grammar.WrongShape(store, number, summed=False)
    yield grammar.WrongShape(store, number, summed=True)
    yield grammar.Removed(store, number)


def _of_pairs(original: Original, prepared: Prepared) -> Iterator[Damage]:
    store, number = original.store, original.number
    others = len(prepared.records[store])
    for to in sorted({number, number + 1, others}):
        yield grammar.Duplicated(store, number, to)
    for other in range(others):
        if other != number:
            yield grammar.Swapped(store, number, store, other)
        if other > number:
            yield grammar.Reordered(store, number, other)
    for source, records in prepared.records.items():
        if source != store:
            yield grammar.Swapped(store, number, source, number % len(records))


def _of_store(store: str) -> Iterator[Damage]:
    yield from (kind(store) for kind in (grammar.Deleted, grammar.Covered, grammar.Refused))
    yield from (grammar.Garbage(store, data) for data in GARBAGE)


def tried(prepared: Prepared, medium: Medium, chosen: Iterable[Case]) -> Iterator[tuple[Case, Trial, list[Objection]]]:
    """Try them, one after the other."""
    for case in chosen:
        damages, subject, how = case
        trial = attempt(prepared, medium, damages, subject, how)
        yield case, trial, list(objections(prepared, trial))
