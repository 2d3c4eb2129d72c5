"""One task as it is when an event comes: its records, what steps make of them, and what is noted about that."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from attrs import define, field, frozen

from onestart_conformance.monitor import Strand
from onestart_conformance.trace_book import Book, KeyRecord, StrandRecord, TaskRecord
from onestart_conformance.trace_window import IDLE, Window, Windows
from onestart_model.chain import CHAIN
from onestart_model.execution import State, Step
from onestart_model.expression import Value

EXPIRED = "leases that ran out"
FINISHED = "executions that ended"
DAMAGED = "records damaged, as answers tell"
CRASHED = "strands that never finished"
LATE = "writes told of after their lease's end"
UNTOLD = "steps that no event tells, of processes that ended"
SPOILED = "records damaged, though no answer tells"
LOST = "attempt records lost with a store that fell back"

INFERRED = (EXPIRED, FINISHED, DAMAGED, CRASHED, LATE)
ASSUMED = (UNTOLD, SPOILED, LOST)


@frozen
class Note:
    """Something that no event tells, and that explains one. kind: one of INFERRED, which the log shows, or of ASSUMED.

    wrote: the record numbers among which the step must have had one. strangers: whether nobody knows whose step it was.
    """

    kind: str
    what: str
    wrote: tuple[int, int] | None = None
    strangers: bool = False


@frozen
class Taken:
    """A step of the model that was taken: with names, None for a process that is nobody in particular.

    placed: whether it was taken just now, and not at some time before.
    """

    action: str
    strand: Strand | None
    key: str
    more: tuple[Value, ...] = ()
    placed: bool = True


@cache
def parameters(action: str) -> tuple[str, ...]:
    """The types of an action's parameters."""
    return tuple(str(parameter.type) for parameter in CHAIN.action_named(action).parameters)


@cache
def step_of(action: str) -> Step:
    """The step of the first process and key of a window."""
    return Step(action, (0,) * len(parameters(action)))


@define
class Scene:
    """number: of the event's record. copied: whether the records are copies, which the book gets only in the end.

    recorded: whether somebody wants to know of the steps that were taken.
    """

    book: Book
    windows: Windows
    task: TaskRecord
    number: int
    keys: dict[str, KeyRecord] = field(factory=dict)
    recorded: bool = False
    new: set[str] = field(factory=set)
    copied: bool = False
    notes: list[Note] = field(factory=list)
    taken: list[Taken] = field(factory=list)

    def copy(self) -> Scene:
        """The same scene, in which something can be tried."""
        keys = {name: key.copy() for name, key in self.keys.items()}
        fixed = (self.book, self.windows, self.task.copy(), self.number, keys, self.recorded)
        return Scene(*fixed, set(self.new), True, self.notes[:], self.taken[:])

    def keep(self) -> None:
        """Put into the book what has become of the task and its keys."""
        if self.copied:
            self.book.keep_task(self.task)
        for name, key in self.keys.items():
            if name in self.new:
                if name and (key.cells != self.windows.blank or key.bound is not None):
                    self.book.keep_key(key, new=True)
            elif self.copied:
                self.book.keep_key(key)

    def key(self, name: str) -> KeyRecord:
        """What is known of a key of the task."""
        found = self.keys.get(name)
        if found is None:
            known = self.book.key(name) if name else None
            if known is None:
                self.new.add(name)
                found = KeyRecord(name, self.task.name, self.windows.blank)
            else:
                found = known.copy() if self.copied else known
            self.keys[name] = found
        return found

    def window(self, key: KeyRecord, strand: StrandRecord) -> Window:
        """The window in which the strand takes a step of the key."""
        task = self.task
        if not task.restless and task.holder in (None, key.name):
            return self.windows.compose(key, task, strand)
        names = [name for name in task.restless if name != key.name][:1]
        if task.holder not in (None, key.name, *names):
            assert task.holder is not None
            names.append(task.holder)
        return self.windows.compose(key, task, strand, [self.key(name) for name in names])

    def step(self, action: str, name: str, strand: Strand | None = None, *, since: int | None = None) -> bool:
        """Take a step if the model allows it. strand: nobody in particular if it is none that is known.

        since: the number of the record after which it was taken, if that is not the event's.
        """
        key = self.key(name)
        record = IDLE if strand is None else self.task.strands.get(strand, IDLE)
        window = self.window(key, record)
        after = self.windows.rules.apply(window.state, step_of(action))
        if after is None:
            return False
        self.become(window, after, key, since)
        if strand in self.task.strands:
            self.task.strands[strand] = self.windows.read_strand(window, after, record, name)
        if self.recorded:
            placed = strand is None or not record.dropped  # else it was taken before the strand told of its end
            self.taken.append(Taken(action, strand, name, (), placed))
        return True

    def become(self, window: Window, after: State, key: KeyRecord, since: int | None = None) -> None:
        """Read from a state what has become of the key and the task."""
        self.windows.read_task(window, after, self.task)
        self.change(key, self.windows.cells(after), since)

    def change(self, key: KeyRecord, cells: tuple[Value, ...], since: int | None = None) -> None:
        """The key has these values now."""
        if cells == key.cells:
            return
        key.cells = cells
        key.changed = self.number if since is None else since
        restless = self.task.restless
        if self.windows.quiet(cells):
            if key.name in restless:
                restless.remove(key.name)
        elif key.name not in restless:
            restless.append(key.name)

    def read(self, name: str, function: str) -> Value:
        """A value of a key in the model."""
        return self.key(name).cells[self.windows.of_key.index(function)]

    def note(self, kind: str, what: str, wrote: tuple[int, int] | None = None, *, strangers: bool = False) -> None:
        self.notes.append(Note(kind, what, wrote, strangers))

    def known(self, names: Sequence[str], strands: Sequence[Strand]) -> list[str]:
        """What the model knows, in words."""
        task = self.task
        damaged = ", lease damaged" if task.lease_damaged else ""
        until = "" if task.ends is None else f" until {task.ends}"
        holder = "nobody" if task.holder is None else f"{task.holder!a}{until}"
        lines = [f"task {task.name!a}: lease of {holder}, token {task.token}, asked up to {task.barrier}{damaged}"]
        for name in dict.fromkeys(names):
            if name in self.new:
                lines.append(f"key {name!a}: nothing; are all logs of the ledger here, from its beginning?")
                continue
            values = zip(self.windows.of_key, self.key(name).cells, strict=True)
            lines.append(f"key {name!a}: {', '.join(f'{n} {v}' for n, v in values if v not in (False, 0))}")
        for strand in strands:
            of = task.strands.get(strand, IDLE)
            lines.append(f"strand {strand[1]} of {strand[0]!a}: {of.stage}, token {of.held}")
        return lines
