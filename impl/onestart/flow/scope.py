"""A scope: the root's own steps, or those of a child flow, which have ids under their dispatch and count apart."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, field

from onestart.flow.errors import RefusedError
from onestart.flow.guard import Asked, Guard
from onestart.flow.identity import CAUSAL, MARKER, StepId
from onestart.flow.journal import shown
from onestart.flow.line import Line, Tally
from onestart.flow.tasks import current
from onestart.flow.values import spec_of

if TYPE_CHECKING:
    from onestart.flow.root import Root


@define(eq=False)
class Scope:
    """name: the dispatch's id, empty for the root. around: the scope that the dispatch is in, with its id there.

    counter: of the steps whose place is not known. open: those among them that are declared and have no entry of their
    own, with the digests of their specs. recorded: the highest ordinal that the journal shows, and with it all below.
    """

    root: Root
    name: str = ""
    around: tuple[Scope, StepId] | None = None
    counter: int = 0
    recorded: int = 0
    open: dict[StepId, str] = field(factory=dict)
    guard: Guard | None = field(init=False)
    tally: Tally = field(factory=Tally)

    def __attrs_post_init__(self) -> None:
        journal = self.root.journal
        self.guard = None if journal is None else Guard(journal, self.root.latch, self.name, self.tally)

    def line(self) -> Line:
        """The line that the scope's body begins with."""
        return Line(self.tally, self._forked)

    def declare(self, kind: str, spec: Mapping[str, Any]) -> tuple[Asked, Line | None]:
        """Give a call its id, and hold it against the journal.

        Raises the latch's refusal, or what the guard refuses it for.
        """
        self.root.latch.check()
        text = spec_of(spec, f"what {kind} is given")
        task = current()
        line = task.line if task is not None and task.line.tally is self.tally else None
        place = None if line is None else (line.after, line.call())
        spec_digest = hashlib.sha256(text.encode()).hexdigest()
        asked = Asked(self._id(kind, line, place), spec_digest, shown(text), place, self._closed(line))
        if self.guard is not None:
            self.guard.check(asked)
            self.root.release()
        if not asked.id.after:
            self._count(asked)
        return asked, line

    def _count(self, asked: Asked) -> None:
        if self.guard is not None and asked.id.ordinal in self.guard.holders:
            self.recorded = max(self.recorded, asked.id.ordinal)
        if not self.root.known(asked.step):
            self.open[asked.id] = asked.spec

    def declared(self, step: StepId) -> dict[str, str]:
        """A step goes on record: ordinals up to its own, or to those of dispatches around it, that nothing shows."""
        self.open.pop(step, None)
        before = {other: spec for other, spec in self.open.items() if other.ordinal < step.ordinal and not step.after}
        return self._declared_around() | {str(other): spec for other, spec in before.items()}

    def _declared_around(self) -> dict[str, str]:
        """A child's record holds its dispatch's ordinal, so all up to that one go on record with it."""
        if self.around is None:
            return {}
        scope, dispatch = self.around
        upto = {o: spec for o, spec in scope.open.items() if o.ordinal <= dispatch.ordinal and not dispatch.after}
        return scope._declared_around() | {str(other): spec for other, spec in upto.items()}

    def on_record(self, step: StepId) -> None:
        """A step has its entry."""
        if not step.after:
            self.recorded = max(self.recorded, step.ordinal)
        if self.around is not None:
            self.around[0].on_record(self.around[1])

    def watermark(self) -> int:
        """The ordinals that are passed with a hook's verdict: those that are on record.

        One that is declared, and that is on no record, may be another step's in a resume.
        """
        return min((o.ordinal for o in self.open if o.ordinal > self.recorded), default=self.counter + 1) - 1

    def marker(self, line: Line) -> StepId:
        """The id of the completion marker, which reads the counter and does not advance it."""
        if self._causal(line):
            after = line.after
            return StepId(self.name, MARKER, self.tally.of(after)[0], after)
        return StepId(self.name, MARKER, self.counter + 1)

    def complete(self, line: Line) -> str:
        """The body has come to its end. Raises what the guard refuses the completion marker for."""
        self.root.latch.check()
        marker = self.marker(line)
        if self.guard is not None:
            self.guard.check_marker(marker)
            self.guard.check_complete()
        return str(marker)

    def _id(self, kind: str, line: Line | None, place: tuple[str, int] | None) -> StepId:
        if line is not None and place is not None and self._causal(line):
            return StepId(self.name, kind, place[1], place[0])
        self.counter += 1
        return StepId(self.name, kind, self.counter)

    def _causal(self, line: Line) -> bool:
        line.settle()
        return self.root.version >= CAUSAL and not line.unknown

    def _closed(self, line: Line | None) -> dict[str, tuple[int, int]]:
        return line.take_closed() if line is not None and self._causal(line) else {}

    def _forked(self, line: Line, after: str) -> None:
        """A task is made: one too many is refused at the next call, since whoever makes a task expects no refusal."""
        if self.guard is not None and self._causal(line):
            try:
                self.guard.check_fork(after, self.tally.forks[after] - 1)
            except RefusedError:
                return
