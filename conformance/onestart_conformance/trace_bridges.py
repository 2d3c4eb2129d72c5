"""What may have happened untold, so that an event fits which by itself does not.

A process that was killed may have taken one step that it did not tell of. Its record has a number, and that number is
missing in the logs; so where no number is missing, nothing is assumed. Whoever is said to have taken such a step must
not go on with another one: if they do, the event that needed the assumption is the one that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from attrs import define, field

from onestart import Event
from onestart_conformance.monitor import Strand
from onestart_conformance.trace_book import UNKNOWN, Book, Need, Owed, Pending, StrandRecord
from onestart_conformance.trace_follower import bury
from onestart_conformance.trace_merge import WRITES, Merge, Numbers
from onestart_conformance.trace_scene import DAMAGED, FINISHED, LOST, SPOILED, UNTOLD, Scene, Taken

IN_CALLBACK = (
    *("offer", "claim", "intend", "note", "start", "record", "give_up", "withdraw"),
    *("report_closed", "report_dispatched"),
)
IN_KERNEL = ("accept", "refuse", "report_closed", "report_dispatched")
OF_NOBODY = ("cancel", "cancel_session", "reconcile", "release", "settle")
FREES = ("withdraw", "release", "claim", "repair_lease", "damage_lease")
OVERTAKEN = ("intend", "note", "record", "give_up")
CLOSES = ("cancel", "refuse", "settle")
SPOILS = ("damage_attempt", "damage_session", "damage_receipt", "damage_lease")
SHOWS_DAMAGE = ("repair_lease", "give_up")
MOST_STRANDS = 32
MOST_CANDIDATES = 200

Bridge = Callable[[Scene], bool]


def describe(strand: Strand) -> str:
    return f"strand {abs(strand[1])} of {strand[0]!a}"


@define
class Bridges:
    """merge: knows which record numbers no event tells of, and who goes on."""

    merge: Merge
    debts: Debts
    numbers: Numbers = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.numbers = self.merge.numbers

    def explained(self, scene: Scene, event: Event, need: Need, fit: Callable[[Scene], Scene | None]) -> Scene | None:
        """The scene after the event and what makes it fit: one thing untold, or two. None if nothing does."""
        tried = []
        for bridge in self._bridges(scene, event, need):
            trial = scene.copy()
            if bridge(trial):
                after = fit(trial)
                if after is not None:
                    return after
                if not trial.task.lease_damaged or scene.task.lease_damaged:  # damage to the lease explains by itself
                    tried.append(trial)
        for trial in tried:
            for bridge in self._bridges(trial, event, need):
                second = trial.copy()
                if bridge(second):
                    after = fit(second)
                    if after is not None:
                        return after
        return None

    def _bridges(self, scene: Scene, event: Event, need: Need) -> Iterator[Bridge]:
        """What may have happened, the likeliest first."""
        high = event.order - (event.action in WRITES and event.action != "record")
        own = (event.process, event.strand)
        for strand, record in list(scene.task.strands.items())[: -MOST_STRANDS - 1 : -1]:
            if strand == own or strand in scene.task.owed:
                continue
            lives = not record.dropped and (self.merge.goes_on(*strand) or self.merge.goes_on(strand[0]))
            for action in IN_CALLBACK if record.serving else IN_KERNEL:
                if lives and action != "start":  # which may be on its way
                    continue
                wrote = None if action == "start" else (record.seen, high)
                instead = f"{describe(strand)} goes on without having taken {action}"
                owed = Owed(action, record.key, instead, need)
                yield partial(self._by_strand, strand=strand, owed=owed, wrote=wrote)
        for pending in scene.task.pending:
            yield partial(self._before, pending=pending, high=high, need=need)
        names = [name for name in dict.fromkeys([event.key, *scene.task.restless[:4], scene.task.holder]) if name]
        of_stores = list(_spoiling(event, need))
        if self.may_have_lost(scene, event):
            of_stores += [partial(_lost, key=name) for name in names]
        if self.numbers.fell:
            yield from of_stores
        if self.debts.possible(event.process):
            for name in names:
                for action in (*IN_KERNEL, *OF_NOBODY):
                    yield partial(self._by_stranger, action=action, key=name, high=high)
            yield partial(self._by_stranger, action="repair_lease", key=event.key, high=high)
        if not self.numbers.fell:
            yield from of_stores

    def may_have_lost(self, scene: Scene, event: Event) -> bool:
        """Whether an attempt may have been lost: the count of records fell, or untold ones may make up for it."""
        numbers, own = self.numbers, (event.process, event.strand)
        untold = bool(numbers.missing or numbers.used) or any(strand != own for strand in scene.task.strands)
        return numbers.fell > 0 or untold

    def _by_strand(self, scene: Scene, strand: Strand, owed: Owed, wrote: tuple[int, int] | None) -> bool:
        record = scene.task.strands[strand]
        if wrote is not None and not self.numbers.between(*wrote):
            return False
        if not scene.step(owed.action, owed.key, strand, since=record.seen):
            return False
        _untold(scene, owed.action, owed.key)
        scene.note(UNTOLD, f"{owed.action} of key {owed.key!a} by {describe(strand)}", wrote)
        _answer_for(scene, strand, record, owed)
        return True

    def _before(self, scene: Scene, pending: Pending, high: int, need: Need) -> bool:
        """A step that was taken before another one made it impossible."""
        task = scene.task
        if not self.numbers.between(pending.seen, high):
            return False
        if pending.action == "claim":
            if task.lease != pending.before:
                return False
            task.holder, task.token, task.lease_damaged = pending.after  # type: ignore[assignment]
            task.ends = None
        else:
            key = scene.key(pending.key)
            if key.cells != pending.before:
                return False
            scene.change(key, pending.after, pending.seen)
        task.pending.remove(pending)
        what = f"{pending.action} of key {pending.key!a} by {describe(pending.strand)}"
        scene.note(UNTOLD, what, (pending.seen, high))
        scene.taken.append(Taken(pending.action, pending.strand, pending.key, placed=False))
        record = task.strands.get(pending.strand)
        if record is not None:
            instead = f"{describe(pending.strand)} goes on without having taken {pending.action}"
            _answer_for(scene, pending.strand, record, Owed(pending.action, pending.key, instead, need))
        return True

    def _by_stranger(self, scene: Scene, action: str, key: str, high: int) -> bool:
        wrote = (scene.key(key).changed, high)
        if not self.numbers.between(*wrote):
            return False
        if action in ("reconcile", "settle") and scene.step("finish", key):
            scene.note(FINISHED, f"key {key!a}")
        if action == "settle":
            bury(scene, key)
        if not scene.step(action, key, since=wrote[0]):
            return False
        _untold(scene, action, key)
        scene.note(UNTOLD, f"{action} of key {key!a}", wrote, strangers=True)
        return True

    def overtaken(self, scene: Scene, event: Event) -> list[Pending]:
        """The steps that other strands may have taken, untold, and that are impossible once the event has happened."""
        task, own = scene.task, (event.process, event.strand)
        closes = event.action in CLOSES
        if not closes and event.action != "claim" and "leases" not in event.details.get("damage", ()):
            return []
        found = []
        for strand, record in list(task.strands.items())[-MOST_STRANDS:]:
            if strand == own or not record.serving or not self.numbers.between(record.seen, event.order):
                continue
            if closes and record.key == event.key:
                found += list(_possible(scene, strand, record, ("claim",)))
            elif not closes and task.holder == record.key and record.held == task.token:
                found += list(_possible(scene, strand, record, OVERTAKEN))
        return found


def _possible(scene: Scene, strand: Strand, record: StrandRecord, actions: tuple[str, ...]) -> Iterator[Pending]:
    for action in actions:
        trial = scene.copy()
        if trial.step(action, record.key, strand):
            if action == "claim":
                yield Pending(strand, action, record.key, record.seen, scene.task.lease, trial.task.lease)
            else:
                before, after = scene.key(record.key).cells, trial.key(record.key).cells
                yield Pending(strand, action, record.key, record.seen, before, after)


def _untold(scene: Scene, action: str, key: str) -> None:
    """Until when the lease lasts, or what the key is bound to, nobody knows after an untold step."""
    if action in FREES:
        scene.task.ends = None
    if action == "accept":
        scene.key(key).bound = UNKNOWN


def _answer_for(scene: Scene, strand: Strand, record: StrandRecord, owed: Owed) -> None:
    """A strand that told of its end has no more to tell; any other one must not go on in another way."""
    if record.dropped:
        del scene.task.strands[strand]
    else:
        scene.task.owed[strand] = owed


def _spoiling(event: Event, need: Need) -> Iterator[Bridge]:
    for action in SPOILS:
        owed = Owed(action, event.key, "answers tell of no damage", need)
        yield partial(_spoiled, action=action, owed=owed, shown=event.action in SHOWS_DAMAGE)


def _spoiled(scene: Scene, action: str, owed: Owed, shown: bool) -> bool:
    if not scene.step(action, owed.key):
        return False
    _untold(scene, action, owed.key)
    scene.note(DAMAGED if shown else SPOILED, f"{action.removeprefix('damage_')} of key {owed.key!a}")
    if not shown:
        scene.task.suspected.append(owed)
    return True


def _lost(scene: Scene, key: str) -> bool:
    if not scene.step("lose_attempt", key):
        return False
    scene.note(LOST, f"of key {key!a}")
    return True


@define
class Debt:
    """A step that was assumed of some process that has ended. candidates: those of which nothing was heard since.

    older: whether it may be one that is no longer remembered.
    """

    need: Need
    instead: str
    task: str
    candidates: set[str]
    older: bool


@define
class Debts:
    """Steps that were assumed of processes that have ended, nobody knows which."""

    book: Book
    merge: Merge
    most: int = 256
    owed: list[Debt] = field(factory=list)
    _watched: dict[str, list[Debt]] = field(factory=dict)

    def possible(self, process: str) -> bool:
        """Whether some other process may have ended with a step that no event tells."""
        candidates, older = self._candidates(process)
        return older or len(candidates) > len(self.owed)

    def _candidates(self, process: str) -> tuple[set[str], bool]:
        """The other processes that are not known to go on, and whether there may be older ones."""
        last = list(islice(self.book.processes, MOST_CANDIDATES))
        silent = {name for name in last if name != process and not self.merge.goes_on(name)}
        return silent, self.book.counts["process"] > len(last)

    def add(self, need: Need, instead: str, task: str, process: str) -> None:
        """Somebody else than this process has taken a step."""
        candidates, older = self._candidates(process)
        debt = Debt(need, instead, task, candidates, older)
        self.owed.append(debt)
        for name in debt.candidates:
            self._watched.setdefault(name, []).append(debt)
        if len(self.owed) > self.most:
            self._forget(self.owed.pop(0))

    def speaks(self, process: str) -> Debt | None:
        """The process lives. Returns a debt that nobody is left for."""
        for debt in self._watched.pop(process, ()):
            debt.candidates.discard(process)
            if not debt.candidates and not debt.older:
                return debt
        return None

    def _forget(self, debt: Debt) -> None:
        for name in debt.candidates:
            left = [other for other in self._watched[name] if other is not debt]
            if left:
                self._watched[name] = left
            else:
                del self._watched[name]
