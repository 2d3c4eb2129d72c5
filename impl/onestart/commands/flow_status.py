"""How a flow stands: from its records alone, without taking a lock or writing anything."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from onestart.commands.flow_drive import Typed, names_of
from onestart.commands.wording import counted, plain, summary
from onestart.flow.driver import lease_of
from onestart.flow.identity import parse, short
from onestart.flow.journal import Journal, read
from onestart.ledgers import Inspection
from onestart.records import Lease

RUNNING, CUT_OFF = "running", "cut off"


@frozen
class Standing:
    """One step. state: done, failed, answered, open, a verdict, or in flight. words: what it was given."""

    step: str
    kind: str
    state: str
    words: str


@frozen
class Status:
    """state: as of the journal; for an attempt that has not ended, whether a driver is at it or it was cut off."""

    root: str
    journal: Journal
    state: str
    steps: tuple[Standing, ...]
    driver: str = ""

    def count(self, *states: str) -> int:
        return sum(standing.state in states for standing in self.steps)

    @property
    def questions(self) -> tuple[Standing, ...]:
        return tuple(standing for standing in self.steps if standing.state == "open")

    def to_json(self) -> dict[str, Any]:
        journal = self.journal
        waits = [journal.waits[standing.step] for standing in self.questions]
        return {
            "root": self.root,
            "flow": journal.flow,
            "version": journal.version,
            "attempts": journal.attempts,
            "state": self.state,
            "driver": self.driver,
            "arguments": journal.arguments,
            "value": journal.complete.result if journal.complete else None,
            "reason": str(journal.last.get("reason", "")),
            "message": str(journal.last.get("message", "")),
            "steps": [{"step": s.step, "kind": s.kind, "state": s.state, "shown": s.words} for s in self.steps],
            "waits": [{"wait": w.step, "question": w.question, "to": w.to} for w in waits],
        }


def status_of(stores: Inspection, root: str) -> Status | None:
    """None if nothing is on record. Raises JournalError if what is cannot be read."""
    journal = read(root, stores.steps(root))
    if journal is None:
        return None
    lease: Lease | None = stores.lease(lease_of(root)).newest
    held = lease is not None and lease.held_at(time.time()) is not None
    state = journal.state
    if state == "open":
        state = RUNNING if held else CUT_OFF
    driver = lease.by if held and lease is not None else ""
    return Status(root, journal, state, tuple(_standings(journal)), driver)


def _standings(journal: Journal) -> Iterator[Standing]:
    for step in dict.fromkeys([*journal.index, *journal.waits, *sorted(journal.children)]):
        parsed = parse(step)
        kind = parsed.kind if parsed is not None else ""
        if step in journal.waits:
            wait = journal.waits[step]
            yield Standing(
                step, kind, "answered" if wait.answered else "open", f"{plain(wait.to)}: {plain(wait.question)}"
            )
        else:
            indexed = journal.index.get(step)
            words = summary(kind, indexed.shown) if indexed is not None else ""
            yield Standing(step, kind, _state(journal, step), words)


def _state(journal: Journal, step: str) -> str:
    if step in journal.verdicts:
        return journal.verdicts[step].verdict
    ended = journal.ended.get(step)
    if ended is None:
        return "in flight"
    return "done" if ended.failed is None else "failed"


def row(status: Status) -> tuple[str, ...]:
    """One line of the list of all flows."""
    questions = len(status.questions)
    return (
        plain(status.root),
        plain(status.journal.flow),
        status.state,
        f"{len(status.steps) - status.count('in flight', 'open')} done",
        f"{status.count('in flight')} in flight",
        counted(questions, "question") if questions else "",
    )


def page(status: Status, typed: Typed) -> Iterator[str]:
    """All about one flow; the rows of its steps, and what to type next."""
    journal = status.journal
    yield f"{plain(status.root)}: flow {plain(journal.flow)}, {status.state}, {counted(journal.attempts, 'attempt')}"
    if status.driver:
        yield f"  a driver holds its lease: {plain(status.driver)}"
    if journal.complete is None and journal.last.get("message"):
        yield f"  {plain(str(journal.last.get('reason')))}: {plain(short(str(journal.last['message'])), 1000)}"
    if status.steps:
        yield ""
    width = max((len(standing.state) for standing in status.steps), default=0)
    names = max((len(short(standing.step)) for standing in status.steps), default=0)
    for standing in status.steps:
        yield f"  {standing.state:{width}}  {short(standing.step):{names}}  {standing.words}".rstrip()
    yield from _next(status, typed)


def _next(status: Status, typed: Typed) -> Iterator[str]:
    questions = [standing.step for standing in status.questions]
    names = names_of(questions)
    if status.state in ("completed", RUNNING) and not questions:
        return
    yield ""
    for step in questions:
        yield f"answer with  {typed.answer(names[step])}"
    if status.state != RUNNING:
        word = "then" if questions else "go on with"
        yield f"{word:11}  {typed.resume()}"


def typed_for(status: Status, option: str) -> Typed:
    """The commands that go on with it; where the flow's code is, its records do not say."""
    return Typed(f"MODULE_OR_FILE:{shlex.quote(status.journal.flow)}", status.root, "", option)
