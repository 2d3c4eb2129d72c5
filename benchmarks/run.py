"""Whole-process times against peers, as ratios measured in one run: `python benchmarks/run.py [ROUNDS]`.

The same search by onestart, by a search written by hand for this one model in NumPy, and by Spin where spin and gcc are
installed; rounds are interleaved on one core, medians are compared. Then the command model: its instances and proofs.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from onestart_model.catalog import entry
from onestart_proofs.induction import prove
from onestart_proofs.memory import keep_freed_memory
from onestart_proofs.search import explore

HERE = Path(__file__).parent
CORE = min(os.sched_getaffinity(0))
SIZES = {(3, 2, 1): "985919", (3, 2, 2): "5455485"}
REDUCED = {(3, 2, 1): "85329", (3, 2, 2): "463967"}
SPIN_FLAGS = ("-O2", "-DSAFETY", "-DNOREDUCE", "-DNOCOMP", "-DNOFAIR", "-DNOBOUNDCHECK", "-DMEMLIM=4096")


def timed(command: Sequence[str], expected: str) -> float:
    """Wall seconds of a process on one core. Its output must hold the expected number of states."""
    # Installed packages have their bytecode on disk, whatever this environment says.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    seconds = time.perf_counter() - start
    if expected not in done.stdout:
        raise SystemExit(f"{command[0]} did not count {expected} states:\n{done.stdout}")
    return seconds


def spin(folder: Path, size: tuple[int, int, int]) -> list[str] | None:
    """Spin's verifier for the model, compiled; None if spin or gcc is missing."""
    if not shutil.which("spin") or not shutil.which("gcc"):
        return None
    target = folder / "-".join(map(str, size))
    target.mkdir()
    names = [f"-D{name}={value}" for name, value in zip("KWE", size, strict=True)]
    subprocess.run(["spin", "-a", *names, str(HERE / "idemstart.pml")], cwd=target, check=True, capture_output=True)
    subprocess.run(["gcc", *SPIN_FLAGS, "-o", "pan", "pan.c"], cwd=target, check=True, capture_output=True)
    return [str(target / "pan"), "-m1000", "-w21" if size[2] < 2 else "-w23"]


def compare(size: tuple[int, int, int], rounds: int, folder: Path) -> None:
    """Print one row for each contestant: median seconds, and how that compares with onestart."""
    arguments = [str(number) for number in size]
    contestants: dict[str, list[str]] = {
        "onestart, generic rules": [sys.executable, str(HERE / "yardstick.py"), *arguments],
        "onestart, up to symmetry": [sys.executable, str(HERE / "yardstick.py"), *arguments, "symmetry"],
        "NumPy, by hand for this model": [sys.executable, str(HERE / "numpy_search.py"), *arguments],
    }
    verifier = spin(folder, size)
    if verifier is not None:
        contestants["Spin, depth first, -O2"] = verifier
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, command in contestants.items():
            expected = REDUCED[size] if command[-1] == "symmetry" else SIZES[size]
            times[name].append(timed(command, expected))
    base = median(times["onestart, generic rules"])
    print(f"\n| K={size[0]} W={size[1]} E={size[2]}, {int(SIZES[size]):,} states | median seconds | of onestart's |")
    print("|---|---|---|")
    for name, values in times.items():
        print(f"| {name} | {median(values):.2f} | {median(values) / base:.2f} |")
    if verifier is None:
        print("\nspin or gcc is not installed, so Spin was left out")


def command_model() -> None:
    """Print how long the chain's instances and proofs take in this process."""
    chain = entry("chain")
    print("\n| the command chain | states | steps | seconds | steps a second | tables |")
    print("|---|---|---|---|---|---|")
    for standard in chain.instances[:3]:
        found = explore(standard.instance(chain.model))
        rate, size = found.generated / found.seconds, found.memory / 1e6
        print(
            f"| {standard.name}: {found.instance.scope} | {found.states:,} | {found.generated:,} "
            f"| {found.seconds:.1f} | {rate / 1e6:.1f} million | {size:,.0f} MB |"
        )
    print(f"\nPeak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")
    slowest, last = 0.0, time.perf_counter()

    def lap(*_: object) -> None:
        nonlocal slowest, last
        now = time.perf_counter()
        slowest, last = max(slowest, now - last), now

    start = time.perf_counter()
    proof = prove(chain.model, report=lap)
    seconds = time.perf_counter() - start
    print(
        f"Proofs: {len(proof.obligations)} obligations, {proof.verdict}, {seconds:.1f} s, the slowest {slowest:.2f} s"
    )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    os.sched_setaffinity(0, {CORE})
    keep_freed_memory()
    print(f"{rounds} rounds, interleaved, one core, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            compare(size, rounds, Path(folder))
    command_model()


if __name__ == "__main__":
    main()
