"""Names: which id of the model a step id of the library is, and what the journal shows under each.

A counted id is its ordinal, whatever its kind says. An id with causal predecessors is that of the call that had it
first, in this run.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from onestart.flow.identity import MARKER, parse
from onestart.flow.journal import Journal
from onestart_conformance.flows.abstraction import Abstraction
from onestart_conformance.judgement import Objection
from onestart_model.execution import State

MODEL = "model"  # something is no step of the model, or the journal is not what the model says


@define(eq=False)
class Names:
    """bound: the step ids of calls that have ids of their own. specs: the model's, by kind and digest.

    lost: by driver, ordinals that a refused call has taken, and that in the model it has not.
    """

    abstraction: Abstraction
    bound: dict[int, str] = field(factory=dict)
    specs: dict[tuple[str, str], int] = field(factory=dict)
    lost: dict[int, int] = field(factory=dict)

    def declared(self, d: int, call: int, step: str, state: State) -> int:
        """The id that a call has got; one that is no call's if it is another one than the call should have."""
        own = self.abstraction.own[call]
        if own is None or not self._may_be_named(step):
            found, ordinals = self._find(step, self.abstraction.stray), self.abstraction.ordinals
            lost = self.lost.get(d, 0)
            return ordinals[ordinals.index(found) - lost] if lost and found in ordinals else found
        rebound = self._of_counted_child(call) and state.read("entry", own) == "ABSENT"
        if self.bound.get(call) is None or rebound:
            taken = [other for other, name in self.bound.items() if name == step and other != call]
            if not taken:
                self.bound[call] = step
        return self._find(step, self.abstraction.stray)

    def of(self, step: str) -> int | None:
        """The id of the model, None for a step that stands for no call of it."""
        found = self._find(step, -1)
        return None if found < 0 else found

    def _find(self, step: str, otherwise: int) -> int:
        parsed = parse(step)
        if parsed is not None and not parsed.after and not parsed.scope:
            ordinals = self.abstraction.ordinals
            return ordinals[parsed.ordinal - 1] if parsed.ordinal <= len(ordinals) else otherwise
        for call, name in self.bound.items():
            own = self.abstraction.own[call]
            if name == step and own is not None:
                return own
        return otherwise

    @staticmethod
    def _may_be_named(step: str) -> bool:
        parsed = parse(step)
        return parsed is not None and bool(parsed.after or parsed.scope)

    def _of_counted_child(self, call: int) -> bool:
        """Whether its id follows from an ordinal, that of its dispatch, which may be another one while it is not on
        record.
        """
        around = self.abstraction.made[call].around
        parsed = parse(self.bound.get(call, ""))
        return bool(around) and (parsed is None or not parsed.after)


@define(eq=False)
class Shown:
    """What a fresh reader sees under an id. within: the id of the hook that it is part of."""

    steps: set[str] = field(factory=set)
    kinds: set[str] = field(factory=set)
    specs: set[int] = field(factory=set)
    completed: bool = False
    within: int | None = None


def shown(journal: Journal, names: Names) -> dict[int, Shown]:
    """The journal by the ids of the model."""
    found: dict[int, Shown] = {}
    for step, spec in _steps(journal):
        x, parsed = names.of(step), parse(step)
        if x is None or parsed is None:
            continue
        under = found.setdefault(x, Shown())
        under.steps.add(step)
        under.kinds.add("MARKER" if parsed.kind == MARKER else parsed.kind.upper())
        if (parsed.kind, spec) in names.specs:
            under.specs.add(names.specs[parsed.kind, spec])
        under.completed |= _completed(journal, step)
        held = journal.index.get(step) or journal.waits.get(step)
        if held is not None and held.within:
            under.within = names.of(held.within)
    return found


def _steps(journal: Journal) -> Iterator[tuple[str, str]]:
    """Everything that has a record, with the digest of what it asks for where that is on record too."""
    yield from ((step, indexed.spec) for step, indexed in journal.index.items())
    yield from ((step, wait.digest) for step, wait in journal.waits.items())
    yield from journal.declared.items()
    yield from ((step, "") for step in journal.children)


def _completed(journal: Journal, step: str) -> bool:
    wait = journal.waits.get(step)
    return step in journal.ended or step in journal.verdicts or (wait is not None and wait.answered)


def compare_journal(state: State, journal: Journal | None, names: Names, marker: int) -> Iterator[Objection]:
    """What a fresh reader sees, against the journal of the model. marker: the model's call of it."""
    under = {} if journal is None else shown(journal, names)
    for x in range(names.abstraction.stray):
        entry, filed, here = state.read("entry", x), state.read("filed", x), under.get(x)
        if here is None:
            if entry != "ABSENT" and not (filed == "MARKER" and journal is not None and journal.complete is not None):
                yield _differs(x, f"the journal shows nothing, and the model has a {filed} that is {entry}", filed)
            continue
        told = ", ".join(sorted(here.steps))
        if entry == "ABSENT":
            yield _differs(x, f"the journal shows {told}, and the model nothing")
        elif here.kinds != {filed}:
            yield _differs(x, f"the journal shows {told}, and the model a {filed}")
        elif here.completed != (entry == "COMPLETED"):
            how = "completed" if here.completed else "open"
            yield _differs(x, f"{told} is {how} in the journal, and {entry} in the model")
        elif here.specs - {state.read("asked", x)}:
            yield _differs(x, f"{told} asks for something else in the journal than in the model")
        elif here.within is not None and not state.read("within", x, here.within):
            yield _differs(x, f"{told} is part of a hook in the journal, and not in the model")
    over = any(state.read("filed", x) == "MARKER" for x in range(names.abstraction.stray))
    if over != (journal is not None and journal.complete is not None):
        yield Objection(MODEL, f"the flow is {'' if over else 'not '}complete in the model, and the journal differs")


def _differs(x: int, what: str, filed: object = "") -> Objection:
    protection = {"HELPER": "effects-indexed", "MCP": "effects-indexed", "PLUGIN": "effects-indexed"}
    missing = protection.get(str(filed), "index-at-admission") if filed else ""
    return Objection(MODEL, f"under id {x + 1} {what}", (missing,) if missing else ())
