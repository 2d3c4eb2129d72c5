"""The library and its drives: steps a second, the monitor's share, how soon faults are found, what `run` costs.

Ratios are measured in one run, interleaved, and the smaller of several times is taken. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from onestart_conformance.campaign import campaign
from onestart_conformance.faults import FAULTS
from onestart_conformance.hunts import hunt
from onestart_conformance.monitor import Monitor
from onestart_conformance.moves import Move, take
from onestart_conformance.rules import Rules
from onestart_conformance.standard import bound_named, chain
from onestart_conformance.systematic import walk
from onestart_conformance.walks import walked
from onestart_conformance.world import World
from onestart_report.pool import processes

BARE = """
import os, subprocess, sys
folder, syncs = sys.argv[1], int(sys.argv[2])
for n in range(syncs):
    d = os.open(folder + "/bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(d, b"x" * 200)
    os.fsync(d)
    os.close(d)
subprocess.run(["true"], check=True)
"""
IMPORTS = "import asyncio, attrs, click\n"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=len(FAULTS), help="how many of the seeded faults")
    options = parser.parse_args()
    rows = [("random drive, steps of the library a second", f"{random_drive():,.0f}")]
    rows.append(("systematic drive, steps of the library a second", f"{systematic_drive():,.0f}"))
    rows.append(("the same, two at a time", f"{systematic_drives():,.0f}"))
    bare, watched = monitored()
    rows.append(("the monitor, of the time without it", f"{(watched - bare) / bare:.0%}"))
    seconds = [hunt(name, seed=0, examples=2000).seconds for name in list(FAULTS)[: options.faults]]
    rows.append((f"{len(seconds)} seeded faults, median", f"{statistics.median(seconds):.2f} s"))
    rows += run_true()
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {value}")


def random_drive() -> float:
    """Gates opened a second by the random drive, with the monitor and all other judges."""
    start = time.perf_counter()
    done = campaign(Rules(chain()), number=0, examples=300)
    return done.tally.gates / (time.perf_counter() - start)


def systematic_drive() -> float:
    """Gates opened a second by the systematic drive."""
    bound = bound_named("alone")
    start = time.perf_counter()
    done = walk(Rules(bound.instance()), most=30_000, kinds=bound.kinds)
    return done.gates / (time.perf_counter() - start)


def systematic_drives() -> float:
    """The same for two drives at a time, in two processes, as a check runs them."""
    with processes(2) as pool:
        for ready in [pool.submit(walked, "pair", 100) for _ in range(2)]:
            ready.result()
        start = time.perf_counter()
        drives = [pool.submit(walked, "alone", 30_000) for _ in range(2)]
        gates = sum(drive.result().coverage.gates for drive in drives)
        return gates / (time.perf_counter() - start)


def monitored() -> list[float]:
    """The same moves without the monitor and with it."""
    moves = [Move("call", (0, "submit", "key1", 0))]
    for kind in ("ledger", "rule", "ledger", "ledger", "ledger", "ledger", "ledger", "start", "ledger", "ledger"):
        moves.append(Move("open", (0, "submit key1", kind, 0, "in force" if kind == "rule" else "go")))
    rules = Rules(chain())

    def run() -> None:
        for _ in range(200):
            world = World(rules)
            for move in moves:
                assert take(world, move)
            world.end()

    def blind() -> None:
        nothing = mock.DEFAULT
        with mock.patch.multiple(Monitor, observe=nothing, asked=nothing):
            run()

    return best_of(blind, run)


def run_true() -> list[tuple[str, str]]:
    """`onestart run` of true, beside a bare process that does as many fsyncs and starts true."""
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("BENCH_FOLDER", ".")))
    number = iter(range(1_000_000))
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    onestart = Path(sys.executable).parent / "onestart"

    def ours() -> None:
        key = f"key-{next(number)}"
        command = [str(onestart), "run", key, "--ledger", str(folder / "ledger"), "--", "true"]
        subprocess.run(command, check=True, env=environment)

    def bare(code: str) -> Callable[[], None]:
        def run() -> None:
            subprocess.run([sys.executable, "-c", code, str(folder), str(syncs)], check=True, env=environment)

        return run

    try:
        ours()
        syncs = counted(onestart, folder, environment)
        plain, imported, run = best_of(bare(BARE), bare(IMPORTS + BARE), ours, times=9)
    finally:
        shutil.rmtree(folder)
    return [
        (f"onestart run true, of {syncs} bare fsyncs and a Python that starts true", f"{run / plain:.2f} x"),
        ("the same, of a Python that has imported asyncio, attrs and click", f"{run / imported:.2f} x"),
    ]


def counted(onestart: Path, folder: Path, environment: dict[str, str]) -> int:
    """How many fsyncs a run takes, by strace; 23 if there is none."""
    if shutil.which("strace") is None:
        return 23
    command = [str(onestart), "run", "counted", "--ledger", str(folder / "ledger"), "--", "true"]
    trace = ["strace", "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", str(folder / "strace")]
    subprocess.run([*trace, *command], check=True, env=environment)
    lines = (folder / "strace").read_text().splitlines()
    return sum(int(line.split()[3]) for line in lines if line.endswith(("fsync", "fdatasync")))


def best_of(*functions: Callable[[], None], times: int = 5) -> list[float]:
    """The shortest time of each, interleaved."""
    best = [float("inf")] * len(functions)
    for _ in range(times):
        for index, function in enumerate(functions):
            start = time.perf_counter()
            function()
            best[index] = min(best[index], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
