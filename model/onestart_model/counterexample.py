"""Counterexamples: a trace, the instance that it is of, and what it breaks, as an ITF file.

One format for all sources (proof, enumeration, random drive, production log): the Informal Trace Format of Apalache,
with what a replay needs in its `#meta`: model, sizes, removed protections, the step that leads to each state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen
from itf_py import State as ItfState
from itf_py import Trace, trace_from_json, trace_to_json

from onestart_model.execution import Machine, State, Step
from onestart_model.expression import EnumType, MaybeType, RuleError, SortType, Value
from onestart_model.instance import Instance, element, elements
from onestart_model.rules import Model
from onestart_model.state import Function

FORMAT = "onestart-counterexample"
VERSION = 1


class CounterexampleError(Exception):
    """A counterexample file cannot be read, or is not of this model; the message says why."""


@frozen
class Counterexample:
    """states[0] is initial (unless inductive) and steps[i] leads from states[i] to states[i + 1].

    property: the name of the promise that the last state, or the last step, breaks. source: who found it.
    inductive: a counterexample to induction, whose first state need not be reachable. replay: what an adapter needs to
    make it happen on an implementation, if it was found on one; the property may then be empty.
    """

    instance: Instance
    states: tuple[State, ...]
    steps: tuple[Step, ...]
    property: str
    source: str
    inductive: bool = False
    replay: Mapping[str, Any] = field(factory=dict)

    @classmethod
    def of(
        cls,
        instance: Instance,
        states: Sequence[State],
        steps: Sequence[Step],
        *,
        broken: str,
        source: str,
        inductive: bool = False,
        replay: Mapping[str, Any] | None = None,
    ) -> Counterexample:
        if len(states) != len(steps) + 1:
            raise RuleError("a trace has one state more than it has steps")
        if broken or not replay:
            instance.model.property_named(broken)
        return cls(instance, tuple(states), tuple(steps), broken, source, inductive, dict(replay or {}))

    def broken(self) -> bool:
        """Whether running the steps on the reference machine breaks the property at the end, and not before.

        Raises RuleError if a step is not enabled.
        """
        if not self.property:
            return False
        machine = Machine(self.instance)
        state = self.states[0]
        for step in self.steps[:-1]:
            state = machine.apply(state, step)
        prop = self.instance.model.property_named(self.property)
        if not self.steps:
            return not machine.holds(prop, state)
        after = machine.apply(state, self.steps[-1])
        if prop.kind == "step":
            return not machine.holds(prop, state, after)
        return machine.holds(prop, after) == (prop.kind == "reachable")

    def save(self, path: Path) -> None:
        """Write the ITF file."""
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    def to_json(self) -> dict[str, Any]:
        """The ITF document."""
        instance = self.instance
        meta = {
            "format": FORMAT,
            "version": VERSION,
            "model": instance.model.name,
            "sizes": {sort.name: n for sort, n in instance.sizes.items()},
            "limits": dict(instance.limits),
            "budgets": dict(instance.budgets),
            "without": sorted(instance.without),
            "property": self.property,
            "source": self.source,
            "inductive": self.inductive,
            **({"replay": dict(self.replay)} if self.replay else {}),
        }
        names = [function.name for function in instance.model.schema.functions]
        states = [self._itf_state(i, state) for i, state in enumerate(self.states)]
        document = trace_to_json(Trace(meta={}, params=[], vars=names, states=states, loop=None))
        return {**document, "#meta": meta}

    def _itf_state(self, index: int, state: State) -> ItfState:
        values: dict[str, dict[Any, Any]] = {}
        for function, arguments, value in state.cells():
            table = values.setdefault(function.name, {})
            table[_key(function, arguments)] = _to_itf(function.type, value)
        meta: dict[str, Any] = {"index": index}
        if index:
            step = self.steps[index - 1]
            meta["action"], meta["arguments"] = step.action, list(step.arguments)
        return ItfState(meta=meta, values=values)


def _key(function: Function, arguments: tuple[int, ...]) -> str | tuple[str, ...]:
    """How a file names the arguments of a function: one by itself, two as a tuple."""
    names = elements(function.arguments, arguments)
    return names[0] if len(names) == 1 else names


def _to_itf(kind: object, value: Value) -> Any:
    match kind, value:
        case MaybeType(), None:
            return "none"
        case (MaybeType(of=sort), int(index)) | (SortType() as sort, int(index)):
            return element(sort, index)
        case _:
            return value


def load(path: Path, models: Sequence[Model]) -> Counterexample:
    """Read a counterexample file. models: those that it may be of.

    Raises CounterexampleError for a file that cannot be read, is no counterexample of this version, or does not fit the
    rules as they are now; nothing is guessed.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is not JSON: {_first_line(error)}"
        raise CounterexampleError(f"{path} cannot be read: {reason}") from None
    meta = document.get("#meta") if isinstance(document, dict) else None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise CounterexampleError(f"{path} is not a counterexample file of this project")
    if meta.get("version") != VERSION:
        raise CounterexampleError(f"{path} has version {meta.get('version')!r}; this release reads version {VERSION}")
    try:
        return _rebuild(document, meta, models)
    except (RuleError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise CounterexampleError(f"{path} does not fit the model: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _rebuild(document: dict[str, Any], meta: dict[str, Any], models: Sequence[Model]) -> Counterexample:
    model = next((m for m in models if m.name == meta["model"]), None)
    if model is None:
        raise RuleError(f"no model is called {meta['model']!r}")
    instance = Instance.of(
        model, sizes=meta["sizes"], limits=meta["limits"], budgets=meta["budgets"], without=meta["without"]
    )
    parsed = trace_from_json(document)
    machine = Machine(instance)
    budgets = tuple(instance.budgets.values())
    states = [_state_from_itf(instance, state.values, budgets) for state in parsed.states[:1]]
    steps = []
    for state in document["states"][1:]:
        step = Step(state["#meta"]["action"], tuple(_argument(a) for a in state["#meta"]["arguments"]))
        steps.append(step)
        states.append(machine.apply(states[-1], step))
    found = [_state_from_itf(instance, state.values, ()).rows for state in parsed.states]
    for index, (state, rows) in enumerate(zip(states, found, strict=True)):
        if state.rows != rows:
            raise RuleError(f"the rules as they are now lead to another state {index}")
    for name, kind in (("property", str), ("source", str), ("inductive", bool)):
        if not isinstance(meta[name], kind):
            raise RuleError(f"{name} is {meta[name]!r}")
    replay = meta.get("replay", {})
    if not isinstance(replay, dict):
        raise RuleError(f"replay is {replay!r}")
    return Counterexample.of(
        instance,
        states,
        steps,
        broken=meta["property"],
        source=meta["source"],
        inductive=meta["inductive"],
        replay=replay,
    )


def _argument(value: object) -> Value:
    if isinstance(value, dict) and "#bigint" in value:
        return int(value["#bigint"])
    if isinstance(value, bool | int | str):
        return value
    raise RuleError(f"{value!r} is no argument of an action")


def _state_from_itf(instance: Instance, values: dict[str, Any], budgets: tuple[int, ...]) -> State:
    rows = []
    for function in instance.model.schema.functions:
        table = values[function.name]
        keys = [_key(function, arguments) for arguments in instance.arguments(function)]
        rows.append(tuple(_from_itf(instance, function.type, table[key]) for key in keys))
    return State(instance, tuple(rows), budgets)


def _from_itf(instance: Instance, kind: object, value: Any) -> Value:
    match kind:
        case MaybeType() if value == "none":
            return None
        case MaybeType(of=sort) | (SortType() as sort):
            return [element(sort, i) for i in range(instance.sizes[sort])].index(value)
        case EnumType(members=members):
            return members[members.index(value)]
        case _ if isinstance(value, bool | int):
            return value
    raise RuleError(f"{value!r} is no {kind}")
