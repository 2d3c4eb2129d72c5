"""Flows whose results arrive in the order that a test wants, over a ledger in memory that can be cut off anywhere."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import define, field

from onestart.flow import Call, Flow, Flows, Outcome, Worker
from onestart.flow.definition import InFlight
from onestart.health import Reading
from onestart.memory import MemoryLedger
from onestart.ports import View
from onestart.records import Record, Step

SOON = 200  # rounds of the event loop, more than anything here takes to come to rest
NEVER = 10**6
KINDS = ("run", "llm", "agent", "helper", "mcp", "plugin", "memory", "on")


class CutOffError(Exception):
    """The driver has died at this write."""


@define(eq=False)
class Clock:
    """Time that passes when somebody sleeps."""

    seconds: float = 0.0

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        if seconds > 5:  # renewals: nothing here takes that long
            await asyncio.Event().wait()
        self.seconds += seconds
        await asyncio.sleep(0)


class CutLedger(MemoryLedger):
    """Dies at a write. reads: how often a journal was asked for."""

    def __init__(self, records: Iterable[Record] = (), *, writes: int | None = None) -> None:
        super().__init__(records)
        self.writes = writes
        self.reads = 0

    async def step(self, decide: Callable[[View], tuple[Record | None, Any]]) -> Any:
        def counted(view: View) -> tuple[Record | None, Any]:
            record, value = decide(Watching(view, self))
            if record is not None and self.writes is not None:
                if self.writes == 0:
                    raise CutOffError
                self.writes -= 1
            return record, value

        return await super().step(counted)


@define
class Watching:
    """A view that counts how often a journal is read."""

    view: View
    ledger: CutLedger

    def __getattr__(self, name: str) -> Any:
        return getattr(self.view, name)

    def steps(self, root: str) -> Reading[Step]:
        self.ledger.reads += 1
        return self.view.steps(root)


@define(eq=False)
class World:
    """What is outside of a flow. effects: what was carried out, by label. order: in which order results arrive.

    A spec's first text is its label. What is not in the order arrives as soon as nothing else does.
    """

    records: list[Record] = field(factory=list)
    effects: list[str] = field(factory=list)
    clock: Clock = field(factory=Clock)
    failing: frozenset[str] = frozenset()
    in_flight: InFlight = "hold"
    identity: int = 3
    drivers: int = 0
    ledger: CutLedger = field(factory=CutLedger)
    workers: Mapping[str, Worker] = field(factory=dict)

    def run(
        self,
        flow: Flow,
        *arguments: Any,
        order: Sequence[str] = (),
        arrivals: int | None = None,
        writes: int | None = None,
        root: str = "root",
    ) -> Outcome | None:
        """One attempt; None if it was cut off: after so many arrivals, or at a write."""
        return asyncio.run(self._run(flow, arguments, list(order), arrivals, writes, root))

    async def _run(
        self,
        flow: Flow,
        arguments: tuple[Any, ...],
        order: list[str],
        arrivals: int | None,
        writes: int | None,
        root: str,
    ) -> Outcome | None:
        self.drivers += 1
        self.clock.seconds += 100  # the lease of a driver that was cut off has run out
        waiting: dict[str, asyncio.Future[None]] = {}

        async def carry_out(call: Call) -> Any:
            label = label_of(call.spec)
            self.effects.append(label)
            waiting[label] = asyncio.get_running_loop().create_future()
            await waiting[label]
            if label in self.failing:
                raise ValueError(f"{label} fails")
            return f"result of {label}"

        self.ledger = ledger = CutLedger(self.records, writes=writes)
        flows = Flows(
            ledger=ledger,
            workers={kind: Worker(carry_out, in_flight=self.in_flight) for kind in KINDS} | dict(self.workers),
            clock=self.clock,
            process=f"driver{self.drivers}",
            identity=self.identity,
        )
        task = asyncio.ensure_future(flows.run(flow, root, *arguments))
        try:
            while not await settled(task, lambda: bool(waiting) or ledger.writes == 0):
                if arrivals == 0 or (writes is not None and ledger.writes == 0):
                    return None
                wanted = next((label for label in order if label in waiting), None)
                if wanted in order:
                    order.remove(wanted)
                assert waiting, "the flow waits, and nobody knows what for"
                label = wanted or next(iter(waiting))
                waiting.pop(label).set_result(None)
                arrivals = None if arrivals is None else arrivals - 1
            return task.result()
        except CutOffError:
            return None
        finally:
            self.records = list(ledger.records)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def answer(self, wait: str, value: Any, root: str = "root") -> None:
        """Answer a question."""
        ledger = MemoryLedger(self.records)
        asyncio.run(Flows(ledger=ledger, clock=self.clock).answer(root, wait, value, by="anna"))
        self.records = list(ledger.records)

    def entries(self, root: str = "root") -> list[tuple[str, str, Any]]:
        """The journal without what belongs to attempts: what, step, body."""
        steps = [r for r in self.records if isinstance(r, Step) and r.key == root]
        return [(r.what, r.step, r.body) for r in steps if r.what not in ("attempt", "ended")]


async def settled(task: asyncio.Future[Any], waits: Callable[[], bool]) -> bool:
    """Let everything happen that needs nobody, and wait for timers and threads; whether the task has ended."""
    for number in itertools.count():
        if task.done() or (number > SOON and waits()) or number > NEVER:
            break
        await asyncio.sleep(0)
    return task.done()


def label_of(spec: Mapping[str, Any]) -> str:
    """The first text in a spec."""
    for value in spec.values():
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return str(value[-1])
    raise AssertionError(spec)
