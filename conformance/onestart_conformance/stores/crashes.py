"""Crashes at every operation of a play, and operations that fail: what is left is judged by the next process.

A play is run once, on a tape. What a crash at any point of the tape may leave follows from the tape alone, so each such
image is given to a fresh process without the play being run again. Operations that fail need runs of their own, since
the process goes on after them; and then the machine may fail as well, while the next process works on what it sees.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import islice

from attrs import define, field, frozen

from onestart.ports import LedgerUnavailableError
from onestart_conformance.doubles import Engine
from onestart_conformance.stores.judging import Breach, Known, judge, started
from onestart_conformance.stores.machines import Machine
from onestart_conformance.stores.medium import APART, KINDS, MARK, Image, Medium, Operation, State, Trouble
from onestart_conformance.stores.plays import Play
from onestart_conformance.stores.stage import Office, Stage, StuckError, Time, engine_on
from onestart_conformance.stores.survivals import Effort, drawn, survivals

LITTLE = Effort(subsets=0, drawn=0, grain=1 << 30, holes=False)


@define
class Explored:
    """What came of a play. operations: of the play. points: crashes that were tried. images: those that differ.

    failed: operations that were made to fail. breaches: what did not hold, with where.
    """

    machine: str
    play: str
    operations: int = 0
    points: int = 0
    images: int = 0
    failed: int = 0
    breaches: list[tuple[Breach, str]] = field(factory=list)

    def object_to(self, breach: Breach, where: str) -> None:
        self.breaches.append((breach, where))

    @property
    def axioms(self) -> Counter[str]:
        """How often each axiom was broken."""
        return Counter(breach.axiom for breach, _ in self.breaches)


@frozen
class Scene:
    """Where a play begins. state: the files as the machine finds them. engine, seconds: what is outside."""

    machine: Machine
    play: Play
    state: State
    engine: Engine
    seconds: float


@define(eq=False)
class Ended:
    """One boot that is over. state: the files as its processes leave them."""

    tape: list[Operation]
    state: State
    engine: Engine
    seconds: float
    operations: int


def scene(machine: Machine, play: Play) -> Scene:
    """What happens before the play, undisturbed, and on the disk for good."""
    empty = Scene(machine, play, State(), engine_on(Medium()), Time().seconds)
    if play.before is None:
        return empty
    done = _run(empty, play.before, None)
    return Scene(machine, play, State.of(done.state.seen), done.engine, done.seconds)


def _run(start: Scene, what: Callable[[Stage], Awaitable[None]], trouble: Trouble | None) -> Ended:
    medium = Medium(start.state.copy(), trouble)
    engine = engine_on(medium, start.engine)
    with start.machine(medium) as opened:
        stage = Stage(medium, opened, engine, Time(start.seconds), Office(start.play.approvals))
        with suppress(LedgerUnavailableError, StuckError):
            stage.loop.finish(what(stage))
        medium.dead = True
    return Ended(medium.tape, medium.state, engine, stage.time.seconds, medium.operations)


def crashes(
    name: str, start: Scene, effort: Effort, *, seed: int = 0, most: int | None = None, wanted: str = ""
) -> Explored:
    """Every crash while the play runs undisturbed.

    most: images that are judged, spread over all. wanted: the axiom whose first breach is the end.
    """
    explored = Explored(name, start.play.name)
    done = _run(start, start.play.play, None)
    explored.operations = done.operations
    chosen = _spread(start, done.tape, effort, seed, most)
    points = _points(start, done.tape, effort, random.Random(seed), explored)  # noqa: S311
    for number, (image, known, engine, where) in enumerate(points):
        if chosen is not None and number not in chosen:
            continue
        explored.images += 1
        _judge(explored, start, State.of(image), known, engine, done.seconds, where)
        if wanted in explored.axioms:
            break
    return explored


def drawn_crash(name: str, start: Scene, at: float, chance: random.Random) -> list[tuple[Breach, str]]:
    """One crash, as chance will have it. at: how far the play has got, from 0 to 1."""
    explored = Explored(name, start.play.name)
    tape = _run(start, start.play.play, None).tape
    state, known, engine = start.state.copy(), Known(), engine_on(Medium(), start.engine)
    for operation in tape[: round(at * len(tape))]:
        state.apply(operation)
        known.take(operation)
        started(engine, operation)
    _judge(explored, start, State.of(drawn(state, chance)), known, engine, start.seconds, "at a drawn moment")
    return explored.breaches


def _spread(start: Scene, tape: list[Operation], effort: Effort, seed: int, most: int | None) -> set[int] | None:
    """Which images are judged, None for all of them. They are made twice, since all at once are too many to keep."""
    if most is None:
        return None
    uncounted = Explored("", "")
    count = sum(1 for _ in _points(start, tape, effort, random.Random(seed), uncounted))  # noqa: S311
    return {number * count // most for number in range(min(most, count))} if count > most else None


Point = tuple[Image, Known, Engine, str]


def _points(
    start: Scene, tape: list[Operation], effort: Effort, chance: random.Random, explored: Explored
) -> Iterator[Point]:
    """What each crash may leave, once, with what was known outside by then."""
    state, known, engine = start.state.copy(), Known(), engine_on(Medium(), start.engine)
    met: set[object] = set()
    for number, operation in enumerate([None, *tape]):
        if operation is not None:
            state.apply(operation)
            known.take(operation)
            started(engine, operation)
        outside = len(known.acknowledged), tuple(engine.starts.items()), tuple(known.answers.items())
        last = number == len(tape) or tape[number].kind != MARK
        for image in survivals(state, effort, chance) if last else [state.seen]:
            explored.points += 1
            name = hash((outside, tuple(image.items())))
            if name not in met:
                met.add(name)
                yield image, known.copy(), engine_on(Medium(), engine), f"after operation {number} of the tape"


def _judge(
    explored: Explored, start: Scene, state: State, known: Known, engine: Engine, seconds: float, where: str
) -> Ended:
    """The next process on what is left; what it was told goes on the tape as well."""
    medium = Medium(state)
    outside = engine_on(medium, engine)
    with start.machine(medium) as opened:
        stage = Stage(medium, opened, outside, Time(seconds), Office(start.play.approvals))
        for breach in judge(stage, start.play, known):
            explored.object_to(breach, where)
        medium.dead = True
    return Ended(medium.tape, medium.state, outside, stage.time.seconds, medium.operations)


@frozen
class Failing:
    """Which failures are tried. every: of so many, one. hows: the ways in which operations fail, all if empty.

    later: after so many of the next process's first operations, and at as many places beyond, the power fails. images:
    of what a power failure may leave after a failure, at most so many.
    """

    every: int = 1
    later: int = 20
    images: int | None = None
    hows: tuple[str, ...] = ()


def failures(name: str, start: Scene, failing: Failing, *, seed: int = 0, wanted: str = "") -> Explored:
    """Every operation fails once, in every way; then all processes are killed, and the power may fail too.

    wanted: the axiom whose first breach is the end.
    """
    explored = Explored(name, start.play.name)
    whole = _run(start, start.play.play, None)
    explored.operations = whole.operations
    kinds = [operation.kind for operation in whole.tape if operation.kind not in APART]
    ways = [Trouble(at, how) for at, kind in enumerate(kinds, 1) for how in KINDS.get(kind, ())]
    troubles = [trouble for trouble in ways if not failing.hows or trouble.how in failing.hows]
    for trouble in troubles[seed % failing.every :: failing.every]:
        explored.failed += 1
        _fail(explored, start, trouble, failing)
        if wanted in explored.axioms:
            break
    return explored


def _fail(explored: Explored, start: Scene, trouble: Trouble, failing: Failing) -> None:
    where = f"{trouble.how} at operation {trouble.at}"
    done = _run(start, start.play.play, trouble)
    known = Known()
    for operation in done.tape:
        known.take(operation)
    for image in _left(explored, done.state, failing, set(), 0):
        _judge(explored, start, State.of(image), known.copy(), engine_on(Medium(), done.engine), done.seconds, where)
    after = _judge(explored, start, done.state.copy(), known.copy(), done.engine, done.seconds, f"{where}, then killed")
    if failing.later:
        _power_fails_later(explored, start, done, after, known, f"{where}, then killed, and later the power", failing)


def _left(explored: Explored, state: State, failing: Failing, met: set[int], outside: int) -> Iterator[Image]:
    """What a power failure may leave, where that was not met before."""
    for image in islice(survivals(state, LITTLE, random.Random(0)), failing.images):  # noqa: S311
        explored.points += 1
        name = hash((outside, tuple(image.items())))
        if name not in met:
            met.add(name)
            explored.images += 1
            yield image


def _power_fails_later(
    explored: Explored, start: Scene, done: Ended, after: Ended, known: Known, where: str, failing: Failing
) -> None:
    """While the next process works on what it sees, the power fails: what it was told must be on the disk."""
    state, known, engine = done.state.copy(), known.copy(), engine_on(Medium(), done.engine)
    moments = _moments(after.tape, failing.later)
    met: set[int] = set()
    for number, operation in enumerate(after.tape):
        state.apply(operation)
        known.take(operation)
        started(engine, operation)
        if number in moments:
            for image in _left(explored, state, failing, met, len(known.acknowledged)):
                left, outside = State.of(image), engine_on(Medium(), engine)
                _judge(explored, start, left, known.copy(), outside, after.seconds, f"{where} after {number + 1}")


def _moments(tape: list[Operation], later: int) -> set[int]:
    """Where the power fails: after each of the first operations, and at as many places beyond. No mark comes next."""
    every = [n for n in range(len(tape)) if n + 1 == len(tape) or tape[n + 1].kind != MARK]
    rest = every[later:]
    return {*every[:later], *(rest[number * len(rest) // later] for number in range(later if rest else 0))}
