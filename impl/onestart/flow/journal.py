"""The journal of a root: what is recorded about it, and what a resumed attempt finds there.

what          step        body
`root`                    flow, version, arguments: how it began
`attempt`                 number: a driver has taken it up again
`index`       admitted    kind, spec, shown; where it stands: after and closed, or place if it counts; within;
                      declared: what counted before and is not on record yet
`again`       in flight   number: its executor said that it may run again
`done`        completed   result, or failed: the diagnostic
`wait`        parked      question, to, digest, and where it stands
`answer`      answered    value, by
`verdict`     hook        verdict, input, after_step: the counter when the hook's body had ended
`complete`    the marker  result: the flow's
`ended`                   state, reason, message: why an attempt ended otherwise

An entry is never changed. Source: serial ordinals, "The fix".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from onestart.flow.errors import JournalError, NewerJournalError
from onestart.flow.identity import LATEST, LEGACY, parse
from onestart.flow.line import Counts
from onestart.health import Reading
from onestart.records import Step

Place = tuple[str, str, int]  # scope, hash of the frontier, ordinal


@frozen
class Indexed:
    """A step that was admitted. spec: its digest; shown: the same for people. within: the hook that it is part of."""

    step: str
    kind: str
    spec: str = ""
    shown: str = ""
    within: str = ""


@frozen
class Ended:
    """What a step has come to. failed: the diagnostic of its failure."""

    result: Any = None
    failed: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """As an entry records it."""
        return {"result": self.result} if self.failed is None else {"failed": self.failed}


@frozen
class Wait:
    """A question that a flow is parked on. answered: whether there is an answer; value: that. within: see `Indexed`."""

    step: str
    question: str
    to: str
    digest: str = ""
    answered: bool = False
    value: Any = None
    by: str = ""
    within: str = ""


@frozen
class Verdict:
    """What a hook came to. input: digest of what it was given. after_step: the counter after it, 0 if not recorded."""

    verdict: str
    input: str = ""
    after_step: int = 0


@define
class Journal:
    """What earlier attempts have left. widths: how many calls and forks there were after a frontier that was left.

    places: of steps, by where they stand. after: the causal predecessors of steps. children: ids of dispatches under
    which something is recorded. declared: steps that had an ordinal before they were on record, with the digests of
    their specs.
    """

    root: str
    flow: str = ""
    version: int = 0
    arguments: Any = None
    attempts: int = 0
    index: dict[str, Indexed] = field(factory=dict)
    again: dict[str, int] = field(factory=dict)
    ended: dict[str, Ended] = field(factory=dict)
    waits: dict[str, Wait] = field(factory=dict)
    verdicts: dict[str, Verdict] = field(factory=dict)
    widths: dict[tuple[str, str], Counts] = field(factory=dict)
    places: dict[Place, str] = field(factory=dict)
    after: dict[str, tuple[str, ...]] = field(factory=dict)
    children: set[str] = field(factory=set)
    declared: dict[str, str] = field(factory=dict)
    complete: Ended | None = None
    last: Mapping[str, Any] = field(factory=dict)

    @property
    def state(self) -> str:
        """completed, parked, refused, failed, held, or open: an attempt is under way or was cut off."""
        return "completed" if self.complete is not None else str(self.last.get("state", "open"))


def read(root: str, reading: Reading[Step]) -> Journal | None:
    """The journal of a root, None if there is none.

    Raises JournalError if any of it cannot be read: what is not there might have been a result. Raises
    NewerJournalError for a version that this library does not know.
    """
    return collect(root, intact(root, reading)) if reading.exists else None


def intact(root: str, reading: Reading[Step]) -> tuple[Step, ...]:
    """The entries, oldest first. Raises JournalError unless all of them can be read."""
    if len(reading.records) < reading.count or reading.health.degraded:
        raise JournalError(f"the journal of {root!r} is damaged ({reading.where}); see onestart ledger verify")
    return reading.records


def collect(root: str, records: Iterable[Step]) -> Journal:
    """The same from intact records, oldest first."""
    journal = Journal(root)
    for record in records:
        note = _NOTES.get(record.what)
        if note is None:
            raise NewerJournalError(f"the journal of {root!r} has an entry {record.what!r} of a newer version")
        try:
            note(journal, record.step, record.body)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise JournalError(f"an entry {record.what!r} of {root!r} has another shape: {error}") from None
    return journal


def _root(journal: Journal, _: str, body: Mapping[str, Any]) -> None:
    version = body.get("version", LEGACY)
    if type(version) is not int or not LEGACY <= version <= LATEST:
        raise NewerJournalError(
            f"{journal.root!r} was begun with step ids of version {version}; this library knows up to {LATEST}"
        )
    journal.flow, journal.version, journal.arguments = body["flow"], version, body.get("arguments")
    journal.attempts = 1


def _attempt(journal: Journal, _: str, body: Mapping[str, Any]) -> None:
    journal.attempts, journal.last = int(body["number"]), {}


def _index(journal: Journal, step: str, body: Mapping[str, Any]) -> None:
    journal.index[step] = Indexed(
        step, body["kind"], body.get("spec", ""), body.get("shown", ""), body.get("within", "")
    )
    _stand(journal, step, body)


def _again(journal: Journal, step: str, body: Mapping[str, Any]) -> None:
    journal.again[step] = int(body["number"])


def _done(journal: Journal, step: str, body: Mapping[str, Any]) -> None:
    journal.ended[step] = Ended(body.get("result"), body.get("failed"))
    if "kind" in body:
        _index(journal, step, body)


def _wait(journal: Journal, step: str, body: Mapping[str, Any]) -> None:
    within = body.get("within", "")
    journal.waits[step] = Wait(step, body["question"], body["to"], body.get("digest", ""), within=within)
    _stand(journal, step, body)


def _answer(journal: Journal, step: str, body: Mapping[str, Any]) -> None:
    wait = journal.waits[step]
    journal.waits[step] = evolve(wait, answered=True, value=body["value"], by=body.get("by", ""))


def _verdict(journal: Journal, step: str, body: Mapping[str, Any]) -> None:
    journal.verdicts[step] = Verdict(body["verdict"], body.get("input", ""), int(body.get("after_step", 0)))


def _complete(journal: Journal, _: str, body: Mapping[str, Any]) -> None:
    journal.complete = Ended(body.get("result"))


def _ended(journal: Journal, _: str, body: Mapping[str, Any]) -> None:
    journal.last = dict(body)


def _stand(journal: Journal, step: str, body: Mapping[str, Any]) -> None:
    parsed = parse(step)
    if parsed is None:
        raise ValueError(f"{step!r} is no step id")
    journal.children.update(_parents(parsed.scope))
    if parsed.after:
        journal.places[parsed.scope, *parsed.place] = step
        journal.after[step] = tuple(map(str, body.get("after") or ()))
    elif "place" in body:
        after, ordinal = body["place"]
        journal.places[parsed.scope, after, int(ordinal)] = step
    journal.declared.update(body.get("declared", {}))
    for after, (calls, forks) in body.get("closed", {}).items():
        journal.widths[parsed.scope, after] = (int(calls), int(forks))


def _parents(scope: str) -> Iterable[str]:
    while scope:
        yield scope
        parsed = parse(scope)
        scope = parsed.scope if parsed else ""


_NOTES = {
    "root": _root,
    "attempt": _attempt,
    "index": _index,
    "again": _again,
    "done": _done,
    "wait": _wait,
    "answer": _answer,
    "verdict": _verdict,
    "complete": _complete,
    "ended": _ended,
}


def told(entry: Step) -> dict[str, Any]:
    """What an event tells of an entry: all of it."""
    return {"root": entry.key, "what": entry.what, "step": entry.step, "body": entry.body}


def shown(text: str, most: int = 100) -> str:
    """A spec's JSON for people, cut if it is long."""
    return text if len(text) <= most else f"{text[:most]}..."
