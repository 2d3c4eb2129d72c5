"""What a power failure may leave: every subset of the writes that were not synced, each whole or torn, names lost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain, combinations

from attrs import frozen

from onestart_conformance.stores.medium import WRITE, Content, Image, Operation, State, applied

SECTOR = 512


@frozen
class Effort:
    """How many survivals are tried. subsets: most writes whose subsets are all tried. drawn: how many beyond that.

    grain: bytes between the cuts within a sector, for writes of at most `small` bytes; those that are bigger are cut at
    the sectors. holes: whether a later part may survive without an earlier one.
    """

    subsets: int = 6
    drawn: int = 24
    grain: int = 1
    small: int = SECTOR
    holes: bool = True


def survivals(state: State, effort: Effort, chance: random.Random) -> Iterator[Image]:
    """Every image that is tried, the one that a killed process leaves first. Some may be equal."""
    yield state.seen
    pending = [(path, one) for path, content in state.files.items() for one in content.pending]
    for kept in _subsets(len(pending), effort, chance):
        yield _image(state, {id(pending[number][1]) for number in kept})
    for position, (path, one) in enumerate(pending):
        if one.kind == WRITE:
            yield from _torn(state, pending, position, path, effort)
    yield from _names(state)


def drawn(state: State, chance: random.Random) -> Image:
    """One image: each write is there or not, or torn anywhere; each new name is there or not."""
    kept, instead = set[int](), dict[int, Operation]()
    for path, content in state.files.items():
        for one in content.pending:
            cut = chance.choice((0, len(one.data), chance.randint(0, len(one.data))))
            if one.kind != WRITE or cut == len(one.data):
                kept.add(id(one))
            elif cut:
                instead[id(one)] = Operation(WRITE, path, one.offset, one.data[:cut])
    image = _image(state, kept, instead)
    return {path: data for path, data in image.items() if state.files[path].entered or chance.random() < 0.5}


def _subsets(count: int, effort: Effort, chance: random.Random) -> Iterator[tuple[int, ...]]:
    """Which of the pending writes are on the disk."""
    numbers = range(count)
    if count <= effort.subsets:
        yield from chain.from_iterable(combinations(numbers, size) for size in range(count + 1))
        return
    yield ()
    yield tuple(numbers)
    for number in numbers:
        yield tuple(numbers[:number])
        yield tuple(other for other in numbers if other != number)
    for _ in range(effort.drawn):
        yield tuple(number for number in numbers if chance.random() < 0.5)


def cuts(operation: Operation, effort: Effort) -> list[int]:
    """Where a write may be torn: at each sector, and if it is small at each byte, or as many as the grain allows."""
    length = len(operation.data)
    first = -operation.offset % SECTOR
    sectors = set(range(first, length, SECTOR))
    fine = set(range(effort.grain, length, effort.grain)) if length <= effort.small else set[int]()
    return sorted((sectors | fine) - {0})


def _torn(
    state: State, pending: list[tuple[str, Operation]], position: int, path: str, effort: Effort
) -> Iterator[Image]:
    """One write in part: with all before it and nothing after it, or the other part with everything else."""
    one = pending[position][1]
    before = {id(other) for _, other in pending[:position]}
    others = {id(other) for _, other in pending} - {id(one)}
    for cut in cuts(one, effort):
        head = Operation(WRITE, path, one.offset, one.data[:cut])
        yield _image(state, before, {id(one): head})
        if effort.holes and (one.offset + cut) % SECTOR == 0:
            tail = Operation(WRITE, path, one.offset + cut, one.data[cut:])
            yield _image(state, others, {id(one): tail})
            yield _image(state, others, {id(one): head})


def _names(state: State) -> Iterator[Image]:
    """New names that were not synced are gone, and deleted ones back: each alone, and all."""
    loose = [path for path, content in state.files.items() if not content.entered]
    for lost in [*((path,) for path in loose), *([tuple(loose)] if len(loose) > 1 else [])]:
        for image in (state.seen, _image(state, set())):
            yield {path: data for path, data in image.items() if path not in lost}
    for path, content in state.deleted.items():
        yield state.seen | {path: content.disk}
        yield _image(state, set()) | {path: content.disk}


def _image(state: State, kept: set[int], instead: dict[int, Operation] | None = None) -> Image:
    return {path: _content(content, kept, instead or {}) for path, content in state.files.items()}


def _content(content: Content, kept: set[int], instead: dict[int, Operation]) -> bytes:
    operations = (instead.get(id(one), one) for one in content.pending if id(one) in kept or id(one) in instead)
    return applied(content.disk, tuple(operations))
