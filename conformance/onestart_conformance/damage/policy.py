"""The policy of read health as a table: what each command comes to when a store reads in some way. Run, not written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from onestart import Answer, LedgerUnavailableError, NothingToDoError, Outcome
from onestart.flow import FlowError
from onestart.flow import Outcome as Ended
from onestart.lines import decode
from onestart.records import STORES
from onestart_conformance.damage import grammar
from onestart_conformance.damage.jsonl import DiskMedium
from onestart_conformance.damage.outside import Approvers
from onestart_conformance.damage.prepared import command
from onestart_conformance.damage.site import LEASE, Site
from onestart_conformance.doubles import Engine, PromptExecutor, unheard

KEY, TASK, ROOT = "key", "task", "flow"
PROCEED, REPORT, HOLD, REFUSE, NOTHING = "proceed", "report", "hold", "refuse", "-"
GARBAGE = b'{"of":"nobody"}\n'
LATER = b'["onestart",9,"whatever"]\n'


@frozen
class Question:
    """A kind of command. prepare: what was before, as it was intact. ask: the command."""

    name: str
    prepare: Callable[[Site], object]
    ask: Callable[[Site], object]


def _submitted(site: Site) -> Answer:
    return site.submit(command(KEY, TASK))


def _first(site: Site) -> None:
    """The task has been used before, and the command is approved."""
    _ended(site, "earlier")
    _approved(site)


def _approved(site: Site) -> None:
    site.governance = Approvers(frozenset({KEY}))
    site.run(site.chain().approve(command(KEY, TASK), by="anna"))


def _ended(site: Site, key: str = KEY) -> None:
    site.submit(command(key, TASK))
    site.executor.engine.running.discard(key)
    site.run(site.chain().reconcile(key))


def _pending(site: Site) -> None:
    """Accepted, and offered while another command runs, which then ends."""
    site.submit(command("earlier", TASK))
    _submitted(site)
    site.executor.engine.running.discard("earlier")


def _doubtful(site: Site) -> None:
    site.executor.lost = frozenset({KEY})
    _submitted(site)
    site.executor.lost = frozenset()
    site.pass_time(4 * LEASE)


def _stopped(site: Site) -> None:
    _submitted(site)
    site.executor.engine.running.discard(KEY)


QUESTIONS = (
    Question("first submission", _first, _submitted),
    Question("pending, again", _pending, _submitted),
    Question("in doubt, again", _doubtful, _submitted),
    Question("replay", _ended, _submitted),
    Question("cancel", _pending, lambda site: site.run(site.chain().cancel(KEY))),
    Question("reconcile", _stopped, lambda site: site.run(site.chain().reconcile(KEY))),
    Question("settle", _doubtful, lambda site: site.run(site.chain().settle(KEY, by="anna", why="it is known"))),
    Question("approve", _pending, _approved),
    Question("another of the task", _ended, lambda site: site.submit(command("another", TASK))),
    Question("unrelated", _ended, lambda site: site.submit(command("another", "another's"))),
    Question("resume a flow", lambda site: site.resume(ROOT), lambda site: site.resume(ROOT)),
)


@frozen
class Diagnosis:
    """How a store reads. damage: that makes it so, None if there is no record to do it to."""

    name: str
    whose: str
    damage: Callable[[DiskMedium, str], grammar.Damage | None]


def _of_newest(make: Callable[[str, int, bytes], grammar.Damage]) -> Callable[[DiskMedium, str], grammar.Damage | None]:
    def damage(medium: DiskMedium, store: str) -> grammar.Damage | None:
        mine = [number for number, raw in enumerate(medium.records(store)) if _is_mine(raw)]
        return make(store, mine[-1], medium.records(store)[mine[-1]]) if mine else None

    return damage


def _is_mine(raw: bytes) -> bool:
    """Whether the record is of the key, of the flow, or the lease of their task."""
    line = decode(raw.rstrip(b"\n"))
    return line.key in (KEY, ROOT) or (line.kind == "lease" and line.task in (TASK, f"flow:{ROOT}"))


DIAGNOSES = (
    Diagnosis("intact", "", lambda medium, store: grammar.Garbage(store, b"")),
    Diagnosis("corrupt", "its own", _of_newest(lambda s, n, raw: grammar.Flipped(s, n, len(raw) - 40, 0))),
    Diagnosis("unsupported_version", "its own", _of_newest(lambda s, n, raw: grammar.UnknownVersion(s, n))),
    Diagnosis("absent", "the store is gone", lambda medium, store: grammar.Deleted(store)),
    Diagnosis("corrupt", "perhaps anybody's", lambda medium, store: grammar.Garbage(store, GARBAGE)),
    Diagnosis("unsupported_version", "perhaps anybody's", lambda medium, store: grammar.Garbage(store, LATER)),
    Diagnosis("unavailable", "", lambda medium, store: grammar.Covered(store)),
)


@frozen
class Came:
    """What a command came to. outcome: of what it is. reason: why it did not get further. told: whether damage is."""

    outcome: str
    reason: str = ""
    told: bool = False


@frozen
class Cell:
    """action: proceed, report (and proceed), hold or refuse; or nothing, where there is no such record."""

    action: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.action}: {self.reason}" if self.reason else self.action


Policy: TypeAlias = Mapping[tuple[str, str, str, str], Cell]


def policy() -> Policy:
    """By store, diagnosis, whose the damage is, and the command."""
    return {
        (store, diagnosis.name, diagnosis.whose, question.name): _cell(store, diagnosis, question)
        for store in STORES
        for diagnosis in DIAGNOSES
        for question in QUESTIONS
    }


def _cell(store: str, diagnosis: Diagnosis, question: Question) -> Cell:
    intact = _came(question, None)
    medium, site = _before(question)
    damage = diagnosis.damage(medium, store)
    if damage is None:
        return Cell(NOTHING)
    came = _asked(medium, site, question, damage)
    if came.outcome == intact.outcome:
        return Cell(REPORT if came.told else PROCEED)
    return Cell(HOLD if came.outcome in ("held", "False") else REFUSE, came.reason)


def _came(question: Question, damage: grammar.Damage | None) -> Came:
    return _asked(*_before(question), question, damage)


def _before(question: Question) -> tuple[DiskMedium, Site]:
    medium = DiskMedium()
    site = Site(medium.ledger(), PromptExecutor(Engine(unheard)))
    question.prepare(site)
    return medium, site


def _asked(medium: DiskMedium, site: Site, question: Question, damage: grammar.Damage | None) -> Came:
    if damage is not None:
        damage.apply(medium)
    site.ledger = medium.ledger()
    try:
        return _what(question.ask(site))
    except LedgerUnavailableError:
        return Came("held", "store_unavailable", told=True)
    except NothingToDoError:
        return Came("refused", "nothing_to_do", told=True)
    except FlowError as error:
        return Came("held", error.reason, told=True)


def _what(came: Any) -> Came:
    match came:
        case Answer(outcome=Outcome.TURNED_AWAY):
            return Came("refused", str(came.reason), told=True)
        case Answer():
            return Came(str(came.outcome), str(came.reason), bool(came.findings))
        case Ended():
            return Came("held" if came.state == "held" else came.state, came.reason, bool(came.findings))
    return Came(str(came), "" if came is None else "not_known_to_be_over")


HEADING = """# What a command does when a store cannot be read

This page is written by `onestart damage --policy docs/read-health.md`, which runs the library: each cell is one command
on a ledger whose store reads like that. A test runs it again and compares.

- **proceed**: as if nothing were wrong. **report**: proceed, with the damage among the answer's findings.
- **hold**: nothing is done, as things stand, and the answer says why. **refuse**: the command comes to another end.
- **-**: the command has no record in this store.
- *its own*: the newest record of the key in this store, or of its task's lease; for a flow, of its journal.
  *perhaps anybody's*: a line of which nobody can tell whose it was. *the store is gone*: its file was deleted; what
  other stores had seen of it reads as damaged. *unavailable*: a folder has its name.

A damaged record of another command is none of these: it never changes what this one does.
"""


def page(cells: Policy) -> Iterator[str]:
    """The lines of the page."""
    yield from HEADING.splitlines()
    for store in STORES:
        yield from ("", f"## {store}", "")
        names = [question.name for question in QUESTIONS]
        yield f"| reads | whose | {' | '.join(names)} |"
        yield f"|---|---|{'---|' * len(names)}"
        for diagnosis in DIAGNOSES:
            row = [str(cells[store, diagnosis.name, diagnosis.whose, name]) for name in names]
            yield f"| {diagnosis.name.replace('_', ' ')} | {diagnosis.whose} | {' | '.join(row)} |"
