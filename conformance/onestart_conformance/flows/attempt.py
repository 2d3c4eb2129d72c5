"""One attempt: a driver in a loop of its own, whose way to the world can be cut off or held up at any tick."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from onestart import Event
from onestart.flow import NEVER, Call, Flows, Known, Outcome, Worker
from onestart.flow.driver import lease_of
from onestart.records import Lease
from onestart.records import Step as Entry
from onestart_conformance.flows.body import flow_of
from onestart_conformance.flows.judges import Judges
from onestart_conformance.flows.loop import FlowLoop
from onestart_conformance.flows.monitor import Monitor
from onestart_conformance.flows.plan import Stop
from onestart_conformance.flows.program import EFFECTS, ROOT, Placed
from onestart_conformance.flows.world import LEASE, Effect, Told, World
from onestart_conformance.judgement import CRASH, Objection

T = TypeVar("T")

MOST_WAKES = 50
STUCK = "stuck"


class EffectFailedError(Exception):
    """What a worker raises for an effect that fails."""


@frozen
class Gate:
    """An effect that is under way."""

    effect: Effect
    future: asyncio.Future[None] = field(repr=False)


@define(eq=False)
class Attempt:
    """halted: what its driver waits for while it stands still or is dead, which is for good."""

    world: World
    judges: Judges
    told: Told
    stop: Stop | None
    monitor: Monitor | None = None
    loop: FlowLoop = field(factory=FlowLoop)
    gates: list[Gate] = field(factory=list)
    halted: asyncio.Future[None] | None = None
    dead: bool = False
    sleepers: list[tuple[float, asyncio.Future[None]]] = field(factory=list)
    token: int = 0
    _driver: asyncio.Task[Outcome] | None = None

    @property
    def cut(self) -> bool:
        """Whether the driver does not go on by itself."""
        return self.dead or self.halted is not None

    @property
    def over(self) -> bool:
        return self._driver is not None and self._driver.done()

    def begin(self) -> None:
        """Start the driver, and let it go as far as it gets."""
        plan, number = self.world.plan, self.told.number
        workers = {kind: self._worker() for kind in EFFECTS}
        flows = Flows(
            ledger=_Reach(self),
            workers=workers,
            clock=_Clock(self),
            observer=self._tell,
            process=f"driver{number + 1}",
            lease_seconds=LEASE,
            identity=plan.version,
        )
        flow = flow_of(plan.program_of(number), _Seen(self))
        self._driver = self.loop.create_task(flows.run(flow, ROOT))
        self.loop.rest()

    def _tell(self, event: Event) -> None:
        if self.monitor is not None:
            self.monitor.tells(self.told.number, event)

    def go_on(self) -> None:
        """A driver that stood still does so no more."""
        if self.halted is not None and not self.dead:
            self.halted.set_result(None)
            self.halted = None
            self.loop.rest()

    def arrive(self, which: int) -> None:
        """The effect with this number among those under way ends."""
        gate = self.open()[which]
        self.gates.remove(gate)
        gate.future.set_result(None)
        self.loop.rest()

    def open(self) -> list[Gate]:
        """Effects that are under way, in the order of the text."""
        return sorted(self.gates, key=lambda gate: gate.effect.placed.position)

    def wake(self) -> bool:
        """Let time come for whoever sleeps. False if nobody does."""
        waiting = [sleeper for sleeper in self.sleepers if not sleeper[1].done()]
        if waiting:
            until, future = min(waiting, key=lambda sleeper: sleeper[0])
            self.world.seconds = max(self.world.seconds, until)
            future.set_result(None)
        elif not self.loop.pass_time():
            return False
        self.loop.rest()
        return True

    def outcome(self) -> Outcome | None:
        """What the attempt has come to. What the library should not have raised is objected to."""
        driver = self._driver
        if driver is None or not driver.done() or driver.cancelled():
            return None
        error = driver.exception()
        if error is not None:
            self.world.object_to(Objection(CRASH, f"the driver raises {type(error).__name__}: {error}"))
            return None
        return driver.result()

    def end(self) -> None:
        """Nothing of this driver reaches the world any more."""
        self.dead = True
        self.loop.end()

    async def tick(self, name: str = "") -> None:
        """Something has reached the world; the driver may be cut off before it knows."""
        self.told.ticks.append(name)
        self.told.chosen.append(len(self.told.choices))
        if self.stop is not None and not self.cut and self._reached(self.stop):
            self.world.note(self.told.number, "the driver stands still" if self.stop.stalls else "the driver dies")
            self.dead = not self.stop.stalls
            self.halted = self.loop.create_future()
        await self.passed()

    def _reached(self, stop: Stop) -> bool:
        ticks = self.told.ticks
        return stop.after in ticks and ticks.index(stop.after) + stop.more == len(ticks) - 1

    async def passed(self) -> None:
        while self.cut:
            await (self.halted if self.halted is not None else self.loop.create_future())

    def leases(self, record: object) -> None:
        """A record is durable that is none of the journal: perhaps the driver's lease."""
        if isinstance(record, Lease) and record.task == lease_of(ROOT) and record.token > self.token:
            self.token = record.token
            if self.monitor is not None:
                self.monitor.leased(self.told.number)

    def _worker(self) -> Worker:
        plan = self.world.plan
        return Worker(self._carry_out, in_flight=plan.in_flight, look_up=self._look_up, slots=plan.slots or None)

    async def _carry_out(self, call: Call) -> str:
        await self.passed()
        placed = self.told.placed[call.step]
        effect = Effect(placed, self.told.number, call.step, call.key)
        self.judges.starts(self.told, effect, call)
        if self.monitor is not None:
            self.monitor.starts(self.told.number, placed, call.key)
        self.world.effects.append(effect)
        self.world.note(self.told.number, f"{placed.identity} is carried out as {call.step}")
        await self.tick(f"start {placed.call.label}")
        gate = Gate(effect, self.loop.create_future())
        self.gates.append(gate)
        await gate.future
        effect.finished = True
        self.told.arrived.append(placed)
        self.world.note(self.told.number, f"{placed.identity} ends")
        await self.tick(f"end {placed.call.label}")
        if placed.call.fails:
            raise EffectFailedError(self.world.name(placed))
        return self.world.name(placed)

    async def _look_up(self, call: Call) -> object:
        await self.passed()
        found = [effect for effect in self.world.effects if effect.key == call.key]
        if not found:
            return NEVER
        if not found[-1].finished:
            return None
        name = self.world.name(found[-1].placed)
        return Known(failed=f"EffectFailedError: {name}") if found[-1].placed.call.fails else Known(name)


@frozen
class _Reach:
    """The ledger as one driver reaches it."""

    attempt: Attempt

    async def step(self, decide: Callable[[Any], tuple[Any, T]]) -> T:
        attempt, ledger = self.attempt, self.attempt.world.ledger
        await attempt.passed()
        before = ledger.written
        answer = await ledger.step(decide)
        if ledger.written > before:
            record = ledger.newest()
            if isinstance(record, Entry):
                attempt.judges.writes(attempt.told, record)
                if attempt.monitor is not None:
                    attempt.monitor.writes(attempt.told.number, record, attempt.told.placed.get(record.step))
                await attempt.tick(_name(attempt.told, record))
            else:
                attempt.leases(record)
                await attempt.tick()
        return answer


def _name(told: Told, entry: Entry) -> str:
    """How a stop names the writing of an entry."""
    placed = told.placed.get(entry.step)
    return entry.what if placed is None else f"{entry.what} {placed.call.label}"


@frozen
class _Clock:
    attempt: Attempt

    def now(self) -> float:
        return self.attempt.world.seconds

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = self.attempt.loop.create_future()
        self.attempt.sleepers.append((self.now() + seconds, future))
        await future
        await self.attempt.passed()


@frozen
class _Seen:
    """What the author of the flow sees; a dead author sees nothing."""

    attempt: Attempt

    def asks(self, placed: Placed) -> None:
        if not self.attempt.dead:
            self.attempt.told.asked.append(placed)

    def declared(self, placed: Placed, step: str) -> None:
        attempt = self.attempt
        if not attempt.dead:
            attempt.judges.declared(attempt.told, placed, step)
            if attempt.monitor is not None:
                attempt.monitor.declared(attempt.told.number, placed, step)

    def awaits(self, placed: Placed) -> None:
        attempt, told = self.attempt, self.attempt.told
        if told.refused is None:
            told.waiting.add(placed.position)
        if attempt.monitor is not None and not attempt.dead:
            attempt.monitor.awaits(told.number, placed)

    def received(self, placed: Placed, value: object) -> None:
        attempt = self.attempt
        if not attempt.dead:
            attempt.judges.received(attempt.told, placed, value)
            if attempt.monitor is not None:
                attempt.monitor.received(attempt.told.number, placed, attempt.told.ids[placed.position], value)

    def raised(self, placed: Placed, error: Exception) -> None:
        attempt = self.attempt
        if not attempt.dead:
            attempt.judges.raised(attempt.told, placed, error)
            if attempt.monitor is not None:
                attempt.monitor.raised(attempt.told.number, placed, error)
