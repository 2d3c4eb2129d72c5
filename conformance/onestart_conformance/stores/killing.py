"""Real processes over one ledger, killed at random moments and at named points; effects are counted outside.

Everything runs in a process of its own, which has one thread, so that it may fork: workers come up in no time, and
their death concerns nobody else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from attrs import frozen

CONNINFO = "ONESTART_KILLS_CONNINFO"


@frozen
class Kills:
    """at_points: kills at named points, the others came at random moments. backends: of a server that were ended in a
    transaction. commands: that were accepted. starts: lines that started programs have left. ended: commands that have
    come to their end. second: keys that were started twice, or would have been if the executor did. lost: keys of which
    somebody was told that they had started, and that the ledger does not know. breaches: in words.
    """

    kills: int
    at_points: int
    backends: int
    commands: int
    starts: int
    ended: int
    second: int
    lost: int
    seconds: float
    breaches: tuple[str, ...]


def kill_all(ledger: str, kills: int, *, seed: int, report: Callable[[str, float], None], conninfo: str = "") -> Kills:
    """Kill so many workers over a ledger of this kind, then let another process bring everything to its end.

    conninfo: where PostgreSQL is, as psycopg takes it. It is handed over where nobody else reads it.
    """
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="onestart-kills-") as folder:
        command = [sys.executable, "-m", "onestart_conformance.stores.workers", ledger, folder, str(kills), str(seed)]
        environment = os.environ | {CONNINFO: conninfo}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:  # noqa: S603
            assert process.stdout is not None
            found: dict[str, Any] = {}
            for line in process.stdout:
                found = json.loads(line)
                report(f"{found['kills']:,} kills, {found['starts']:,} effects", found["kills"] / kills)
    breaches = tuple(found.get("breaches", ["nothing was told"]))
    if process.returncode:
        breaches += (f"the workers ended with {process.returncode}",)
    numbers = {
        name: found.get(name, 0)
        for name in ("kills", "at_points", "backends", "commands", "starts", "ended", "second", "lost")
    }
    return Kills(**numbers, seconds=time.monotonic() - start, breaches=breaches)
