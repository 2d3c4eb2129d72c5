"""The standard scenarios: what is under way when a store fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import frozen

from onestart import Chain, Command
from onestart.flow import AGAIN, NEVER, Call, Flows, Handle, Known, Worker, flow
from onestart.ports import Order
from onestart.records import Attempt, Receipt, Record
from onestart_conformance.stores.stage import LEASE, Answered, Stage, command


@frozen
class Play:
    """commands: all that are submitted in it. before: what is done before anything fails. approvals: are wanted.

    resume: what the next process does beyond submitting them; says what it came to, or nothing if that is an end.
    """

    name: str
    statement: str
    commands: tuple[Command, ...]
    play: Callable[[Stage], Awaitable[None]]
    before: Callable[[Stage], Awaitable[None]] | None = None
    approvals: bool = False
    resume: Callable[[Stage], Awaitable[str]] | None = None


async def _submit(stage: Stage) -> None:
    await stage.submit(stage.chain(), command())


async def _replay(stage: Stage) -> None:
    await stage.submit(stage.chain(), command())


async def _two_keys(stage: Stage) -> None:
    chain = stage.chain()
    await stage.submit(chain, command("k1"))
    stage.engine.running.clear()
    await chain.reconcile("k1")
    await stage.submit(chain, command("k2"))


async def _doubt(stage: Stage) -> None:
    """The process before has died between intent and start."""
    stage.time.seconds += 2 * LEASE
    chain = stage.chain()
    await chain.recover()
    await stage.submit(chain, command())


async def _intend(stage: Stage) -> None:
    async def refuse(_: object) -> None:
        raise ConnectionError("nobody there")

    class Deaf:
        start = staticmethod(refuse)

    await stage.chain(executor=Deaf()).submit(command())


async def _cancel(stage: Stage) -> None:
    chain: Chain = stage.chain()
    await chain.cancel("k1")
    await chain.cancel("k2")


async def _one_started(stage: Stage) -> None:
    chain = stage.chain()
    await chain.submit(command("k1"))
    await chain.submit(command("k2"))


async def _approve(stage: Stage) -> None:
    chain = stage.chain()
    await stage.submit(chain, command())
    await chain.approve(command(), by="anna")
    await stage.submit(chain, command())


def _group(*records: Record) -> Callable[[Stage], Awaitable[None]]:
    """Steps that come at once; the first leads, and the others share what makes it durable."""

    async def play(stage: Stage) -> None:
        ledger = stage.ledger()
        await ledger.step(lambda view: (None, None))
        await asyncio.gather(*(ledger.step(lambda view, record=record: (record, None)) for record in records))  # type: ignore[misc]

    return play


async def _three_commands(stage: Stage) -> None:
    chain = stage.chain()
    await asyncio.gather(*(stage.submit(chain, command(f"k{number}", f"t{number}")) for number in (1, 2, 3)))


@flow
async def one_effect(f: Handle) -> Any:
    """A flow that does one thing."""
    return await f.llm("make it")


def _flows(stage: Stage) -> Flows:
    """An executor of effects that remembers what it has done, and can be asked."""

    async def make(call: Call) -> str:
        stage.engine.start(0, Order(call.key, call.key, 1))
        return "made"

    async def made(call: Call) -> object:
        return Known("made") if stage.engine.knows(call.key) else NEVER

    worker = Worker(make, in_flight="ask", look_up=made)
    return Flows(ledger=stage.ledger(), workers={"llm": worker}, clock=stage.time, lease_seconds=LEASE)


async def _flow(stage: Stage) -> None:
    outcome = await _flows(stage).run(one_effect, "root")
    stage.medium.mark(Answered("root", outcome.state))


async def _resume(stage: Stage) -> str:
    stage.time.seconds += 2 * LEASE
    flows = _flows(stage)
    outcome = await flows.run(one_effect, "root")
    for step in outcome.held:  # accepted, and its driver died before it began: an operator says that it did not
        stage.time.seconds += 2 * LEASE
        await flows.resolve("root", step, AGAIN, by="anna", why="the worker knows nothing of it")
        outcome = await flows.run(one_effect, "root")
    return (
        ""
        if (outcome.state, outcome.value) == ("completed", "made")
        else f"the flow is {outcome.state} for good {dict(outcome.held)}"
    )


def _of_a_task(number: int) -> Receipt:
    asked = command(f"k{number}")
    return Receipt(asked.key, asked.task, "pending", asked.fingerprint, asked.to_json())


def _receipt(number: int) -> Receipt:
    asked = command(f"k{number}", f"t{number}")
    return Receipt(asked.key, asked.task, "pending", asked.fingerprint, asked.to_json())


def _offer(number: int) -> Attempt:
    asked = command(f"k{number}", f"t{number}")
    return Attempt(asked.key, asked.task, "offered", asked.fingerprint)


_OF_A_TASK = tuple(command(f"k{number}") for number in (1, 2, 3))
_THREE = tuple(command(f"k{number}", f"t{number}") for number in (1, 2, 3))

PLAYS = (
    Play(
        "submit", "a command is submitted for the first time, to a ledger that is not there yet", (command(),), _submit
    ),
    Play("replay", "a command that has started is submitted again", (command(),), _replay, _submit),
    Play("two-keys", "two keys of a task, one after the other", (command("k1"), command("k2")), _two_keys),
    Play("doubt", "a key whose process died between intent and start is taken up", (command(),), _doubt, _intend),
    Play(
        "cancel",
        "one key is cancelled that runs, and one that waits",
        (command("k1"), command("k2")),
        _cancel,
        _one_started,
    ),
    Play("approval", "a command waits for its approval, and gets it", (command(),), _approve, None, True),
    Play("flow", "a flow with one effect", (), _flow, resume=_resume),
    Play("group", "three steps of one store in one group", _THREE, _group(*map(_receipt, (1, 2, 3)))),
    Play(
        "group-of-stores", "three steps of two stores in one group", _THREE, _group(_receipt(1), _offer(1), _receipt(2))
    ),
    Play("group-of-a-task", "three steps of one task at once", _OF_A_TASK, _group(*map(_of_a_task, (1, 2, 3)))),
    Play("commands-at-once", "three commands of three tasks at once", _THREE, _three_commands),
)


def play_named(name: str) -> Play:
    return next(play for play in PLAYS if play.name == name)
