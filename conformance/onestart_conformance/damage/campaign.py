"""Damage by the profile: every case of every store, in parts that several processes can share, and pairs at random."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from itertools import islice

from attrs import frozen

from onestart_conformance.collector import seldom_collecting
from onestart_conformance.damage.drawn import draw_pairs, drawn_pair
from onestart_conformance.damage.jsonl import DiskMedium
from onestart_conformance.damage.medium import FileMedium, Medium
from onestart_conformance.damage.oracles import objections
from onestart_conformance.damage.prepared import Prepared, prepared
from onestart_conformance.damage.sqlite import SqliteMedium
from onestart_conformance.damage.systematic import Case, Scope, Tally, cases, cases_of_file, tried
from onestart_conformance.damage.trial import attempt
from onestart_conformance.faults.fault import Fault, seeded
from onestart_conformance.judgement import Objection

LINES = "jsonl"
SLICES = 8  # of a store's cases, so that there is something to tell while they are tried


@frozen
class Effort:
    """scope: of the systematic part. pairs: how many are drawn."""

    scope: Scope
    pairs: int


EVERY = "every-byte"
EFFORTS: Mapping[str, Effort] = {
    "quick": Effort(Scope(64, 8), 104),
    "standard": Effort(Scope(8, 1), 1_000),
    "deep": Effort(Scope(1, 1), 20_000),
    EVERY: Effort(Scope(1, 1), 20_000),
}
ROWS: Mapping[str, Effort] = {  # a database takes several times as long
    "quick": Effort(Scope(512, 64, 8), 40),
    "standard": Effort(Scope(64, 16, 2), 400),
    "deep": Effort(Scope(8, 8, 1), 2_000),
    EVERY: Effort(Scope(1, 1, 1), 4_000),
}
FILE = "(file)"


def medium_of(ledger: str, server: str = "") -> Medium:
    """An empty medium of a ledger's kind. server: where PostgreSQL is, as psycopg takes it."""
    if ledger == "postgres":
        from onestart_conformance.damage.postgres import PostgresMedium  # whose driver is an extra

        return PostgresMedium(server)
    return DiskMedium() if ledger == LINES else SqliteMedium()


@frozen
class Part:
    """A slice of the cases of one store; of pairs, if no store is named. server: see `medium_of`."""

    ledger: str
    profile: str
    store: str
    slice: int
    seed: int
    server: str = ""


def effort_of(ledger: str, profile: str) -> Effort:
    """How much of a ledger's damage a profile tries."""
    return (EFFORTS if ledger == LINES else ROWS)[profile]


def parts(ledger: str, profile: str, seed: int, server: str = "") -> list[Part]:
    """All of a ledger's damage."""
    medium = medium_of(ledger, server)
    stores = (*medium.stores, *((FILE,) if isinstance(medium, FileMedium) else ()), "")
    return [Part(ledger, profile, store, number, seed, server) for store in stores for number in range(SLICES)]


def try_part(part: Part) -> Tally:
    """Try it, in whatever process."""
    effort, medium = effort_of(part.ledger, part.profile), medium_of(part.ledger, part.server)
    with seldom_collecting():
        ledger = prepared(medium)
        if not part.store:
            return draw_pairs(ledger, medium, number=part.seed * SLICES + part.slice, examples=effort.pairs // SLICES)
        tally = Tally()
        every = _of_file(medium, effort.scope) if part.store == FILE else cases(ledger, part.store, effort.scope)
        for done in tried(ledger, medium, islice(every, part.slice, None, SLICES)):
            tally.add(*done)
        return tally


def _of_file(medium: Medium, scope: Scope) -> Iterator[Case]:
    assert isinstance(medium, FileMedium)
    return cases_of_file(medium.image(), scope)


def try_all(chosen: Sequence[Part], pool: Executor | None = None) -> Iterator[Tally]:
    """Try them, in the pool from now on, or here, one by one as they are asked for."""
    return map(try_part, chosen) if pool is None else pool.map(try_part, chosen)


@frozen
class DamageCampaign:
    """What came of looking for a fault. found: the case that its oracle objects to. tried: cases up to then, or all."""

    found: tuple[Case, Objection] | None
    tried: int
    others: Counter[str]


def damage_campaign(fault: Fault, *, number: int, examples: int) -> DamageCampaign:
    """Damage the ledger of a library with a fault in it, until the oracle objects that must."""
    tried_so_far, others = 0, Counter[str]()
    with seeded(fault), seldom_collecting():
        medium = DiskMedium()
        ledger = prepared(medium)
        for case in _looked_at(ledger, medium, number, examples):
            tried_so_far += 1
            for objection in objections(ledger, attempt(ledger, medium, *case)):
                if fault.caught_by(objection):
                    return DamageCampaign((case, objection), tried_so_far, others)
                others[objection.oracle] += 1
    return DamageCampaign(None, tried_so_far, others)


def _looked_at(ledger: Prepared, medium: Medium, number: int, examples: int) -> Iterator[Case]:
    """Cases of all stores and kinds in turn, and pairs of damages among them; so many in all.

    They come in another order for each number.
    """
    chance = random.Random(number)  # noqa: S311
    every = [case for store in medium.stores for case in cases(ledger, store, EFFORTS["quick"].scope)]
    chance.shuffle(every)
    seen = Counter[tuple[str, str]]()
    ranked: list[tuple[int, int, Case]] = []
    for place, case in enumerate(every):
        kind = (case[0][0].store, case[0][0].name)
        ranked.append((seen[kind], place, case))
        seen[kind] += 1
    for _, _, case in sorted(ranked, key=lambda one: one[:2])[: examples // 2]:
        yield case
        yield drawn_pair(ledger, chance)
