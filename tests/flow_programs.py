"""Flows of every shape, for tests of what their journals are; and runs of them to the end, answering what they ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from onestart.flow import Call, Flow, Flows, Handle, Outcome, StepFailedError, Worker, flow
from onestart.memory import MemoryLedger
from onestart.records import Step

ROOT = "root"


async def echo(call: Call) -> Any:
    if call.spec.get("prompt") == "fail":
        raise RuntimeError("as asked")
    for _ in range(int(call.spec.get("turns", 0))):
        await asyncio.sleep(0)
    return dict(call.spec)


WORKERS: Mapping[str, Worker] = {
    kind: Worker(echo, in_flight="again") for kind in ("run", "llm", "agent", "helper", "mcp", "plugin", "memory", "on")
}


@flow
async def nothing(f: Handle) -> None:
    pass


@flow
async def serial(f: Handle) -> Any:
    await f.run(["a"])
    await f.llm("b")
    await f.memory.learn("c")
    return await f.human("d?", to="anna")


@flow
async def gathered(f: Handle) -> Any:
    async def branch(name: str, turns: int) -> Any:
        await f.llm(name, turns=turns)
        return await f.run([name])

    await asyncio.gather(branch("x", 3), branch("y", 0), f.human("z?"))
    return await f.run(["after"])


@flow
async def grouped(f: Handle) -> Any:
    async def branch(name: str) -> Any:
        await f.llm(name)
        await f.agent(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(branch("x"))
        group.create_task(branch("y"))
    return await f.run(["after"])


@flow
async def awaited(f: Handle) -> Any:
    async def one() -> Any:
        return await f.llm("in a task")

    await f.run(["before"])
    task = asyncio.create_task(one())
    await task
    first, second = f.run(["1"]), f.run(["2"])
    await second
    await first
    return await f.run(["last"])


@flow
async def nested(f: Handle) -> Any:
    async def inner(name: str) -> Any:
        return await asyncio.gather(f.llm(name), f.run([f"{name} run"]))

    async def outer(name: str) -> Any:
        await asyncio.gather(inner(f"{name}1"), inner(f"{name}2"))
        return await f.helper(name)

    await asyncio.gather(outer("x"), outer("y"))
    await asyncio.gather(outer("u"))


@flow
async def child(f: Handle, name: str) -> Any:
    await asyncio.gather(f.llm(name), f.run([f"{name} run"]))
    return await f.human(f"{name}?")


@flow
async def parent(f: Handle) -> Any:
    async def grandchild(name: str) -> Any:
        return await f.dispatch(child, name)

    await asyncio.gather(grandchild("x"), grandchild("y"), f.run(["z"]))
    return await f.dispatch(serial)


async def judge(f: Handle, given: Any) -> str:
    await f.llm(given)
    await asyncio.gather(f.run(["run in a hook"]), f.helper("helper in a hook"))
    return "pass"


@flow
async def hooked(f: Handle) -> Any:
    await f.run(["before"])
    await f.hook("judge", judge, "it")
    await asyncio.gather(f.hook("judge", judge, "this"), f.run(["beside"]))
    return await f.human("sure?")


@flow
async def failing(f: Handle) -> Any:
    async def branch(name: str) -> Any:
        await f.run([name])
        return await f.llm(name)

    with suppress(StepFailedError):
        await asyncio.gather(branch("x"), branch("fail"), branch("y"))
    with suppress(StepFailedError):
        await f.llm("fail")
    return await f.run(["after"])


@flow
async def raced(f: Handle) -> Any:
    async def branch(name: str, turns: int) -> Any:
        return await f.llm(name, turns=turns)

    tasks = [asyncio.create_task(branch("x", 2)), asyncio.create_task(branch("y", 0))]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await f.run(["counted"])
    await asyncio.gather(*tasks)
    await f.hook("judge", judge, "counted")
    return await f.dispatch(child, "counted")


@flow
async def raising(f: Handle) -> Any:
    await f.run(["before"])
    raise ValueError("the body's own")


@flow
async def unawaited(f: Handle) -> Any:
    async def late() -> Any:
        for _ in range(60):
            await asyncio.sleep(0)
        await f.run(["late"])

    call = f.run(["never"])
    task = asyncio.create_task(late())
    await f.run(["before"])
    call.close()
    return task is None


PROGRAMS: tuple[Flow, ...] = (
    nothing,
    serial,
    gathered,
    grouped,
    awaited,
    nested,
    parent,
    hooked,
    failing,
    raced,
    raising,
    unawaited,
)


def flows(ledger: MemoryLedger, version: int) -> Flows:
    return Flows(ledger=ledger, workers=WORKERS, identity=version)


async def to_the_end(program: Flow, ledger: MemoryLedger, version: int) -> Outcome:
    """Resumed and answered until nothing is left to be asked."""
    library = flows(ledger, version)
    while (outcome := await library.run(program, ROOT)).state == "parked":
        for question in outcome.waits:
            await library.answer(ROOT, question.wait, "yes", by="anna")
    return outcome


def journal(ledger: MemoryLedger) -> list[Step]:
    return [record for record in ledger.records if isinstance(record, Step)]


def run(program: Flow, version: int, change: Callable[[MemoryLedger], None] | None = None) -> list[Step]:
    """The journal of a whole run. change: something that happens to the ledger before."""
    ledger = MemoryLedger()
    if change is not None:
        change(ledger)
    asyncio.run(to_the_end(program, ledger, version))
    return journal(ledger)
