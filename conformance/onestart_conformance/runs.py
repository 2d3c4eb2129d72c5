"""A run: moves taken one after the other in a fresh world, until a judge objects or they are used up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import field, frozen

from onestart_conformance.judgement import CRASH, Objection
from onestart_conformance.linearizability import check_histories
from onestart_conformance.moves import Move, take
from onestart_conformance.rules import Rules
from onestart_conformance.storage import JSONL, kind_of
from onestart_conformance.world import World
from onestart_model.execution import Step


@frozen
class Run:
    """moves: those that had a meaning. steps: of the model, that followed from them. ledger: see `storage_of`."""

    moves: tuple[Move, ...]
    steps: tuple[Step, ...]
    objection: Objection | None
    ledger: str = field(default=JSONL, repr=kind_of)


def replay(rules: Rules, moves: Iterable[Move], ledger: str = JSONL) -> Run:
    """Take the moves that have a meaning, up to the first objection."""
    world = World(rules, ledger)
    try:
        return _replay(world, moves)
    finally:
        world.end()


def _replay(world: World, moves: Iterable[Move]) -> Run:
    taken = []
    for move in moves:
        if step(world, move):
            taken.append(move)
        if world.objection is not None:
            break
    finish(world)
    return Run(tuple(taken), tuple(world.monitor.steps), world.objection, world.ledger)


def step(world: World, move: Move) -> bool:
    """Take one move, and look around if the world is at rest after it."""
    try:
        done = take(world, move)
    except Exception as error:
        world.object_to(Objection(CRASH, f"{move} raises {type(error).__name__}: {error}"))
        return True
    if done and world.quiet():
        world.compare()
    return done


def finish(world: World) -> None:
    """The last look: all layers, and whether the answers can be put in an order."""
    world.compare()
    if world.objection is None:
        world.object_to(check_histories(world))


def shrink(rules: Rules, moves: Sequence[Move], wanted: Objection, ledger: str = JSONL) -> Run:
    """The moves with as many left out as possible, while the same oracle objects for the same protection.

    Delta debugging (Zeller and Hildebrandt, 2002) down to single moves, repeated until nothing more can go.
    """
    best = replay(rules, moves, ledger)
    if not same(best.objection, wanted):
        return best
    size = max(len(best.moves) // 2, 1)
    while True:
        smaller = _without_parts(rules, best, size, wanted)
        if smaller is not None:
            best = smaller
        elif size == 1:
            return best
        else:
            size //= 2


def _without_parts(rules: Rules, best: Run, size: int, wanted: Objection) -> Run | None:
    for start in range(len(best.moves) - 1, -1, -size):
        low = max(start - size + 1, 0)
        candidate = best.moves[:low] + best.moves[start + 1 :]
        run = replay(rules, candidate, best.ledger)
        if same(run.objection, wanted) and len(run.moves) < len(best.moves):
            return run
    return None


def same(found: Objection | None, wanted: Objection) -> bool:
    """Whether it is the same complaint: what it says of where may differ."""
    if found is None:
        return False
    shared = set(found.protections) & set(wanted.protections)
    return found.oracle == wanted.oracle and bool(shared or found.protections == wanted.protections)
