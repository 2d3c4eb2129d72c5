"""Whether the journal of a root is sound: what a driver can have written, and nothing else.

A journal that is not complete may lack steps that were under way, so gaps are problems in a complete one only: there, a
number that nothing is journaled under was lost, or was given to a call that nobody has awaited.

What cannot be told from a journal is not asked: whether a fork or failure had the frontier that its hash stands for,
as long as no entry has closed that frontier; and why a counted step of version 3 has no place (a call from a callback,
or with the handle of another flow, has none).

Source: serial ordinals, "Mechanism" and "Follow-up: fix 2".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import define, field, frozen

from onestart.flow.errors import JournalError
from onestart.flow.identity import CAUSAL, LEGACY, MARKER, StepId, frontier_hash, parse, short
from onestart.flow.journal import collect
from onestart.records import Step

_HASH = re.compile(r"[0-9a-f]{64}")
_LABEL = re.compile(r"(?P<what>fork|failure)-after-(?P<after>[0-9a-f]{64})-(?P<number>\d+)")
_WITHIN = "within-"
_STANDING = ("index", "wait")


@frozen
class Problem:
    """check: which rule is broken. entry: the number of the journal's entry, from 1; 0 for the journal as a whole."""

    check: str
    entry: int
    text: str

    def __str__(self) -> str:
        return f"{f'entry {self.entry}' if self.entry else 'journal'}: {self.text} ({self.check})"


@frozen
class Soundness:
    """What was found wrong, in the order of the entries."""

    problems: tuple[Problem, ...] = ()
    entries: int = 0

    @property
    def sound(self) -> bool:
        return not self.problems


def verify(records: Iterable[Step]) -> Soundness:
    """Look at the entries of one root's journal, oldest first."""
    entries = tuple(records)
    shapes = tuple(_shapes(entries))
    if shapes or not entries:
        return Soundness(shapes, len(entries))
    facts = Facts.of(entries)
    problems = [problem for check in CHECKS for problem in check(facts)]
    return Soundness(tuple(sorted(problems, key=lambda problem: problem.entry)), len(entries))


@define
class Facts:
    """The entries, and what they say of each step. Numbers are those of entries.

    admitted, ended: by step, where it was admitted and where it came to its end. declared: by counted step, where it is
    said first that it has its ordinal, on record or not. standing: entries that say where a step stands. closed: by
    scope and frontier, each statement about it.
    """

    entries: tuple[Step, ...]
    version: int
    admitted: dict[str, int] = field(factory=dict)
    ended: dict[str, int] = field(factory=dict)
    declared: dict[str, int] = field(factory=dict)
    standing: list[tuple[int, StepId, Mapping[str, Any]]] = field(factory=list)
    closed: dict[tuple[str, str], list[tuple[int, int, int]]] = field(factory=dict)

    @classmethod
    def of(cls, entries: tuple[Step, ...]) -> Facts:
        facts = cls(entries, entries[0].body.get("version", LEGACY))
        for number, entry in enumerate(entries, 1):
            if entry.what in _STANDING or (entry.what == "done" and "kind" in entry.body):
                facts.admitted.setdefault(entry.step, number)
                facts._stand(number, entry)
            if entry.what in ("done", "answer", "verdict"):
                facts.ended.setdefault(entry.step, number)
        return facts

    def _stand(self, number: int, entry: Step) -> None:
        parsed = parse(entry.step)
        if parsed is None:
            return
        self.standing.append((number, parsed, entry.body))
        for step in entry.body.get("declared", {}):
            self.declared.setdefault(step, number)
        for after, (calls, forks) in entry.body.get("closed", {}).items():
            self.closed.setdefault((parsed.scope, after), []).append((number, calls, forks))

    @property
    def complete(self) -> bool:
        return any(entry.what == "complete" for entry in self.entries)

    def of_kind(self, *kinds: str) -> Iterator[tuple[int, Step]]:
        for number, entry in enumerate(self.entries, 1):
            if entry.what in kinds:
                yield number, entry

    def counted(self) -> dict[str, dict[int, dict[str, int]]]:
        """By scope and ordinal, the steps that hold it and their entries; dispatches hold theirs by their children."""
        held: dict[str, dict[int, dict[str, int]]] = {}
        for step, number in [*self.admitted.items(), *self.declared.items(), *self._dispatches()]:
            parsed = parse(step)
            if parsed is not None and not parsed.after:
                held.setdefault(parsed.scope, {}).setdefault(parsed.ordinal, {}).setdefault(step, number)
        return held

    def _dispatches(self) -> Iterator[tuple[str, int]]:
        for step, number in self.admitted.items():
            parsed = parse(step)
            while parsed is not None and parsed.scope:
                yield parsed.scope, number
                parsed = parse(parsed.scope)


def _shapes(entries: tuple[Step, ...]) -> Iterator[Problem]:
    """What no reader of the journal could read. The other checks take shapes for granted."""
    for number, entry in enumerate(entries, 1):
        try:
            collect(entry.key, [*_context(entry), entry])
        except JournalError as error:
            text = str(error)
            yield Problem("id" if "is no step id" in text else "shape", number, short(text))


def _context(entry: Step) -> list[Step]:
    """Entries without which this one cannot be read, as they might be."""
    if entry.what != "answer":
        return []
    return [Step(entry.key, entry.task, "wait", entry.step, body={"question": "", "to": ""})]


def _root(facts: Facts) -> Iterator[Problem]:
    """How it began is the first entry, and no other one."""
    numbers = [number for number, _ in facts.of_kind("root")]
    if numbers[:1] != [1]:
        yield Problem("root", 1, "the journal does not begin with how the flow began")
    for number in numbers:
        if number != 1:
            yield Problem("root", number, "the flow begins a second time")


def _attempts(facts: Facts) -> Iterator[Problem]:
    """Attempts are numbered."""
    for expected, (number, entry) in enumerate(facts.of_kind("attempt"), 2):
        if entry.body["number"] != expected:
            yield Problem("attempt", number, f"attempt {entry.body['number']} stands where {expected} should be")


def _tokens(facts: Facts) -> Iterator[Problem]:
    """A driver with an older lease writes nothing any more. Answers are nobody's."""
    newest = 0
    for number, entry in enumerate(facts.entries, 1):
        if entry.what == "answer":
            continue
        if entry.token < newest:
            yield Problem("token", number, f"token {entry.token} comes after {newest}")
        newest = max(newest, entry.token)


def _ids(facts: Facts) -> Iterator[Problem]:
    """Each id is one of the root's version, of the kind that the entry speaks of, and under dispatches alone."""
    for number, entry in facts.of_kind("index", "again", "done", "wait", "answer", "verdict", "complete"):
        parsed = parse(entry.step)
        if parsed is None:
            yield Problem("id", number, f"{entry.step!r} is no step id")
            continue
        kind = entry.body.get("kind", _KIND_OF.get(entry.what, parsed.kind))
        if parsed.kind != kind or (parsed.kind == MARKER and entry.what != "complete"):
            yield Problem("kind", number, f"{short(entry.step)!r} is the id of another kind than {kind}")
        if not _of_version(parsed, facts.version):
            yield Problem("version", number, f"{short(entry.step)!r} is no id of version {facts.version}")
        if not all(scope.kind == "dispatch" for scope in _scopes(parsed)):
            yield Problem("scope", number, f"{short(entry.step)!r} is under something that is no dispatch")


def _of_version(step: StepId, version: int) -> bool:
    return version >= CAUSAL or not any(parsed.after for parsed in (step, *_scopes(step)))


def _scopes(step: StepId) -> Iterator[StepId]:
    """The dispatches that it is under, innermost first; something of no kind for what is no id."""
    scope = step.scope
    while scope:
        parsed = parse(scope) or StepId("", "", 0)
        yield parsed
        scope = parsed.scope


def _declared(facts: Facts) -> Iterator[Problem]:
    """What is said to have an ordinal is counted, and beside the step of which it is said, or a dispatch around it."""
    for number, step, body in facts.standing:
        scopes = {other.scope for other in (step, *_scopes(step))}
        for name in body.get("declared", {}):
            parsed = parse(name)
            if parsed is None or parsed.after or parsed.scope not in scopes or name == str(step):
                yield Problem("declaration", number, f"{short(name)!r} is declared beside {short(str(step))!r}")


def _admitted(facts: Facts) -> Iterator[Problem]:
    """A step is admitted once, and comes to something afterwards."""
    for number, step, _ in facts.standing:
        first = facts.admitted[str(step)]
        if first != number:
            yield Problem("admission", number, f"{short(str(step))!r} is admitted already, by entry {first}")
    for number, entry in facts.of_kind("again", "done", "answer", "verdict"):
        if facts.admitted.get(entry.step, number + 1) > number:
            yield Problem("admission", number, f"{short(entry.step)!r} was never admitted")


def _ended(facts: Facts) -> Iterator[Problem]:
    """A step comes to one end, and is not run again after it."""
    again = dict[str, int]()
    for number, entry in facts.of_kind("again", "done", "answer", "verdict"):
        end = facts.ended.get(entry.step, number)
        if end < number:
            yield Problem("completion", number, f"{short(entry.step)!r} has come to its end already, in entry {end}")
        if entry.what == "again":
            again[entry.step] = again.get(entry.step, 0) + 1
            if entry.body["number"] != again[entry.step]:
                yield Problem("again", number, f"{short(entry.step)!r} is run again out of turn")


def _holders(facts: Facts) -> Iterator[Problem]:
    """One step has an ordinal, and one has a place."""
    places = dict[tuple[str, str, int], str]()
    for scope, ordinals in facts.counted().items():
        for ordinal, steps in ordinals.items():
            for name, number in list(steps.items())[1:]:
                yield Problem("holder", number, f"{name!r} has ordinal {ordinal} of {_shown(scope)}, which is taken")
    for number, step, body in facts.standing:
        place = _place(step, body)
        if place is not None and places.setdefault((step.scope, *place), str(step)) != str(step):
            yield Problem(
                "holder", number, f"{short(str(step))!r} stands where {short(places[step.scope, *place])!r} does"
            )


def _contiguous(facts: Facts) -> Iterator[Problem]:
    """In a complete journal no ordinal is missing, below any that is there."""
    if not facts.complete:
        return
    marker = parse(next(entry.step for _, entry in facts.of_kind("complete")))
    counted = facts.counted()
    lasts = {scope: max(ordinals) for scope, ordinals in counted.items()}
    if marker is not None and not marker.after:
        lasts[""] = max(lasts.get("", 0), marker.ordinal - 1)
    for scope, last in lasts.items():
        missing = sorted(set(range(1, last + 1)) - set(counted.get(scope, {})))
        for ordinal in missing:
            yield Problem("ordinal", 0, f"nothing is journaled under ordinal {ordinal} of {_shown(scope)}")


def _causes(facts: Facts) -> Iterator[Problem]:
    """A causal id is the hash of what it came after, and all of that was there."""
    for number, step, body in facts.standing:
        if not step.after:
            continue
        after = body.get("after")
        if not isinstance(after, list) or not all(isinstance(name, str) for name in after):
            yield Problem("cause", number, f"{short(str(step))!r} does not say what it came after")
            continue
        if frontier_hash(after) != step.after:
            yield Problem("cause", number, f"the hash in {short(str(step))!r} is not that of what it came after")
        for name in after:
            problem = _predecessor(facts, number, step.scope, name)
            if problem:
                yield Problem("predecessor", number, f"{short(str(step))!r} came after {short(name)!r}, {problem}")


def _predecessor(facts: Facts, number: int, scope: str, name: str) -> str:
    """What is wrong with it, empty if nothing is."""
    label = _LABEL.fullmatch(name)
    if label is not None:
        forks = [forks for _, _, forks in facts.closed.get((scope, label["after"]), [])]
        return f"of which there were {min(forks)}" if forks and int(label["number"]) >= min(forks) else ""
    step = name.removeprefix(_WITHIN)
    if facts.admitted.get(step, number) >= number:
        return "which was not admitted before"
    if step == name and not _is_hook(step) and facts.ended.get(step, number) >= number:
        return "which had not come to its end"
    if step != name and not _is_hook(step):
        return "which is no hook"
    return ""


def _is_hook(step: str) -> bool:
    """A hook whose body raises has no verdict, and whoever awaited it has come after it all the same."""
    parsed = parse(step)
    return parsed is not None and parsed.kind == "hook"


def _widths(facts: Facts) -> Iterator[Problem]:
    """A frontier that was left behind has as many calls as was said then, each time that it was said."""
    for (_, after), statements in facts.closed.items():
        for number, calls, forks in statements:
            if (calls, forks) != statements[0][1:]:
                yield Problem("closed", number, f"frontier {after[:8]} is closed with other counts than before")
    for number, step, body in facts.standing:
        place = _place(step, body)
        for _, calls, _ in facts.closed.get((step.scope, place[0]), []) if place is not None else ():
            if place is not None and place[1] >= calls:
                yield Problem("closed", number, f"{short(str(step))!r} is one more call than its frontier had")


def _places(facts: Facts) -> Iterator[Problem]:
    """A place is a frontier's hash and an ordinal; only version 3 has places."""
    for number, step, body in facts.standing:
        if "place" in body and (step.after or facts.version < CAUSAL or not _is_place(body["place"])):
            yield Problem("place", number, f"{short(str(step))!r} is counted, and its place is none")


def _is_place(place: object) -> bool:
    match place:
        case [str(after), int(ordinal)]:
            return _HASH.fullmatch(after) is not None and ordinal >= 0
    return False


def _hooks(facts: Facts) -> Iterator[Problem]:
    """What is within a hook is within one that is there, and a verdict's watermark is not below it."""
    highest = dict[str, int]()
    for number, step, body in facts.standing:
        within = body.get("within", "")
        if within and (not _is_hook(within) or facts.admitted.get(within, number) >= number):
            yield Problem(
                "within", number, f"{short(str(step))!r} is within {short(within)!r}, which is no hook before it"
            )
        if not step.after:
            highest[within] = max(highest.get(within, 0), step.ordinal)
    for number, entry in facts.of_kind("verdict"):
        parsed = parse(entry.step)
        if parsed is None or parsed.after or "after_step" not in entry.body:
            continue
        least = max(parsed.ordinal, highest.get(entry.step, 0))
        if entry.body["after_step"] < least:
            text = f"the watermark of {entry.step!r} is {entry.body['after_step']}, below ordinal {least} of its own"
            yield Problem("watermark", number, text)


def _marker(facts: Facts) -> Iterator[Problem]:
    """The completion marker is the last entry, of the root, and beyond every ordinal in its place."""
    for number, entry in facts.of_kind("complete"):
        if number != len(facts.entries):
            yield Problem("marker", number, "the completion marker is not the last entry")
        marker = parse(entry.step)
        if marker is None:
            continue
        taken = [
            step.ordinal for _, step, _ in facts.standing if (step.scope, step.after) == (marker.scope, marker.after)
        ]
        if marker.scope or marker.ordinal <= max(taken, default=-1 if marker.after else 0):
            yield Problem("marker", number, f"{short(entry.step)!r} is no place for the completion marker")


def _place(step: StepId, body: Mapping[str, Any]) -> tuple[str, int] | None:
    """Where a step stands, as far as that is known."""
    if step.after:
        return step.place
    place = body.get("place")
    return (place[0], place[1]) if isinstance(place, list) and _is_place(place) else None


def _shown(scope: str) -> str:
    return short(scope) if scope else "the root"


_KIND_OF = {"wait": "human", "answer": "human", "verdict": "hook", "complete": MARKER}
CHECKS = (
    _root,
    _attempts,
    _tokens,
    _ids,
    _declared,
    _admitted,
    _ended,
    _holders,
    _contiguous,
    _causes,
    _places,
    _widths,
    _hooks,
    _marker,
)
