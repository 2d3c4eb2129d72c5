"""Work for several processes, whose results do not depend on how many there are."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

JOBS = 2


@contextmanager
def processes(jobs: int = JOBS) -> Iterator[Executor]:
    """Workers that begin empty, so that nothing of this process takes part; unfinished work is dropped at the end.

    If this process is killed, they end with it. Functions and arguments that are submitted must be importable and
    picklable.
    """
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=end_with_parent)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def end_with_parent() -> None:
    """From now on this process ends when the one that has started it does, whatever it is at."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()
