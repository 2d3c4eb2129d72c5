"""A pool without processes of its own, where a test needs no others."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any


class AtOnce(Executor):
    """Workers that are this process."""

    def submit(self, function: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **more))
        return future
