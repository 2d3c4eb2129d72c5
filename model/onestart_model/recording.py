"""Reading a rule: run its function once on terms and keep what it requires and what it changes.

Assignments read as in Python, one after the other: a state function read after it was assigned gives the new value.
The result speaks of the state before the step only, so that every semantics may apply all updates at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, get_type_hints

from attrs import define, field, frozen

from onestart_model.expression import (
    BOOL,
    Apply,
    Literal,
    Node,
    Read,
    RuleError,
    StampType,
    Type,
    Variable,
    substitute,
    walk,
)
from onestart_model.state import FIXED, GHOST, VOLATILE, Function, Schema, schema_of
from onestart_model.terms import (
    Bool,
    Enumeration,
    Sort,
    Term,
    binding,
    bound_variables,
    check_same_group,
    coerce,
    protected,
    wrap,
)


@frozen
class Guard:
    """A condition of an action; `protection` names what is removed when the guard alone is dropped."""

    condition: Node
    protection: str | None = None


@frozen
class Assign:
    """function[indices] := value"""

    function: str
    indices: tuple[Node, ...]
    value: Node


@frozen
class AssignAll:
    """function[parameters] := value, for all values of the parameters"""

    function: str
    parameters: tuple[Variable, ...]
    value: Node


Update = Assign | AssignAll


@define
class Recording:
    """What one run of a rule's function has said so far."""

    schema: Schema
    guards: list[Guard] = field(factory=list)
    updates: list[Update] = field(factory=list)
    writable: bool = True


_current: ContextVar[Recording] = ContextVar("recording")


def require(*conditions: Bool, protection: str | None = None) -> None:
    """The action is possible only if all conditions hold.

    protection: the name under which these guards can be removed, to see what they protect.
    """
    recording = _current.get(None)
    if recording is None or not recording.writable:
        raise RuleError("require() belongs in an action; an invariant returns what must hold")
    if recording.updates:
        raise RuleError("require() comes before the assignments: a guard speaks of the state before the step")
    if not conditions:
        raise RuleError("require() needs at least one condition")
    for condition in conditions:
        node = coerce(condition, BOOL)
        if protection is not None:
            node = Apply("or", (node, (~protected(protection)).node), BOOL)
        recording.guards.append(Guard(node, protection))


class FunctionView:
    """Stands in for a state function while a rule is read."""

    def __init__(self, function: Function, recording: Recording, *, after: bool) -> None:
        self._function, self._recording, self._after = function, recording, after

    def __getitem__(self, key: object) -> Term:
        indices = self._indices(key)
        node: Node = Read(self._function.name, indices, self._function.type, self._after)
        for update in self._recording.updates:
            if update.function == self._function.name:
                node = _overwritten(node, update, indices)
        return wrap(node)

    def __setitem__(self, key: object, value: object) -> None:
        self._check_writable()
        indices = self._indices(key)
        node = self._coerce(value)
        if isinstance(node.type, StampType):
            check_same_group(Read(self._function.name, indices, node.type), node)
        self._recording.updates.append(Assign(self._function.name, indices, node))

    def update(self, value: Callable[..., object]) -> None:
        self._check_writable()
        parameters = bound_variables(value, self._function.arguments)
        with binding(parameters):
            node = self._coerce(value(*(wrap(parameter) for parameter in parameters)))
        if isinstance(node.type, StampType):
            check_same_group(Read(self._function.name, parameters, node.type), node)
        self._recording.updates.append(AssignAll(self._function.name, parameters, node))

    def _coerce(self, value: object) -> Node:
        try:
            return coerce(value, self._function.type)
        except RuleError as error:
            raise RuleError(f"assigning {self._function.name}: {error}") from None

    def _check_writable(self) -> None:
        if not self._recording.writable:
            raise RuleError(f"an invariant may not assign {self._function.name}; only actions change the state")
        if self._function.home == FIXED:
            raise RuleError(f"{self._function.name} is fixed and never changes")

    def _indices(self, key: object) -> tuple[Node, ...]:
        keys = key if isinstance(key, tuple) else (key,)
        wanted = self._function.arguments
        if len(keys) != len(wanted):
            raise RuleError(f"{self._function.name} takes {len(wanted)} arguments, not {len(keys)}")
        try:
            return tuple(coerce(k, sort) for k, sort in zip(keys, wanted, strict=True))
        except RuleError as error:
            raise RuleError(f"argument of {self._function.name}: {error}") from None


def _overwritten(old: Node, update: Update, indices: tuple[Node, ...]) -> Node:
    if isinstance(update, AssignAll):
        return substitute(update.value, dict(zip(update.parameters, indices, strict=True)))
    if update.indices == indices:
        return update.value
    same = [Apply("eq", pair, BOOL) for pair in zip(update.indices, indices, strict=True) if pair[0] != pair[1]]
    condition = same[0] if len(same) == 1 else Apply("and", tuple(same), BOOL)
    return Apply("ite", (condition, update.value, old), old.type)


class StateView:
    """Stands in for the state while a rule is read."""

    def __init__(self, recording: Recording, *, after: bool = False) -> None:
        for function in recording.schema.functions:
            object.__setattr__(self, function.name, FunctionView(function, recording, after=after))
        object.__setattr__(self, "_recording", recording)

    def __getattr__(self, name: str) -> Any:
        self._recording.schema[name]

    def __setattr__(self, name: str, value: object) -> None:
        raise RuleError(
            f"assign one argument at a time, s.{name}[x] = value, or all with s.{name}.update(lambda x: ...)"
        )


def forget(s: object, process: Sort) -> None:
    """All that the process kept in memory goes back to its initial value; what a crash does."""
    recording: Recording = s._recording  # type: ignore[attr-defined]
    if recording.updates:
        raise RuleError("forget() comes before the other assignments of an action")
    for function in recording.schema.of(VOLATILE):
        if function.arguments[0] != process.node.type:
            continue
        initial = Literal(function.initial, function.type)
        if len(function.arguments) == 1:
            recording.updates.append(Assign(function.name, (process.node,), initial))
            continue
        parameters = tuple(Variable(f"x{i}", sort, "forget") for i, sort in enumerate(function.arguments))
        here = Apply("eq", (parameters[0], process.node), BOOL)
        kept = Read(function.name, parameters, function.type)
        recording.updates.append(
            AssignAll(function.name, parameters, Apply("ite", (here, initial, kept), function.type))
        )


Parameters = tuple[Variable, ...]


def read_action(function: Callable[..., None]) -> tuple[Schema, Parameters, tuple[Guard, ...], tuple[Update, ...]]:
    """Run an action's function on terms. Raises RuleError, naming the action, if it is not one."""
    schema, parameters, arguments = _signature(function)
    recording = Recording(schema)
    _run(function, recording, StateView(recording), *arguments)
    _check_no_ghost_in_guards(function.__name__, schema, recording)
    return schema, parameters, tuple(recording.guards), tuple(recording.updates)


def read_property(function: Callable[..., Bool], *, views: int) -> tuple[Schema, Node]:
    """Run an invariant's function on one state view, or on two (before and after the step)."""
    schema, parameters, _ = _signature(function, views=views)
    if parameters:
        raise RuleError(f"{function.__name__}: a property takes {views} state(s) only; quantify with forall() inside")
    recording = Recording(schema, writable=False)
    states = [StateView(recording, after=bool(i)) for i in range(views)]
    result = _run(function, recording, *states)
    try:
        return schema, coerce(result, BOOL)
    except RuleError as error:
        raise RuleError(f"{function.__name__} must return what holds, a Bool: {error}") from None


def _run(function: Callable[..., Any], recording: Recording, *arguments: object) -> Any:
    token = _current.set(recording)
    try:
        return function(*arguments)
    except RuleError as error:
        raise RuleError(f"{function.__name__}: {error}") from error
    finally:
        _current.reset(token)


def _signature(function: Callable[..., Any], *, views: int = 1) -> tuple[Schema, Parameters, list[Term]]:
    names = list(inspect.signature(function).parameters)
    hints = get_type_hints(function)
    if len(names) < views or any(name not in hints for name in names):
        raise RuleError(f"{function.__name__}: annotate every parameter, the first {views} with the state class")
    schema = schema_of(hints[names[0]])
    parameters: list[Variable] = []
    terms: list[Term] = []
    for name in names[views:]:
        variable = Variable(name, parameter_type(function.__name__, name, hints[name]))
        parameters.append(variable)
        terms.append(wrap(variable))
    return schema, tuple(parameters), terms


def parameter_type(rule: str, name: str, hint: object) -> Type:
    if isinstance(hint, type) and issubclass(hint, Sort | Bool | Enumeration) and hasattr(hint, "type"):
        kind: Type = hint.type
        return kind
    raise RuleError(f"{rule}: parameter {name} must be a Sort, a Bool or an Enumeration, not {hint!r}")


def _check_no_ghost_in_guards(rule: str, schema: Schema, recording: Recording) -> None:
    for guard in recording.guards:
        for node in walk(guard.condition):
            if isinstance(node, Read) and schema[node.function].home == GHOST:
                raise RuleError(f"{rule}: the guard reads the ghost {node.function}, which no real system could")
