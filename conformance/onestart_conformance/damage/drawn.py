"""Damages drawn by chance, two together."""

from __future__ import annotations

import random
from collections.abc import Callable

from onestart_conformance.damage import grammar
from onestart_conformance.damage.grammar import Damage
from onestart_conformance.damage.medium import Medium
from onestart_conformance.damage.oracles import objections
from onestart_conformance.damage.prepared import Original, Prepared, subject_of
from onestart_conformance.damage.systematic import GARBAGE, Case, Tally
from onestart_conformance.damage.trial import How, attempt
from onestart_conformance.machine import random_runs

Draw = Callable[[random.Random, Original, Prepared], Damage]


def drawn_pair(prepared: Prepared, chance: random.Random) -> Case:
    """Two damages, and a question about the record that the first was done to."""
    first, second = (_original(prepared, chance) for _ in range(2))
    if chance.random() < 0.5:
        second = chance.choice(_of_the_same_key(prepared, first))
    damages = tuple(chance.choice(DRAWS)(chance, original, prepared) for original in (first, second))
    how = How(tells=chance.random() < 0.7, warm=chance.random() < 0.3, recovers=chance.random() < 0.2)
    return damages, subject_of(first.line), how


def draw_pairs(
    prepared: Prepared, medium: Medium, *, number: int, examples: int, tell: Callable[[int], None] = lambda _: None
) -> Tally:
    """So many pairs; the same number gives the same ones."""
    tally = Tally()

    @random_runs(number, examples)
    def run(chance: random.Random) -> None:
        case = drawn_pair(prepared, chance)
        trial = attempt(prepared, medium, *case)
        tally.add(case, trial, list(objections(prepared, trial)))
        tell(tally.tried)

    run()
    return tally


def _original(prepared: Prepared, chance: random.Random) -> Original:
    return chance.choice(prepared.records[chance.choice(sorted(prepared.records))])


def _of_the_same_key(prepared: Prepared, first: Original) -> list[Original]:
    """Records that may stand in for the first one, or be missed with it."""
    subject = subject_of(first.line)
    return [o for originals in prepared.records.values() for o in originals if subject_of(o.line) == subject]


def _flipped(chance: random.Random, original: Original, _: Prepared) -> Damage:
    byte = chance.randrange(len(original.raw))
    return grammar.Flipped(original.store, original.number, byte, chance.randrange(8))


def _cut(chance: random.Random, original: Original, _: Prepared) -> Damage:
    return grammar.Cut(original.store, original.number, chance.randrange(len(original.raw)))


def _shortened(chance: random.Random, original: Original, _: Prepared) -> Damage:
    return grammar.Shortened(original.store, original.number, chance.randrange(len(original.raw)))


def _zeroed(chance: random.Random, original: Original, _: Prepared) -> Damage:
    start = chance.randrange(len(original.raw))
    return grammar.Zeroed(original.store, original.number, start, chance.choice((1, 16, 64, 512)))


def _of_another_kind(chance: random.Random, original: Original, _: Prepared) -> Damage:
    store, number = original.store, original.number
    return chance.choice(
        (
            grammar.UnknownVersion(store, number),
            grammar.WrongShape(store, number, summed=False),
            grammar.WrongShape(store, number, summed=True),
            grammar.Removed(store, number),
        )
    )


def _moved(chance: random.Random, original: Original, prepared: Prepared) -> Damage:
    store, number = original.store, original.number
    other = chance.randrange(len(prepared.records[store]))
    return chance.choice(
        (
            grammar.Duplicated(store, number, other),
            grammar.Reordered(store, number, other),
            grammar.Swapped(store, number, store, other),
        )
    )


def _of_store(chance: random.Random, original: Original, _: Prepared) -> Damage:
    store = original.store
    return chance.choice(
        (
            grammar.RolledBack(store, original.number),
            grammar.Deleted(store),
            grammar.Garbage(store, chance.choice(GARBAGE)),
        )
    )


DRAWS: tuple[Draw, ...] = (_flipped, _cut, _shortened, _zeroed, _of_another_kind, _moved, _of_store)
