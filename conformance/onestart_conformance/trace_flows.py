"""Flows in event logs: their journals, put together again from what was told, and the leases of their drivers.

The command chain's model knows nothing of flows; what it says of their steps, which are commands, is checked as for any
other. Of a journal everything is told, so it is held against what a driver can have written (`onestart.flow.verify`) as
soon as the flow is complete, or at the end of the logs.
"""

from __future__ import annotations

from attrs import define, field

from onestart import Event
from onestart.flow.verify import verify
from onestart.records import Step
from onestart_conformance.judgement import RULE, Objection

PREFIX = "flow_"
ENTRIES = frozenset(
    (
        *("flow_begin", "flow_index", "flow_again", "flow_done", "flow_wait", "flow_answer", "flow_verdict"),
        *("flow_complete", "flow_ended"),
    )
)
LEASES = frozenset(("flow_lease", "flow_release"))
BY_ANYBODY = frozenset(("flow_answer",))
BY_AN_OPERATOR = frozenset(("flow_again", "flow_done"))
ADMITTING = frozenset(("index", "wait", "again", "verdict"))


@define
class Journal:
    """What is known of a root. driver: who holds its lease, and under which token. refused: in this attempt."""

    entries: list[Step] = field(factory=list)
    driver: tuple[str, int] | None = None
    token: int = 0
    refused: bool = False
    complete: bool = False


@define
class Flows:
    """The roots of a ledger. Entries of a root are dropped once it is complete and was found sound."""

    roots: dict[str, Journal] = field(factory=dict)
    tasks: set[str] = field(factory=set)

    def concerns(self, event: Event) -> bool:
        """Whether the event is of a flow, and not of a command."""
        return event.action.startswith(PREFIX) or event.task in self.tasks

    def take(self, event: Event) -> Objection | None:
        """Take note of an event; an objection if it does not fit."""
        if event.action == "renew":
            return self._written(self._of(event.key), event)
        journal = self._of(event.details["root"])
        self.tasks.add(event.task)
        if event.action in LEASES:
            return self._leased(journal, event)
        return self._entry(journal, event)

    def end(self) -> tuple[str, Objection] | None:
        """The first root whose journal is not sound, as far as it goes."""
        for root, journal in self.roots.items():
            objection = None if journal.complete else _sound(journal)
            if objection is not None:
                return root, objection
        return None

    def _of(self, root: str) -> Journal:
        return self.roots.setdefault(root, Journal())

    def _leased(self, journal: Journal, event: Event) -> Objection | None:
        if event.action == "flow_release":
            objection = self._written(journal, event)
            journal.driver = None
            return objection
        if event.token <= journal.token:
            return Objection(
                RULE, f"a driver's lease has token {event.token}, after {journal.token}", ("driver-lease",)
            )
        journal.driver, journal.token, journal.refused = (event.process, event.token), event.token, False
        return None

    def _written(self, journal: Journal, event: Event) -> Objection | None:
        """Whoever writes holds the root's lease, under the token that it has now."""
        if journal.driver == (event.process, event.token) or event.action in BY_ANYBODY:
            return None
        if event.action in BY_AN_OPERATOR and journal.driver is None and "by" in event.details["body"]:
            return None
        holder = "nobody drives it" if journal.driver is None else f"{journal.driver[0]} drives it"
        return Objection(RULE, f"{event.action} is told by {event.process}, while {holder}", ("driver-lease",))

    def _entry(self, journal: Journal, event: Event) -> Objection | None:
        objection = self._written(journal, event)
        if objection is not None:
            return objection
        told = event.details
        entry = Step(told["root"], event.task, told["what"], told["step"], event.token, told["body"])
        if journal.complete:
            return Objection(RULE, f"{entry.what!r} is recorded after the flow was complete")
        if journal.refused and entry.what in ADMITTING:
            return Objection(RULE, f"{entry.what!r} is recorded after the attempt was refused", ("latch-at-start",))
        journal.refused |= entry.what == "ended" and entry.body.get("state") == "refused"
        journal.entries.append(entry)
        if entry.what != "complete":
            return None
        objection = _sound(journal)
        journal.complete, journal.entries = True, []
        return objection


def _sound(journal: Journal) -> Objection | None:
    for problem in verify(journal.entries).problems:
        return Objection(RULE, f"the journal is not sound: {problem}")
    return None
