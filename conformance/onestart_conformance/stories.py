"""Counterexamples of drives as files, and any counterexample told again on the library, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve, frozen

from onestart_conformance.campaign import Campaign
from onestart_conformance.faults import Fault, fault_named, seeded
from onestart_conformance.faults.catalog import FAULTS
from onestart_conformance.follow import Followed, follow
from onestart_conformance.judgement import Objection
from onestart_conformance.moves import NAMES, Move
from onestart_conformance.rules import Rules
from onestart_conformance.runs import Run, finish, step
from onestart_conformance.storage import JSONL, POSTGRES, STORAGES, kind_of
from onestart_conformance.wording import in_words
from onestart_conformance.world import World
from onestart_model.counterexample import Counterexample, CounterexampleError
from onestart_model.execution import Machine
from onestart_model.instance import Instance


@frozen
class Told:
    """One move, the steps of the model that followed from it, and what they changed."""

    move: str
    steps: tuple[str, ...]
    changes: tuple[str, ...]


@frozen
class Retold:
    """A counterexample on the library. at: the step of `told` at which the oracle objects, 0 if none does.

    starts: of each key, as the executor counts them. instead: what the library did where it could not be followed.
    """

    told: tuple[Told, ...]
    objection: Objection | None
    at: int
    starts: Mapping[str, int]
    noticed: Objection | None = None
    noticed_at: int = 0
    instead: str = ""

    @property
    def fails(self) -> bool:
        """Whether somebody still objects."""
        return self.objection is not None or self.noticed is not None


def story(campaign: Campaign) -> Counterexample:
    """The counterexample of a campaign that found something: what is saved, shown and replayed."""
    run = campaign.run
    assert run is not None
    return counterexample(run, campaign.instance, campaign.fault, f"random drive, seed {campaign.seed}")


def counterexample(run: Run, instance: Instance, fault: Fault | None, source: str) -> Counterexample:
    """A run as a trace of the model, without the protection that the oracle missed; with the moves to make it happen.

    A last step that the model does not allow at all is left out of the trace; the moves lead to it all the same.
    """
    assert run.objection is not None
    removed = set(run.objection.protections[:1])
    variant = Instance(
        instance.model, instance.sizes, instance.limits, instance.budgets, instance.without | removed, instance.fixed
    )
    machine = Machine(variant)
    states, steps = [next(machine.initial_states())], []
    for taken in run.steps:
        if machine.why_not(states[-1], taken) is not None:
            break
        states.append(machine.successor(states[-1], taken))
        steps.append(taken)
    replay = {
        "library": "onestart",
        "ledger": kind_of(run.ledger),
        "fault": fault.name if fault else "",
        "moves": [[move.name, *move.arguments] for move in run.moves],
        "oracle": run.objection.oracle,
        "what": run.objection.what,
    }
    broken = fault.promise if fault else run.objection.promise
    return Counterexample.of(variant, states, steps, broken=broken, source=source, replay=replay)


def retell(trace: Counterexample, *, shipped: bool = False, fault: str | None = None, at: str = "") -> Retold:
    """Make a counterexample happen on the library, with the fault that it was found with, another one, or none.

    at: where PostgreSQL is, for a story of a ledger there. Raises CounterexampleError for an inductive one, whose first
    state no run need reach, and for a file that is of another implementation.
    """
    if trace.inductive:
        raise CounterexampleError("a counterexample to induction begins anywhere, so no library can be brought there")
    if trace.replay and trace.replay.get("library") != "onestart":
        raise CounterexampleError(f"it is of another implementation: {trace.replay.get('library')!r}")
    for seed in _faults(trace, shipped, fault):
        with seeded(seed):
            return _moved(trace, at) if trace.replay else _followed(trace, follow(trace))
    return _moved(trace, at) if trace.replay else _followed(trace, follow(trace, shipped=True))


def _faults(trace: Counterexample, shipped: bool, fault: str | None) -> Iterable[Fault]:
    if shipped:
        return
    names = [fault] if fault else [str(trace.replay.get("fault", "")), *trace.instance.without]
    known = [name for name in names if name and (fault or name in FAULTS)]
    if known:
        yield fault_named(known[0])


def _moves(trace: Counterexample) -> list[Move]:
    try:
        moves = [Move(name, tuple(arguments)) for name, *arguments in trace.replay["moves"]]
    except (KeyError, TypeError, ValueError) as error:
        raise CounterexampleError(f"its moves cannot be read: {error}") from None
    for move in moves:
        if move.name not in NAMES:
            raise CounterexampleError(f"no move is called {move.name!r}; known: {', '.join(NAMES)}")
        if not all(isinstance(argument, str | int) for argument in move.arguments):
            raise CounterexampleError(f"{move} has arguments that are no names or numbers")
    return moves


def _moved(trace: Counterexample, at: str) -> Retold:
    instance = evolve(trace.instance, without=frozenset())
    ledger = trace.replay.get("ledger", JSONL)
    if ledger not in STORAGES:
        raise CounterexampleError(f"it is of another kind of ledger: {ledger!r}; known: {', '.join(STORAGES)}")
    if ledger == POSTGRES and not at:
        raise CounterexampleError("it is of a ledger in PostgreSQL: say with --at where one may be")
    world = World(Rules(_fixed(instance, trace)), at if ledger == POSTGRES else ledger)
    told: list[Told] = []
    try:
        for move in _moves(trace):
            before, known = world.monitor.state, len(world.monitor.steps)
            step(world, move)
            told.append(_tell(world, move, before, known))
            if world.objection is not None:
                break
        finish(world)
        last = len(told) if world.objection is not None else 0
        starts = {key: world.engine.starts.get(key, 0) for key in world.keys}
        return Retold(tuple(told), world.objection, last, starts)
    finally:
        world.end()


def _fixed(instance: Instance, trace: Counterexample) -> Instance:
    """The instance with the tasks of keys as they are in the trace."""
    functions = instance.model.schema.functions
    fixed = {f.name: row for f, row in zip(functions, trace.states[0].rows, strict=True) if f.home == "fixed"}
    return evolve(instance, fixed=fixed)


def _tell(world: World, move: Move, before: Any, known: int) -> Told:
    machine = world.rules.machine
    steps = tuple(machine.show_step(taken) for taken in world.monitor.steps[known:])
    return Told(in_words(move), steps, before.diff(world.monitor.state))


def _followed(trace: Counterexample, followed: Followed) -> Retold:
    machine = Machine(trace.instance)
    told = tuple(
        Told(f"step {number}", (machine.show_step(taken),), trace.states[number - 1].diff(trace.states[number]))
        for number, taken in enumerate(trace.steps[: followed.reached], 1)
    )
    at = followed.reached if followed.objection is not None else 0
    return Retold(
        told, followed.objection, at, followed.starts, followed.noticed, followed.noticed_at, followed.instead
    )
