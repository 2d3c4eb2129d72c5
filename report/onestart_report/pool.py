"""Work for several processes, whose results do not depend on how many there are."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

JOBS = 2


@contextmanager
def processes(jobs: int = JOBS) -> Iterator[Executor]:
    """Workers that begin empty, so that nothing of this process takes part; unfinished work is dropped at the end.

    Functions and arguments that are submitted must be importable and picklable.
    """
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
