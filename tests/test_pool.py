"""Workers of a check: they do not outlive it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

PARENT = """
import multiprocessing, os, sys
from onestart_report.pool import processes
sys.path.insert(0, {here!r})
from test_pool import stay
if __name__ == "__main__":
    with processes(1) as pool:
        pool.submit(stay).result()
"""


def stay() -> None:
    """Tell who one is, and never return."""
    os.write(1, b"%d\n" % os.getpid())
    signal.pause()


def test_a_worker_ends_with_a_parent_that_is_killed(tmp_path: os.PathLike[str]) -> None:
    """It would go on with what it is at, for hours in a deep profile, and nobody would hear of it."""
    script = os.path.join(tmp_path, "parent.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PARENT.format(here=os.path.dirname(__file__)))
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
        ended, _, _ = select.select([parent.stdout], [], [], 60)  # readable when nobody is left who could write
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
        assert ended
