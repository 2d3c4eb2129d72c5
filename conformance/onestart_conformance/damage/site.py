"""A site: a ledger, what is outside of it, and processes that come up over it one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

from attrs import define, evolve, field

from onestart import Answer, Chain, Command, Event
from onestart.dispatcher import Dispatcher
from onestart.flow import Call, Flows, Outcome, Worker
from onestart.flow.definition import flow
from onestart.flow.handle import Handle
from onestart.kernel import Callback
from onestart.outside import Strand
from onestart.ports import Ledger
from onestart_conformance.damage.outside import Approvers, StandingClock
from onestart_conformance.doubles import Engine, PromptExecutor, unheard
from onestart_conformance.flows.loop import FlowLoop

T = TypeVar("T")

LEASE = 30.0


@flow
async def story(f: Handle) -> str:
    """A flow with one effect, which then asks a person."""
    draft = await f.llm("draft")
    await f.human("is it good?", to="anna")
    return str(draft)


@define(eq=False)
class Site:
    """ledger: as its processes open it. executor: with the engine that outlives them.

    written: how often the flow's effect was had. callbacks, entered: how often the execution callback was entered, by
    itself and by what events tell.
    """

    ledger: Ledger
    executor: PromptExecutor
    governance: Approvers = field(factory=Approvers)
    clock: StandingClock = field(factory=StandingClock)
    written: Counter[str] = field(factory=Counter)
    callbacks: int = 0
    entered: int = 0
    _loop: FlowLoop = field(factory=FlowLoop)
    _processes: int = 0

    @property
    def starts(self) -> dict[str, int]:
        """How often each key was started, the steps of flows included."""
        return self.executor.engine.starts | self.written

    @property
    def effects(self) -> dict[str, int]:
        """How many effects each key had."""
        return self.executor.engine.effects | self.written

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run this to its end. Raises what it raises."""
        task = self._loop.create_task(work)
        self._loop.rest()
        if not task.done():
            task.cancel()
            self._loop.rest()
            raise AssertionError("nothing here waits for anything else")
        return task.result()

    def chain(self) -> Chain:
        """The chain of a process that has just come up."""
        self._processes += 1
        return Chain(
            ledger=self.ledger,
            executor=self.executor,
            governance=self.governance,
            clock=self.clock,
            observer=self._observe,
            process=f"process-{self._processes}",
            lease_seconds=LEASE,
            callback=self._counted,
        )

    def submit(self, command: Command) -> Answer:
        return self.run(self.chain().submit(command))

    def resume(self, root: str) -> Outcome:
        """Begin the flow under this id, or go on with it."""
        self._processes += 1
        flows = Flows(
            ledger=self.ledger,
            workers={"llm": Worker(self._write)},
            clock=self.clock,
            process=f"driver-{self._processes}",
            lease_seconds=LEASE,
        )
        return self.run(flows.run(story, root))

    def pass_time(self, seconds: float) -> None:
        self.clock.time.seconds += seconds

    async def _write(self, call: Call) -> str:
        self.written[call.key] += 1
        return "once upon a time"

    def _observe(self, event: Event) -> None:
        self.entered += event.action == "enter"

    def _counted(self, dispatcher: Dispatcher) -> Callback:
        async def entered(strand: Strand, command: Command) -> Answer | None:
            self.callbacks += 1
            return await dispatcher.dispatch(strand, command)

        return entered


def after(engine: Engine) -> Engine:
    """An engine that has done what this one has, and goes on by itself."""
    return evolve(
        engine,
        witness=unheard,
        starts=dict(engine.starts),
        effects=dict(engine.effects),
        running=set(engine.running),
        barrier=dict(engine.barrier),
    )
