"""Who judges a trial. Each oracle says what it objects to, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from attrs import frozen

from onestart.answers import Outcome
from onestart.health import Health, Reading
from onestart.lines import Line, Place, decode
from onestart.records import store_of
from onestart_conformance.damage.grammar import UNREADABLE
from onestart_conformance.damage.prepared import ROOT, Original, Prepared, task_of
from onestart_conformance.damage.trial import UNRELATED, Trial
from onestart_conformance.judgement import ANSWER, BYTES, CRASH, EFFECT, READ, START, Objection

ABSENCE = "absence"  # what was recorded reads as if it had never been, and nothing is said
REPORT = "report"  # damage that was met is not told of, by an answer or by the ledger's own check
UNRELATED_HELD = "unrelated"  # damage stands in the way of a command that it cannot concern

ORACLES = (START, EFFECT, READ, ANSWER, ABSENCE, REPORT, UNRELATED_HELD, BYTES, CRASH)
FLOWS = store_of("step")
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
    gone = tuple(
        original
        for store, originals in prepared.records.items()
        for original in originals
        if original.raw not in trial.left[store]
    )
    traces = _Traces(prepared, trial)
    return Judged(prepared, trial, gone, frozenset(original.line.place for original in gone if not traces.of(original)))


def objections(prepared: Prepared, trial: Trial) -> Iterator[Objection]:
    """What all oracles object to."""
    case = judged(prepared, trial)
    for oracle, judge in JUDGES.items():
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
    store = store_of(place[0])
    return place in case.hidden or any(finding.store == store for finding in case.trial.seen.stray)


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
    if trial.seen.unavailable and not trial.answers[0].findings:
        yield f"{trial.subject} is answered without a word on the store that cannot be read"
    met = list(_met(trial))
    if met and not trial.answers[0].findings:
        yield f"{trial.subject} is answered without a word on the {met[0]}"


def _met(trial: Trial) -> Iterator[str]:
    """The damage that is read before the answer, and is still there after it."""
    for place in _places_of(trial.subject):
        if _degraded(trial.seen.readings, place) and _degraded(trial.afterwards.readings, place):
            yield f"{place[0]} of {place[1]}"
    for finding in trial.afterwards.stray:
        if finding in trial.seen.stray and (trial.subject != ROOT or finding.store == FLOWS):
            yield str(finding)


def _can_be_told(case: Judged) -> bool:
    """Whether the ledger differs from what was written by more than a last write that may have been cut off."""
    trial = case.trial
    if trial.seen.unavailable:
        return True
    traced = any(original.line.place not in case.hidden for original in case.gone)
    added = any(
        raw not in {original.raw for original in case.prepared.records[store]} and not _may_be_torn(trial, store, raw)
        for store, records in trial.left.items()
        for raw in records
    )
    moved = any(_order(case.prepared, store, records) for store, records in trial.left.items())
    return traced or added or moved


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
    yield from ((kind, subject) for kind in ("receipt", "attempt", "session", "approval"))
    yield ("lease", task_of(subject))


def _degraded(readings: Mapping[Place, Reading[Any]], place: Place) -> bool:
    reading = readings.get(place)
    return reading is not None and reading.health.degraded


def _unrelated(case: Judged) -> Iterator[str]:
    """A command that the damage cannot concern is started; if a store cannot be read at all, it is held and told."""
    said = case.trial.unrelated
    if any(isinstance(damage, UNREADABLE) for damage in case.trial.damages):
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
    """What is left in a damaged ledger that tells of a record that is gone."""

    def __init__(self, prepared: Prepared, trial: Trial) -> None:
        self._furthest: dict[str, int] = {}
        self._residue: dict[str, int] = {}
        for store, records in trial.left.items():
            known = {original.raw for original in prepared.records[store]}
            whole = [raw for raw in records if not _may_be_torn(trial, store, raw)]
            self._residue[store] = sum(raw not in known for raw in whole)
            for line in map(_decoded, whole):
                if line.health is Health.INTACT:
                    self._reaches(store, line.seq)
                    for kind, seq in line.refs.items():
                        self._reaches(store_of(kind), seq)

    def _reaches(self, store: str, seq: int) -> None:
        self._furthest[store] = max(self._furthest.get(store, 0), seq)

    def of(self, gone: Original) -> bool:
        """Whether something shows that its store had got as far; or what is left in its place, which tells of one.

        To be asked of all that is gone, in the order of the records.
        """
        if self._residue[gone.store]:
            self._residue[gone.store] -= 1
            return True
        return self._furthest.get(gone.store, 0) >= gone.line.seq


@lru_cache(4096)
def _decoded(raw: bytes) -> Line:
    return decode(raw.rstrip(b"\n"))
