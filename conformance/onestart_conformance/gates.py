"""Gates: every call to the outside waits at one until the driver opens it. Between two gates a strand runs alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from attrs import define, field

from onestart_conformance.loop import StillLoop

T = TypeVar("T")

SUBMISSION: ContextVar[int] = ContextVar("submission", default=0)

LEDGER = "ledger"
RULE = "rule"
START = "start"
LOOK_UP = "look_up"
RUNNING = "running"
STOP = "stop"
SLEEP = "sleep"


class ProcessDied(BaseException):
    """The process has died at this point; nothing that it would still do reaches the world."""


@define(eq=False)
class Gate:
    """A call that waits. submission: the number of the submission that it belongs to. subject: key or task."""

    node: int
    submission: int
    kind: str
    subject: str
    future: asyncio.Future[Any] = field(repr=False)
    until: float = 0.0


class Gates:
    """The gates of one simulated process. Closed for good once the process is dead."""

    def __init__(self, loop: StillLoop, node: int) -> None:
        self._loop = loop
        self._node = node
        self.waiting: list[Gate] = []
        self.dead = False

    async def passed(self, kind: str, subject: str = "", until: float = 0.0) -> Any:
        """Wait for the driver. Returns what the driver opens the gate with, or raises it if it is an exception."""
        if self.dead:
            raise ProcessDied
        gate = Gate(self._node, SUBMISSION.get(), kind, subject, self._loop.create_future(), until)
        self.waiting.append(gate)
        try:
            answer = await gate.future
        finally:
            if gate in self.waiting:
                self.waiting.remove(gate)
        if self.dead:
            raise ProcessDied
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def run(self, function: Callable[[], T]) -> T:
        """Pass a gate, then do it at once: how a ledger runs its work here."""
        await self.passed(LEDGER)
        return function()

    def open(self, gate: Gate, answer: Any = None) -> None:
        """Let the call go on, and everything that follows from it up to the next gates."""
        self.waiting.remove(gate)
        gate.future.set_result(answer)
        self._loop.rest()

    def die(self) -> None:
        """Close every gate for good."""
        self.dead = True
        self.waiting.clear()
