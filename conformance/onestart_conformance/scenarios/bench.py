"""The bench: one disk and one governance, processes of the real library over them, and a count of every layer.

A submission goes through a kernel of its own, so that nothing is remembered but what is on the disk. The kernels of one
process share its ledger, its executor and its execution callback.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from attrs import asdict, define, field, frozen

from onestart import Answer, Chain, Command, Event
from onestart.dispatcher import Dispatcher
from onestart.jsonl.ledger import JsonlLedger, open_for_reading
from onestart.kernel import Callback
from onestart.ports import Ledger, View
from onestart_conformance.disk import Disk
from onestart_conformance.disk_storage import PATH
from onestart_conformance.layers import compare_bytes
from onestart_conformance.loop import StillLoop
from onestart_conformance.scenarios.lenient import LenientLedger
from onestart_conformance.scenarios.standins import (
    DispatchingCallback,
    Entered,
    FixedGovernance,
    MemoryExecutor,
    RefusingFiles,
    StoppedClock,
    SyntheticCallback,
    in_turn,
)
from onestart_conformance.scenarios.words import attempt_status

T = TypeVar("T")


@frozen
class Equipment:
    """What is not as shipped. Nothing by default.

    lenient: receipts are read by the published reader. synthetic: the callback of round one takes the dispatcher's
    place. coalesces: that callback has one effect for a key.
    """

    lenient: bool = False
    synthetic: bool = False
    coalesces: bool = False

    def ledger(self, files: RefusingFiles) -> Ledger:
        plain = JsonlLedger(PATH, files=files, run=in_turn)
        return LenientLedger(plain) if self.lenient else plain

    def entered(self) -> Entered:
        return SyntheticCallback(self.coalesces) if self.synthetic else DispatchingCallback()


AS_SHIPPED = Equipment()
ROUND_ONE = Equipment(lenient=True, synthetic=True)
ROUND_TWO = Equipment(lenient=True)


@frozen
class Layers:
    """The six layers, counted apart.

    bytes: whether all are as they were recorded. read: the state of the receipt that the reader in place loaded, "-" if
    it was not asked.
    """

    bytes: bool
    read: str
    callback: int
    attempt: int
    start: int
    effect: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@frozen
class Heard:
    """An answer that came back. damaged: by then, damage had been made to records of its key, or to nobody's."""

    key: str
    answer: Answer
    damaged: bool


@define(eq=False)
class Process:
    """A process: what its kernels share."""

    name: str
    files: RefusingFiles
    ledger: Ledger
    entered: Entered
    executor: MemoryExecutor = field(factory=MemoryExecutor)
    _callback: Callback | None = None

    def kernel(self, governance: FixedGovernance, observer: Callable[[Event], None]) -> Chain:
        """A new chain, with the process's one execution callback."""

        def shared(own: Dispatcher) -> Callback:
            self._callback = self._callback or self.entered.of(own)
            return self._callback

        return Chain(
            ledger=self.ledger,
            executor=self.executor,
            governance=governance,
            clock=StoppedClock(),
            observer=observer,
            process=self.name,
            callback=shared,
        )


@define(eq=False)
class Bench:
    """equipment: what this run has. wholly: damage leaves nothing of a line, so that it does not show whose it was.

    kept: whether every reading left the bytes as they were. rewritten: what became of recorded bytes that are not as
    they were. harmed: keys whose records were damaged, "" for damage that is nobody's. read: the state loaded last.
    """

    equipment: Equipment
    wholly: bool = False
    governance: FixedGovernance = field(factory=FixedGovernance)
    loop: StillLoop = field(factory=StillLoop)
    disk: Disk = field(factory=Disk)
    processes: list[Process] = field(factory=list)
    events: list[Event] = field(factory=list)
    heard: list[Heard] = field(factory=list)
    harmed: set[str] = field(factory=set)
    kept: bool = True
    rewritten: list[str] = field(factory=list)
    read: str = "-"
    _sealed: dict[str, bytes] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.new_process("process-1")

    def new_process(self, name: str) -> None:
        """From here on, calls are made in a process that has just come up."""
        files = RefusingFiles(self.disk)
        self.processes.append(Process(name, files, self.equipment.ledger(files), self.equipment.entered()))

    @property
    def process(self) -> Process:
        """The one in which calls are made."""
        return self.processes[-1]

    # What is done ------------------------------------------------------------------------------------------------

    def submit(self, command: Command) -> Answer:
        return self.submit_together(command, 1)[0]

    def submit_together(self, command: Command, kernels: int) -> list[Answer]:
        """Submit the command through so many new kernels at once."""
        return self._ask(command.key, *(self._kernel().submit(command) for _ in range(kernels)))

    def cancel(self, key: str) -> Answer:
        """Cancel a key, and end its attempt when its execution has stopped."""
        answer = self._ask(key, self._kernel().cancel(key))[0]
        self.reconcile(key)
        return answer

    def reconcile(self, key: str) -> None:
        self.run(self._kernel().reconcile(key))

    def approve(self, command: Command, by: str) -> None:
        self.run(self._kernel().approve(command, by=by))

    def run(self, *work: Coroutine[Any, Any, T]) -> list[T]:
        """Run all of this at once, to its end."""
        tasks = [self.loop.create_task(each) for each in work]
        self.loop.rest()
        assert all(task.done() for task in tasks), "nothing here waits for anything else"
        self.rewritten += [objection.what for objection in compare_bytes(self._sealed, self.disk.snapshot())]
        self._sealed = self.disk.snapshot()
        return [task.result() for task in tasks]

    def _kernel(self) -> Chain:
        return self.process.kernel(self.governance, self.events.append)

    def _ask(self, key: str, *work: Coroutine[Any, Any, Answer]) -> list[Answer]:
        damaged = bool(self.harmed & {key, ""})
        answers = self.run(*work)
        self.heard += [Heard(key, answer, damaged) for answer in answers]
        return answers

    def damage(self, key: str) -> None:
        """Damage was made to records of the key, and has to stay as it is from here on."""
        self.harmed.add(key)
        self._sealed = self.disk.snapshot()

    # What is seen ------------------------------------------------------------------------------------------------

    def look(self, look: Callable[[View], T]) -> T:
        """Look at the stores through the reader in place, as a process does that has just come up."""
        before = self.disk.snapshot()
        ledger = self.equipment.ledger(RefusingFiles(self.disk))
        found = self.run(ledger.step(lambda view: (None, look(view))))[0]
        after = self.disk.snapshot()
        self.kept &= all(after.get(path) == data for path, data in before.items())
        return found

    def load(self, key: str) -> str | None:
        """The state of the key's receipt, None if no record can be read in its place."""

        def state(view: View) -> str | None:
            newest = view.receipt(key).newest
            return newest.state if newest else None

        loaded = self.look(state)
        self.read = loaded or "nothing"
        return loaded

    def attempts(self) -> list[str | None]:
        """How each attempt stands, in the order in which they were created."""
        stores = open_for_reading(PATH, RefusingFiles(self.disk))
        keys = list(stores.journals["attempts"].places("attempt"))
        created = [key for key in keys if any(record.state != "closed" for record in stores.attempt(key).records)]
        return [attempt_status(stores, key) for key in created]

    @property
    def callbacks(self) -> int:
        """How often the execution callback was entered."""
        return sum(process.entered.calls for process in self.processes)

    @property
    def starts(self) -> Counter[str]:
        """How often each key was started."""
        return sum((Counter(process.executor.engine.starts) for process in self.processes), Counter())

    @property
    def effects(self) -> Counter[str]:
        """How many effects each key had."""
        started = (Counter(process.executor.engine.effects) for process in self.processes)
        return sum((process.entered.effects for process in self.processes), sum(started, Counter()))

    def layers(self) -> Layers:
        """Where the run has got to, layer by layer."""
        return Layers(
            bytes=self.kept and not self.rewritten,
            read=self.read,
            callback=self.callbacks,
            attempt=len(self.attempts()),
            start=self.starts.total(),
            effect=self.effects.total(),
        )

    def said(self, answer: Answer) -> str:
        """The reason of an answer, in published words."""
        return self.process.entered.said(answer)
