"""Where a flow's own code decides the order, its calls are counted, and a resume that differs is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from flow_runs import World
from onestart.flow import Flow, Handle, flow

Body = Callable[[Handle], Awaitable[Any]]


async def as_they_come(f: Handle) -> Any:
    results = []
    for done in asyncio.as_completed([task(f, "a"), task(f, "b")]):
        first = await done
        results.append([first, await f.run([f"with {first}"])])
    return results


async def the_first(f: Handle) -> Any:
    await asyncio.wait([task(f, "a"), task(f, "b")], return_when=asyncio.FIRST_COMPLETED)
    return await f.run(["after"])


async def all_of_them_by_wait(f: Handle) -> Any:
    await asyncio.wait([task(f, "a"), task(f, "b")])
    return await f.run(["after"])


async def after_a_timer(f: Handle) -> Any:
    await asyncio.sleep(0.001)
    return [await f.llm("a"), await f.run(["after"])]


async def after_a_bare_yield(f: Handle) -> Any:
    await asyncio.sleep(0)
    return [await f.llm("a"), await f.run(["after"])]


async def after_a_thread(f: Handle) -> Any:
    await asyncio.to_thread(int)
    return [await f.llm("a"), await f.run(["after"])]


async def through_a_queue(f: Handle) -> Any:
    queue: asyncio.Queue[str] = asyncio.Queue()

    async def put(name: str) -> None:
        await queue.put(await f.llm(name))

    tasks = [asyncio.create_task(put("a")), asyncio.create_task(put("b"))]
    first = await queue.get()
    result = [first, await f.run(["after"])]
    await asyncio.gather(*tasks)
    return result


async def shielded(f: Handle) -> Any:
    await asyncio.shield(task(f, "a"))
    return [await f.llm("b"), await f.run(["after"])]


async def in_a_callback(f: Handle) -> Any:
    made: list[Awaitable[Any]] = []
    first = task(f, "a")
    first.add_done_callback(lambda _: made.append(f.run(["after"])))
    await first
    while not made:
        await asyncio.sleep(0)
    return await made[0]


async def after_a_time_limit(f: Handle) -> Any:
    with suppress(TimeoutError):
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    return [await f.llm("a"), await f.run(["after"])]


async def cancelled_by_another(f: Handle) -> Any:
    async def branch() -> Any:
        try:
            await f.llm("b")
        except asyncio.CancelledError:
            return await f.run(["instead"])

    other = asyncio.create_task(branch())
    await f.llm("a")
    other.cancel()
    return await other


async def ask(f: Handle, name: str) -> Any:
    return await f.llm(name)


def task(f: Handle, name: str) -> asyncio.Task[Any]:
    return asyncio.create_task(ask(f, name))


BODIES: tuple[Body, ...] = (
    as_they_come,
    the_first,
    all_of_them_by_wait,
    after_a_timer,
    after_a_bare_yield,
    after_a_thread,
    through_a_queue,
    shielded,
    in_a_callback,
    after_a_time_limit,
    cancelled_by_another,
)


def ids(world: World) -> dict[str, str]:
    return {body["shown"].split('"')[3]: step for _, step, body in world.entries() if "shown" in body}


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_calls_are_counted_from_there_on(body: Body) -> None:
    """What was called before keeps the id that its causes give it."""
    world = World()
    outcome = world.run(flow(body))
    assert outcome is not None
    assert outcome.state == "completed", outcome
    counted = [step for what, step, _ in world.entries() if what == "index" and "-after-" not in step]
    kinds: tuple[str, ...] = ("llm", "run") if body.__name__.startswith(("after", "shielded")) else ("run",)
    if body is as_they_come:
        kinds = ("llm", "llm", "run")  # it may have made its tasks out of a set
    assert counted[: len(kinds)] == [f"{kind}-{number}" for number, kind in enumerate(kinds, 1)]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_the_same_order_resumes(body: Body) -> None:
    """Counting is enough for a flow whose order happens to be the same."""
    whole = World()
    done = whole.run(flow(body), order=("a", "b"))
    world = World(in_flight="again")
    world.run(flow(body), order=("a", "b"), arrivals=len(whole.effects) - 1)
    assert world.run(flow(body), order=("a", "b")) == done


@pytest.mark.parametrize("body", [as_they_come, through_a_queue], ids=lambda body: body.__name__)
def test_another_order_is_refused_before_it_does_harm(body: Body) -> None:
    """Results arrived the other way round in the first run; replays do not know that."""
    world = World(in_flight="again")
    world.run(flow(body), order=("b", "a"), arrivals=3)
    completed = [body["shown"] for what, step, body in world.entries() if what == "index"]
    before = list(world.effects)
    outcome = world.run(flow(body), order=("a", "b"))
    assert outcome is not None
    if outcome.state != "completed":
        assert outcome.reason in ("run_admission_conflict", "serial_replay_order_mismatch")
    assert completed
    assert not {effect for effect in world.effects[len(before) :] if effect in before and effect != "b"}


def test_a_call_that_is_counted_in_one_run_only_is_refused() -> None:
    """Whether somebody has to wait for a signal depends on arrivals; the call behind it is the same one."""

    @flow
    async def signaled(f: Handle) -> Any:
        signal = asyncio.Event()

        async def first() -> Any:
            await f.llm("a")
            signal.set()

        async def second() -> Any:
            await f.llm("b")
            await signal.wait()
            return await f.run(["behind it"])

        return await asyncio.gather(first(), second(), f.llm("c"))

    world = World(in_flight="again")
    assert world.run(signaled, order=("b", "a", "behind it"), arrivals=3) is None
    before = list(world.effects)
    outcome = world.run(signaled)
    assert outcome is not None
    assert (outcome.state, outcome.reason) == ("refused", "serial_replay_order_mismatch")
    assert "its place is journaled" in outcome.message or "in this place is journaled" in outcome.message
    assert world.effects == before


@pytest.mark.parametrize("limit", [asyncio.Lock, lambda: asyncio.Semaphore(2)], ids=["lock", "semaphore"])
def test_a_limit_of_ones_own_is_no_order(limit: Callable[[], Any]) -> None:
    """Whoever has to wait does the same in the end, so its calls are not counted, and any order resumes."""

    @flow
    async def limited(f: Handle) -> Any:
        slots = limit()

        async def branch(name: str) -> Any:
            await f.llm(name)
            async with slots:
                return await f.run([f"{name} limited"])

        return await asyncio.gather(*(branch(name) for name in "abcd"))

    labels = [*"abcd", *(f"{name} limited" for name in "abcd")]
    for shift in range(1, 7):
        world = World(in_flight="again")
        assert world.run(limited, order=labels[shift:] + labels[:shift], arrivals=shift + 1) is None
        assert all("-after-" in step for step in ids(world).values())
        outcome = world.run(limited, order=labels[::-1])
        assert outcome is not None
        assert outcome.value == [f"result of {name} limited" for name in "abcd"]


def kept_under_a_lock(kind: str) -> Flow:
    """Two branches need the same; the first that has the lock does it. Which one that is, arrivals decide."""

    @flow(name="tested")
    async def body(f: Handle) -> Any:
        lock, kept = asyncio.Lock(), dict[str, Any]()

        async def branch(name: str) -> Any:
            await f.llm(name)
            async with lock:
                if "it" not in kept:
                    kept["it"] = await do(f, kind)
            return kept["it"]

        return await asyncio.gather(branch("a"), branch("b"), branch("c"))

    return body


def do(f: Handle, kind: str) -> Awaitable[Any]:
    async def judge(f: Handle, given: Any) -> str:
        await f.llm("the same")
        return "pass"

    if kind == "hook":
        return f.hook("judge", judge)
    if kind == "dispatch":
        return f.dispatch(child)
    return f.human("the same?") if kind == "human" else f.llm("the same")


@flow
async def child(f: Handle) -> Any:
    return await f.llm("the same")


@pytest.mark.parametrize("kind", ["llm", "human", "hook", "dispatch"])
def test_a_completed_effect_is_not_repeated_in_another_place(kind: str) -> None:
    """The call that both branches would make is made by the other one now; it waits, and is refused at last."""
    world = World(in_flight="again")
    body = kept_under_a_lock(kind)
    first = world.run(body, order=("b", "the same", "a"), arrivals=2 if kind == "human" else 3)
    assert first is None
    if kind == "human":
        world.answer(next(step for what, step, _ in world.entries() if what == "wait"), "yes")
    before = len(world.effects)
    outcome = world.run(body, order=("a", "b", "c"))
    assert outcome is not None
    assert outcome.reason == "serial_replay_order_mismatch"
    assert "the same" not in world.effects[before:]
    assert [e for e in world.entries() if e[0] == "wait"][1:] == []


def test_calls_that_merely_ask_for_the_same_wait_for_each_other() -> None:
    """A call that the first attempt had not made yet is carried out once the one that it is like was reached."""

    @flow
    async def body(f: Handle) -> Any:
        async def slow() -> Any:
            for number in range(5):
                await f.llm(f"slow {number}")
            return await f.run(["twin"])

        async def late() -> Any:
            await f.llm("late")
            return await f.run(["twin"])

        return await asyncio.gather(late(), slow())

    slow = tuple(f"slow {number}" for number in range(5))
    world = World(in_flight="again")
    assert world.run(body, order=(*slow, "twin", "late"), arrivals=6) is None
    outcome = world.run(body, order=("late", "twin"))
    assert outcome is not None
    assert outcome.state == "completed"
    assert world.effects.count("twin") == 2


def test_a_body_that_its_group_breaks_off_is_counted_until_the_group_is_left() -> None:
    """It may go on all the same, from wherever it stood; what follows the group is in its place again."""

    @flow
    async def goes_on(f: Handle) -> Any:
        async def fail() -> None:
            await f.llm("a")
            raise ValueError

        with suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
                with suppress(asyncio.CancelledError):
                    await f.llm("b")
                await f.run(["in the body"])
        return await f.agent("last")

    one, other = World(), World()
    one.run(goes_on, order=("a", "b"))
    other.run(goes_on, order=("b", "in the body", "a"))
    assert (ids(one)["in the body"], ids(other)["in the body"][:9]) == ("run-1", "run-after")
    assert ids(one)["last"] == ids(other)["last"]
    assert ids(one)["last"].startswith("agent-after-")


def test_a_timer_that_runs_out_makes_the_order_unknown() -> None:
    """Whether it does is not the flow's to know; until then nothing is counted."""

    @flow
    async def limited(f: Handle) -> Any:
        before = await f.llm("before")
        try:
            await asyncio.wait_for(ask(f, "slow"), 0)
        except TimeoutError:
            return [before, await f.run(["instead"])]
        raise AssertionError

    world = World()
    outcome = world.run(limited)
    assert outcome is not None
    assert outcome.value == ["result of before", "result of instead"]
    assert ids(world)["before"].startswith("llm-after-")
    assert "run-1" in [step for _, step, _ in world.entries()]
