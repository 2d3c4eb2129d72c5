"""Who judges a trial. Each oracle says what it objects to, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeGuard

from attrs import frozen

from onestart.answers import Outcome
from onestart.health import Finding, Health, Reading
from onestart.lines import Line, Place, decode
from onestart.lines import place as place_of
from onestart.records import STORES, store_of
from onestart_conformance.damage.grammar import Damage, Edited, Garbage, OfFile
from onestart_conformance.damage.medium import STORE
from onestart_conformance.damage.prepared import ROOT, Original, Prepared, task_of
from onestart_conformance.damage.trial import UNRELATED, Trial
from onestart_conformance.judgement import ANSWER, BYTES, CRASH, EFFECT, READ, START, Objection

ABSENCE = "absence"  # what was recorded reads as if it had never been, and nothing is said
REPORT = "report"  # damage that was met is not told of, by an answer or by the ledger's own check
UNRELATED_HELD = "unrelated"  # damage stands in the way of a command that it cannot concern

ORACLES = (START, EFFECT, READ, ANSWER, ABSENCE, REPORT, UNRELATED_HELD, BYTES, CRASH)
OF_FILES = (START, EFFECT, ANSWER, CRASH)  # all stores are in the file, and parts of it are used by nothing
NEVER = ("cancelled",)  # prepared keys that may not be started any more


@frozen
class Judged:
    """A trial beside what the ledger was. hidden: places of which a newest record went without leaving a trace."""

    prepared: Prepared
    trial: Trial
    gone: tuple[Original, ...]
    hidden: frozenset[Place]

    def reading(self, place: Place) -> Reading[Any] | None:
        """What is read in this place after the damage, None if nothing can be read."""
        return self.trial.seen.readings.get(place)


def judged(prepared: Prepared, trial: Trial) -> Judged:
    """Find out what is gone, and what of it nobody can know."""
    moved = {(damage.store, damage.record) for damage in trial.damages if _hides(damage)}
    gone = tuple(
        original
        for store, originals in prepared.records.items()
        for original in originals
        if original.raw not in trial.left[store] or (store, original.number) in moved
    )
    return Judged(prepared, trial, gone, frozenset(_hidden(prepared, trial, gone)))


def _hidden(prepared: Prepared, trial: Trial, gone: tuple[Original, ...]) -> Iterator[Place]:
    """Of files it is known how far they had got, so that something is always missing."""
    if prepared.numbering == STORE:
        return
    traces = _Traces(prepared, trial, frozenset(original.raw for original in gone))
    yield from (original.line.place for original in gone if not traces.of(original))


def _hides(damage: Damage) -> TypeGuard[Edited]:
    """Whether a row is no longer found by what it was found by."""
    return isinstance(damage, Edited) and damage.column in ("kind", "name")


def objections(prepared: Prepared, trial: Trial) -> Iterator[Objection]:
    """What all oracles object to."""
    case = judged(prepared, trial)
    of_file = any(isinstance(damage, OfFile) for damage in trial.damages)
    for oracle, judge in JUDGES.items():
        if not of_file or oracle in OF_FILES:
            yield from (Objection(oracle, what) for what in judge(case))


def _starts(case: Judged) -> Iterator[str]:
    """No key is ever started twice, and what was cancelled before its start never is."""
    for key, number in case.trial.starts.items():
        if number > 1:
            yield f"{key} was started {number} times"
        if number and key in NEVER:
            yield f"{key} was started, and had been cancelled before"


def _effects(case: Judged) -> Iterator[str]:
    for key, number in case.trial.effects.items():
        if number > case.trial.starts.get(key, 0):
            yield f"{key} had {number} effects in {case.trial.starts.get(key, 0)} starts"


def _records(case: Judged) -> Iterator[str]:
    """Whatever is read was recorded, in this place; and an older record never passes for the newest."""
    for place, before in case.prepared.shown.items():
        now = case.reading(place)
        if now is None:
            continue
        foreign = [record for record in now.records if record not in before.records]
        if foreign:
            yield f"the {place[0]} of {place[1]} shows {foreign[0]}, which was never recorded there"
        if now.newest is not None and now.newest != before.newest and not _excused(case, place):
            yield f"the {place[0]} of {place[1]} shows an older record as the newest, and nothing is said"


def _absence(case: Judged) -> Iterator[str]:
    """What was recorded never reads as absent without a word."""
    for place, before in case.prepared.shown.items():
        now = case.reading(place)
        if now is not None and before.exists and not now.exists and not _excused(case, place):
            yield f"the {place[0]} of {place[1]} reads as absent, and nothing is said"


def _excused(case: Judged, place: Place) -> bool:
    """Whether damage that may be anybody's is reported of the place's store, or nobody could know of it."""
    return place in case.hidden or any(_may_be_of(case, finding, place) for finding in case.trial.seen.stray)


def _may_be_of(case: Judged, finding: Finding, place: Place) -> bool:
    """Whether damage that may be anybody's may be of this place; rows say of which one they are."""
    named = case.prepared.numbering == STORE or f" of {place[1]}," in finding.where
    return named and finding.store == store_of(place[0])


def _answers(case: Judged) -> Iterator[str]:
    """A result is the recorded one; without one, an answer says what the executor knows."""
    trial, key = case.trial, case.trial.subject
    recorded = case.prepared.results.get(key)
    for said in trial.answers:
        if said.who != key or key == ROOT:
            continue
        if said.result is not None and recorded is not None and dict(said.result) != recorded:
            yield f"{key} is answered with {said.result}, and {recorded} was recorded"
        started = trial.starts.get(key, 0) > 0
        if (said.outcome == Outcome.STARTED and not started) or (said.outcome == Outcome.CLOSED and started):
            yield f"{key} is said to be {said.outcome}, and was started {trial.starts.get(key, 0)} times"


def _reported(case: Judged) -> Iterator[str]:
    """Damage is told of: by the ledger's own check, and by the answer whose reading met it."""
    trial = case.trial
    if not trial.verified.told and not trial.verified.raised and _can_be_told(case):
        yield "the ledger's own check finds nothing wrong"
    if not trial.readable and not trial.answers[0].findings:
        yield f"{trial.subject} is answered without a word on the store that cannot be read"
    met = list(_met(case))
    if met and not trial.answers[0].findings:
        yield f"{trial.subject} is answered without a word on the {met[0]}"


def _met(case: Judged) -> Iterator[str]:
    """The damage that is read before the answer, and is still there after it."""
    trial = case.trial
    for place in _places_of(trial.subject):
        if _degraded(trial.seen.readings, place) and _degraded(trial.afterwards.readings, place):
            yield f"{place[0]} of {place[1]}"
    for finding in trial.afterwards.stray:
        where = ("step", ROOT) if trial.subject == ROOT else (STORES[finding.store][0], trial.subject)
        if finding in trial.seen.stray and _may_be_of(case, finding, where):
            yield str(finding)


def _can_be_told(case: Judged) -> bool:
    """Whether anything is gone, which a ledger's count of its records tells, or there is more than was written."""
    trial = case.trial
    if not trial.readable:
        return True
    added = any(
        raw not in {original.raw for original in case.prepared.records[store]} and not _may_be_torn(trial, store, raw)
        for store, records in trial.left.items()
        for raw in records
    )
    moved = any(_order(case.prepared, store, records) for store, records in trial.left.items())
    return len(case.gone) > 0 or added or moved


def _may_be_torn(trial: Trial, store: str, raw: bytes) -> bool:
    """A last write without its end was never acknowledged, as far as anybody can tell."""
    return store in trial.torn and raw == trial.left[store][-1]


def _order(prepared: Prepared, store: str, records: tuple[bytes, ...]) -> bool:
    """Whether the records that are left stand in another order, or are there twice."""
    known = {original.raw: original.number for original in prepared.records[store]}
    numbers = [known[raw] for raw in records if raw in known]
    return any(after <= before for before, after in pairwise(numbers))


def _places_of(subject: str) -> Iterator[Place]:
    """What is read for an answer about a key; for a flow its journal."""
    if subject == ROOT:
        yield ("step", ROOT)
        return
    yield from ((kind, subject) for kind in ("receipt", "attempt", "session", "approval", "note"))
    yield ("lease", task_of(subject))


def _degraded(readings: Mapping[Place, Reading[Any]], place: Place) -> bool:
    reading = readings.get(place)
    return reading is not None and reading.health.degraded


def _unrelated(case: Judged) -> Iterator[str]:
    """A command that the damage cannot concern is started; if a store cannot be read at all, it is held and told."""
    said = case.trial.unrelated
    if not case.trial.readable:
        if not said.held or not said.findings:
            yield f"{UNRELATED} is answered with {said.outcome} over a store that nobody can read"
    elif said.outcome != Outcome.STARTED or case.trial.starts.get(UNRELATED) != 1:
        yield f"{UNRELATED} is {said.outcome}: {said.reason}"


def _bytes(case: Judged) -> Iterator[str]:
    yield from case.trial.changed


def _raised(case: Judged) -> Iterator[str]:
    trial = case.trial
    yield from (
        f"{said.who}: {said.raised}" for said in (*trial.answers, trial.unrelated, trial.sibling) if said.raised
    )


JUDGES: Mapping[str, Callable[[Judged], Iterator[str]]] = {
    START: _starts,
    EFFECT: _effects,
    READ: _records,
    ANSWER: _answers,
    ABSENCE: _absence,
    REPORT: _reported,
    UNRELATED_HELD: _unrelated,
    BYTES: _bytes,
    CRASH: _raised,
}


class _Traces:
    """What is left in a damaged database that tells of a record that is gone."""

    def __init__(self, prepared: Prepared, trial: Trial, gone: frozenset[bytes]) -> None:
        """gone: the bytes of records that are not in their places, wherever else they may be."""
        self._furthest: dict[Place, int] = {}
        self._residue: dict[str, list[Place | None]] = {}
        put_in = {d.data for d in trial.damages if isinstance(d, Garbage)}
        for store, records in trial.left.items():
            # A row that was put in by hand is in a place of its own, and so in nobody else's.
            known = {original.raw for original in prepared.records[store]} | put_in
            self._residue[store] = [_shown_by(raw) for raw in records if raw not in known]
            for line in map(_decoded, (raw for raw in records if raw not in gone)):
                if line.health is Health.INTACT:
                    self._reaches(line.place, line.seq)
                    for kind, seq in line.refs.items():
                        self._reaches(place_of(kind, line.key, line.task), seq)

    def _reaches(self, where: Place, seq: int) -> None:
        self._furthest[where] = max(self._furthest.get(where, 0), seq)

    def of(self, gone: Original) -> bool:
        """Whether something shows that there was as much; or what is left in its place, which tells of one.

        To be asked of all that is gone, in the order of the records.
        """
        for where in (gone.line.place, None):
            if where in self._residue[gone.store]:
                self._residue[gone.store].remove(where)
                return True
        return self._furthest.get(gone.line.place, 0) >= gone.line.seq


def _shown_by(raw: bytes) -> Place | None:
    """Which place the rest of a record tells of; None if it may be any."""
    line = _decoded(raw)
    return line.place if line.seq else None


@lru_cache(4096)
def _decoded(raw: bytes) -> Line:
    return decode(raw.rstrip(b"\n"))
