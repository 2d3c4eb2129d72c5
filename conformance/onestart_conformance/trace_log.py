"""Checks event logs against the model, each task by itself: does it fit, and if not, at which event does it stop?

Monitor and rules are those of the simulated world. Memory is constant, however long the logs are: each event is
followed in a window on its task, tasks that are not in use are on disk, and logs are read as streams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import NoReturn

from attrs import define, field, frozen

from onestart import Event
from onestart.events import LAYERS
from onestart.flow.driver import lease_of
from onestart_conformance.judgement import RULE, Objection
from onestart_conformance.monitor import ANSWERS
from onestart_conformance.trace_book import IN_MEMORY, Book, Need
from onestart_conformance.trace_bridges import Bridges, Debts
from onestart_conformance.trace_flows import Flows
from onestart_conformance.trace_follower import Follower
from onestart_conformance.trace_merge import AFTER_FAILURE, WINDOW, Merge, Told
from onestart_conformance.trace_scene import CRASHED, LOST, UNTOLD, Note, Scene, Taken
from onestart_conformance.trace_window import Windows, standard

MOST_STRANDS = 4096
MOST_PENDING = 8
EXAMPLES = 3
TICK = 2000
ANYWHERE = frozenset(("conflict", "report", "dropped"))

DAMAGE: Mapping[str, Callable[[Scene, str], tuple[str, bool]]] = {
    "damage_receipt": lambda scene, key: ("receipts", str(scene.read(key, "receipt")).endswith("DAMAGED")),
    "damage_attempt": lambda scene, key: ("attempts", scene.read(key, "attempt") == "DAMAGED"),
    "damage_session": lambda scene, key: ("sessions", scene.read(key, "session") == "LIVE"),
    "damage_lease": lambda scene, key: ("leases", bool(scene.task.lease_damaged)),
}

Progress = Callable[[int, float], None]
Recorder = Callable[[str, Event, Sequence[Taken], Sequence[Note]], None]


class MisfitError(Exception):
    """An event does not fit."""

    def __init__(self, misfit: Misfit) -> None:
        super().__init__(str(misfit.objection))
        self.misfit = misfit


@frozen
class Misfit:
    """The event that stops a log from fitting. event: None if it shows only later that it does not fit.

    guard, refused: of the rule that it breaks and the step that is forbidden, if it breaks one. known: what the model
    knows at that moment.
    """

    where: str
    event: Event | None
    task: str
    objection: Objection
    guard: str = ""
    refused: Taken | None = None
    known: tuple[str, ...] = ()


@define
class Report:
    """What a check has found. notes: how often something was taken in that no event tells. examples: the first of each.

    torn: where lines were cut off.
    """

    events: Counter[str] = field(factory=Counter)
    keys: int = 0
    tasks: int = 0
    processes: int = 0
    notes: Counter[str] = field(factory=Counter)
    examples: dict[str, list[str]] = field(factory=dict)
    torn: list[str] = field(factory=list)
    misfit: Misfit | None = None

    @property
    def total(self) -> int:
        return sum(self.events.values())


@define
class Checker:
    """Follows a sequence of events. recorder: is told of the steps that were taken for each event."""

    merge: Merge
    book: Book
    recorder: Recorder | None = None
    report: Report = field(factory=Report)
    windows: Windows = field(factory=standard)
    flows: Flows = field(factory=Flows)
    follower: Follower = field(init=False)
    debts: Debts = field(init=False)
    bridges: Bridges = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.follower = Follower.of(self.windows.rules)
        self.debts = Debts(self.book, self.merge)
        self.bridges = Bridges(self.merge, self.debts)

    def take(self, told: Told, only: str | None = None) -> None:
        """Follow one event. Raises MisfitError if it, or one before it, does not fit."""
        event = told.event
        self.report.events[LAYERS[event.action]] += 1
        self.book.see(event.process)
        if event.action not in AFTER_FAILURE:
            debt = self.debts.speaks(event.process)
            if debt is not None:
                _object_to(debt.need, debt.instead, debt.task)
        if event.action == "stopped":
            return
        if self.flows.concerns(event):
            self._take_of_flow(told, only)
            return
        key = self.book.key(event.key) if event.key else None
        name = event.task if key is None else key.task
        if only is not None and name != only:
            return
        if name != event.task:
            if event.action in ANYWHERE:
                return  # a submission for another task is turned away, and no record of either task matters
            what = f"key {event.key!a} belongs to task {name!a}"
            raise MisfitError(Misfit(told.where, event, name, Objection(RULE, what, ("fingerprint",))))
        keys = {} if key is None else {event.key: key}
        recorded = self.recorder is not None
        self._follow(told, Scene(self.book, self.windows, self.book.task(name), event.order, keys, recorded))

    def _take_of_flow(self, told: Told, only: str | None) -> None:
        event = told.event
        if only is not None and event.task != only:
            return
        objection = self.flows.take(event)
        if objection is not None:
            raise MisfitError(Misfit(told.where, event, event.task, objection))
        if self.recorder is not None:
            self.recorder(told.where, event, (), ())

    def end(self) -> None:
        """Raises MisfitError if a flow that is not complete does not fit as far as it goes."""
        found = self.flows.end()
        if found is not None:
            root, objection = found
            raise MisfitError(Misfit("the end of the logs", None, lease_of(root), objection))

    def _follow(self, told: Told, scene: Scene) -> None:
        event, task = told.event, scene.task
        brief = (event.process, event.strand, event.action, event.key, event.order, event.at)
        if brief == task.last:
            self._object(told, scene, Objection(RULE, "it is told twice"))
        task.last = brief
        if task.owed and self._came_late(told, scene):
            return
        if task.suspected and event.action in ANSWERS:
            self._doubt(told, scene)
        begun = len(task.strands)
        overtaken = self.bridges.overtaken(scene, event) if begun else []
        after = self.follower.fit(scene, event)
        if after is None:
            objection, guard, refused = self.follower.explain(event)
            need = Need(told.where, event.order, objection.what, guard, objection.protections, objection.promise)
            after = self.bridges.explained(scene, event, need, lambda trial: self.follower.fit(trial, event))
            if after is None:
                self._object(told, scene, objection, guard, refused)
            self._keep(told, after, need)
        else:
            self._keep(told, after)
        if overtaken:
            after.task.pending = [*after.task.pending, *overtaken][-MOST_PENDING:]
        self.report.notes[CRASHED] += len(after.task.strands) - begun

    def _came_late(self, told: Told, scene: Scene) -> bool:
        """Whether the event is one that was taken in before it was told."""
        event, task = told.event, scene.task
        strand = (event.process, event.strand)
        owed = task.owed.pop(strand, None)
        if owed is None or event.action == "dropped":
            return False
        if (event.action, event.key) != (owed.action, owed.key):
            _object_to(owed.need, owed.instead, task.name)
        self.report.notes[UNTOLD] -= 1
        if event.action == "claim":
            task.ends, task.issued = event.details["ends"], max(event.token, task.issued)
        record = task.strands.get(strand)
        if record is not None:
            task.strands[strand] = record._replace(token=event.token, seen=event.order)
        return True

    def _doubt(self, told: Told, scene: Scene) -> None:
        """Damage that was assumed has to be told of by every answer about it, for as long as it lasts."""
        event, task = told.event, scene.task
        for owed in list(task.suspected):
            store, lasts = DAMAGE[owed.action](scene, owed.key)
            concerned = store == "leases" or owed.key == event.key
            if not lasts or (concerned and store in event.details["damage"]):
                task.suspected.remove(owed)
            elif concerned and event.order >= owed.need.number:
                lost = owed.action == "damage_attempt" and self.bridges.may_have_lost(scene, event)
                if not (lost and scene.step("lose_attempt", owed.key)):
                    _object_to(owed.need, owed.instead, task.name)
                scene.note(LOST, f"of key {owed.key!a}")
                task.suspected.remove(owed)

    def _keep(self, told: Told, scene: Scene, need: Need | None = None) -> None:
        for note in scene.notes:
            self._note(told, note, need)
        strands = scene.task.strands
        while len(strands) > MOST_STRANDS:
            del strands[next(iter(strands))]
            self.report.notes[CRASHED] += 1
        if self.recorder is not None:
            self.recorder(told.where, told.event, scene.taken, scene.notes)
        scene.keep()

    def _note(self, told: Told, note: Note, need: Need | None) -> None:
        report = self.report
        report.notes[note.kind] += 1
        examples = report.examples.setdefault(note.kind, [])
        if len(examples) < EXAMPLES:
            examples.append(f"{told.where}: {note.what}")
        if note.wrote is not None:
            self.merge.numbers.use(*note.wrote)
        if note.strangers and need is not None:
            event = told.event
            self.debts.add(need, f"every process goes on without {note.what}", event.task, event.process)

    def _object(
        self, told: Told, scene: Scene, objection: Objection, guard: str = "", refused: Taken | None = None
    ) -> NoReturn:
        event, task = told.event, scene.task
        known = scene.known([event.key] if event.key else [], [(event.process, event.strand)])
        raise MisfitError(Misfit(told.where, event, task.name, objection, guard, refused, tuple(known)))


def _object_to(need: Need, instead: str, task: str) -> NoReturn:
    """An event that fits only with an assumption does not fit, because it was not so."""
    objection = Objection(RULE, f"{need.what}; {instead}", need.protections, need.promise)
    raise MisfitError(Misfit(need.where, None, task, objection, need.guard))


def check(
    paths: Sequence[str],
    *,
    window: int = WINDOW,
    in_memory: int = IN_MEMORY,
    progress: Progress = lambda events, share: None,
    only: str | None = None,
    recorder: Recorder | None = None,
) -> Report:
    """Check the logs of one ledger, of all its processes from its beginning.

    progress: is told how many events were followed, and the share of bytes read. only: follow this task alone.
    Raises EventLogError for what is no event log, BookError if the disk is full.
    """
    with closing(Book(in_memory)) as book, closing(Merge(paths, book.see, window)) as merge:
        checker = Checker(merge, book, recorder)
        _run(checker, progress, only)
        report = checker.report
        report.keys, report.tasks, report.processes = (book.counts[what] for what in ("key", "task", "process"))
        report.torn = merge.torn
        return report


def _run(checker: Checker, progress: Progress, only: str | None) -> None:
    merge, size = checker.merge, max(checker.merge.size, 1)
    try:
        for number, told in enumerate(merge, 1):
            checker.take(told, only)
            if number % TICK == 0:
                progress(number, merge.read / size)
        checker.end()
    except MisfitError as error:
        checker.report.misfit = error.misfit
