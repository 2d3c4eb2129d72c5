"""An event loop that runs only what is ready, and only when told to: no time, no files, no threads.

The library's own asyncio tasks run on it unchanged. Everything they wait for outside of themselves is a gate (see
`gates`), so after each opened gate the loop comes to rest by itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


class StillLoop(asyncio.AbstractEventLoop):
    """Raises NotImplementedError, as the base class does, for anything that would reach for the real world."""

    def __init__(self) -> None:
        self._ready: deque[asyncio.Handle] = deque()
        self._tasks: list[asyncio.Task[Any]] = []
        self._running = False

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=name or "strand", context=context)
        self._tasks.append(task)
        return task

    def rest(self) -> None:
        """Run until nothing is ready."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        self._running = True
        try:
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            self._running = False
            asyncio._set_running_loop(before)

    def end(self) -> None:
        """Let every task end. Whoever lives in this loop must be cut off from the world first."""
        for _ in range(100):
            open_tasks = [task for task in self._tasks if not task.done()]
            if not open_tasks:
                break
            for task in open_tasks:
                task.cancel()
            self.rest()
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.exception()

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What a dead process's tasks complain of is nobody's concern; a live one's is seen in its result."""
