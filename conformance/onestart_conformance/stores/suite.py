"""All axioms, on all ledgers: what was tried of each, and whether it held."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import define, field, frozen

from onestart_conformance.storage import POSTGRES
from onestart_conformance.stores.crashes import Explored, Failing, Scene, crashes, failures, scene
from onestart_conformance.stores.judging import AGREED, LIVE, ONE_START, UNDAMAGED, Breach
from onestart_conformance.stores.machines import MACHINES
from onestart_conformance.stores.pairs import pairs
from onestart_conformance.stores.places import PLACES, Place
from onestart_conformance.stores.plays import PLAYS, Play
from onestart_conformance.stores.probes import PROBES, Probe, ProbeError
from onestart_conformance.stores.survivals import Effort
from onestart_model.chain.axioms import AXIOMS

HOLDS, LIMITED, REFUTED, NOT_APPLICABLE = "holds", "limited", "refuted", "not applicable"
NEED_A_LOSS = ("a-store-that-lost-records-is-seen", "tokens-only-grow")
JUDGED = (
    "a-failed-step-is-there-or-not",
    "nothing-without-what-it-saw",
    "acknowledged-is-durable",
    UNDAMAGED,
    "a-store-opens-after-a-crash",
    ONE_START,
    LIVE,
)
ROWS = (*(axiom.name for axiom in AXIOMS), ONE_START, LIVE)

GROUPS = ("group", "group-of-stores", "group-of-a-task", "commands-at-once")


@frozen
class Limit:
    """What is known not to hold in some plays, and is lived with."""

    plays: tuple[str, ...]
    statement: str


LIMITS: Mapping[tuple[str, str], Limit] = {
    ("jsonl", UNDAMAGED): Limit(
        GROUPS,
        "a disk that keeps later sectors of a group and loses earlier ones leaves records that nobody was told of, and "
        "that read as damaged",
    ),
    ("jsonl", LIVE): Limit(GROUPS, "what such a record is of is held until an operator has looked"),
}


@frozen
class Plan:
    """How much is tried. probes: runs of each probe. most: images of a play that are judged, all if None.

    pairs: whether two processes are tried, one of which meets errors.
    """

    probes: int
    effort: Mapping[str, Effort]
    most: Mapping[str, int | None]
    failing: Mapping[str, Failing]
    pairs: bool = True


PLANS: Mapping[str, Plan] = {
    "glance": Plan(
        1,
        {"jsonl": Effort(grain=128), "sqlite": Effort(subsets=2, drawn=0, grain=1 << 12, holes=False)},
        {"jsonl": 12, "sqlite": 2},
        {"jsonl": Failing(50, 1, 2), "sqlite": Failing(400, 1, 2)},
        pairs=False,
    ),
    "quick": Plan(
        2,
        {"jsonl": Effort(grain=32), "sqlite": Effort(subsets=3, drawn=3, grain=1 << 12, holes=False)},
        {"jsonl": 25, "sqlite": 6},
        {"jsonl": Failing(20, 2, 4), "sqlite": Failing(300, 2, 3)},
    ),
    "standard": Plan(
        20,
        {"jsonl": Effort(grain=4), "sqlite": Effort(grain=4, drawn=12)},
        {"jsonl": None, "sqlite": 150},
        {"jsonl": Failing(2, 6), "sqlite": Failing(20, 4, 5)},
    ),
    "deep": Plan(
        200,
        {"jsonl": Effort(grain=1, drawn=64), "sqlite": Effort(grain=1, drawn=64)},
        {"jsonl": None, "sqlite": 1000},
        {"jsonl": Failing(1, 20), "sqlite": Failing(4, 6, 5)},
    ),
}


@define
class Tested:
    """An axiom on a ledger. runs: experiments, or images after a crash. breach: the first one that was added.

    known: breaches within a known limit.
    """

    axiom: str
    ledger: str
    runs: int = 0
    breaches: int = 0
    breach: str = ""
    known: int = 0

    @property
    def verdict(self) -> str:
        if not self.runs:
            return NOT_APPLICABLE
        if self.breaches:
            return REFUTED
        return LIMITED if self.known else HOLDS

    def take(self, runs: int, breaches: Sequence[str] = ()) -> None:
        self.runs += runs
        self.breaches += len(breaches)
        self.breach = self.breach or next(iter(breaches), "")

    def include(self, other: Tested) -> None:
        """What came of the same axiom elsewhere."""
        self.runs += other.runs
        self.breaches += other.breaches
        self.known += other.known
        self.breach = self.breach or other.breach


@define
class Table:
    """What came of everything."""

    tested: dict[tuple[str, str], Tested] = field(factory=dict)
    explored: list[Explored] = field(factory=list)

    def add(self, other: Table) -> None:
        """Take in what came of something else."""
        for (axiom, ledger), tested in other.tested.items():
            self.of(axiom, ledger).include(tested)
        self.explored += other.explored

    def of(self, axiom: str, ledger: str) -> Tested:
        return self.tested.setdefault((axiom, ledger), Tested(axiom, ledger))

    @property
    def refuted(self) -> list[Tested]:
        return [one for one in self.tested.values() if one.verdict == REFUTED]


Make = Callable[[Path], Place]


@frozen
class Part:
    """One of the things that are tried of a kind of ledger. at: where PostgreSQL is."""

    ledger: str
    plan: Plan
    name: str
    seed: int
    at: str = ""


def parts(ledger: str, plan: Plan, *, seed: int, at: str = "") -> list[Part]:
    """Everything for one kind of ledger."""
    return [Part(ledger, plan, name, seed, at) for name, _ in _works(ledger, plan, seed, place_of(ledger, at))]


def try_part(part: Part) -> Table:
    """Try it, in whatever process."""
    table = Table()
    works = dict(_works(part.ledger, part.plan, part.seed, place_of(part.ledger, part.at)))
    works[part.name](table)
    return table


def place_of(ledger: str, at: str = "") -> Make:
    """Where a kind of ledger is kept, in a folder or elsewhere."""
    if ledger == POSTGRES:
        from onestart_conformance.stores.postgres_place import PostgresPlace  # needs a driver that is an extra

        return lambda folder: PostgresPlace(at)
    return PLACES[ledger]


def _works(ledger: str, plan: Plan, seed: int, make: Make) -> Iterator[tuple[str, Callable[[Table], None]]]:
    for probe in PROBES:
        yield probe.axiom, lambda table, probe=probe: _probe(table, ledger, make, probe, plan.probes, seed)  # type: ignore[misc]
    if ledger in MACHINES and plan.pairs:
        yield "two processes", lambda table: _enter(table, ledger, pairs(ledger), (AGREED,))
    if ledger in MACHINES:
        for play in PLAYS:
            yield f"crashes, {play.name}", lambda table, play=play: _crash(table, ledger, play, plan, seed)  # type: ignore[misc]
            yield f"failures, {play.name}", lambda table, play=play: _fail(table, ledger, play, plan, seed)  # type: ignore[misc]


def _probe(table: Table, ledger: str, make: Make, probe: Probe, runs: int, seed: int) -> None:
    for number in range(runs):
        with tempfile.TemporaryDirectory(prefix="onestart-probe-") as folder:
            place = make(Path(folder))
            if probe.axiom in NEED_A_LOSS and not place.can_lose:
                return
            failed = asyncio.run(_probed(probe, place, random.Random(seed * 1000 + number)))  # noqa: S311
            table.of(probe.axiom, ledger).take(1, failed)


async def _probed(probe: Probe, place: Place, chance: random.Random) -> list[str]:
    try:
        await probe.run(place, chance)
    except ProbeError as error:
        return [str(error)]
    finally:
        await place.close()
    return []


def _scene(ledger: str, play: Play) -> Scene:
    return scene(MACHINES[ledger], play)


def _crash(table: Table, ledger: str, play: Play, plan: Plan, seed: int) -> None:
    done = crashes(ledger, _scene(ledger, play), plan.effort[ledger], seed=seed, most=plan.most[ledger])
    _enter(table, ledger, done)


def _fail(table: Table, ledger: str, play: Play, plan: Plan, seed: int) -> None:
    done = failures(ledger, _scene(ledger, play), plan.failing[ledger], seed=seed)
    _enter(table, ledger, done)


def _enter(table: Table, ledger: str, done: Explored, axioms: Sequence[str] = JUDGED) -> None:
    table.explored.append(done)
    for axiom in axioms:
        limit = LIMITS.get((ledger, axiom))
        found = [_said(done, breach, where) for breach, where in done.breaches if breach.axiom == axiom]
        tested = table.of(axiom, ledger)
        if limit is not None and done.play in limit.plays:
            tested.known += len(found)
            found = []
        tested.take(done.images, found)


def _said(done: Explored, breach: Breach, where: str) -> str:
    return f"{done.play}, {where}: {breach.what}"
