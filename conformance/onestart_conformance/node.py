"""A simulated process: the real chain over a real ledger, with gates where it reaches outside."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any

from attrs import define, field

from onestart import Chain, Command, Event
from onestart.dispatcher import Dispatcher
from onestart.kernel import Callback
from onestart_conformance.doubles import Engine, GatedClock, GatedExecutor, GatedGovernance, VirtualTime
from onestart_conformance.gates import SUBMISSION, Gates
from onestart_conformance.loop import StillLoop
from onestart_conformance.storage import Access, Storage

LEASE = 30.0


@define(eq=False)
class Call:
    """A call of the chain's public face that is under way. key: what it is about. foreign: by another actor.

    strand, told: who it is in events, and the last one that tells of an answer. last: the action of the last event, and
    what governance said. rounds: how often it has asked governance. since: gates that were opened since the last event.
    """

    number: int
    node: int
    name: str
    key: str
    foreign: bool
    task: Any = field(repr=False)
    strand: tuple[str, int] | None = None
    told: Event | None = None
    last: tuple[str, bool] = ("", False)
    rounds: int = 0
    since: int = 0


@define(eq=False)
class Node:
    """One process from its start to its death. callbacks: how often the execution callback was entered."""

    index: int
    name: str
    loop: StillLoop
    gates: Gates
    storage: Storage
    access: Access
    chain: Chain
    callbacks: list[str] = field(factory=list)
    calls: list[Call] = field(factory=list)

    @classmethod
    def born(
        cls,
        index: int,
        incarnation: int,
        *,
        loop: StillLoop,
        storage: Storage,
        engine: Engine,
        time: VirtualTime,
        observer: Callable[[Event], None],
    ) -> Node:
        gates = Gates(loop, index)
        opened = storage.open(gates.run)
        callbacks: list[str] = []

        def counted(dispatcher: Dispatcher) -> Callback:
            async def entered(strand: Any, command: Command) -> Any:
                callbacks.append(command.key)
                return await dispatcher.dispatch(strand, command)

            return entered

        def alive(event: Event) -> None:
            if not gates.dead:
                observer(event)

        name = f"process{index + 1}.{incarnation}"
        chain = Chain(
            ledger=opened.ledger,
            executor=GatedExecutor(gates, engine, SUBMISSION.get),
            governance=GatedGovernance(gates),
            clock=GatedClock(gates, time),
            observer=alive,
            process=name,
            lease_seconds=LEASE,
            callback=counted,
        )
        return cls(index, name, loop, gates, storage, opened.access, chain, callbacks)

    def call(self, number: int, name: str, key: str, foreign: bool, work: Coroutine[Any, Any, Any]) -> Call:
        """Start a call of the chain, up to its first gate."""
        context = copy_context()
        context.run(SUBMISSION.set, number)
        call = Call(number, self.index, name, key, foreign, None)
        self.calls.append(call)
        call.task = self.loop.create_task(work, context=context)
        self.loop.rest()
        return call

    def die(self) -> None:
        """Nothing that this process would still do reaches the world."""
        self.gates.die()
        self.storage.left(self.access)
