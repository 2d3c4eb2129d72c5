"""A still loop for flows: tasks come from its task factory, and time is virtual."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextvars import Context
from itertools import count
from typing import Any, TypeVar

from onestart_conformance.loop import StillLoop

T = TypeVar("T")


class FlowLoop(StillLoop):
    """What gather, TaskGroup, wait_for and as_completed need. Timers go off when `pass_time` says so."""

    def __init__(self) -> None:
        super().__init__()
        self._factory: Any = None
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self._time = 0.0

    def set_task_factory(self, factory: Any) -> None:
        self._factory = factory

    def get_task_factory(self) -> Any:
        return self._factory

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        if self._factory is None:
            return asyncio.Task(coro, loop=self, name=name or "driver", context=context)
        options: dict[str, Any] = {} if context is None else {"context": context}
        task: asyncio.Task[T] = self._factory(self, coro, **options)
        return task

    def time(self) -> float:
        return self._time

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._time + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def _timer_handle_cancelled(self, timer: asyncio.TimerHandle) -> None:
        """A cancelled timer stays where it is, and does nothing when its time comes."""

    def pass_time(self) -> bool:
        """Let the time of the next timer come. False if there is none."""
        while self._timers:
            when, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled():
                self._time = max(self._time, when)
                self._ready.append(timer)
                return True
        return False

    def end(self) -> None:
        """Let every task end. Whoever lives in this loop must be cut off from the world first."""
        for _ in range(100):
            tasks = asyncio.all_tasks(self)
            if not tasks:
                return
            for task in tasks:
                task.cancel()
            self.rest()
