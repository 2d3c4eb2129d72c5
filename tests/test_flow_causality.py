"""Step ids of version 3: whatever the order of results, every call has the id that it had; no effect is repeated."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from flow_runs import World, label_of
from onestart.flow import Flow, Handle, Step, StepFailedError, flow

Body = Callable[[Handle], Awaitable[Any]]


async def gathered(f: Handle) -> Any:
    async def branch(name: str) -> list[Any]:
        return [await f.llm(f"{name}1"), await f.run([f"{name}2"])]

    return [*await asyncio.gather(branch("a"), branch("b")), await f.agent("c")]


async def gathered_directly(f: Handle) -> Any:
    first = await asyncio.gather(f.llm("a1"), f.llm("b1"), f.run(["c1"]))
    return [first, await f.llm("last")]


async def steps_as_tasks(f: Handle) -> Any:
    """A step is as good as a coroutine."""
    first = asyncio.create_task(f.llm("a"))
    async with asyncio.TaskGroup() as group:
        second = group.create_task(f.run(["b"]))
    return [second.result(), await first, await f.agent("last")]


async def grouped(f: Handle) -> Any:
    async def branch(name: str) -> list[Any]:
        return [await f.llm(f"{name}1"), await f.llm(f"{name}2")]

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(branch("a")), group.create_task(branch("b"))]
        middle = await f.run(["in the group"])
    return [middle, *(task.result() for task in tasks), await f.agent("last")]


async def grouped_and_left(f: Handle) -> Any:
    """Nobody asks for the results, and all tasks have ended before the group is left."""
    async with asyncio.TaskGroup() as group:
        group.create_task(f_llm(f, "a"))
        group.create_task(f_llm(f, "b"))
        await f.run(["one"])
        await f.run(["two"])
    return await f.agent("last")


async def tasks_awaited_in_turn(f: Handle) -> Any:
    first, second = asyncio.create_task(f_llm(f, "a")), asyncio.create_task(f_llm(f, "b"))
    between = await f.run(["between"])
    results = [await second, await f.run(["after b"]), await first, await f.run(["after a"])]
    return [between, results]


async def a_task_that_is_done(f: Handle) -> Any:
    """Awaited long after it has ended, it never suspends whoever awaits it, and counts all the same."""
    task = asyncio.create_task(f_llm(f, "a"))
    first, second = await f.run(["one"]), await f.run(["two"])
    return [first, second, await task, await f.agent("last")]


async def a_gathering_that_is_done(f: Handle) -> Any:
    both = asyncio.gather(f_llm(f, "a"), asyncio.gather(f_llm(f, "b"), f.llm("c")))
    first = await f.run(["one"])
    return [first, await f.run(["two"]), await both, await f.agent("last")]


async def awaited_with_a_limit(f: Handle) -> Any:
    slow = asyncio.wait_for(f_llm(f, "a"), 1000)
    return [*await asyncio.gather(slow, asyncio.wait_for(f.llm("b"), 1000)), await f.run(["last"])]


async def nested(f: Handle) -> Any:
    async def leaf(name: str) -> Any:
        return await f.llm(name)

    async def branch(name: str) -> Any:
        inner = await asyncio.gather(leaf(f"{name}1"), leaf(f"{name}2"))
        return [inner, await f.run([f"{name}3"])]

    return [await asyncio.gather(branch("a"), branch("b")), await f.agent("last")]


async def gatherings_within_one(f: Handle) -> Any:
    """Nothing but gatherings is gathered, and all of it is done before it is awaited."""
    both = asyncio.gather(asyncio.gather(f_llm(f, "a")), asyncio.gather(f_llm(f, "b")))
    first = await f.run(["one"])
    return [first, await f.run(["two"]), await both, await f.agent("last")]


async def at_another_pace(f: Handle) -> Any:
    """Who gets to its call first depends on whether what both wait for is there already."""
    shared = asyncio.create_task(f_llm(f, "shared"))

    async def left() -> Any:
        await asyncio.gather(asyncio.gather(shared))
        return await f.run(["left"])

    async def right() -> Any:
        for _ in range(4):
            await asyncio.create_task(nothing())
        await shared
        return await f.run(["right"])

    return await asyncio.gather(left(), right())


async def nothing() -> None:
    pass


async def as_many_as_it_says(f: Handle) -> Any:
    """How wide the fan-out is depends on an earlier result."""
    many = len(str(await f.llm("many"))) // 6
    return await asyncio.gather(*(f_llm(f, f"item {n}") for n in range(many)))


async def with_a_failure_returned(f: Handle) -> Any:
    results = await asyncio.gather(f_llm(f, "fails"), f_llm(f, "b"), return_exceptions=True)
    return [[str(result) for result in results], await f.run(["last"])]


async def with_a_failure(f: Handle) -> Any:
    """The first failure ends the waiting; the other branch goes on, and is awaited later."""
    other = asyncio.create_task(two(f, "b"))
    try:
        await asyncio.gather(f_llm(f, "fails"), other)
    except StepFailedError:
        return [await f.run(["instead"]), await other, await f.run(["last"])]
    raise AssertionError


async def a_group_that_fails(f: Handle) -> Any:
    """Whichever of its tasks fails first or last, what follows stands in the same place."""
    try:
        async with asyncio.TaskGroup() as group:
            for name in ("a", "fails", "b"):
                group.create_task(f_llm(f, name))
    except* StepFailedError:
        pass
    return await f.agent("last")


async def a_group_that_breaks_off_its_body(f: Handle) -> Any:
    """How far the body has got says nothing either, in a group within a group too."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(f_llm(f, "fails"))
            async with asyncio.TaskGroup() as inner:
                inner.create_task(f_llm(f, "a"))
                await f.llm("b")
    except* StepFailedError:
        pass
    return await f.agent("last")


async def with_a_hook(f: Handle) -> Any:
    async def judge(f: Handle, given: Any) -> str:
        await asyncio.gather(f.llm(f"{given} 1"), f.run([f"{given} 2"]))
        return "pass"

    async def other() -> Any:
        return [await f.run(["x"]), await f.run(["y"])]

    return [await asyncio.gather(f_hook(f, judge), other()), await f.agent("last")]


async def with_a_child(f: Handle) -> Any:
    return [await asyncio.gather(f.dispatch(CHILD, "p"), f.dispatch(CHILD, "q")), await f.agent("last")]


@flow
async def child(f: Handle, name: str) -> Any:
    return await asyncio.gather(f.llm(f"{name}1"), f.run([f"{name}2"]))


CHILD = child


async def f_llm(f: Handle, name: str) -> Any:
    return await f.llm(name)


async def f_hook(f: Handle, judge: Any) -> Any:
    return await f.hook("judge", judge, "input")


async def two(f: Handle, name: str) -> Any:
    return [await f.llm(f"{name}1"), await f.llm(f"{name}2")]


BODIES: tuple[Body, ...] = (
    gathered,
    gathered_directly,
    steps_as_tasks,
    grouped,
    grouped_and_left,
    tasks_awaited_in_turn,
    a_task_that_is_done,
    a_gathering_that_is_done,
    awaited_with_a_limit,
    nested,
    gatherings_within_one,
    at_another_pace,
    as_many_as_it_says,
    with_a_failure_returned,
    with_a_failure,
    a_group_that_fails,
    a_group_that_breaks_off_its_body,
    with_a_hook,
    with_a_child,
)
FAILING = frozenset(["fails"])


def ids(world: World) -> dict[str, str]:
    """The step of each call, by what it asks for."""
    return {body["shown"]: step for what, step, body in world.entries() if "shown" in body}


def orders(labels: list[str]) -> list[tuple[str, ...]]:
    """Enough orders to have any two results arrive either way round."""
    turns = [tuple(labels[n:] + labels[:n]) for n in range(len(labels))]
    return list(dict.fromkeys([tuple(labels), tuple(reversed(labels)), *turns, *(t[::-1] for t in turns)]))


def whole(body: Body, order: tuple[str, ...] = ()) -> World:
    """A run to the end."""
    world = World(failing=FAILING)
    outcome = world.run(flow(body), order=order)
    assert outcome is not None
    assert outcome.state == "completed", outcome
    return world


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_ids_do_not_depend_on_the_order_of_results(body: Body) -> None:
    """No call is counted, and every call has the same id in every order."""
    first = whole(body)
    assert all("-after-" in step for step in ids(first).values())
    assert len(set(ids(first).values())) == len(ids(first))
    for order in orders(first.effects):
        other = whole(body, order)
        assert ids(other) == ids(first)
        assert sorted(other.effects) == sorted(first.effects)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_a_crash_and_any_order_of_the_rest(body: Body) -> None:
    """Cut off at any write, and resumed in any order: the same value, no completed effect again, the same journal."""
    first = whole(body)
    made: Flow = flow(body)
    value = None
    writes = len(first.records)
    for cut, order in itertools.islice(_cuts(writes, orders(first.effects)), 120):
        world = World(failing=FAILING, in_flight="again")
        assert world.run(made, order=order, writes=cut) is None
        completed = [step for what, step, _ in world.entries() if what == "done"]
        before = list(world.effects)
        outcome = world.run(made, order=tuple(reversed(order)))
        assert outcome is not None
        assert outcome.state == "completed", (cut, order, outcome)
        value = outcome.value if value is None else value
        assert outcome.value == value
        again = [label for label in before if world.effects.count(label) > before.count(label)]
        labels = {step: shown for shown, step in ids(world).items()}
        assert not [label for label in again for step in completed if label in labels[step].split('"')]
        known = set(ids(first).values())
        assert set(ids(world).values()) == known


def _cuts(writes: int, some: list[tuple[str, ...]]) -> Any:
    for number in range(2, writes):
        yield number, some[number % len(some)]


AFTER: dict[Body, dict[str, set[str]]] = {
    gathered: {"a1": set(), "a2": {"a1"}, "b1": set(), "c": {"a2", "b2"}},
    gathered_directly: {"a1": set(), "c1": set(), "last": {"a1", "b1", "c1"}},
    steps_as_tasks: {"last": {"a", "b"}},
    grouped: {"in the group": set(), "a2": {"a1"}, "last": {"in the group", "a2", "b2"}},
    grouped_and_left: {"two": {"one"}, "last": {"two", "a", "b"}},
    tasks_awaited_in_turn: {"between": set(), "after b": {"between", "b"}, "after a": {"after b", "a"}},
    a_task_that_is_done: {"two": {"one"}, "last": {"two", "a"}},
    a_gathering_that_is_done: {"two": {"one"}, "last": {"two", "a", "b", "c"}},
    gatherings_within_one: {"two": {"one"}, "last": {"two", "a", "b"}},
    awaited_with_a_limit: {"last": {"a", "b"}},
    nested: {"a1": set(), "a3": {"a1", "a2"}, "last": {"a3", "b3"}},
    as_many_as_it_says: {"item 0": set()},
    at_another_pace: {"left": {"shared"}, "right": {"shared"}},
    with_a_failure_returned: {"last": {"fails", "b"}},
    with_a_failure: {"instead": set(), "last": {"instead", "b2"}},
    a_group_that_fails: {"last": set()},
    a_group_that_breaks_off_its_body: {"last": set()},
    with_a_hook: {"input 1": set(), "y": {"x"}, "last": {"hook", "y"}},
    with_a_child: {"p1": set(), "last": {"dispatch"}},
}


@pytest.mark.parametrize("body", AFTER, ids=lambda body: body.__name__)
def test_what_a_call_comes_after(body: Body) -> None:
    """The newest steps that its code has awaited, and nothing that merely arrived before it.

    What a task inherits from its maker is behind its fork, so the first call of a task shows no step.
    """
    world = whole(body)
    after = {}
    name_of = {step: label(step, body) for _, step, body in world.entries() if "shown" in body}
    for _, step, body_ in world.entries():
        if "after" in body_:
            after[name_of[step]] = {name_of[one] for one in body_["after"] if one in name_of}
    assert {name: after[name] for name in AFTER[body]} == AFTER[body]


def label(step: str, body: dict[str, Any]) -> str:
    kind = step.rsplit("--", 1)[-1].split("-")[0]
    spec = json.loads(body["shown"])
    return kind if kind in ("hook", "dispatch") else label_of(spec)


def test_a_first_attempt_reads_nothing_extra() -> None:
    """One look at whether there is a journal; a resumed one takes no more."""
    world = whole(gathered)
    assert world.ledger.reads == 1


def test_what_the_handle_gives_is_a_step() -> None:
    """It has its id from its declaration on."""

    @flow
    async def body(f: Handle) -> list[str]:
        steps = [f.llm("a"), f.llm("b")]
        assert all(isinstance(step, Step) for step in steps)
        await steps[1]
        await steps[0]
        return [step.id[-2:] for step in steps]

    outcome = World().run(body)
    assert outcome is not None
    assert outcome.value == ["-0", "-1"]
