"""After a crash, a lost answer or a lost lease: how a command gets on, and that it never starts a second time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from library_world import LEASE, DiedError, Line, MortalLedger, World, command, fallen, story
from onestart import Answer, Event, NothingToDoError, Outcome, Reason, Result
from onestart.events import LAYERS
from onestart.executors import CANCELLED, CallableExecutor, CommandExecutor
from stores import KINDS, store

STARTED = Result(Outcome.STARTED, Reason.CREATED)
STEPS = 8  # of the ledger, from accepting a command to recording its result


@pytest.fixture(params=KINDS)
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    kept = store(request.param, tmp_path, request)
    yield World(tmp_path, kept)
    kept.close()


# PostgreSQL has each step in `test_postgres_faults`, where sessions and answers are really lost.
embedded = pytest.mark.parametrize("world", ["jsonl", "sqlite"], indirect=True)


async def resubmitted(world: World) -> Answer:
    """What a new process answers, once the leases of the old ones have run out."""
    world.clock.advance(LEASE)
    return await world.chain().submit(command())


@story
async def test_what_the_executor_cannot_start_is_left_to_others(world: World) -> None:
    """A ledger may hold commands of another executor, such as a flow's steps; recovery goes on past them."""

    mortal = MortalLedger(world.ledger(), 1, durable=True)
    assert await fallen(world.chain(ledger=mortal).submit(command()))
    programs = CommandExecutor(world.folder / "programs")
    (answer,) = await world.chain(executor=programs).recover()
    assert (answer.outcome, answer.reason) == (Outcome.HELD, Reason.NOT_EXECUTABLE)
    assert "object of argv" in answer.detail
    assert world.effects == []


@embedded
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("last", range(1, STEPS + 2))
@story
async def test_a_process_may_die_at_every_step(world: World, last: int, durable: bool) -> None:
    """Before or after the record of a step is durable: recovery brings an accepted command to its one start."""
    mortal = MortalLedger(world.ledger(), last, durable=durable)
    died = await fallen(world.chain(ledger=mortal).submit(command()))
    assert died == (last <= STEPS)
    accepted = bool(world.lines("receipts"))
    assert accepted == (last > 1 or durable)
    early = await world.chain().recover()
    assert {answer.reason for answer in early} <= {Reason.CREATED, Reason.ALREADY_DISPATCHED, Reason.LEASE_CONFLICT}
    world.clock.advance(LEASE)
    late = await world.chain().recover()
    finished = last > STEPS or (last == STEPS and durable)
    outcomes = [answer.outcome for answer in (*early, *late)]
    assert outcomes[-1:] == ([Outcome.STARTED] if accepted and not finished else [])
    assert await world.chain().recover() == ()
    assert world.effects == ["payload"] * accepted
    answer = await world.chain().submit(command())
    assert (answer.outcome, answer.result) == (Outcome.STARTED, STARTED)
    assert answer.reason is (Reason.REPLAY if accepted else Reason.CREATED)
    assert world.effects == ["payload"]
    assert (await world.chain().submit(command("second"))).outcome is Outcome.STARTED


@embedded
@pytest.mark.parametrize("action", [*LAYERS][:17])
@story
async def test_an_observer_that_raises_starts_nothing_twice(world: World, action: str) -> None:
    """Its error reaches whoever submitted; the step was made all the same, and a later submission goes on from it."""

    def observer(event: Event) -> None:
        if event.action == action:
            raise ZeroDivisionError(action)
        world.see(event)

    try:
        await world.chain(observer=observer).submit(command())
    except ZeroDivisionError:
        world.clock.advance(LEASE)
    answer = await world.chain().submit(command())
    assert (answer.outcome, answer.result) == (Outcome.STARTED, STARTED)
    assert world.effects == ["payload"]


@story
async def test_a_stop_that_failed_is_asked_for_again(world: World) -> None:
    """The record of a cancellation is written before the executor is asked, which may be as far as it ever got."""
    chain = world.chain()
    await chain.submit(command(function="wait"))
    world.line.broken = ConnectionError("no route")
    with pytest.raises(ConnectionError):
        await chain.cancel("key")
    assert await world.functions.running("key")
    world.line.works()
    assert (await chain.cancel("key")).result == STARTED
    await world.ended("key")
    assert await world.functions.outcome("key") == CANCELLED


@embedded
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("last", range(1, STEPS + 1))
@story
async def test_a_disk_may_fail_at_every_step(world: World, last: int, durable: bool) -> None:
    """The submission is held and names the store; whether the record is there or not, the next one gets on."""
    ledger = MortalLedger(world.ledger(), last, durable=durable, fails=True)
    held = await world.chain(ledger=ledger).submit(command())
    assert (held.outcome, held.reason, held.detail) == (
        Outcome.HELD,
        Reason.STORE_UNAVAILABLE,
        "attempts: the disk is gone",
    )
    assert [str(finding) for finding in held.findings] == ["attempts: unavailable"]
    assert world.actions()[-1] == "dropped"
    assert (await resubmitted(world)).result == STARTED
    assert world.effects == ["payload"]


@pytest.mark.parametrize("happened", [False, True])
@story
async def test_a_process_may_die_while_it_starts(world: World, happened: bool) -> None:
    """Between intent and recorded start only the executor knows: it is asked, and starts nothing twice."""
    setattr(world.line, "after" if happened else "before", DiedError())
    assert await fallen(world.chain().submit(command()))
    world.line.works()
    status = await world.chain().status("key")
    assert status is not None
    assert (status.attempt, status.started, status.in_doubt, status.result) == ("intended", False, True, None)
    assert [answer.reason for answer in await world.chain().recover()] == [Reason.LEASE_CONFLICT]
    world.clock.advance(LEASE)
    answers = await world.chain().recover()
    assert [answer.reason for answer in answers] == [Reason.ALREADY_DISPATCHED if happened else Reason.CREATED]
    assert world.effects == ["payload"]
    assert [order.token for order in world.line.orders] == ([1] if happened else [1, 2])
    assert [event.details for event in world.events if event.action == "look_up"] == [{"started": happened}]


@pytest.mark.parametrize("happened", [False, True])
@story
async def test_an_executor_that_raises_leaves_it_open(world: World, happened: bool) -> None:
    """An error is no proof that nothing was started: the answer says so, and a later submission finds out."""
    setattr(world.line, "after" if happened else "before", ConnectionError("reset by peer"))
    chain = world.chain()
    open_ = await chain.submit(command())
    assert (open_.outcome, open_.reason, open_.result) == (Outcome.HELD, Reason.START_FAILED, None)
    assert open_.detail == "ConnectionError: reset by peer"
    assert world.actions()[-2:] == ["dropped", "report"]
    world.line.works()
    assert (await chain.submit(command())).reason is Reason.LEASE_CONFLICT
    assert len(world.line.orders) == 1
    answer = await resubmitted(world)
    assert (answer.outcome, answer.result) == (Outcome.STARTED, STARTED)
    assert answer.reason is (Reason.ALREADY_DISPATCHED if happened else Reason.CREATED)
    assert world.effects == ["payload"]


async def doubtful(world: World) -> None:
    """A key that was started, of which no record says so, and an executor that cannot tell."""
    world.line.after, world.line.mute = ConnectionError("reset by peer"), True
    await world.chain().submit(command())
    world.line.after = None


@story
async def test_a_doubt_stays_until_somebody_resolves_it(world: World) -> None:
    """An executor that cannot tell starts nothing, however often it is asked; once it can, its word counts."""
    await doubtful(world)
    for _ in range(3):
        held = await resubmitted(world)
        assert (held.outcome, held.reason, held.result) == (Outcome.HELD, Reason.IN_DOUBT, None)
    assert (await world.chain().submit(command("second"))).reason is Reason.TASK_BUSY
    assert (await world.chain().cancel("key")).outcome is Outcome.HELD
    world.line.mute = False
    assert (await world.chain().submit(command())).reason is Reason.ALREADY_DISPATCHED
    assert len(world.line.orders) == 1
    assert world.effects == ["payload"]


@story
async def test_an_operator_settles_a_doubt(world: World) -> None:
    """It is closed for good, its task is free, and nothing but a doubt can be settled."""
    await doubtful(world)
    chain = world.chain()
    await chain.settle("key", by="ann", why="looked at the machine")
    assert world.events[-1].details == {"by": "ann", "why": "looked at the machine"}
    for _ in range(2):
        settled = await resubmitted(world)
        assert settled.result == Result(Outcome.CLOSED, Reason.SETTLED)
    assert (await chain.submit(command("second"))).outcome is Outcome.STARTED
    for key, state in (("key", "closed"), ("second", "intended")):
        with pytest.raises(NothingToDoError, match=f"not in doubt: its attempt is {state}"):
            await chain.settle(key, by="ann", why="once more")
    assert [order.key for order in world.line.orders] == ["key", "second"]


@story
async def test_a_lease_is_renewed_while_the_executor_is_slow(world: World) -> None:
    """Whoever is at work keeps its task as long as it is, and its start is recorded by itself."""
    world.line.held = asyncio.Event()
    chain = world.chain()
    submission = asyncio.ensure_future(chain.submit(command()))
    await world.seen("note")
    for times in range(1, 10):
        await world.slept(times)
        world.clock.advance(LEASE / 3)
        await world.seen("renew", times)
    assert (await world.chain().submit(command())).reason is Reason.LEASE_CONFLICT
    assert (await world.chain().submit(command("second"))).reason is Reason.LEASE_CONFLICT
    world.line.held.set()
    assert (await submission).reason is Reason.CREATED
    assert {event.token for event in world.events if event.action in ("renew", "record")} == {1}
    assert world.clock.sleepers == 0  # nobody renews what is no longer worked on


@pytest.mark.parametrize("happened", [False, True])
@story
async def test_whoever_lost_the_lease_writes_and_starts_nothing(world: World, happened: bool) -> None:
    """A process that was paused for longer than its lease is fenced by the token of whoever took over."""
    pause = asyncio.Event()
    setattr(world.line, "late" if happened else "held", pause)
    slow = asyncio.ensure_future(world.chain(process="slow").submit(command()))
    await world.seen("note")
    await world.until(lambda: len(world.effects) == happened)
    world.line.works()
    world.clock.advance(LEASE)
    quick = await world.chain(process="quick").submit(command())
    assert quick.reason is (Reason.ALREADY_DISPATCHED if happened else Reason.CREATED)
    written = {name: world.lines(name) for name in ("attempts", "sessions", "leases", "receipts")}
    pause.set()
    late = await slow
    assert (late.outcome, late.result) == (Outcome.STARTED, STARTED)
    assert late.reason is (Reason.CREATED if happened else Reason.REPLAY)
    assert {name: world.lines(name) for name in written} == written
    assert [event.action for event in world.events if event.process == "slow"][-2:] == ["abandon", "replay"]
    assert world.effects == ["payload"]


@story
async def test_a_damaged_lease_holds_its_task_until_it_is_repaired(world: World) -> None:
    """Nobody knows who holds it, so nothing of the task starts; the repaired one is above all tokens ever issued."""
    chain = world.chain()
    await chain.submit(command(function="wait"))
    world.damage("leases", b'"holder":"key"', b'"holder":"kex"')
    held = await world.chain().submit(command("second"))
    assert (held.outcome, held.reason) == (Outcome.HELD, Reason.LEASE_DAMAGED)
    assert [str(finding) for finding in held.findings] == [world.spot("leases", 1, "lease 1 of task") + ": corrupt"]
    assert (await world.chain().submit(command("other", task="elsewhere"))).outcome is Outcome.STARTED
    world.clock.advance(LEASE * 10)
    assert (await chain.submit(command("second"))).reason is Reason.LEASE_DAMAGED
    await chain.repair_lease("task")
    with pytest.raises(NothingToDoError):
        await chain.repair_lease("task")
    assert (await chain.submit(command("second"))).reason is Reason.TASK_BUSY
    world.ending.set()
    await world.ended("key")
    assert (await chain.submit(command("second"))).reason is Reason.CREATED
    assert [order.token for order in world.line.orders if order.task == "task"] == [1, 3]


@story
async def test_what_another_executor_was_to_start_is_not_asked_of_this_one(world: World) -> None:
    """Of another machine, or of a folder that was made anew: it knows nothing of the key, and takes that for no."""
    world.line.after = ConnectionError("reset by peer")
    await world.chain().submit(command())
    world.clock.advance(LEASE)
    others = Line(CallableExecutor(world.folder / "elsewhere", {"note": world._note}))
    doubted = await world.chain(executor=others).submit(command())
    assert (doubted.outcome, doubted.reason) == (Outcome.HELD, Reason.IN_DOUBT)
    assert "another executor was to start it" in doubted.detail
    assert others.asked == []
    assert not await world.chain(executor=others).reconcile("key")
    assert (await world.chain().submit(command())).outcome is Outcome.STARTED
    assert not await world.chain(executor=others).reconcile("key"), "that it does not run here says nothing"
    assert world.effects == ["payload"]


@story
async def test_a_lost_attempt_store_is_no_licence(world: World) -> None:
    """A started key whose attempt records are gone is replayed, and one in doubt is not taken for new."""
    world.line.mute = True
    await world.chain().submit(command("started", task="elsewhere"))
    world.line.after = ConnectionError("reset by peer")
    await world.chain().submit(command())
    world.lose("attempts")
    world.clock.advance(LEASE)
    started = await world.chain().submit(command("started", task="elsewhere"))
    assert (started.reason, started.result) == (Reason.REPLAY, STARTED)
    doubted = await world.chain().submit(command())
    assert (doubted.outcome, doubted.reason) == (Outcome.HELD, Reason.IN_DOUBT)
    assert not doubted.healthy
    assert [order.key for order in world.line.orders] == ["started", "key"]


@story
async def test_a_damaged_result_is_not_made_up(world: World) -> None:
    """A result that cannot be read is none, and is reported; other records still say what came of the key."""
    await world.chain().submit(command())
    await world.chain().submit(command("stale", revision="r0"))
    world.damage("receipts", b'"started"', b'"stopped"')
    world.damage("receipts", b'"closed"', b'"opened"')
    for key, revision, outcome, line in (("key", "r1", Outcome.STARTED, 2), ("stale", "r0", Outcome.CLOSED, 4)):
        spot = world.spot("receipts", line, f"receipt 2 of {key}")
        for _ in range(2):
            answer = await world.chain().submit(command(key, revision=revision))
            assert (answer.outcome, answer.result) == (outcome, None)
            assert [str(finding) for finding in answer.findings] == [f"{spot}: corrupt"]
    assert await world.chain().recover() == ()
    assert world.effects == ["payload"]


@story
async def test_recovery_takes_up_everything(world: World) -> None:
    """What was accepted is started, what has ended is reconciled, what is closed stays closed."""
    chain = world.chain()
    await chain.submit(command("ended", task="1"))
    await world.ended("ended")
    world.office.wants = True
    for number in range(2, 5):
        await chain.submit(command(f"key {number}", number, task=str(number)))
    await chain.cancel("key 3")
    world.office.wants = False
    answers = await world.chain().recover()
    assert {answer.key: answer.reason for answer in answers} == {"key 2": Reason.CREATED, "key 4": Reason.CREATED}
    assert world.effects == ["payload", 2, 4]
    status = await chain.status("ended")
    assert status is not None
    assert status.attempt == "ended"
