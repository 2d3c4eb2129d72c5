"""Flows as a trace of the model has them: any calls, each in a task of its own, that go on when the script says so.

Every call waits before it is made, and again before it is awaited; a driver's every step at its ledger waits as well.
So nothing happens but what is let happen, and what then comes of it is the library's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from attrs import define, field, frozen

from onestart.flow import NEVER, Flow, Flows, Handle, Known, Outcome, Worker
from onestart.flow import Call as Carried
from onestart.flow.definition import InFlight
from onestart.flow.driver import lease_of
from onestart.flow.steps import Step
from onestart.records import Lease
from onestart.records import Step as Entry
from onestart_conformance.flows.abstraction import END, Abstraction, Made
from onestart_conformance.flows.loop import FlowLoop
from onestart_conformance.flows.monitor import Monitor
from onestart_conformance.flows.plan import Plan
from onestart_conformance.flows.program import EFFECTS, ROOT, Call, Placed, Program
from onestart_conformance.flows.world import LEASE, CountedLedger
from onestart_model.execution import State
from onestart_model.instance import Instance, Row

T = TypeVar("T")

NAME = "scripted"
CHILD = "child of {}"
ACTIVITY = Placed("activity", Call("memory", "activity"))


@frozen
class OfTrace(Abstraction):
    """The program of a trace. start: the trace's first state, in which the fixed functions have their values."""

    start: State = field(kw_only=True)

    @classmethod
    def read(cls, instance: Instance, start: State) -> OfTrace:
        """From an instance and the first state of a trace."""
        sizes = {sort.name: n for sort, n in instance.sizes.items()}
        kinds = [str(start.read("kind", c)).lower() for c in range(sizes["Call"])]
        made, only = [], {}
        for c, kind in enumerate(kinds):
            spec = chr(ord("a") + _number(start.read("asks", c)))
            position = END if kind == "marker" else str(c)
            body = (Call("run", CHILD.format(spec)),) if kind == "dispatch" else ()
            hook = start.read("part_of", c)
            placed = Placed(position, Call(kind, spec, body=body))
            made.append(Made(placed, frozenset(), "" if hook is None else str(hook), start.read("own", c) is None))
            if kind == "dispatch":
                only[f"{position}:0"] = position
        counted = all(call.counted for call in made)
        plan = Plan(Program(tuple(call.placed.call for call in made)), version=2 if counted else 3)
        return cls(plan, tuple(made), only, start=start)

    @property
    def own(self) -> tuple[int | None, ...]:
        numbers = (self.start.read("own", c) for c in range(len(self.made)))
        return tuple(None if number is None else _number(number) for number in numbers)

    @property
    def ordinals(self) -> Sequence[int]:  # type: ignore[override]
        """All ids, if the model does without causal ones."""
        every = "stable-ids" in self.start.instance.without
        return tuple(x for x in range(self.stray) if every or self.start.read("ordinal", x))

    @property
    def stray(self) -> int:
        return self.sizes["Id"]

    @cached_property
    def sizes(self) -> dict[str, int]:
        return {sort.name: n for sort, n in self.start.instance.sizes.items()}

    @property
    def fixed(self) -> dict[str, Row]:
        functions = self.start.instance.model.schema.functions
        return {f.name: row for f, row in zip(functions, self.start.rows, strict=True) if f.home == "fixed"}

    @property
    def specs(self) -> dict[tuple[str, str, str], int]:
        return {made.asks: _number(self.start.read("asks", c)) for c, made in enumerate(self.made)}


@define(eq=False)
class Effect:
    """Something that is carried out. ends: set when it is to end."""

    position: str
    key: str
    ends: asyncio.Future[None]


@define(eq=False)
class Lead:
    """A driver of the model, in one attempt: its loop, where its author waits, and its steps at the ledger that wait.

    told: the calls that it has made, by their step id.
    """

    attempt: int
    loop: FlowLoop = field(factory=FlowLoop)
    gates: dict[str, list[Any]] = field(factory=dict)
    waiting: list[asyncio.Future[None]] = field(factory=list)
    told: dict[str, Placed] = field(factory=dict)
    tokens: list[int] = field(factory=list)
    dead: bool = False
    driver: asyncio.Task[Outcome] | None = None


@define(eq=False)
class Scene:
    """What is outside of a scripted flow: its ledger, effects, and who follows it. leads: drivers by their number."""

    program: OfTrace
    monitor: Monitor
    ledger: CountedLedger = field(factory=CountedLedger)
    seconds: float = 1000.0
    attempts: int = 0
    effects: list[Effect] = field(factory=list)
    leads: dict[int, Lead] = field(factory=dict)

    def begin(self, d: int) -> None:
        """A driver takes the root, when whatever another one held has run out."""
        self.seconds += LEASE + 1
        lead = self.leads[d] = Lead(self.attempts)
        self.attempts += 1
        flows = Flows(
            ledger=_Turnstile(self, lead),
            workers={kind: self._worker(lead, kind) for kind in EFFECTS},
            clock=_Clock(self, lead),
            observer=lambda event: self.monitor.tells(lead.attempt, event),
            process=f"driver{lead.attempt + 1}",
            lease_seconds=LEASE,
            identity=self.program.plan.version,
        )
        asked = self.ledger.asked
        lead.driver = lead.loop.create_task(flows.run(Flow(NAME, Author(self, lead).body), ROOT))
        lead.loop.rest()
        for _ in range(2):  # its lease, and the journal with what it records there
            self.open(d, 0)
        self.monitor.looked(lead.attempt, self.ledger.asked - asked)

    def open(self, d: int, which: int) -> bool:
        """Let a step at the ledger be taken. False if there is none."""
        lead = self.leads.get(d)
        if lead is None or which >= len(lead.waiting):
            return False
        lead.waiting.pop(which).set_result(None)
        lead.loop.rest()
        return True

    def release(self, d: int, gate: str) -> bool:
        """Let the author go on where the author waits. False if nobody waits there."""
        lead = self.leads.get(d)
        if lead is None or not lead.gates.get(gate):
            return False
        waiting = lead.gates[gate].pop(0)
        if isinstance(waiting, asyncio.Semaphore):
            lead.loop.call_soon(waiting.release)
        elif not waiting.done():
            waiting.set_result(None)
        lead.loop.rest()
        return True

    def end(self, d: int, position: str) -> bool:
        """Let the effect of a call, or of its child, end. False if none is under way."""
        lead = self.leads.get(d)
        for effect in self.effects:
            of_call = self.program.only.get(effect.position, effect.position) == position
            if lead is not None and of_call and not effect.ends.done():
                effect.ends.set_result(None)
                lead.loop.rest()
                return True
        return False

    def die(self, d: int) -> bool:
        """A driver dies with all that it had in memory."""
        lead = self.leads.pop(d, None)
        if lead is None:
            return False
        lead.dead = True
        lead.loop.end()
        self.monitor.ended(lead.attempt)
        return True

    def answer(self, x: int) -> bool:
        """A person answers the question under an id."""
        entries = [record for record in self.ledger.records if isinstance(record, Entry)]
        waits = [entry.step for entry in entries if entry.what == "wait" and self.monitor.names.of(entry.step) == x]
        if not waits:
            return False
        wait = waits[0]

        async def answer() -> None:
            await Flows(ledger=self.ledger, process="person").answer(ROOT, wait, f"answer to {wait}")

        loop = FlowLoop()  # type: ignore[abstract]
        task = loop.create_task(answer())
        loop.rest()
        if task.exception() is not None:
            return False
        self.monitor.answers(wait, f"answer to {wait}")
        return True

    def close(self) -> None:
        """Nobody reaches the world any more."""
        for d in list(self.leads):
            lead = self.leads.pop(d)
            lead.dead = True
            lead.loop.end()

    def _worker(self, lead: Lead, kind: str) -> Worker:
        of_kind = [c for c, made in enumerate(self.program.made) if made.placed.call.kind in (kind, "dispatch")]
        again = any(self.program.start.read("again", c) for c in of_kind)
        single = any(self.program.start.read("single", c) for c in of_kind)
        in_flight: InFlight = "again" if again else "ask"

        async def carry_out(call: Carried) -> str:
            placed = lead.told[call.step]
            await _living(lead)
            self.monitor.starts(lead.attempt, placed, call.key)
            effect = Effect(placed.position, call.key, lead.loop.create_future())
            self.effects.append(effect)
            await effect.ends
            return placed.call.label

        async def look_up(call: Carried) -> object:
            await _living(lead)
            found = [effect for effect in self.effects if effect.key == call.key]
            if not found:
                return NEVER
            return Known(lead.told[call.step].call.label) if found[-1].ends.done() else None

        return Worker(carry_out, in_flight=in_flight, look_up=look_up, slots=1 if single else None)


@frozen
class Author:
    """The body: a task for each call; each waits for its turn, and the author's catch lets no refusal get any further.

    Where the causal order is known, a call waits for a semaphore, which is no order; elsewhere for what nobody knows.
    """

    scene: Scene
    lead: Lead

    async def body(self, f: Handle) -> None:
        made = self.scene.program.made
        kept = [asyncio.create_task(self._call(f, call)) for call in made if not call.part_of and call.kind != "MARKER"]
        kept.append(asyncio.create_task(self._activity(f)))
        await self._turn("end", counted=self.scene.program.plan.version < 3)
        del kept

    async def _call(self, f: Handle, made: Made) -> None:
        placed, attempt, monitor = made.placed, self.lead.attempt, self.scene.monitor
        await self._turn(f"make {placed.position}", counted=made.counted)
        try:
            step = self._declared(f, placed)
            monitor.declared(attempt, placed, step.id)
            await self._turn(f"await {placed.position}", counted=made.counted)
            monitor.awaits(attempt, placed)
            value = await step
        except Exception as error:
            if not self.lead.dead:
                monitor.raised(attempt, placed, error)
        else:
            if not self.lead.dead:
                monitor.received(attempt, placed, step.id, value)

    async def _activity(self, f: Handle) -> None:
        await self._turn("act", counted=self.scene.program.plan.version < 3)
        step = f.memory.learn(ACTIVITY.call.label)
        self.lead.told[step.id] = ACTIVITY
        self.scene.monitor.acts(self.lead.attempt, ACTIVITY)
        await step

    def _declared(self, f: Handle, placed: Placed) -> Step:
        call, label = placed.call, placed.call.label
        match call.kind:
            case "hook":
                step = f.hook("check", self._hook(placed), label)
            case "dispatch":
                step = f.dispatch(Flow("child", self._child(placed)), label)
            case "run":
                step = f.run([label])
            case "mcp":
                step = f.mcp("server", label)
            case "memory":
                step = f.memory.learn(label)
            case _:
                step = getattr(f, call.kind)(label)
        self.lead.told[step.id] = placed
        return step

    def _hook(self, hook: Placed) -> Callable[[Handle, object], Any]:
        inner = [made for made in self.scene.program.made if made.part_of == hook.position]

        async def judge(f: Handle, _: object) -> str:
            kept = [asyncio.create_task(self._call(f, made)) for made in inner]
            await self._turn(f"conclude {hook.position}", counted=self.scene.program.plan.version < 3)
            del kept
            return "pass"

        return judge

    def _child(self, dispatch: Placed) -> Callable[..., Any]:
        async def child(f: Handle, label: str) -> None:
            step = f.run([CHILD.format(label)])
            self.lead.told[step.id] = Placed(f"{dispatch.position}:0", Call("run", CHILD.format(label)))
            await step

        return child

    async def _turn(self, name: str, *, counted: bool) -> None:
        waiting: Any = self.lead.loop.create_future() if counted else asyncio.Semaphore(0)
        self.lead.gates.setdefault(name, []).append(waiting)
        await (waiting if counted else waiting.acquire())


@frozen
class _Turnstile:
    """The ledger as one driver reaches it, a step at a time."""

    scene: Scene
    lead: Lead

    async def step(self, decide: Callable[[Any], tuple[Any, T]]) -> T:
        ledger, lead, monitor = self.scene.ledger, self.lead, self.scene.monitor
        turn = lead.loop.create_future()
        lead.waiting.append(turn)
        await turn
        before = ledger.written
        answer = await ledger.step(decide)
        record = ledger.newest() if ledger.written > before else None
        if isinstance(record, Entry):
            monitor.writes(lead.attempt, record, lead.told.get(record.step))
        elif isinstance(record, Lease) and record.task == lease_of(ROOT) and record.token not in lead.tokens:
            lead.tokens.append(record.token)
            monitor.leased(lead.attempt)
        return answer


async def _living(lead: Lead) -> None:
    """A dead driver's ports wait forever."""
    if lead.dead:
        await lead.loop.create_future()


@frozen
class _Clock:
    scene: Scene
    lead: Lead

    def now(self) -> float:
        return self.scene.seconds

    async def sleep(self, seconds: float) -> None:
        await self.lead.loop.create_future()


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
