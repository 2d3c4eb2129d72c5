"""The guard: a call of a resumed flow against what the journal has in its place, before anything is admitted.

It reads the journal alone, so a first attempt has none. Every refusal goes through the root's one latch.

Source: serial ordinals, "The fix".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from attrs import define, field, frozen

from onestart.flow.errors import AdmissionConflictError, OrderMismatchError, RefusedError
from onestart.flow.identity import MARKER, StepId, parse
from onestart.flow.journal import Indexed, Journal, Wait
from onestart.flow.latch import Latch
from onestart.flow.line import Counts, Tally


@frozen
class Asked:
    """What a call asks for. spec: its digest; shown: the same for people. place: where it stands, if that is known.

    closed: the frontiers that its line has left since its last step, with what was counted there.
    """

    id: StepId
    spec: str
    shown: str
    place: tuple[str, int] | None = None
    closed: Mapping[str, Counts] = field(factory=dict)

    @property
    def step(self) -> str:
        return str(self.id)


@define(eq=False)
class Guard:
    """Of one scope: the root's own steps, or those under a dispatch. holders: who holds an ordinal that is counted.

    reached: how many calls there were at least after a frontier, by the steps that are journaled there. tally: of this
    attempt.
    """

    journal: Journal
    latch: Latch
    scope: str
    tally: Tally
    claimed: set[str] = field(factory=set)
    holders: dict[int, tuple[str, str]] = field(init=False)
    reached: dict[str, int] = field(factory=dict)
    _alike: dict[tuple[str, str], deque[str]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        for scope, after, ordinal in self.journal.places:
            if scope == self.scope:
                self.reached[after] = max(self.reached.get(after, 0), ordinal + 1)
        self.holders = dict(_holders(self.journal, self.scope))
        self._alike = _alike(self.journal, self.scope)

    def twin(self, asked: Asked) -> str | None:
        """A journaled step that asks for the same as one that is not, and that this attempt has not reached yet.

        The one that is not may be another call that merely asks for the same; or it is that very call, in another place
        because the flow itself has taken another turn (two branches, say, of which the first to have a lock does what
        both need). Only time can tell.
        """
        steps = self._alike.get((asked.id.kind, asked.spec), deque[str]())
        while steps and not self._open(steps[0]):
            steps.popleft()
        return steps[0] if steps else None

    def _open(self, step: str) -> bool:
        reached = step in self.claimed or not self.claimed.isdisjoint(self._around(step))
        return not reached and not self._left_behind(step)

    def _left_behind(self, step: str) -> bool:
        """Whether a branch was broken off before it got to the step, as it was not in the attempt that recorded it.

        A task group that fails cancels the others of its branches wherever they stand. The step is one of theirs if it
        stands where one was broken off, or comes after something that nobody has got to.
        """
        parsed = parse(step)
        if not self.tally.cut or parsed is None or not parsed.after:
            return False
        if parsed.after in self.tally.cut:
            return True
        before = self.journal.after.get(step)
        if before is None:
            return parsed.after not in self.tally.calls
        return not all(map(self.tally.has_passed, before))

    def check(self, asked: Asked) -> None:
        """Raises OrderMismatchError or AdmissionConflictError, and closes the latch, unless the journal agrees."""
        if asked.id.after:
            self._check_place(asked)
        else:
            self._check_ordinal(asked)
        self._check_widths(asked)
        self._check_spec(asked)
        self.claimed.add(asked.step)

    def check_marker(self, marker: StepId) -> None:
        """The completion marker reads the counter, or the place, and must find nothing there."""
        holder = self.holders.get(marker.ordinal) if not marker.after else None
        if holder is not None:
            raise self._mismatch(marker, f"ordinal {marker.ordinal} is journaled as {holder[1]} step {holder[0]!r}")

    def check_fork(self, after: str, number: int) -> None:
        """Another task than in the attempt that left this frontier behind."""
        width = self.journal.widths.get((self.scope, after))
        if width is not None and number >= width[1]:
            what = f"{_number(width[1], 'task')} {'was' if width[1] == 1 else 'were'} made here"
            raise self.latch.refuse(OrderMismatchError(f"the journal says that {what}, but this resume makes another"))

    def check_restored(self, hook: str, counter: int, after_step: int) -> None:
        """A replayed verdict takes the counter past what the hook's own body took, and past nothing else."""
        for ordinal in range(counter + 1, after_step + 1):
            holder = self.holders.get(ordinal)
            if holder is None or holder[0] in self.claimed or hook in self._around(holder[0]):
                continue
            raise self.latch.refuse(
                OrderMismatchError(
                    f"the recorded verdict of {hook!r} takes the counter to {after_step}, past ordinal {ordinal}, "
                    f"which is journaled as {holder[1]} step {holder[0]!r} and was not reached yet"
                )
            )

    def check_complete(self) -> None:
        """Everything that is journaled was reached, belongs to a hook that was, or to a branch that was broken off."""
        for step in self._unclaimed():
            raise self.latch.refuse(
                OrderMismatchError(f"step {step!r} is journaled, but this resume came to its end without it")
            )

    def _check_ordinal(self, asked: Asked) -> None:
        holder = self.holders.get(asked.id.ordinal)
        if holder is not None and holder[1] != asked.id.kind:
            raise self._mismatch(asked.id, f"ordinal {asked.id.ordinal} is journaled as {holder[1]} step {holder[0]!r}")
        if asked.place is not None:
            held = self.journal.places.get((self.scope, *asked.place))
            if held is not None and held != asked.step:
                raise self._mismatch(asked.id, f"its place is journaled as step {held!r}")

    def _check_place(self, asked: Asked) -> None:
        after, ordinal = asked.id.place
        held = self.journal.places.get((self.scope, after, ordinal))
        if held is not None and held != asked.step:
            parsed = parse(held)
            kind = parsed.kind if parsed else "unknown"
            raise self._mismatch(asked.id, f"ordinal {ordinal} in this place is journaled as {kind} step {held!r}")
        width = self.journal.widths.get((self.scope, after))
        if held is None and width is not None and ordinal >= width[0]:
            calls = _number(width[0], "call")
            raise self._mismatch(asked.id, f"the journal has {calls} in this place, and {asked.shown} is one more")

    def _check_widths(self, asked: Asked) -> None:
        for after, counts in asked.closed.items():
            width = self.journal.widths.get((self.scope, after))
            if width is not None and tuple(counts) != width:
                raise self._mismatch(
                    asked.id, f"before it the journal has {_counted(width)}, and this resume made {_counted(counts)}"
                )
            if counts[0] < self.reached.get(after, 0):
                least = f"{_number(self.reached[after], 'call')} at least"
                raise self._mismatch(asked.id, f"before it the journal has {least}, and this resume made {counts[0]}")

    def _check_spec(self, asked: Asked) -> None:
        wait = self.journal.waits.get(asked.step)
        if wait is not None:
            self._check_question(asked, wait)
        indexed = self.journal.index.get(asked.step)
        if indexed is not None and indexed.spec and indexed.spec != asked.spec:
            raise self.latch.refuse(
                AdmissionConflictError(
                    f"step {asked.step!r} is journaled with {indexed.shown}, but this resume asks for {asked.shown}"
                )
            )
        if indexed is None and self.journal.declared.get(asked.step, asked.spec) != asked.spec:
            raise self._mismatch(asked.id, f"{asked.step!r} was declared with another spec than {asked.shown}")

    def _check_question(self, asked: Asked, wait: Wait) -> None:
        if wait.digest and wait.digest != asked.spec:
            raise self._mismatch(asked.id, f"it was parked on {wait.question!r} to {wait.to!r}, and asks {asked.shown}")

    def _mismatch(self, attempted: StepId, journaled: str) -> RefusedError:
        return self.latch.refuse(OrderMismatchError(f"{journaled}, but this resume reached it with {attempted.kind}"))

    def _around(self, step: str) -> Iterator[str]:
        """The hooks that a step is part of, innermost first."""
        held: Indexed | Wait | None = self.journal.index.get(step) or self.journal.waits.get(step)
        while held is not None and held.within:
            yield held.within
            held = self.journal.index.get(held.within)

    def _unclaimed(self) -> Iterator[str]:
        for step in (*self.journal.index, *self.journal.waits, *self._unfinished()):
            parsed = parse(step)
            if parsed is not None and parsed.scope == self.scope and parsed.kind != MARKER and self._open(step):
                yield step

    def _unfinished(self) -> Iterator[str]:
        """Dispatches of which only steps of their children are on record. Which of them are part of a hook that has its
        verdict, and so is not run again, nobody knows.
        """
        hooks = [parse(hook) for hook in self.journal.verdicts]
        if not any(hook is not None and hook.scope == self.scope for hook in hooks):
            yield from sorted(self.journal.children - self.journal.index.keys())


def _alike(journal: Journal, scope: str) -> dict[tuple[str, str], deque[str]]:
    """The scope's journaled steps, by what they ask for."""
    alike: dict[tuple[str, str], deque[str]] = {}
    specs = [(step, indexed.spec) for step, indexed in journal.index.items()]
    specs += [(step, wait.digest) for step, wait in journal.waits.items()]
    for step, spec in specs:
        parsed = parse(step)
        if parsed is not None and parsed.scope == scope and spec:
            alike.setdefault((parsed.kind, spec), deque()).append(step)
    return alike


def _holders(journal: Journal, scope: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """Declared and indexed steps, questions, dispatches that have left something: an ordinal, its step and its kind."""
    for step in (*journal.declared, *journal.index, *journal.waits, *journal.children):
        parsed = parse(step)
        if parsed is not None and parsed.scope == scope and not parsed.after:
            yield parsed.ordinal, (step, parsed.kind)


def _counted(counts: Counts) -> str:
    calls, forks = counts
    return f"{_number(calls, 'call')} and {_number(forks, 'task')}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
