"""The simulated world: several processes of the real library over one disk, one executor, one time, and a judge.

What can happen in it are moves (see `moves`); everything else is deterministic, so the same moves give the same run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from attrs import define, evolve, field

from onestart import Answer, Command, Event
from onestart.ports import View
from onestart_conformance.doubles import REVISION, Asked, Engine, VirtualTime
from onestart_conformance.gates import SUBMISSION, Gate, ProcessDied
from onestart_conformance.judgement import ANSWER, CALLBACK, CRASH, Objection
from onestart_conformance.layers import compare_bytes, compare_counts, compare_records
from onestart_conformance.loop import StillLoop
from onestart_conformance.monitor import Monitor
from onestart_conformance.node import Call, Node
from onestart_conformance.rules import Rules
from onestart_conformance.storage import JSONL, Storage, kind_of, storage_of
from onestart_model.execution import State

T = TypeVar("T")


def _identity(key: str, foreign: bool) -> str:
    return f"{key}, {'another' if foreign else 'its own'} command"


@define(eq=False)
class World:
    """rules: of the instance that the monitor follows. Its sizes say how many keys, tasks and processes there are.

    ledger: where records live, see `storage_of`. bystanders: further processes that submit nothing. strict: the rules
    with every protection, where `rules` lack one.
    """

    rules: Rules
    ledger: str = field(default=JSONL, repr=kind_of)
    bystanders: int = 0
    strict: Rules | None = None
    nodes: list[Node] = field(factory=list)
    calls: dict[int, Call] = field(factory=dict)
    events: list[Event] = field(factory=list)
    history: list[tuple[str, int, object]] = field(factory=list)
    entered: int = 0
    gone: list[Node] = field(factory=list)
    loop: StillLoop = field(factory=StillLoop)
    storage: Storage = field(init=False)
    time: VirtualTime = field(factory=VirtualTime)
    keys: dict[str, int] = field(factory=dict)
    tasks: dict[str, int] = field(factory=dict)
    monitor: Monitor = field(init=False)
    engine: Engine = field(init=False)
    commands: dict[tuple[str, bool], Command] = field(factory=dict)
    sealed: dict[str, bytes] = field(factory=dict)
    before_dropping: Callable[[], None] | None = None

    def __attrs_post_init__(self) -> None:
        sizes = {sort.name: n for sort, n in self.rules.instance.sizes.items()}
        of_task = self.rules.initial().rows[0]
        self.keys = {f"key{i + 1}": i for i in range(sizes["Key"])}
        self.tasks = {f"task{i + 1}": i for i in range(sizes["Task"])}
        for key, index in self.keys.items():
            for foreign in (False, True):
                task = of_task[index]
                assert isinstance(task, int)
                self.commands[key, foreign] = Command(
                    key=key,
                    task=f"task{task + 1}",
                    function="work",
                    payload={"of": key},
                    actor="mallory" if foreign else "alice",
                    revision=REVISION,
                )
        self.storage = storage_of(self.ledger)
        self.monitor = Monitor(self.rules, self.keys, self.tasks, named=self._named, strict=self.strict)
        self.engine = Engine(self._asked)
        self.nodes = [self._born(index, 1) for index in range(sizes["Process"] + self.bystanders)]

    @property
    def objection(self) -> Objection | None:
        """What a judge objects to, if one does."""
        return self.monitor.objection

    def object_to(self, objection: Objection | None) -> None:
        """Keep the first objection."""
        if objection is not None and self.monitor.objection is None:
            self.monitor.objection = objection

    # Processes and their calls -----------------------------------------------------------------------------------

    def _born(self, index: int, incarnation: int) -> Node:
        return Node.born(
            index,
            incarnation,
            loop=self.loop,
            storage=self.storage,
            engine=self.engine,
            time=self.time,
            observer=self._observe,
        )

    def call(self, node: int, name: str, key: str, *, foreign: bool = False) -> Call:
        """Call the chain of a process: submit, cancel, reconcile, recover, settle, repair_lease or approve."""
        chain, command = self.nodes[node].chain, self.commands[key, foreign]
        calls: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "submit": lambda: chain.submit(command),
            "cancel": lambda: chain.cancel(key),
            "reconcile": lambda: chain.reconcile(key),
            "recover": chain.recover,
            "settle": lambda: chain.settle(key, by="operator", why="it was looked at"),
            "repair_lease": lambda: chain.repair_lease(command.task),
            "approve": lambda: chain.approve(command, by="approver"),
        }
        number = len(self.calls) + 1
        self.history.append(("call", number, None))
        call = self.nodes[node].call(number, name, key, foreign, calls[name]())
        self.calls[number] = call
        self._settle(call)
        return call

    def open(self, gate: Gate, answer: object = None) -> None:
        """Let a call to the outside go on."""
        self.calls[gate.submission].since += 1
        self.nodes[gate.node].gates.open(gate, answer)
        self.settle()

    def settle(self) -> None:
        """Take note of the calls that have come to their end."""
        for node in self.nodes:
            for call in node.calls:
                self._settle(call)
            node.calls = [call for call in node.calls if not call.task.done()]

    def kill(self, index: int) -> None:
        """A process dies: no `finally` of it reaches the world. Another one takes its place."""
        node = self.nodes[index]
        node.die()
        self.gone.append(node)
        self.monitor.died(node.name)
        self.nodes[index] = self._born(index, int(node.name.split(".")[1]) + 1)

    def power_failure(self, seed: int) -> None:
        """All processes die, and what was not synced may be lost."""
        for index in range(len(self.nodes)):
            self.kill(index)
        acknowledged = self.storage.snapshot()
        self.storage.power_failure(random.Random(seed))  # noqa: S311
        self.sealed = {path: data for path, data in self.storage.snapshot().items() if path in acknowledged}

    def pass_time(self, seconds: float) -> None:
        self.time.seconds += seconds
        self.monitor.time(self.time.seconds)

    def _settle(self, call: Call) -> None:
        if not call.task.done() or call.strand == ("", 0):
            return
        strand, call.strand = call.strand, ("", 0)
        error = None if call.task.cancelled() else call.task.exception()
        if isinstance(error, ProcessDied) or call.task.cancelled():
            return
        if error is not None:
            if call.name == "submit":
                self.object_to(Objection(CRASH, f"{call.name} of {call.key} raises {type(error).__name__}: {error}"))
            return
        answer = call.task.result()
        self.history.append(("answer", call.number, answer))
        if isinstance(answer, Answer) and strand and call.told is not None:
            told = call.told.details
            if (told["reason"], told["outcome"]) != (str(answer.reason), str(answer.outcome)):
                what = f"{call.key} is answered with {answer.reason}, and {told['reason']} was told"
                self.object_to(Objection(ANSWER, what))

    # What the judge is told --------------------------------------------------------------------------------------

    def _observe(self, event: Event) -> None:
        call = self.calls.get(SUBMISSION.get())
        event = self._identified(event, call)
        self.events.append(event)
        self._look_at_bytes()
        if call is not None:
            call.strand = (event.process, event.strand)
            ruled = event.action == "ruled"
            call.last = (event.action, ruled and event.details["revision"] == event.details["expected"])
            call.rounds += ruled
            call.since = 0
            if event.key == call.key and "reason" in event.details and "outcome" in event.details:
                call.told = event
        if event.action == "enter":
            self.entered += 1
        if event.action == "dropped" and self.before_dropping is not None:
            self.before_dropping()
        self.monitor.observe(event)

    def _identified(self, event: Event, call: Call | None) -> Event:
        """The event with the world's own name for the command: the library's fingerprint may be what is wrong."""
        if call is not None and call.name == "submit":
            return evolve(event, fingerprint=_identity(call.key, call.foreign))
        return evolve(event, fingerprint=self._named(event.fingerprint))

    def _named(self, fingerprint: str) -> str:
        """The world's own name for the command with a fingerprint, empty if that does not tell."""
        of = {command.fingerprint: _identity(*name) for name, command in self.commands.items()}
        return of.get(fingerprint, "") if len(of) == len(self.commands) else ""

    def _look_at_bytes(self) -> None:
        snapshot = self.storage.snapshot()
        for objection in compare_bytes(self.sealed, snapshot):
            self.object_to(objection)
        self.sealed = dict(snapshot)

    def _asked(self, asked: Asked) -> None:
        call = self.calls[asked.submission]
        assert call.strand is not None
        self.monitor.asked(asked, call.strand)

    # What can be seen from outside -------------------------------------------------------------------------------

    def read(self, look: Callable[[View], T]) -> T:
        """Look at the stores as a process does that has just come up."""

        try:
            self.storage.outside().step(lambda view: (None, look(view))).send(None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        raise AssertionError("a ledger that runs at once does not wait")

    def compare(self) -> None:
        """Compare all six layers with the model."""
        self._look_at_bytes()
        if self.objection is not None:
            return
        for objection in self._differences():
            self.object_to(objection)
            return

    def _differences(self) -> Iterable[Objection]:
        state = self.monitor.state
        yield from compare_counts(state, self.keys, self.engine.starts, self.engine.effects)
        callbacks = sum(len(node.callbacks) for node in (*self.nodes, *self.gone))
        if callbacks != self.entered:
            yield Objection(CALLBACK, f"the callback ran {callbacks} times, and {self.entered} events tell of it")
        yield from self.read(lambda view: list(self.compare_with(state, view)))

    def compare_with(self, state: State, view: View) -> Iterable[Objection]:
        """What a reader sees, against a state of the model."""
        return compare_records(state, view, self.keys, self.tasks, self.time.seconds)

    def quiet(self) -> bool:
        """Whether no call is under way."""
        return not any(node.calls for node in self.nodes)

    def gates(self) -> list[Gate]:
        """Every call to the outside that waits, in a fixed order."""
        return [gate for node in self.nodes for gate in node.gates.waiting]

    def end(self) -> None:
        """Let everything that lives in this world end."""
        for node in self.nodes:
            node.die()
        self.loop.end()
        self.storage.close()
