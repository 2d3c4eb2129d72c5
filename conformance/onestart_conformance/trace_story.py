"""How it came to an event that does not fit: the steps of its task, read from the logs once more."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from attrs import define, field, frozen

from onestart import Event
from onestart_conformance.monitor import Strand
from onestart_conformance.trace_log import Misfit, Progress, check
from onestart_conformance.trace_scene import Note, Taken, parameters
from onestart_model.chain import CHAIN
from onestart_model.counterexample import Counterexample
from onestart_model.execution import Machine, State, Step
from onestart_model.expression import RuleError, Value
from onestart_model.instance import Instance
from onestart_model.rules import INVARIANT, STEP

SHOWN = 12
MOST_STEPS = 1000
MOST_ELEMENTS = 16


class NoCounterexampleError(Exception):
    """What happened cannot be told as a trace of the model; the message says why."""


@frozen
class Chapter:
    """An event of the task, and what was taken in with it that no event tells."""

    where: str
    event: Event
    notes: tuple[Note, ...]


@define
class Story:
    """last: the events before the one that does not fit. steps: all steps of the task, as far as `whole`."""

    last: deque[Chapter] = field(factory=lambda: deque(maxlen=SHOWN))
    steps: list[Taken] = field(factory=list)
    whole: bool = True

    def record(self, where: str, event: Event, taken: Sequence[Taken], notes: Sequence[Note]) -> None:
        """Take note of an event that fits."""
        self.last.append(Chapter(where, event, tuple(notes)))
        if len(self.steps) + len(taken) > MOST_STEPS:
            self.whole = False
        else:
            self.steps += taken


def tell(paths: Sequence[str], misfit: Misfit, progress: Progress) -> Story:
    """The story of a misfit. Raises what `check` raises."""
    story = Story()
    check(paths, progress=progress, only=misfit.task, recorder=story.record)
    return story


def counterexample(story: Story, misfit: Misfit) -> Counterexample:
    """The trace up to the event that does not fit, which the first protection that forbids it is removed for.

    Raises NoCounterexampleError.
    """
    steps = list(story.steps)
    without = misfit.objection.protections[:1] if misfit.refused else ()
    if misfit.refused is not None:
        if not without:
            raise NoCounterexampleError("no protection forbids the event, so no model allows it")
        steps.append(misfit.refused)
    if not story.whole:
        raise NoCounterexampleError(f"the task took more than {MOST_STEPS} steps")
    if not all(step.placed for step in steps):
        raise NoCounterexampleError("nobody knows when a step was taken that no event tells")
    keys = list(dict.fromkeys(step.key for step in steps if "Key" in parameters(step.action)))
    strands = {step.strand for step in steps}
    if max(len(keys), len(strands)) > MOST_ELEMENTS:
        raise NoCounterexampleError(f"the task has {len(keys)} keys and {len(strands)} strands, which is too many")
    try:
        needed = _Cast(keys, len(strands) + 1, without).play(steps)
        cast = _Cast(keys, needed, without)
        cast.play(steps)
    except RuleError as error:
        raise NoCounterexampleError(f"the steps cannot be taken again: {error}") from None
    broken = misfit.objection.promise or _broken(cast)
    return Counterexample.of(cast.instance, cast.states, cast.steps, broken=broken, source="event log")


def _broken(cast: _Cast) -> str:
    """The promise that the last step breaks; the first one, which then is not broken, if there is none."""
    promises = [p for p in CHAIN.of_kind(INVARIANT, STEP) if not p.supporting]
    before, after = cast.states[-2:] if cast.steps else (cast.states[0], cast.states[0])
    return next((p.name for p in promises if not cast.machine.holds(p, before, after)), promises[0].name)


class _Cast:
    """Keys and strands of a task in the roles of an instance's elements."""

    def __init__(self, keys: Sequence[str], processes: int, without: Sequence[str]) -> None:
        sizes = {"Key": max(len(keys), 1), "Process": processes, "Task": 1}
        self.instance = Instance.of(CHAIN, sizes=sizes, without=without)
        self.machine = Machine(self.instance)
        self.states: list[State] = [next(self.machine.initial_states())]
        self.steps: list[Step] = []
        self._keys = keys
        self._roles: list[Strand | None] = [None] * processes

    def play(self, steps: Sequence[Taken]) -> int:
        """Take the steps. Returns how many processes they needed. Raises RuleError."""
        most = 1
        for taken in steps:
            acts = "Process" in parameters(taken.action)
            role = self._role(taken.strand) if acts else 0
            step = Step(taken.action, (*self._elements(taken, role), *taken.more))
            state = self.machine.apply(self.states[-1], step)
            self.steps.append(step)
            self.states.append(state)
            if acts:
                self._roles[role] = taken.strand if state.read("serving", role) is not None else None
                most = max(most, role + 1)
        return most

    def _role(self, strand: Strand | None) -> int:
        if strand is not None and strand in self._roles:
            return self._roles.index(strand)
        return self._roles.index(None)

    def _elements(self, taken: Taken, role: int) -> Iterator[Value]:
        of = {"Process": role, "Task": 0}
        for kind in parameters(taken.action):
            if kind == "Key":
                yield self._keys.index(taken.key)
            elif kind in of:
                yield of[kind]
