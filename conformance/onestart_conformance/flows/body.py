"""A program as a flow that an author could have written: plain asyncio, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from attrs import frozen

from onestart.flow import Flow, Handle
from onestart.flow.steps import Step
from onestart_conformance.flows.program import (
    Block,
    Call,
    Caught,
    Fan,
    Part,
    Placed,
    Program,
    Saved,
    after_each,
    branch,
    inside,
)

CAUGHT = "caught"
NAME = "program"

Work = Callable[[], Coroutine[Any, Any, list[Any]]]


class Witness(Protocol):
    """Who is told of every call as the author sees it."""

    def asks(self, placed: Placed) -> None: ...

    def declared(self, placed: Placed, step: str) -> None: ...

    def awaits(self, placed: Placed) -> None: ...

    def received(self, placed: Placed, value: object) -> None: ...

    def raised(self, placed: Placed, error: Exception) -> None: ...


def flow_of(program: Program, witness: Witness) -> Flow:
    """The program as a flow."""
    author = Author(witness)

    async def body(f: Handle) -> Any:
        return await author.block(f, program.block, "")

    return Flow(NAME, body)


@frozen
class Author:
    """Runs blocks as they are written."""

    witness: Witness

    async def block(self, f: Handle, block: Block, start: str) -> list[Any]:
        return [await self._part(f, part, f"{start}{number}") for number, part in enumerate(block)]

    async def _part(self, f: Handle, part: Part, position: str) -> Any:
        match part:
            case Call():
                placed = Placed(position, part)
                return await self._await(placed, self._declare(f, placed))
            case Fan():
                return await self._fan(f, part, position)
            case Caught():
                try:
                    return await self.block(f, part.block, f"{position}!")
                except Exception:
                    return CAUGHT
            case Saved():
                placed = Placed(position, part.call)
                step = self._declare(f, placed)
                between = await self.block(f, part.block, f"{position}-")
                return [between, await self._await(placed, step)]

    def _declare(self, f: Handle, placed: Placed) -> Step:
        self.witness.asks(placed)
        try:
            step = self._called(f, placed.call, placed.position)
        except Exception as error:
            self.witness.raised(placed, error)
            raise
        self.witness.declared(placed, step.id)
        return step

    async def _await(self, placed: Placed, step: Step) -> Any:
        self.witness.awaits(placed)
        try:
            value = await step
        except Exception as error:
            self.witness.raised(placed, error)
            raise
        self.witness.received(placed, value)
        return value

    def _called(self, f: Handle, call: Call, position: str) -> Step:
        text = call.text
        match call.kind:
            case "run":
                return f.run([text])
            case "llm":
                return f.llm(text)
            case "agent":
                return f.agent(text)
            case "helper":
                return f.helper(text)
            case "mcp":
                return f.mcp("server", text)
            case "plugin":
                return f.plugin(text)
            case "memory":
                return f.memory.learn(text)
            case "on":
                return f.on(text)
            case "human":
                return f.human(text, to=call.to)
            case "hook":
                return self._hook(f, call, position)
            case _:
                return self._dispatch(f, call, position)

    def _hook(self, f: Handle, call: Call, position: str) -> Step:
        async def judge(f: Handle, _: object) -> str:
            await self.block(f, call.body, inside(position))
            return call.verdict

        return f.hook("check", judge, call.text)

    def _dispatch(self, f: Handle, call: Call, position: str) -> Step:
        async def child(f: Handle, _: str) -> Any:
            return await self.block(f, call.body, inside(position))

        return f.dispatch(Flow("child", child), call.text)

    async def _fan(self, f: Handle, fan: Fan, position: str) -> list[Any]:
        bodies = [partial(self.block, f, block, branch(position, number)) for number, block in enumerate(fan.branches)]
        match fan.how:
            case "gather":
                return list(await asyncio.gather(*(body() for body in bodies)))
            case "group":
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(body()) for body in bodies]
                return [task.result() for task in tasks]
            case "within":
                first, *others = bodies
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(body()) for body in others]
                    value = await first()
                return [value, *(task.result() for task in tasks)]
            case "tasks":
                tasks = [asyncio.create_task(body()) for body in bodies]
                return [await task for task in tasks]
            case "later":
                first, *others = bodies
                task = asyncio.create_task(first())
                values = [await body() for body in others]
                return [await task, *values]
            case "kept":
                first, *others = bodies
                kept = asyncio.gather(first())
                values = [await body() for body in others]
                return [*(await kept), *values]
            case _:
                return await self._as_they_end(f, fan, position, bodies)

    async def _as_they_end(self, f: Handle, fan: Fan, position: str, bodies: Sequence[Work]) -> list[Any]:
        async def numbered(number: int, body: Work) -> tuple[int, list[Any]]:
            return number, await body()

        values: dict[int, Any] = {}
        tasks = [asyncio.create_task(numbered(number, body)) for number, body in enumerate(bodies)]
        for ended in asyncio.as_completed(tasks):
            number, value = await ended
            follow = after_each(position, number)
            placed = Placed(follow.position, Call(fan.each, follow.call.label))
            values[number] = [value, await self._await(placed, self._declare(f, placed))]
        return [values[number] for number in sorted(values)]
