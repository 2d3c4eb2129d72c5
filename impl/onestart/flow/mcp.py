"""The worker of `f.mcp`: tools of MCP servers that are programs of this machine, spoken to on their standard streams.

Needs the extra `mcp`. A tool that reports an error, and a server that cannot be started or asked, fail the step.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Event, Future, Task
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from attrs import define, field

from onestart.flow.definition import Call, InFlight, Worker
from onestart.flow.errors import BadFlowError
from onestart.flow.handle import is_text

try:
    from mcp import Client, MCPError, StdioServerParameters
    from mcp.types import CONNECTION_CLOSED
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"MCP servers need {error.name}: install it with  pip install 'onestart[mcp]'", name=error.name
    ) from None


class ToolFailedError(Exception):
    """The tool has reported an error; the message is what it said."""


class ServerFailedError(Exception):
    """The server cannot be started, or does not answer as it should."""


def servers(argv: Mapping[str, Sequence[str]], *, in_flight: InFlight = "hold") -> Worker:
    """A worker for `workers={"mcp": ...}`: by name, the programs that are servers, with their arguments.

    Each is started when one of its tools is called for the first time, has one session, and ends with the event loop;
    to end them sooner, use `Servers`. Raises BadFlowError for something that is no program with arguments.
    """
    return Servers(argv).worker(in_flight)


class Servers:
    """The same, for a program that wants to end the servers before its event loop ends: `async with Servers(...)`."""

    def __init__(self, argv: Mapping[str, Sequence[str]]) -> None:
        for name, words in argv.items():
            if isinstance(words, str) or not words or not all(map(is_text, words)):
                raise BadFlowError(f"the server {name!r} takes a list of texts with a program first, not {words!r}")
        self._argv = {name: list(words) for name, words in argv.items()}
        self._sessions: WeakKeyDictionary[AbstractEventLoop, dict[str, _Session]] = WeakKeyDictionary()

    def worker(self, in_flight: InFlight = "hold") -> Worker:
        """What carries out the steps. in_flight: as of any worker."""
        return Worker(self.call, in_flight=in_flight)

    async def call(self, call: Call) -> dict[str, Any]:
        """Call a tool. The result has its `content`, and what it gives as `structured`.

        Raises ToolFailedError, ServerFailedError.
        """
        server, tool = call.spec["server"], call.spec["tool"]
        session = self._session(server)
        try:
            client = await asyncio.shield(session.ready)
            result = await client.call_tool(tool, dict(call.spec["arguments"]))
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                self._forget(server)
                await session.close()
            raise ServerFailedError(f"{server}: {error.message}") from None
        except ServerFailedError:
            self._forget(server)
            raise
        content = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
        if result.is_error:
            raise ToolFailedError(f"{tool} of {server}: {_said(content)}")
        return {"content": content, "structured": result.structured_content}

    async def aclose(self) -> None:
        """End the servers that were started by this event loop."""
        for session in self._sessions.pop(asyncio.get_running_loop(), {}).values():
            await session.close()

    async def __aenter__(self) -> Servers:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    def _session(self, name: str) -> _Session:
        if name not in self._argv:
            raise ServerFailedError(f"there is no server {name!r}; known: {', '.join(self._argv) or 'none'}")
        sessions = self._sessions.setdefault(asyncio.get_running_loop(), {})
        if name not in sessions or sessions[name].ended:
            sessions[name] = _Session(name, self._argv[name])
        return sessions[name]

    def _forget(self, name: str) -> None:
        self._sessions.get(asyncio.get_running_loop(), {}).pop(name, None)


@define(eq=False)
class _Session:
    """A server under way, in a task of its own: who opens its streams has to close them."""

    name: str
    argv: list[str]
    ready: Future[Client] = field(factory=lambda: asyncio.get_running_loop().create_future())
    _stop: Event = field(factory=Event)
    _task: Task[None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._live())

    @property
    def ended(self) -> bool:
        return self._task.done()

    async def close(self) -> None:
        self._stop.set()
        await asyncio.wait([self._task])

    async def _live(self) -> None:
        program, *arguments = self.argv
        try:
            async with Client(StdioServerParameters(command=program, args=arguments)) as client:
                self.ready.set_result(client)
                await self._stop.wait()
        except Exception as error:
            if not self.ready.done():
                self.ready.set_exception(ServerFailedError(f"{self.name} cannot be started: {_innermost(error)}"))
        finally:
            self.ready.cancel()


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _said(content: Sequence[Mapping[str, Any]]) -> str:
    return " ".join(str(block["text"]) for block in content if "text" in block) or "an error without words"
