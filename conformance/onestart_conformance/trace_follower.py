"""The monitor on a window: follows events of one task after the other, each on the records of its task alone.

What nobody tells is taken in only where an event shows it: a lease has run out if somebody claims the task after its
end, an execution has ended if its attempt is reconciled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from attrs import define, field

from onestart import Event
from onestart.records import is_over
from onestart_conformance.judgement import Objection
from onestart_conformance.monitor import ANSWERS, FENCED, OF_KEY, Monitor, Slot, Strand
from onestart_conformance.rules import CACHED, Rules
from onestart_conformance.trace_book import UNKNOWN, KeyRecord, StrandRecord, TaskRecord
from onestart_conformance.trace_merge import WRITES
from onestart_conformance.trace_scene import CRASHED, DAMAGED, EXPIRED, FINISHED, LATE, Scene, Taken
from onestart_conformance.trace_window import IDLE, Window
from onestart_model.execution import State, Step

OF_NOBODY = frozenset((*OF_KEY, "repair_lease"))
FENCED_WRITES = WRITES & frozenset(FENCED)
TURNED_AWAY = Step("conflict", (1, 0, False))
DAMAGES = {
    "receipts": "damage_receipt",
    "attempts": "damage_attempt",
    "sessions": "damage_session",
    "leases": "damage_lease",
}


@define
class Follower(Monitor):
    """refused: the state and the step at which it objected, if it was a step."""

    refused: tuple[State, Step] | None = None
    _hiding: Callable[[State, Step, int], bool] = field(init=False)
    _telling: Callable[[State], bool] = field(init=False)

    def __attrs_post_init__(self) -> None:
        Monitor.__attrs_post_init__(self)
        self._hiding = lru_cache(CACHED)(partial(Monitor._hides, self))
        self._telling = lru_cache(CACHED)(lambda state: self.rules.enabled(state, TURNED_AWAY))

    @classmethod
    def of(cls, rules: Rules) -> Follower:
        return cls(rules, {}, {}, external=False)

    def fit(self, scene: Scene, event: Event) -> Scene | None:
        """The scene after an event, with what it shows; None if it does not fit, and `objection` says why."""
        if event.action == "ruled":
            self._rule(scene, event)
            return scene
        if _shows(scene, event):
            scene = scene.copy()
            _take_in(scene, event)
        return scene if self._observed(scene, event) else None

    def explain(self, event: Event) -> tuple[Objection, str, Taken | None]:
        """The objection in full; the guard that stands in the way and the step that it forbids, if it is one."""
        assert self.objection is not None
        if self.refused is None:
            return self.objection, "", None
        state, step = self.refused
        rules = self.rules
        protections = rules.forbidden_by(state, step)
        promise = rules.broken(state, rules.forced(state, step, *protections[:1]))
        objection = Objection(self.objection.oracle, f"{event.action} is not allowed here", protections, promise)
        return objection, rules.why_not(state, step), _taken(event, step)

    # What the monitor does in another way ------------------------------------------------------------------------

    def time(self, now: float) -> None:
        """Leases run out where an event shows it: what is told late was not done late."""

    def slot_of(self, strand: Strand) -> int | None:
        return 0 if self.slots[0].strand == strand else None

    def slot(self, strand: Strand) -> int:
        return 0

    def _objection_to(self, rules: Rules, step: Step, oracle: str) -> Objection:
        self.refused = self.state, step
        return Objection(oracle, step.action)

    def _follow(self, event: Event, strand: Strand, step: Step) -> None:
        super()._follow(event, strand, step)
        if event.action == "look_up" and not self.stopped:
            self._expect_look_up(0, event.details["started"])

    def _legible(self, key: int) -> bool:
        return self._telling(self.state)

    def _hides(self, before: State, step: Step, key: int) -> bool:
        return self._hiding(before, step, key)

    # Records -----------------------------------------------------------------------------------------------------

    def _rule(self, scene: Scene, event: Event) -> None:
        strand = (event.process, event.strand)
        self.objection, self.ruled = None, {}
        self.observe(event)
        record = scene.task.strands.get(strand, IDLE._replace(key=event.key))
        scene.task.strands[strand] = record._replace(ruled=self.ruled[strand], seen=event.order)

    def _observed(self, scene: Scene, event: Event) -> bool:
        strand = (event.process, event.strand)
        key, record = scene.key(event.key), IDLE
        if event.action not in OF_NOBODY:
            record = scene.task.strands.get(strand, IDLE)
        window = scene.window(key, record)
        self._load(window, key, scene.task, record, event)
        self.observe(event)
        if self.objection is not None:
            return False
        if event.action in FENCED_WRITES and scene.task.ends is not None and event.at >= scene.task.ends:
            scene.note(LATE, f"{event.action} of key {event.key!a}")
        self._unload(scene, window, key, record, event)
        if scene.recorded:
            scene.taken += [_taken(event, step) for step in self.steps]
        return True

    def _load(self, window: Window, key: KeyRecord, task: TaskRecord, record: StrandRecord, event: Event) -> None:
        name, strand = event.key, (event.process, event.strand)
        self.objection = self.refused = None
        self.state = window.state
        self.steps.clear()
        self.edges.clear()
        self.slots = [Slot(strand if record.serving else None, record.token), Slot()]
        self.keys = {name: 0} if name else {}
        self.tasks = {event.task: 0}
        self.ends = {} if task.ends is None else {event.task: task.ends}
        self.issued = {event.task: task.issued}
        self.ruled = {} if record.ruled is None else {strand: record.ruled}
        adopted = key.bound == UNKNOWN and event.action != "conflict"
        self.bound = {} if key.bound is None or adopted else {name: key.bound}
        self.results = {} if key.result is None else {name: {"result": key.result}}
        self.recorded_for = {} if key.result_for is None else {name: key.result_for}
        self.created = {name} if key.created else set()
        self.unnamed = {name} if key.unnamed else set()

    def _unload(self, scene: Scene, window: Window, key: KeyRecord, record: StrandRecord, event: Event) -> None:
        task, name = scene.task, event.key
        scene.become(window, self.state, key)
        task.ends = self.ends.get(event.task)
        task.issued = self.issued[event.task]
        key.bound = self.bound.get(name, key.bound)
        if name in self.results:
            key.result = self.results[name]["result"]
            key.result_for = self.recorded_for.get(name)
        key.created = name in self.created
        key.unnamed = name in self.unnamed
        if event.action not in OF_NOBODY:
            self._leave(task, event)
            if event.action not in ANSWERS and event.action != "dropped":
                after = scene.windows.read_strand(window, self.state, record, name)
                token = self.slots[0].token if after.serving else 0
                task.strands[event.process, event.strand] = after._replace(token=token, seen=event.order)

    @staticmethod
    def _leave(task: TaskRecord, event: Event) -> None:
        """An answer ends a strand. One that was dropped may have taken a step that it could not tell of."""
        if event.action not in ANSWERS and event.action != "dropped":
            return
        record = task.strands.pop((event.process, event.strand), IDLE._replace(key=event.key))
        if event.action == "dropped" and event.details.get("error"):
            task.strands[event.process, -event.strand] = record._replace(seen=event.order, dropped=True)


def _taken(event: Event, step: Step) -> Taken:
    strand = None if event.action in OF_NOBODY else (event.process, event.strand)
    return Taken(step.action, strand, event.key, step.arguments[2:])


def _shows(scene: Scene, event: Event) -> bool:
    """Whether the event may show something that no event tells."""
    task, action = scene.task, event.action
    if action == "claim":
        return task.holder is not None
    if action == "abandon":
        return task.holder == event.key
    if action in ("reconcile", "settle"):
        return True
    return bool(event.details.get("damage"))


def _take_in(scene: Scene, event: Event) -> None:
    """What the event shows: a lease has run out, an execution has ended, a strand has died, a record is damaged."""
    task, key = scene.task, event.key
    if event.action in ("claim", "abandon") and (task.ends is None or _over(event, task.ends)):
        if scene.step("expire", key):
            scene.note(EXPIRED, f"the lease of task {task.name!a}")
        task.ends = None
    if event.action in ("reconcile", "settle") and scene.step("finish", key):
        scene.note(FINISHED, f"key {key!a}")
    if event.action == "settle":
        bury(scene, key)
    for store in event.details.get("damage", ()):
        action = DAMAGES.get(store) if isinstance(store, str) else None
        if action is not None and scene.step(action, key):
            scene.note(DAMAGED, f"in {store}, key {key!a}")
            if store == "leases":
                task.ends = None


def _over(event: Event, ends: float) -> bool:
    """Whether the lease has run out. How long leases last shows in the claim that follows."""
    lasts = event.details["ends"] - event.at if event.action == "claim" else 0.0
    return is_over(event.at, ends, lasts)


def bury(scene: Scene, key: str) -> None:
    """Whoever settles a key has made sure that nobody is about to start it, so those who were have died."""
    for strand, record in list(scene.task.strands.items()):
        if record.key == key and record.stage == "CONFIRMED":
            if not record.dropped:
                scene.step("crash", key, strand)
            del scene.task.strands[strand]
            scene.note(CRASHED, f"strand {abs(strand[1])} of {strand[0]!a}")
