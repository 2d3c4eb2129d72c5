"""What must hold after a crash, whatever was kept: nothing acknowledged is lost, nothing starts twice, work goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import define, field, frozen

from onestart import Chain, Outcome
from onestart.health import Reading
from onestart.ports import LedgerUnavailableError, View
from onestart.records import Record
from onestart_conformance.doubles import Asked, Engine
from onestart_conformance.gates import START
from onestart_conformance.stores.medium import Operation
from onestart_conformance.stores.plays import Play
from onestart_conformance.stores.stage import LEASE, Acknowledged, Answered, Decided, Failed, Stage, StuckError

DURABLE = "acknowledged-is-durable"
PREFIX = "nothing-without-what-it-saw"
AGREED = "a-failed-step-is-there-or-not"
UNDAMAGED = "a-crash-damages-nothing"
OPENS = "a-store-opens-after-a-crash"
ONE_START = "one-key-at-most-one-start"
LIVE = "every-command-comes-to-an-end"
ROUNDS = 6


@frozen
class Breach:
    """axiom: which one does not hold. what: in words."""

    axiom: str
    what: str


@frozen
class Found:
    """What a process has found of the records that were decided before it came."""

    there: tuple[Record, ...]


@define
class Known:
    """What was known outside when the machine stopped: acknowledged records, answers, and what was decided.

    Of what was in doubt, a process that comes later has found some there, which counts as acknowledged from then on,
    and some not, which must never come to light again.
    """

    acknowledged: list[Record] = field(factory=list)
    decided: list[Record] = field(factory=list)
    answers: dict[str, str] = field(factory=dict)
    absent: list[Record] = field(factory=list)
    failed: list[Record] = field(factory=list)

    def take(self, operation: Operation) -> None:
        """Go on by one entry of the tape."""
        match operation.what:
            case Decided(record=record) if record is not None:
                self.decided.append(record)
                self.absent = [other for other in self.absent if other != record]
            case Acknowledged(record=record) if record is not None:
                self.acknowledged.append(record)
            case Failed(record=record) if record in self.decided:
                self.decided.remove(record)
                self.failed.append(record)
            case Found(there=there):
                self.decided += self.failed
                self.failed = []
                self.absent += [one for one in self.decided if one not in there and one.kind != "note"]
                self.decided = list(there)
                self.acknowledged = list(there)
            case Answered(key=key, outcome=outcome):
                self.answers[key] = outcome

    def copy(self) -> Known:
        return Known(
            list(self.acknowledged), list(self.decided), dict(self.answers), list(self.absent), list(self.failed)
        )


def started(engine: Engine, operation: Operation) -> None:
    """Let a copy of the executor go on by one entry of the tape."""
    asked = operation.what
    if isinstance(asked, Asked):
        if asked.action == START:
            engine.starts[asked.key] = engine.starts.get(asked.key, 0) + 1
            engine.running.add(asked.key)
        else:
            engine.bar(asked.task, asked.token)


def judge(stage: Stage, play: Play, known: Known) -> Iterator[Breach]:
    """Let the next process read, recover and go on, on what is left."""
    try:
        ledger = stage.ledger()
        chain = stage.chain(ledger=ledger)
        before = known.copy()
        asked = [*before.decided, *before.absent, *before.failed]
        seen = stage.loop.finish(ledger.step(lambda view: (None, _seen(view, asked))))
        there = [
            record for record, found in zip(asked, seen.there, strict=True) if found and record not in before.absent
        ]
        stage.medium.mark(Found(tuple(there)))
        yield from _kept(seen, before)
        yield from _goes_on(stage, play, known, chain)
    except LedgerUnavailableError as error:
        yield Breach(OPENS, str(error))
    except StuckError as error:
        yield Breach(LIVE, str(error))


@frozen
class Seen:
    """Of each record: whether it is there, and whether its place reads as damaged. gone: what is said to be missing."""

    there: tuple[bool, ...]
    damaged: tuple[bool, ...]
    gone: tuple[str, ...]


def _seen(view: View, records: Sequence[Record]) -> Seen:
    readings = [_reading(view, record) for record in records]
    there = [record in reading for record, (reading, _) in zip(records, readings, strict=True)]
    gone = tuple(text for finding in view.stray() if "missing" in (text := str(finding)))
    return Seen(tuple(there), tuple(damaged for _, damaged in readings), gone)


def _reading(view: View, record: Record) -> tuple[Sequence[Record], bool]:
    if record.kind == "note":
        return ((record,), False) if view.note(record.key).exists else ((), False)
    of: dict[str, Callable[[str], Reading[Any]]] = {
        "receipt": view.receipt,
        "attempt": view.attempt,
        "session": view.session,
        "approval": view.approval,
        "lease": view.lease,
        "step": view.steps,
    }
    reading = of[record.kind](record.task if record.kind == "lease" else record.key)
    return reading.records, reading.health.degraded


def _kept(seen: Seen, known: Known) -> Iterator[Breach]:
    """Acknowledged records are there and whole; of the others, none is there without what it could see."""
    yield from (Breach(UNDAMAGED, text) for text in seen.gone)
    states = list(zip(known.decided, seen.there, seen.damaged, strict=False))
    for number, (record, there, damaged) in enumerate(states):
        if record in known.acknowledged and not there:
            yield Breach(DURABLE, f"{_name(record)} was acknowledged and is {'damaged' if damaged else 'gone'}")
        elif damaged:
            yield Breach(UNDAMAGED, f"{_name(record)} reads as damaged")
        lost = [other for other, kept, _ in states[:number] if not kept and _related(other, record)]
        if there and lost:
            yield Breach(PREFIX, f"{_name(record)} is there, and {_name(lost[0])} is not, which it had seen")
    for record, there in zip(known.absent, seen.there[len(states) :], strict=False):
        if there:
            yield Breach(AGREED, f"{_name(record)} is there, and a process before has found that it is not")


def _related(one: Record, other: Record) -> bool:
    """Whether the decision on a record could rest on the other one: they are of one key, or of one task."""
    return one.key == other.key or one.task == other.task


def _name(record: Record) -> str:
    return f"{record.kind} of {record.key or record.task}"


def _goes_on(stage: Stage, play: Play, known: Known, chain: Chain) -> Iterator[Breach]:
    """Once all leases have run out, every command comes to an end, with one start at most."""
    outcomes: dict[str, Outcome] = {}
    for _ in range(ROUNDS):
        stage.time.seconds += 2 * LEASE
        stage.engine.running.clear()
        stage.loop.finish(chain.recover())
        for command in play.commands:
            if play.approvals:
                stage.loop.finish(chain.approve(command, by="anna"))
            outcomes[command.key] = stage.loop.finish(chain.submit(command)).outcome
        if all(outcome in (Outcome.STARTED, Outcome.CLOSED) for outcome in outcomes.values()):
            break
    held = [f"{key} is {o} for good" for key, o in outcomes.items() if o not in (Outcome.STARTED, Outcome.CLOSED)]
    problem = stage.loop.finish(play.resume(stage)) if play.resume is not None else ""
    for said in [*held, *filter(None, [problem])]:
        yield Breach(LIVE, said)
    for key, starts in stage.engine.starts.items():
        if starts > 1 or outcomes.get(key) is Outcome.CLOSED:
            yield Breach(ONE_START, f"{key} was started {starts} times, and is {outcomes.get(key)}")
    for key, outcome in outcomes.items():
        before = known.answers.get(key)
        if before in ("started", "closed") and before != str(outcome):
            yield Breach(DURABLE, f"{key} was {before}, and is {outcome} now")
