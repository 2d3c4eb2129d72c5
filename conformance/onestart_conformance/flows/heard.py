"""What the library tells of an attempt, against what it has done: each entry once and as it is, starts before them."""

from __future__ import annotations

from collections import deque

from attrs import define, field

from onestart import Event
from onestart.flow.journal import told
from onestart.records import Step as Entry
from onestart_conformance.flows.names import MODEL
from onestart_conformance.judgement import Objection

PREFIX = "flow_"
LEASES = ("flow_lease", "flow_release")


@define(eq=False)
class Heard:
    """written: entries that are durable and not told of yet. started: keys whose start was told."""

    written: deque[Entry] = field(factory=deque)
    started: set[str] = field(factory=set)

    def tells(self, event: Event) -> Objection | None:
        """An event; an objection if it is not of what was just done."""
        if event.action == "start":
            self.started.add(event.key)
        if not event.action.startswith(PREFIX) or event.action in LEASES:
            return None
        if not self.written:
            return Objection(MODEL, f"{event.action} is told, and nothing was written")
        entry = self.written.popleft()
        begins = entry.what in ("root", "attempt")
        action = f"{PREFIX}{'begin' if begins else entry.what}"
        if (event.action, event.token, event.details) != (action, entry.token, told(entry)):
            return Objection(MODEL, f"{event.action} is told of {event.details}, and {told(entry)} was written")
        return None

    def starts(self, key: str) -> Objection | None:
        """An effect begins under a key."""
        return None if key in self.started else Objection(MODEL, f"an effect begins, and no start of {key} was told")

    def over(self) -> Objection | None:
        """The driver has ended by itself."""
        for entry in self.written:
            return Objection(MODEL, f"{entry.what} {entry.step} was written, and nobody was told")
        return None
