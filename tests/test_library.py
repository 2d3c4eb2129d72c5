"""The library as its users meet it: what a submission is answered with, and what was really executed by then."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from library_world import LEASE, World, command, story
from onestart import BadCommandError, NothingToDoError, Outcome, Reason, Result
from onestart.executors import CANCELLED, CommandExecutor
from stores import KINDS, store

STARTED = Result(Outcome.STARTED, Reason.CREATED)
STORES = ("receipts", "attempts", "sessions", "leases")
FALSY: tuple[Any, ...] = (0, False, "", None, [], {}, 0.0, "0", [None])


@pytest.fixture(params=KINDS)
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    kept = store(request.param, tmp_path, request)
    yield World(tmp_path, kept)
    kept.close()


@story
async def test_a_command_starts_once_and_is_replayed(world: World) -> None:
    """Submitted again, in this process or another, a command gets its recorded result and is not executed again."""
    chain = world.chain()
    first = await chain.submit(command())
    assert (first.outcome, first.reason, first.result) == (Outcome.STARTED, Reason.CREATED, STARTED)
    assert first.healthy
    for again in (chain, world.chain()):
        answer = await again.submit(command())
        assert (answer.outcome, answer.reason, answer.result) == (Outcome.STARTED, Reason.REPLAY, STARTED)
    assert world.effects == ["payload"]
    assert world.events[-1].action == "replay"


@pytest.mark.parametrize(
    "other", [{"actor": "eve"}, {"payload": "other"}, {"function": "wait"}, {"task": "elsewhere"}, {"round": 1}]
)
@story
async def test_a_key_is_bound_to_its_command(world: World, other: dict[str, Any]) -> None:
    """The same key for anything else is turned away: while the first is pending, and when it has started."""
    chain = world.chain()
    world.office.wants = True
    assert (await chain.submit(command())).reason is Reason.APPROVAL_REQUIRED
    pending = await chain.submit(command(**other))
    world.office.wants = False
    assert (await chain.submit(command())).outcome is Outcome.STARTED
    started = await chain.submit(command(**other))
    for answer in (pending, started):
        assert (answer.outcome, answer.reason, answer.result) == (Outcome.TURNED_AWAY, Reason.CONFLICT, None)
    assert world.effects == ["payload"]
    assert (
        await chain.submit(command(revision="r2"))
    ).reason is Reason.REPLAY  # a revision is no part of what is asked


def test_falsy_payloads_are_different_commands() -> None:
    """Nothing, zero, false and the empty ones are told apart, so none replays the result of another."""
    assert len({command(payload=payload).fingerprint for payload in FALSY}) == len(FALSY)
    assert command(payload={"a": 1, "b": 2}).fingerprint == command(payload={"b": 2, "a": 1}).fingerprint


@story
async def test_a_falsy_payload_is_executed_and_replayed_as_it_is(world: World) -> None:
    """A payload that is empty is not taken for a missing one, not by the executor and not after a restart."""
    world.office.wants = True
    for number, payload in enumerate(FALSY):
        await world.chain().submit(command(f"key {number}", payload, task=f"task {number}"))
    world.office.wants = False
    assert {answer.reason for answer in await world.chain().recover()} == {Reason.CREATED}
    assert [repr(effect) for effect in world.effects] == [repr(payload) for payload in FALSY]


@story
async def test_a_payload_that_is_changed_later_changes_nothing(world: World) -> None:
    """A command keeps its payload, whatever its maker or the function does to that; else it is in its own way."""
    payload = {"amount": 1}
    asked = command(payload=payload)
    world.line.after = RuntimeError("the reply was lost")
    chain = world.chain()
    await chain.submit(asked)
    payload["amount"] = 2
    world.effects[0].clear()  # the function changes what it was given
    world.clock.advance(LEASE)
    assert (await chain.submit(asked)).outcome is Outcome.STARTED
    assert (await chain.submit(command(payload={"amount": 1}))).reason is Reason.REPLAY


@pytest.mark.parametrize("revision", ["r2", ""])
@story
async def test_a_stale_command_is_refused_for_good(world: World, revision: str) -> None:
    """The refusal is on record before it is told, so the command does not start when its revision is in force again."""
    chain = world.chain()
    world.office.revision = revision
    refused = await chain.submit(command())
    closed = Result(Outcome.CLOSED, Reason.STALE_REVISION)
    assert (refused.outcome, refused.reason, refused.result) == (Outcome.CLOSED, Reason.STALE_REVISION, closed)
    world.office.revision = "r1"
    again = await world.chain().submit(command())
    assert (again.outcome, again.reason, again.result) == (Outcome.CLOSED, Reason.REPLAY, closed)
    assert await world.chain().recover() == ()
    assert world.effects == []
    assert (await chain.submit(command("another"))).outcome is Outcome.STARTED


@story
async def test_a_command_that_became_stale_while_it_waited_is_refused(world: World) -> None:
    """Governance is asked again at each submission: what was accepted under an old revision does not start."""
    chain = world.chain()
    world.office.error = OSError("no route")
    held = await chain.submit(command())
    assert (held.outcome, held.reason, held.detail) == (Outcome.HELD, Reason.GOVERNANCE_UNAVAILABLE, "OSError")
    world.office.error, world.office.revision = None, "r2"
    assert (await chain.submit(command())).reason is Reason.STATE_ADVANCED
    world.office.revision = "r1"
    assert (await chain.submit(command())).outcome is Outcome.CLOSED
    assert world.effects == []


@story
async def test_a_governance_that_fails_starts_nothing_and_loses_nothing(world: World) -> None:
    """A failure is no consent; the command is accepted and starts once governance answers, at the next recovery too."""
    world.office.error = RuntimeError("down")
    assert (await world.chain().submit(command())).reason is Reason.GOVERNANCE_UNAVAILABLE
    assert world.effects == []
    world.office.error = None
    assert [answer.reason for answer in await world.chain().recover()] == [Reason.CREATED]
    assert world.effects == ["payload"]


@story
async def test_an_approval_is_of_this_very_command(world: World) -> None:
    """Without an approval, or with one of another command under the same key, nothing starts."""
    chain = world.chain()
    world.office.wants = True
    assert (await chain.submit(command())).reason is Reason.APPROVAL_REQUIRED
    await chain.approve(command(payload="other"), by="ann")
    assert (await chain.submit(command())).reason is Reason.APPROVAL_STALE
    await chain.approve(command(actor="eve"), by="ann")
    assert (await chain.submit(command())).reason is Reason.APPROVAL_STALE
    assert world.effects == []
    await chain.approve(command(), by="ann")
    assert (await chain.submit(command())).reason is Reason.CREATED
    assert world.effects == ["payload"]


@story
async def test_a_damaged_approval_is_no_approval(world: World) -> None:
    """It is reported, nothing starts on it, and an approval that is filed anew, beside it, counts."""
    world.office.wants = True
    await world.chain().approve(command(), by="ann")
    world.damage("approvals", b'"ann"', b'"eve"')
    answer = await world.chain().submit(command())
    assert (answer.outcome, answer.reason) == (Outcome.HELD, Reason.APPROVALS_CORRUPT)
    assert [str(finding) for finding in answer.findings] == [
        world.spot("approvals", 1, "approval 1 of key") + ": corrupt"
    ]
    assert world.effects == []
    await world.chain().approve(command(), by="ann")
    assert (await world.chain().submit(command())).outcome is Outcome.STARTED


@story
async def test_a_cancelled_command_never_starts_and_a_new_one_may(world: World) -> None:
    """Cancelled before its start, a key stays closed whatever is approved, submitted or recovered afterwards."""
    chain = world.chain()
    world.office.wants = True
    await chain.submit(command())
    cancelled = await chain.cancel("key")
    closed = Result(Outcome.CLOSED, Reason.CANCELLED)
    assert (cancelled.outcome, cancelled.reason, cancelled.result) == (Outcome.CLOSED, Reason.CANCELLED, closed)
    await chain.approve(command(), by="ann")
    world.office.wants = False
    for other in (chain, world.chain()):
        assert (await other.submit(command())).result == closed
        assert await other.recover() == ()
    assert (await chain.cancel("key")).result == closed
    assert world.effects == []
    assert (await chain.submit(command("new"))).outcome is Outcome.STARTED


@story
async def test_a_running_command_is_asked_to_stop(world: World) -> None:
    """Cancelling what runs stops it and keeps its result: it has started, and that does not change."""
    chain = world.chain()
    await chain.submit(command(function="wait"))
    cancelled = await chain.cancel("key")
    assert (cancelled.outcome, cancelled.reason, cancelled.result) == (Outcome.STARTED, Reason.CANCELLED, STARTED)
    await world.ended("key")
    assert await chain.reconcile("key")
    assert (await chain.submit(command(function="wait"))).result == STARTED
    assert (await chain.cancel("key")).result == STARTED
    assert world.actions().count("stopped") == 1
    assert await world.functions.outcome("key") == CANCELLED


@story
async def test_cancelling_what_is_over_or_unknown(world: World) -> None:
    """A command that has ended keeps its result; a key without a record is turned away, and stays free."""
    chain = world.chain()
    await chain.submit(command())
    await world.ended("key")
    assert await chain.reconcile("key")
    assert (await chain.cancel("key")).result == STARTED
    unknown = await chain.cancel("nobody")
    assert (unknown.outcome, unknown.reason) == (Outcome.TURNED_AWAY, Reason.UNKNOWN_KEY)
    assert not await chain.reconcile("nobody")
    assert (await chain.submit(command("nobody"))).outcome is Outcome.STARTED


@story
async def test_a_task_executes_one_command_at_a_time(world: World) -> None:
    """A second one is held while the first runs, also when the first one's lease has run out, and starts after it."""
    chain = world.chain()
    await chain.submit(command(function="wait"))
    assert (await chain.submit(command("second"))).reason is Reason.LEASE_CONFLICT
    assert not await chain.reconcile("key")
    world.clock.advance(LEASE)
    assert (await chain.submit(command("second"))).reason is Reason.TASK_BUSY
    assert (await chain.submit(command("third", task="elsewhere"))).outcome is Outcome.STARTED
    world.ending.set()
    await world.ended("key")
    assert await chain.reconcile("key")
    second = await chain.submit(command("second"))
    assert (second.outcome, second.reason) == (Outcome.STARTED, Reason.CREATED)
    assert [order.token for order in world.line.orders if order.task == "task"] == [1, 2]


@story
async def test_whoever_is_next_reconciles(world: World) -> None:
    """A task is not left occupied by a command that has ended, even if nobody said so."""
    chain = world.chain()
    await chain.submit(command())
    await world.ended("key")
    assert (await chain.submit(command("second"))).reason is Reason.CREATED
    status = await chain.status("key")
    assert status is not None
    assert (status.attempt, status.started, status.in_doubt, status.result) == ("ended", True, False, STARTED)


@pytest.mark.parametrize("processes", [1, 3, 8])
@story
async def test_eight_submissions_at_once_start_once(world: World, processes: int) -> None:
    """However they race, in one process or over one folder, one of them starts the command and no answer denies it."""
    chains = [world.chain() for _ in range(processes)]
    answers = await asyncio.gather(*(chains[number % processes].submit(command()) for number in range(8)))
    assert world.effects == ["payload"]
    assert [order.key for order in world.line.orders] == ["key"]
    assert [answer.reason for answer in answers].count(Reason.CREATED) == 1
    assert {answer.result for answer in answers} <= {STARTED, None}
    assert {answer.outcome for answer in answers} <= {Outcome.STARTED, Outcome.HELD}
    assert {answer.reason for answer in answers if answer.outcome is Outcome.HELD} <= {Reason.LEASE_CONFLICT}
    assert processes > 1 or {answer.outcome for answer in answers} == {Outcome.STARTED}


@story
async def test_programs_submitted_at_once_start_once(world: World) -> None:
    """The same with processes of the operating system, each chain with an executor of its own."""
    payload = {"argv": ["sh", "-c", "echo started >> effects"], "cwd": str(world.folder)}
    executors = [CommandExecutor(world.folder / "programs", clock=world.clock) for _ in range(2)]
    chains = [world.chain(executor=executor) for executor in executors]
    asked = command(payload=payload)
    answers = await asyncio.gather(*(chains[number % 2].submit(asked) for number in range(4)))
    starter = [answer.reason for answer in answers].index(Reason.CREATED) % 2
    assert await executors[starter].wait("key") == 0
    assert (world.folder / "effects").read_text() == "started\n"
    assert await chains[1 - starter].reconcile("key")
    assert (await chains[1 - starter].submit(asked)).reason is Reason.REPLAY
    assert await executors[1 - starter].outcome("key") == 0


@story
async def test_a_submission_outlives_whoever_waits_for_it(world: World) -> None:
    """Cancelling the waiting task leaves no half-done submission behind: it goes on to its end, and is remembered."""
    chain = world.chain()
    world.line.held = asyncio.Event()
    waiting = asyncio.ensure_future(chain.submit(command()))
    await world.seen("note")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    world.line.held.set()
    await chain.aclose()
    assert world.actions()[-2:] == ["record", "report_dispatched"]
    assert (await chain.submit(command())).reason is Reason.REPLAY
    assert world.effects == ["payload"]


@story
async def test_events_tell_each_step_in_order(world: World) -> None:
    """Every durable or external step, once, with its layer, and with the token from the claim on."""
    chain = world.chain(process="p1")
    await chain.submit(command())
    await world.ended("key")
    await chain.reconcile("key")
    told = [(event.action, event.layer, event.token) for event in world.events]
    assert told == [
        ("accept", "bytes", 0),
        ("ruled", "read", 0),
        ("enter", "callback", 0),
        ("offer", "attempt", 0),
        ("claim", "attempt", 1),
        ("intend", "attempt", 1),
        ("note", "attempt", 1),
        ("start", "start", 1),
        ("record", "attempt", 1),
        ("report_dispatched", "read", 1),
        ("reconcile", "attempt", 0),
        ("release", "attempt", 0),
    ]
    assert {(event.process, event.key, event.task, event.fingerprint) for event in world.events} == {
        ("p1", "key", "task", command().fingerprint)
    }
    orders = [event.order for event in world.events]
    assert orders == sorted(orders)
    assert orders[-1] == sum(len(world.lines(name)) for name in STORES)


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else []


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"key": ""}, "the key must be a text that is not empty, not ''"),
        ({"key": 7}, "the key must be a text that is not empty, not 7"),
        ({"key": "x" * 513}, "the key has 513 characters; 512 are allowed"),
        ({"key": "a\nb"}, r"the key 'a\nb' has characters that cannot be printed"),
        ({"task": "a\x1b[2J"}, r"the task 'a\x1b[2J' has characters that cannot be printed"),
        ({"function": "\ud800"}, r"the function '\ud800' has characters that cannot be printed"),
        ({"actor": None}, "the actor must be a text that is not empty, not None"),
        ({"revision": ""}, "the revision must be a text that is not empty, not ''"),
        ({"round": -1}, "round must be a whole number from 0 on, not -1"),
        ({"round": True}, "round must be a whole number from 0 on, not True"),
        ({"payload": math.nan}, "the payload must be JSON: nan is no number of JSON"),
        ({"payload": [{"a": -math.inf}]}, "the payload must be JSON: -inf is no number of JSON"),
        ({"payload": {"a": (1, 2)}}, "the payload must be JSON: tuple is no JSON"),
        ({"payload": {1: 2}}, "the payload must be JSON: an object's names are texts"),
        ({"payload": b"bytes"}, "the payload must be JSON: bytes is no JSON"),
        (
            {"payload": nested(101)},
            "the payload must be JSON: it is nested more than 100 deep",
        ),
        ({"payload": 10**5000}, "the payload must be JSON: Exceeds the limit"),
        ({"payload": "x" * (1 << 20)}, "the payload takes 1048578 bytes; keep it below 1048576 and pass a reference"),
    ],
)
def test_a_bad_command_says_what_to_do(fields: dict[str, Any], says: str) -> None:
    """What could not be recorded, shown or told apart is refused before anything is written, in words."""
    with pytest.raises(BadCommandError) as caught:
        command(**fields)
    assert str(caught.value).startswith(says)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan, math.inf])
def test_a_lease_has_an_end_that_can_be_recorded(world: World, seconds: float) -> None:
    """A lease that never ends would lock its task for good; one that has ended at once keeps nobody out."""
    with pytest.raises(ValueError, match="lease_seconds must be above 0 and finite"):
        world.chain(lease_seconds=seconds)


@story
async def test_bad_names_are_refused_by_every_entrance(world: World) -> None:
    """A key, task or name from outside is checked before the ledger is asked, and an unknown key is told apart."""
    chain = world.chain()
    for bad in ("", "a\0b", "x" * 600):
        for entrance in (chain.cancel(bad), chain.reconcile(bad), chain.repair_lease(bad)):
            with pytest.raises(BadCommandError):
                await entrance
        with pytest.raises(BadCommandError):
            await chain.approve(command(), by=bad)
        with pytest.raises(BadCommandError):
            await chain.settle("key", by=bad, why="")
    with pytest.raises(BadCommandError, match="no record has this key"):
        await chain.settle("key", by="ann", why="")
    with pytest.raises(NothingToDoError, match="the lease can be read"):
        await chain.repair_lease("task")
    assert await chain.status("key") is None
    assert not world.lines("approvals")


def test_what_could_never_start_is_not_accepted(tmp_path: Path) -> None:
    """A function that there is not would leave its task in doubt for good, so nothing of it is recorded."""

    from onestart import BadCommandError, Chain, Command
    from onestart.executors import CallableExecutor
    from onestart.jsonl import JsonlLedger

    async def go() -> None:
        chain = Chain(ledger=JsonlLedger(tmp_path / "ledger"), executor=CallableExecutor(None, {}))
        with pytest.raises(BadCommandError, match="there is no function 'fly'"):
            await chain.submit(Command(key="k", task="t", function="fly"))
        assert await chain.status("k") is None

    asyncio.run(go())
