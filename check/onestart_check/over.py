"""Drives of the command chain over the other kinds of ledgers: at random, and every move of bounded worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future

from attrs import frozen

from onestart_conformance.campaign import campaign
from onestart_conformance.rules import Rules
from onestart_conformance.standard import chain
from onestart_conformance.storage import JSONL, POSTGRES, SQLITE, STORAGES, kind_of
from onestart_conformance.stories import story
from onestart_conformance.walks import walked
from onestart_model.counterexample import Counterexample


@frozen
class Share:
    """How much a profile asks for. examples: random runs. moves: most moves of a bounded world, by its name."""

    examples: int
    moves: Mapping[str, int]


SHARES: Mapping[str, Mapping[str, Share]] = {
    SQLITE: {
        "quick": Share(20, {}),
        "standard": Share(150, {"pair": 5_000}),
        "deep": Share(3_000, {"pair": 5_000, "alone": 20_000, "everything": 20_000}),
    },
    POSTGRES: {
        "quick": Share(5, {}),
        "standard": Share(30, {"pair": 5_000}),
        "deep": Share(500, {"pair": 5_000, "alone": 20_000}),
    },
}


@frozen
class Over:
    """What came of it. steps: of the implementation, in runs and moves. story: if a judge objects, and what."""

    ledger: str
    runs: int = 0
    moves: int = 0
    steps: int = 0
    objection: str = ""
    story: Counterexample | None = None


def overs(profile: str, seed: int, pool: Executor, ledgers: Sequence[str], at: str) -> dict[str, Future[Over]]:
    """Each of these kinds but JSON lines, under way in the pool. at: where PostgreSQL is."""
    others = [ledger for ledger in STORAGES if ledger in ledgers and ledger != JSONL]
    return {
        ledger: pool.submit(drive_over, at if ledger == POSTGRES else ledger, SHARES[ledger][profile], seed)
        for ledger in others
    }


def drive_over(ledger: str, share: Share, seed: int) -> Over:
    """Until a judge objects, or all is done. ledger: see `storage_of`."""
    done = campaign(Rules(chain()), number=seed, examples=share.examples, ledger=ledger)
    runs, moves, steps = done.tally.examples, 0, done.tally.gates
    if done.run is not None:
        return Over(kind_of(ledger), runs, moves, steps, str(done.objection), story(done))
    for bound, most in share.moves.items():
        walk = walked(bound, most, ledger=ledger)
        moves, steps = moves + walk.taken, steps + walk.coverage.gates
        if walk.objection is not None:
            return Over(kind_of(ledger), runs, moves, steps, f"{bound}: {walk.objection}", walk.story)
    return Over(kind_of(ledger), runs, moves, steps)
