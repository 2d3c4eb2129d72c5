"""Flows: what ids by causality and the guard cost, and how a flow grows. Ratios are measured in one run, interleaved.

The baseline carries out the same flow over the same ledger with ids that are merely counted: no lines, no frontiers, no
guard. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from unittest import mock

from onestart.command import digest
from onestart.flow import Call, Flow, Flows, Handle, Worker, flow
from onestart.flow import tasks as tasks_of_flows
from onestart.flow.guard import Asked
from onestart.flow.identity import StepId
from onestart.flow.line import Line
from onestart.flow.scope import Scope
from onestart.memory import MemoryLedger
from onestart.records import Record

REPEATED = 7


def nothing_at_all(*_: object) -> None:
    """In place of what the baseline leaves out."""


async def nothing(call: Call) -> None:
    """A step without an effect."""


@flow
async def one_after_the_other(f: Handle, steps: int) -> None:
    for number in range(steps):
        await f.llm(number)


@flow
async def side_by_side(f: Handle, steps: int) -> None:
    async def branch(number: int) -> None:
        await f.llm(number)
        await f.llm(-number)

    await asyncio.gather(*(branch(number) for number in range(1, steps // 2 + 1)))


def run(body: Flow, steps: int, records: tuple[Record, ...] = ()) -> tuple[float, MemoryLedger]:
    """The processor's seconds that an attempt takes, and what it leaves."""
    ledger = MemoryLedger(records)
    flows = Flows(ledger=ledger, workers={"llm": Worker(nothing)})
    gc.collect()  # what an earlier run has left is not this one's
    start = time.process_time()
    outcome = asyncio.run(flows.run(body, "root", steps))
    seconds = time.process_time() - start
    assert outcome.state == "completed", outcome
    return seconds, ledger


@contextmanager
def merely_counted() -> Iterator[None]:
    """Ids from a counter, and nobody who sees what is awaited."""

    def declare(scope: Scope, kind: str, spec: dict[str, object]) -> tuple[Asked, None]:
        scope.counter += 1
        return Asked(StepId("", kind, scope.counter), digest(spec), str(spec)), None

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(Scope, "declare", declare))
        stack.enter_context(mock.patch.object(tasks_of_flows, "_waited", nothing_at_all))
        stack.enter_context(mock.patch.object(tasks_of_flows, "_watch", nothing_at_all))
        for name in ("join", "stepped", "settle"):
            stack.enter_context(mock.patch.object(Line, name, nothing_at_all))
        yield


def resumable(body: Flow, steps: int) -> tuple[Record, ...]:
    """A journal to which nothing but the end is missing, so that a resume replays and guards every step."""
    _, ledger = run(body, steps)
    return tuple(record for record in ledger.records if getattr(record, "what", "") != "complete")


def main() -> None:
    """Measure, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longest", type=int, default=100_000, help="steps of the longest flow")
    options = parser.parse_args()
    print(f"{'1,000 steps without effects':32}{'counted':>12}{'causal':>12}{'overhead':>10}")
    for body in (one_after_the_other, side_by_side):
        for name, records in (("first attempt", ()), ("resumed, all replayed", resumable(body, 1000))):
            best = {False: 9e9, True: 9e9}
            for _ in range(REPEATED):
                for counted in best:
                    if counted and records:
                        continue
                    with merely_counted() if counted else nullcontext():
                        best[counted] = min(best[counted], run(body, 1000, records)[0])
            row = f"{body.name.replace('_', ' ')}, {name}"
            ratio = f"{best[False] / best[True] - 1:9.1%}" if best[True] < 1e9 else ""
            print(f"{row:44}{best[True] if ratio else 0:9.3f} s {best[False]:9.3f} s {ratio}")
    print(f"\n{'steps':>9}{'one after the other':>28}{'side by side':>28}")
    length = 1000
    while length <= options.longest:
        cells = [run(body, length)[0] for body in (one_after_the_other, side_by_side)]
        print(f"{length:9,}" + "".join(f"{cell:14.2f} s {cell / length * 1e6:8.0f} us" for cell in cells))
        length *= 10


if __name__ == "__main__":
    main()
