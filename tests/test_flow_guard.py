"""A resumed flow that does not fit its journal is refused before it does anything, and says why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from flow_runs import World
from onestart.flow import Flow, Handle, Outcome, Step, flow


def body_of(*calls: Any) -> Flow:
    """A flow that takes these calls one after the other; a list stands for branches side by side."""

    async def take(f: Handle, call: Any) -> Any:
        if isinstance(call, list):
            return await asyncio.gather(*(branch(f, one) for one in call))
        kind, text = call.split(" ", 1)
        if kind == "human":
            return await f.human(text)
        if kind == "run":
            return await f.run([text])
        return await getattr(f, kind)(text)

    async def branch(f: Handle, calls: Any) -> Any:
        return [await take(f, call) for call in calls]

    @flow(name="tested")
    async def body(f: Handle) -> Any:
        return [await take(f, call) for call in calls]

    return body


def resumed(first: Flow, second: Flow, *, arrivals: int, identity: int = 3, order: tuple[str, ...] = ()) -> Any:
    """The outcome of a resume with another body, and what it did."""
    world = World(identity=identity, in_flight="again")
    assert world.run(first, arrivals=arrivals, order=order) is None
    before, entries = list(world.effects), world.entries()
    outcome = world.run(second)
    return outcome, world.effects[len(before) :], world.entries()[len(entries) :]


OTHERS: dict[str, tuple[list[Any], list[Any], int, str]] = {
    "another kind": (["run a", "llm b", "run c"], ["run a", "run b", "run c"], 2, "serial_replay_order_mismatch"),
    "another spec": (["run a", "llm b", "run c"], ["run a", "llm B", "run c"], 2, "run_admission_conflict"),
    "another question": (["run a", "human b?"], ["run a", "human B?"], 1, "serial_replay_order_mismatch"),
    "one more at the end of a branch": (
        [[["run a"], ["run b"]], "llm c"],
        [[["run a", "run new"], ["run b"]], "llm c"],
        3,
        "serial_replay_order_mismatch",
    ),
    "one branch more": (
        [[["run a"], ["run b"]], "llm c"],
        [[["run a"], ["run b"], ["run new"]], "llm c"],
        3,
        "serial_replay_order_mismatch",
    ),
    "one branch less": (
        [[["run a"], ["run b"]], "llm c"],
        [[["run a"]], "llm c"],
        3,
        "serial_replay_order_mismatch",
    ),
    "an end before everything was reached": (["run a", "llm b"], ["run a"], 1, "serial_replay_order_mismatch"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_body_is_refused_without_an_effect(name: str) -> None:
    """Whatever is different about it, as long as the journal shows that it is."""
    first, second, arrivals, reason = OTHERS[name]
    world = World(in_flight="again")
    if first[-1].startswith("human"):
        parked = world.run(body_of(*first))
        assert parked is not None
        assert parked.state == "parked"
    else:
        world.run(body_of(*first, "agent never"), arrivals=arrivals)
    before, entries = list(world.effects), world.entries()
    tail = [] if name.startswith("an end") else ["agent never"]
    outcome = world.run(body_of(*second, *tail))
    assert isinstance(outcome, Outcome)
    assert (outcome.state, outcome.reason, outcome.exit_code) == ("refused", reason, 1)
    assert [e for e in world.effects[len(before) :] if e != "b"] == []
    assert [entry for entry in world.entries()[len(entries) :] if entry[0] in ("index", "wait")] == []


def declared_at_once(within: bool, *names: str) -> Flow:
    """Some calls are declared before the first is awaited, in the flow itself or in a task of its own."""

    async def some(f: Handle) -> Any:
        calls = [f.llm(name) for name in names]
        return [await call for call in calls]

    @flow(name="tested")
    async def body(f: Handle) -> Any:
        first = await asyncio.create_task(some(f)) if within else await some(f)
        return [first, await f.run(["after"]), await f.agent("never")]

    return body


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize(("before", "after"), [(("a", "b"), ("a",)), (("a",), ("a", "b")), (("a", "b"), ("b", "a"))])
def test_another_number_of_calls_is_refused(within: bool, before: tuple[str, ...], after: tuple[str, ...]) -> None:
    """Also where every call that there is fits; before the one too many, or the first that comes after too few."""
    world = World(in_flight="again")
    assert world.run(declared_at_once(within, *before), arrivals=len(before) + 1) is None
    done = list(world.effects)
    outcome = world.run(declared_at_once(within, *after))
    assert outcome is not None
    assert outcome.state == "refused"
    assert world.effects == done


def test_a_refusal_names_what_is_where() -> None:
    """The ordinal, the journaled step and its kind, and the kind that was attempted."""
    outcome, effects, _ = resumed(
        body_of("run a", "llm b", "llm c"), body_of("run a", "llm b", "run c"), arrivals=2, identity=2
    )
    assert outcome.message == "ordinal 3 is journaled as llm step 'llm-3', but this resume reached it with run"
    assert effects == []


def test_both_specs_are_named() -> None:
    outcome, effects, _ = resumed(body_of("run a", "llm b"), body_of("run a", "llm now"), arrivals=1)
    assert '{"prompt":"b"}, but this resume asks for {"prompt":"now"}' in outcome.message
    assert effects == []


def test_a_refused_flow_ends_although_its_body_does_not() -> None:
    """It may have caught the refusal, and wait for something that never comes."""
    world = World(in_flight="again")
    world.run(body_of("run a", "llm b"), arrivals=1)
    ended = []

    @flow(name="tested")
    async def waits(f: Handle) -> Any:
        await f.run(["a"])
        try:
            await f.run(["b"])
        except Exception:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

    outcome = world.run(waits)
    assert outcome is not None
    assert outcome.state == "refused"
    assert ended == [True]


@pytest.mark.parametrize("identity", [2, 3])
def test_an_author_cannot_lift_a_refusal(identity: int) -> None:
    """Not by catching it, not with a step that was declared before, nor with a child, and not by returning."""
    world = World(identity=identity, in_flight="again")
    world.run(body_of("run a", "llm b", "run never"), arrivals=2)
    before = list(world.effects)

    @flow(name="tested")
    async def stubborn(f: Handle) -> Any:
        await f.run(["a"])
        saved = f.agent("saved")
        calls: tuple[Callable[[], Step], ...] = (
            lambda: f.run(["b"]),
            lambda: saved,
            lambda: f.llm("again"),
            lambda: f.memory.learn("it"),
        )
        for call in calls:
            try:
                await call()
            except Exception:
                continue
        try:
            await f.dispatch(body_of("run child"))
        except Exception:
            return "done"
        return "not refused"

    outcome = world.run(stubborn)
    assert outcome is not None
    assert outcome.state == "refused"
    assert world.effects == before


def test_version_two_refuses_what_arrives_in_another_order() -> None:
    """Completed effects are not repeated: the second branch's results came first, and a replay cannot know that."""
    first = body_of([["llm L1", "llm L2"], ["run Z1", "run Z2"]], "agent last")
    world = World(identity=2, in_flight="again")
    assert world.run(first, order=("Z1", "Z2", "L1"), arrivals=3) is None
    before = list(world.effects)
    outcome = world.run(first)
    assert outcome is not None
    assert (outcome.state, outcome.reason) == ("refused", "serial_replay_order_mismatch")
    assert [effect for effect in world.effects[len(before) :] if effect != "L2"] == []


def test_version_two_resumes_in_order() -> None:
    """To the same value, and what it writes is what an uninterrupted run writes."""
    body = body_of([["llm L1", "llm L2"], ["run Z1", "run Z2"]], "agent last")
    order = ("L1", "Z1", "L2", "Z2", "last")
    whole = World(identity=2)
    done = whole.run(body, order=order)
    for cut in range(2, len(whole.records)):
        world = World(identity=2, in_flight="again")
        world.run(body, order=order, writes=cut)
        outcome = world.run(body, order=order)
        assert outcome == done
        assert [e for e in world.entries() if e[0] != "again"] == whole.entries()


@pytest.mark.parametrize("identity", [2, 3])
def test_an_in_order_resume_writes_what_an_uninterrupted_run_writes(identity: int) -> None:
    """Byte for byte, wherever the first attempt was cut off."""
    body = body_of("run a", [["llm b", "llm c"], ["agent d"]], "run e")
    order = ("a", "b", "d", "c", "e")
    whole = World(identity=identity)
    done = whole.run(body, order=order)
    for cut in range(2, len(whole.records)):
        world = World(identity=identity, in_flight="again")
        world.run(body, order=order, writes=cut)
        assert world.run(body, order=order) == done
        assert [e for e in world.entries() if e[0] != "again"] == whole.entries()


def test_what_was_under_way_is_held_unless_its_worker_says_otherwise() -> None:
    """Nobody knows how far it got, so nobody runs it again on a guess; the rest goes on as far as it can."""
    body = body_of([["run a"], ["llm b", "llm c"]], "agent last")
    world = World(in_flight="hold")
    assert world.run(body, order=("b",), arrivals=1) is None
    outcome = world.run(body)
    assert outcome is not None
    assert (outcome.state, outcome.exit_code) == ("held", 4)
    assert len(outcome.held) == 2
    assert all("under way when its driver died" in why for why in outcome.held.values())
    assert world.effects == ["a", "b", "c"]
    again = World(in_flight="again", records=world.records)
    outcome = again.run(body)
    assert outcome is not None
    assert outcome.state == "completed"
    assert again.effects == ["a", "c", "last"]


@flow
async def counts_on(f: Handle) -> Any:
    async def one() -> Any:
        return await f.llm("task")

    await asyncio.create_task(one())
    first, second = f.run(["first"]), f.run(["second"])
    return [await first, await second]


def test_a_task_that_was_awaited_leaves_the_place_to_whoever_awaited_it() -> None:
    """Both come after the same step then, so the place is not left behind yet: another call in it is none too many."""
    whole = World()
    done = whole.run(counts_on)
    for cut in range(2, len(whole.records)):
        world = World(in_flight="again")
        world.run(counts_on, writes=cut)
        assert world.run(counts_on) == done


def test_a_call_that_was_left_out_is_missed_before_the_next_one() -> None:
    """Its step was under way when the driver died, so nothing has said yet how many calls there were in its place."""
    outcome, effects, entries = resumed(body_of("run a"), body_of([["llm b"], ["llm c"]], "run d"), arrivals=0)
    assert outcome.reason == "serial_replay_order_mismatch"
    assert "before it the journal has 1 call at least, and this resume made 0" in outcome.message
    assert sorted(effects) == ["b", "c"]
    assert not [step for what, step, _ in entries if what == "index" and step.startswith("run-")]


def dispatching(*, twice: bool) -> Flow:
    @flow(name="inner")
    async def inner(f: Handle) -> Any:
        return await f.llm("a")

    @flow(name="middle")
    async def middle(f: Handle) -> Any:
        return await f.dispatch(inner) if twice else None

    @flow(name="outer")
    async def outer(f: Handle) -> Any:
        return await f.dispatch(middle)

    return outer


@pytest.mark.parametrize("identity", [2, 3])
def test_a_child_that_was_left_out_is_missed(identity: int) -> None:
    """Of a dispatch that was under way nothing is on record but what its child did."""
    outcome, effects, entries = resumed(
        dispatching(twice=True), dispatching(twice=False), arrivals=0, identity=identity
    )
    assert outcome.reason == "serial_replay_order_mismatch"
    assert effects == []
    assert "complete" not in [what for what, _, _ in entries]
