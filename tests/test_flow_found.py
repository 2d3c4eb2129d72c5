"""What drives of flows have found: each of these hung, was refused, or did something twice."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from attrs import evolve

import flow_runs
from onestart import LedgerUnavailableError
from onestart.flow import Call as FlowCall
from onestart.flow import Flows, Handle, Worker, flow
from onestart.memory import MemoryLedger
from onestart.ports import View
from onestart.records import Lease, Record, Step
from onestart_conformance.flows.faults import FLOW_FAULTS
from onestart_conformance.flows.plan import Plan, Stop
from onestart_conformance.flows.program import Call, Caught, Fan, Part, Program, Saved
from onestart_conformance.flows.run import play
from onestart_conformance.flows.world import World

A, B, C = Call("llm", "a"), Call("llm", "b"), Call("llm", "c")
ASK = Call("human", "ask")
INNER = Call("hook", "inner", body=(ASK,))


def states(world: World) -> list[str]:
    return ["cut" if told.outcome is None else told.outcome.state for told in world.told]


def played(plan: Plan) -> World:
    world = play(plan)
    assert world.objection is None, world.objection
    return world


@pytest.mark.parametrize("version", [2, 3])
def test_a_question_in_a_hook_does_not_stand_in_the_way_of_its_verdict(version: int) -> None:
    """A hook is replayed as one step, with the questions that were asked in it, in hooks within hooks as well."""
    for hook in (INNER, Call("hook", "outer", body=(INNER, A))):
        plan = Plan(Program((hook, Call("human", "more"), B)), stops=(None, None, Stop("start b")), version=version)
        assert states(played(plan)) == ["parked", "parked", "cut", "completed"]


@pytest.mark.parametrize("how", ["completed", "tasks", "group"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_flow_parks_wherever_it_waits_for_its_own_tasks(how: str, version: int) -> None:
    """Also where it takes them as they end, which is not a gathering: a driver that waits on is never free again."""
    plan = Plan(Program((Fan(how, ((ASK,), (A,))),)), version=version)
    assert states(played(plan)) == ["parked", "refused" if how == "completed" else "completed"]


def test_tasks_that_were_made_in_any_order_are_counted() -> None:
    """as_completed makes tasks out of a set of coroutines: which of them is first is another one in each process."""

    @flow
    async def any_order(f: Handle) -> None:
        for ended in asyncio.as_completed([f_of(f, "a"), f_of(f, "b")]):
            await ended

    async def f_of(f: Handle, label: str) -> None:
        await f.llm(label)

    world = flow_runs.World()
    world.run(any_order)
    indexed = [r.step for r in world.records if isinstance(r, Step) and r.what == "index"]
    assert indexed == ["llm-1", "llm-2"]


def test_a_caught_refusal_gives_no_verdict() -> None:
    """A hook that goes on after a refusal comes to a verdict that nobody may rely on: it is not recorded."""
    before = Call("hook", "check", body=(A, B))
    after = Call("hook", "check", body=(Caught((Call("run", "z"),)),))
    world = played(Plan(Program((before,)), stops=(Stop("index b"),), changed=Program((after,))))
    assert states(world) == ["cut", "refused"]
    assert not [entry for entry in world.journal() if entry.what == "verdict"]


def test_a_step_is_not_run_again_after_a_refusal() -> None:
    """What was under way in another branch when its driver died is left alone once the resume has been refused."""
    program = Program((Fan("gather", ((A, B), (C,))),))
    changed = Program((Fan("gather", ((A, Call("run", "z")), (C,))),))
    world = played(Plan(program, stops=(Stop("end b"),), changed=changed))
    assert states(world) == ["cut", "refused"]
    assert [effect.placed.call.label for effect in world.effects] == ["a", "c", "b"]


def test_a_question_is_not_asked_after_a_refusal() -> None:
    """A question that was awaited just before the refusal is not admitted after it."""
    program = Program((Saved(Call("human", "d"), (Call("human", "e"),)),))
    changed = Program((Fan("later", ((Call("human", "c"),), (Call("human", "d"),))),))
    assert states(played(Plan(program, changed=changed, version=2))) == ["parked", "refused"]


@pytest.mark.parametrize("in_flight", ["again", "ask", "hold"])
@pytest.mark.parametrize("more", range(7))
def test_a_driver_that_stood_still_starts_nothing(in_flight: str, more: int) -> None:
    """Taken over while it was about to start an effect, it finds out before it does."""
    plan = Plan(Program((A,)), stops=(Stop("index a", more, stalls=True),), in_flight=in_flight)  # type: ignore[arg-type]
    world = played(plan)
    assert not [effect for effect in world.effects if effect.attempt == 0]


def test_an_ordinal_that_is_declared_is_held_before_its_step_is_on_record() -> None:
    """A call that waits to be awaited has its ordinal: another one that comes there first is refused, not run again."""
    program = Program(
        (
            Fan(
                "gather",
                ((A, B), (C, Saved(Call("llm", "e"), (Call("helper", "g"),)))),
            ),
        )
    )
    orders = ((1, 0, 0), ())
    world = played(Plan(program, orders, (Stop("end g"),), version=2))
    assert states(world) == ["cut", "refused"]
    world = played(Plan(program, ((0, 1),), (Stop("end g"),), version=2))
    assert [effect.placed.call.label for effect in world.effects].count("b") == 1


CHILD = Call("dispatch", "child", body=(Call("run", "x"),))


def slowly(part: Part) -> Part:
    """A branch that takes many rounds of the loop to get to a part, although it waits for nothing."""
    for _ in range(16):
        part = Fan("gather", ((part,),))
    return part


def test_a_child_does_not_leave_a_hole_before_its_dispatch() -> None:
    """A call that waits for its slot has an ordinal below that of a dispatch. The child's steps take it on record with
    them; otherwise a resume in which the dispatch comes first carries out the child a second time.
    """
    branches = (Call("helper", "c"), CHILD), (Call("run", "a"), slowly(Call("llm", "e"))), (B,)
    plan = Plan(Program((Fan("gather", branches),)), ((1, 0, 0), ()), (Stop("done x"),), version=2, slots=1)
    with FLOW_FAULTS["admitted-in-order"].seeded():
        assert [effect.placed.call.label for effect in play(plan, judged=False).effects].count("x") == 2
    world = play(plan, followed=True)
    assert world.objection is None, world.objection
    assert states(world)[:2] == ["cut", "refused"]
    assert [effect.placed.call.label for effect in world.effects].count("x") == 1


def test_a_dispatch_is_bound_to_its_arguments_before_it_has_ended() -> None:
    """Its child's steps say what it was given; with other arguments it is another child."""
    other = Call("dispatch", "another", body=CHILD.body)
    plan = Plan(Program((CHILD,)), stops=(Stop("done x"),), version=2, changed=Program((other,)))
    world = played(plan)
    assert states(world)[:2] == ["cut", "refused"]
    assert "was declared with another spec" in str(world.told[1].outcome)


def test_a_watermark_counts_what_is_on_record() -> None:
    """A call of another branch that waits for its slot is on no record: in a resume its ordinal may be another's."""
    hook = Call("hook", "hook", body=(Call("run", "a"),))
    program = Program((Fan("gather", ((hook,), (B,), (Call("helper", "c"), Call("llm", "e")))),))
    plan = Plan(program, ((2, 0, 0),), (Stop("verdict hook"),), version=2, slots=1)
    world = play(plan, followed=True)
    assert world.objection is None, world.objection
    assert [e.body["after_step"] for e in world.journal() if e.what == "verdict"] == [4]
    with FLOW_FAULTS["watermark-of-admitted"].seeded():
        world = play(plan, followed=True)
    assert [e.body["after_step"] for e in world.journal() if e.what == "verdict"] == [5]
    assert world.objection is not None
    assert world.objection.protections == ("watermark-of-admitted",)


def test_a_watermark_counts_what_an_earlier_attempt_has_recorded() -> None:
    """Also a call that only went on record with another one, and a hook that is under way again."""
    hook = Call("hook", "hook", body=())
    plan = Plan(Program((Saved(Call("llm", "e"), (hook,)), B)), stops=(Stop("index hook"),), version=2)
    world = play(plan, followed=True)
    assert world.objection is None, world.objection
    assert [e.body["after_step"] for e in world.journal() if e.what == "verdict"] == [2]


def test_a_watermark_counts_a_dispatch_by_its_child() -> None:
    """A child flow that is under way holds its dispatch's ordinal as soon as it has a record."""
    hook = Call("hook", "hook", body=(Call("run", "a"),))
    program = Program((Fan("gather", ((hook,), (Call("helper", "c"), CHILD))),))
    plan = Plan(program, ((1, 0),), (Stop("verdict hook"),), version=2)
    world = play(plan, followed=True)
    assert world.objection is None, world.objection
    assert [e.body["after_step"] for e in world.journal() if e.what == "verdict"] == [4]


class FailingLedger(MemoryLedger):
    """Fails at one of its steps, and is well again after it."""

    def __init__(self, fails: int) -> None:
        super().__init__()
        self.left = fails

    async def step(self, decide: Callable[[View], tuple[Record | None, Any]]) -> Any:
        self.left -= 1
        if self.left == -1:
            raise LedgerUnavailableError("flows", "Input/output error")
        return await super().step(decide)


def putting(record: Record) -> Callable[[View], tuple[Record, None]]:
    return lambda _: (record, None)


def test_a_ledger_that_fails_is_no_failure_of_a_step() -> None:
    """At whichever step of the ledger: what was not begun has not failed, and the flow completes once it is resumed."""
    effects: list[str] = []

    async def effect(call: FlowCall) -> str:
        effects.append(call.kind)
        return "done"

    @flow(workers={"llm": Worker(effect, in_flight="again")})
    async def body(f: Handle) -> object:
        return await f.llm("a")

    async def attempts(fails: int) -> tuple[list[str], bool]:
        ledger = FailingLedger(fails)
        states = []
        for _ in range(3):
            with suppress(LedgerUnavailableError):
                states.append((await Flows(ledger=ledger, clock=flow_runs.Clock()).run(body, "root")).state)
                if states[-1] == "completed":
                    break
            for lease in {r.task: r for r in ledger.records if isinstance(r, Lease)}.values():
                await MemoryLedger.step(ledger, putting(evolve(lease, holder=None, ends=0.0)))
        return states, ledger.left >= 0

    for fails in range(100):
        effects.clear()
        states, whole = asyncio.run(asyncio.wait_for(attempts(fails), 60))
        if whole:
            break
        assert states[-1:] == ["completed"], (fails, states)
        assert "failed" not in states, (fails, states)
    assert fails > 10


FAILS = Call("memory", "fails", fails=True)


@pytest.mark.parametrize("how", ["group", "within"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_group_that_fails_in_another_one(how: str, version: int) -> None:
    """Both are left at the same moment, and whatever comes next finds them both to be settled."""
    inner = Fan(how, ((FAILS,), ()))
    plan = Plan(Program((Caught((Fan(how, ((inner,), ())),)), A)), version=version)
    assert states(played(plan)) == ["completed"]


@pytest.mark.parametrize("how", ["group", "within"])
def test_a_branch_that_is_broken_off_need_not_get_as_far_as_it_once_did(how: str) -> None:
    """A resume may find the failure before the branch gets to a step on record, even if that is made again later on."""
    for program in (
        Program((Caught((Fan(how, ((FAILS,), (A, B))),)),)),
        Program((Caught((Fan(how, ((A, B), (FAILS,))),)), B, C)),
        Program((Caught((Fan(how, ((FAILS,), (A, Fan("gather", ((B,), (C,)))))),)), B)),
    ):
        for order, what in itertools.product(itertools.product(range(3), repeat=2), ("index b", "end b", "done b")):
            for rest in ((), (0,), (1, 1)):
                plan = Plan(program, orders=(order, rest, ()), stops=(Stop(what), Stop("end b")), version=3)
                assert states(played(evolve(plan, in_flight="again")))[-1] == "completed"
