"""Event streams of the real library in the simulated world, and logs made of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from attrs import evolve, frozen

from onestart import Event
from onestart.eventlog import EventLog
from onestart_conformance.choices import SWARMED, Allowed, moves
from onestart_conformance.moves import Move
from onestart_conformance.rules import Rules
from onestart_conformance.runs import step
from onestart_conformance.world import World
from onestart_model.chain import CHAIN
from onestart_model.instance import Instance

EVERYTHING = frozenset(SWARMED)
HEALTHY = frozenset(("finish", "reconcile", "cancel", "recover"))


@frozen
class Stream:
    """processes: all there were, also those that died before they told of anything. dead: those that were killed."""

    events: tuple[Event, ...]
    processes: tuple[str, ...]
    dead: frozenset[str] = frozenset()


@cache
def rules(keys: int = 2) -> Rules:
    sizes = {"Key": keys, "Process": 3, "Task": 1}
    return Rules(Instance.of(CHAIN, sizes=sizes, fixed={"task": (0,) * keys}))


def driven(seed: int, kinds: frozenset[str], *, steps: int = 80, swarm: bool = True) -> Stream:
    """What a random run tells. swarm: only some of the kinds of moves are used, others with each seed."""
    chance = random.Random(seed)
    chosen = frozenset(kind for kind in sorted(kinds) if not swarm or chance.random() < 0.4)
    allowed = Allowed(chosen, calls=1 + chance.randrange(2))
    world = World(rules())
    choices = allowed.choices()
    for _ in range(steps):
        possible = moves(world, chance.choice(choices), allowed)
        if possible:
            move = chance.choice(possible)
            if move.name == "break":
                move = Move("break", (*move.arguments, chance.randrange(4), chance.randrange(256)))
            step(world, move)
        assert world.objection is None, world.objection
    nodes = [node.name for node in (*world.gone, *world.nodes)]
    world.end()
    return Stream(ticking(world.events), tuple(nodes), frozenset(node.name for node in world.gone))


def ticking(events: Iterable[Event]) -> tuple[Event, ...]:
    """The same events at times of their own, as a real clock would have it."""
    return tuple(evolve(event, at=event.at + number * 1e-6) for number, event in enumerate(events))


def write(path: Path, events: Iterable[Event], processes: Iterable[str] = ()) -> Path:
    """A log that all processes share."""
    for process in processes:
        EventLog(path, process=process).close()
    with EventLog(path) as log:
        for event in events:
            log(event)
    assert not log.failure
    return path


def write_each(folder: Path, stream: Stream) -> list[Path]:
    """A log for each process."""
    paths = []
    for process in stream.processes:
        own = (event for event in stream.events if event.process == process)
        paths.append(write(folder / f"{process}.jsonl", own, [process]))
    return paths


@cache
def templates() -> tuple[tuple[Event, ...], ...]:
    """A few runs in which everything happens that is no damage."""
    kinds = HEALTHY | {"die", "pass_time", "foreign", "stale"}
    return tuple(driven(seed, kinds, steps=120, swarm=False).events for seed in range(8))


def endless(count: int, at_once: int = 6) -> Iterable[Event]:
    """Many runs side by side, each with names of its own, as one ledger would number their records."""
    chance = random.Random(1)
    running: list[_Run] = []
    begun = order = 0
    for _ in range(count):
        while len(running) < at_once:
            running.append(_Run(f"-{begun}", templates()[chance.randrange(len(templates()))], {0: order}))
            begun += 1
        run = running[chance.randrange(at_once)]
        event = run.events[0]
        if event.order not in run.orders:
            order += 1
            run.orders[event.order] = order
        yield evolve(
            event,
            key=event.key + run.name,
            task=event.task + run.name,
            process=event.process + run.name,
            order=run.orders[event.order],
        )
        run.events = run.events[1:]
        if not run.events:
            running.remove(run)


class _Run:
    def __init__(self, name: str, events: Sequence[Event], orders: dict[int, int]) -> None:
        self.name = name
        self.events = events
        self.orders = orders
