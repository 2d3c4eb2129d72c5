"""The drives: without a fault nobody objects, the same seed gives the same run, and what was driven is counted."""

from __future__ import annotations

from contextlib import suppress

import pytest
from attrs import evolve

from onestart.lines import encode, seal
from onestart.records import Attempt
from onestart_conformance.campaign import campaign
from onestart_conformance.choices import AIMS, SWARMED, Allowed, without_aim
from onestart_conformance.coverage import of_tally, of_walk
from onestart_conformance.damage.lines import BODY, WHOLE
from onestart_conformance.disk_storage import DiskStorage, path_of
from onestart_conformance.doubles import Engine
from onestart_conformance.faults import FAULTS
from onestart_conformance.gates import LEDGER, RULE
from onestart_conformance.judgement import Objection
from onestart_conformance.moves import Move, take
from onestart_conformance.rules import Rules
from onestart_conformance.runs import replay, shrink
from onestart_conformance.standard import BOUNDS, bound_named, chain
from onestart_conformance.systematic import walk
from onestart_conformance.world import World
from onestart_model.chain import CHAIN
from onestart_model.expression import RuleError


@pytest.mark.parametrize("seed", range(4))
def test_without_a_fault_nobody_objects(seed: int) -> None:
    """The library keeps to the model, whatever crashes, fails, is damaged or submitted at the same time."""
    done = campaign(Rules(chain()), number=seed, examples=80)
    assert done.run is None, done.run
    assert done.tally.examples == 80
    assert done.tally.gates > 2000


@pytest.mark.parametrize(("keys", "tasks"), [(1, (0,)), (3, (0, 1, 0))])
def test_worlds_of_other_sizes(keys: int, tasks: tuple[int, ...]) -> None:
    """One key alone, and several tasks, are driven as well."""
    done = campaign(Rules(chain(keys=keys, tasks=tasks)), number=1, examples=40)
    assert done.run is None, done.run


def test_the_same_seed_gives_the_same_runs() -> None:
    """A campaign can be repeated exactly."""
    first, second = (campaign(Rules(chain()), number=7, examples=30).tally for _ in range(2))
    assert (first.gates, first.taken, first.edges) == (second.gates, second.taken, second.edges)
    other = campaign(Rules(chain()), number=8, examples=30).tally
    assert first.edges != other.edges


def test_every_action_of_the_model_is_aimed_at() -> None:
    """An action that no move brings about would never be tried: a new one needs an entry here."""
    assert without_aim(CHAIN) == ()
    assert set(AIMS) == {action.name for action in CHAIN.actions}
    assert set(Allowed().choices()) == {kind for kinds in AIMS.values() for kind in kinds} == {*SWARMED, "go", "submit"}


def test_a_campaign_takes_most_actions() -> None:
    """The drive reaches deep: also what takes an intent, a crash and a look-up."""
    rules = Rules(chain())
    coverage = of_tally(rules, campaign(rules, number=3, examples=200).tally)
    never = {name for name, told, driven, _, _ in coverage.rows() if not told and not driven}
    assert never <= {"damage_session", "withdraw", "give_up", "settle", "renew", "repair_lease", "damage_lease"}
    assert sum(coverage.driven.values()) > 500


def test_a_bounded_world_is_walked_to_the_end() -> None:
    """Every move in every situation of one command and two processes; the numbers are exact."""
    bound = bound_named("pair")
    done = walk(Rules(bound.instance()), most=10_000, kinds=bound.kinds)
    assert done.objection is None
    assert done.complete
    coverage = of_walk(done)
    assert (done.taken, len(done.places), len(done.states), sum(coverage.driven.values())) == PAIR


PAIR = (974, 196, 33, 68)


def test_a_walk_can_be_cut_short() -> None:
    """A walk that was not finished does not say that it was."""
    bound = bound_named("alone")
    done = walk(Rules(bound.instance()), most=300, kinds=bound.kinds)
    assert not done.complete
    assert done.left > 0
    assert "known moves not taken" in of_walk(done).summary()


@pytest.mark.parametrize("name", ["one-lease-per-task", "intent-before-start", "intent-noted", "two-step-ledger"])
def test_a_walk_finds_faults(name: str) -> None:
    """The systematic drive has teeth too."""
    fault, bound = FAULTS[name], bound_named("pair")
    with fault.seeded():
        done = walk(Rules(bound.instance()), most=3000, kinds=bound.kinds, wanted=fault.caught_by)
    assert fault.caught_by(done.objection), done.objection


def test_bounds_have_names() -> None:
    """A typing mistake in a bound's name is told."""
    assert len({bound.name for bound in BOUNDS}) == len(BOUNDS)
    with pytest.raises(RuleError, match="no bound is called 'pear'; known: pair"):
        bound_named("pear")


def test_a_dead_process_changes_nothing_any_more() -> None:
    """A crash runs no `finally`: neither a lease nor a record of the dead process appears, also when its tasks end."""
    world = World(Rules(chain(keys=1, processes=2)))
    submit = Move("call", (0, "submit", "key1", 0))
    for move in (submit, *(opened(LEDGER if n != 1 else RULE) for n in range(5))):
        assert take(world, move), move
    before = world.storage.snapshot()
    told = len(world.events)
    assert take(world, Move("die", (0,)))
    world.end()
    assert world.storage.snapshot() == before
    assert len(world.events) == told
    assert world.engine.starts == {}


def opened(kind: str) -> Move:
    return Move("open", (0, "submit key1", kind, 0, "in force" if kind == RULE else "go"))


def test_shrinking_keeps_the_complaint() -> None:
    """What is left of a story still draws the same objection, and nothing in it can go."""
    fault = FAULTS["fencing-token"]
    rules = Rules(chain())
    found = campaign(rules, fault=fault, number=2)
    assert found.run is not None
    assert found.run.objection is not None
    with fault.seeded():
        smaller = Rules(found.instance)
        again = shrink(smaller, found.run.moves, found.run.objection)
        assert again.moves == found.run.moves
        for index in range(len(again.moves)):
            left = again.moves[:index] + again.moves[index + 1 :]
            run = replay(smaller, left)
            assert run.objection is None or run.objection.protections != found.run.objection.protections


def offer(key: str) -> Attempt:
    return Attempt(key, "t", "offered", "f" * 64)


def put(storage: DiskStorage, *records: Attempt) -> None:
    for record in records:
        with suppress(StopIteration):
            storage.outside().step(lambda view, record=record: (record, None)).send(None)  # type: ignore[misc]


def test_a_record_is_damaged_wholly_only_where_the_next_one_tells_whose_it_was() -> None:
    """Nobody could know otherwise. A write that was cut off is none that tells, nor is one behind a gap."""
    torn = encode(offer("k2"), 2, ("attempt", "k1", "t"), {})[:-40]
    for behind, tells in ((b"", False), (torn, False), (torn + seal(len(torn)), False)):
        storage = DiskStorage()
        put(storage, offer("k1"))
        storage.disk.files[path_of("attempt")].data += behind
        assert storage.damage("attempt", "k1", "t", WHOLE) is tells
    put(storage, offer("k2"))
    assert storage.damage("attempt", "k1", "t", WHOLE)
    storage = DiskStorage()
    put(storage, offer("k1"), offer("k2"))
    assert storage.lose_attempts("k2") == {"k2"}
    put(storage, offer("k2"))
    assert not storage.damage("attempt", "k1", "t", WHOLE)
    assert storage.damage("attempt", "k1", "t", BODY)


def test_objections_say_what_and_why() -> None:
    """An objection names the oracle, the step, the guard and the protection."""
    shown = str(Objection("rule", "claim(process1, key1) is not allowed", ("one-lease-per-task",), "a_live_lease"))
    assert shown == "rule: claim(process1, key1) is not allowed; only without one-lease-per-task; breaks a_live_lease"
    assert str(evolve(Objection("read", "x"))) == "read: x"


def test_the_executor_remembers_whom_it_answered() -> None:
    """The double of the executor bars older tokens, which is what the fence of starts is tested against."""
    engine = Engine(lambda asked: None)
    assert engine.look_up(1, "key1", "task1", 3) is False
    assert engine.barred("task1", 2)
    assert not engine.barred("task1", 3)
