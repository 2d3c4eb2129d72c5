"""Rules: actions and promises, and the model that collects them.

@action                      what the system does
@environment("damage")       what is done to it
@invariant                   what holds in every reachable state
@step_invariant              what holds of every step, given the states before and after
@reachable                   what must be possible at least once: the witness that the model does anything
@can_still                   what must stay possible from every reachable state
@assumption                  what is taken for granted of the functions that never change
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, TypeVar, overload

from attrs import evolve, field, frozen

from onestart_model.expression import Limit, Node, Read, RuleError, Variable, protections_in, walk
from onestart_model.recording import Guard, Update, read_action, read_property
from onestart_model.state import FIXED, Schema, schema_of

SYSTEM = "system"


@frozen
class Action:
    """A named step. `cause` is "system", or what in the environment brings it about (crash, damage, clock, ...)."""

    name: str
    statement: str
    source: str
    cause: str
    parameters: tuple[Variable, ...]
    guards: tuple[Guard, ...]
    updates: tuple[Update, ...]
    schema: Schema = field(repr=False, eq=False)

    @property
    def protections(self) -> frozenset[str]:
        """Names of everything in this action that can be removed."""
        nodes = [guard.condition for guard in self.guards] + [update.value for update in self.updates]
        return frozenset[str]().union(*(protections_in(node) for node in nodes))

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the state functions that the action may change."""
        return tuple(dict.fromkeys(update.function for update in self.updates))


@frozen
class Property:
    """A statement about the model. kind: invariant, step, reachable, can_still or assumption.

    layer: what is counted (bytes, read, callback, attempt, start, effect). supporting: there to make the proof
    inductive, not a promise. without: for a step invariant, the causes and actions of whose steps it does not speak;
    for can_still, those that the way there may not use. rests_on: the invariants that a proof is tried with first.
    """

    name: str
    statement: str
    source: str
    kind: str
    condition: Node
    layer: str
    supporting: bool
    without: frozenset[str]
    schema: Schema = field(repr=False, eq=False)
    rests_on: tuple[str, ...] = ()

    def concerns(self, action: Action) -> bool:
        """Whether the property speaks of the action's steps, or lets a way use them."""
        return not self.without & {action.name, action.cause}


INVARIANT, STEP, REACHABLE, CAN_STILL, ASSUMPTION = "invariant", "step", "reachable", "can_still", "assumption"
LAYERS = ("bytes", "read", "callback", "attempt", "start", "effect")
F = TypeVar("F", bound=Callable[..., Any])


@overload
def action(function: Callable[..., None], /) -> Action: ...
@overload
def action(*, source: str = "") -> Callable[[Callable[..., None]], Action]: ...
def action(function: Callable[..., None] | None = None, /, *, source: str = "") -> Any:
    """Declare what the system does. source: where the idea comes from (a design document, a paper)."""
    if function is None:
        return lambda f: _action(f, SYSTEM, source)
    return _action(function, SYSTEM, source)


def environment(cause: str, *, source: str = "") -> Callable[[Callable[..., None]], Action]:
    """Declare what the environment does; the cause groups actions that an instance bounds together."""
    if cause in ("", SYSTEM):
        raise RuleError('an environment action names its cause: @environment("crash"), "damage", "clock", ...')
    return lambda function: _action(function, cause, source)


def _action(function: Callable[..., None], cause: str, source: str) -> Action:
    schema, parameters, guards, updates = read_action(function)
    if not updates and not guards:
        raise RuleError(f"{function.__name__} neither requires nor changes anything")
    return Action(function.__name__, _statement(function), source, cause, parameters, guards, updates, schema)


@overload
def invariant(function: Callable[..., Any], /) -> Property: ...
@overload
def invariant(
    *, layer: str = "", source: str = "", supporting: bool = False, rests_on: Iterable[Property | str] = ()
) -> Callable[[F], Property]: ...
def invariant(
    function: Any = None,
    /,
    *,
    layer: str = "",
    source: str = "",
    supporting: bool = False,
    rests_on: Iterable[Property | str] = (),
) -> Any:
    """Declare what holds in every reachable state. supporting=True for a lemma that only carries the induction.

    rests_on: invariants with which its proof is tried first; a proof that does not need the rest is found sooner.
    """
    names = tuple(p.name if isinstance(p, Property) else p for p in rests_on)

    def declare(f: Callable[..., Any]) -> Property:
        return evolve(_property(f, INVARIANT, layer=layer, source=source, supporting=supporting), rests_on=names)

    return declare if function is None else declare(function)


def step_invariant(
    *, except_for: Iterable[Action | str] = (), layer: str = "", source: str = ""
) -> Callable[[F], Property]:
    """Declare what holds of every step, over the states before and after it, but for some causes and actions."""
    return lambda f: _property(f, STEP, layer=layer, source=source, without=_names(except_for))


def reachable(*, layer: str = "", source: str = "") -> Callable[[F], Property]:
    """Declare what some reachable state must show."""
    return lambda f: _property(f, REACHABLE, layer=layer, source=source)


def can_still(*, avoiding: Iterable[Action | str] = (), layer: str = "", source: str = "") -> Callable[[F], Property]:
    """Declare what must stay possible from every reachable state, without the causes and actions to avoid."""
    return lambda f: _property(f, CAN_STILL, layer=layer, source=source, without=_names(avoiding))


def assumption(*, source: str = "") -> Callable[[F], Property]:
    """Declare what is taken for granted of the fixed functions: no proof and no search looks at any others."""

    def declare(function: Callable[..., Any]) -> Property:
        prop = _property(function, ASSUMPTION, source=source)
        changing = (n.function for n in walk(prop.condition) if isinstance(n, Read))
        for name in (n for n in changing if prop.schema[n].home != FIXED):
            raise RuleError(f"{prop.name} reads {name}, which is not fixed; what changes is proved, not assumed")
        return prop

    return declare


def _names(rules: Iterable[Action | str]) -> frozenset[str]:
    return frozenset(rule.name if isinstance(rule, Action) else rule for rule in rules)


def _property(
    function: Callable[..., Any],
    kind: str,
    *,
    layer: str = "",
    source: str = "",
    supporting: bool = False,
    without: frozenset[str] = frozenset(),
) -> Property:
    if layer and layer not in LAYERS:
        raise RuleError(f"{function.__name__}: layer {layer!r} is none of {', '.join(LAYERS)}")
    schema, condition = read_property(function, views=2 if kind == STEP else 1)
    statement = _statement(function)
    return Property(function.__name__, statement, source, kind, condition, layer, supporting, without, schema)


def _statement(function: Callable[..., Any]) -> str:
    statement = inspect.getdoc(function)
    if not statement:
        raise RuleError(f"{function.__name__} needs a docstring that says in plain words what it states")
    return " ".join(statement.split())


@frozen
class Protection:
    """Something that can be removed to see what it protects."""

    name: str
    statement: str


@frozen
class Model:
    """A transition system: a state, the actions on it, what is promised of it, and what is assumed."""

    name: str
    schema: Schema
    actions: tuple[Action, ...]
    properties: tuple[Property, ...]
    protections: tuple[Protection, ...]
    assumptions: tuple[Property, ...] = ()

    @classmethod
    def of(cls, name: str, state: type, *modules: ModuleType, protections: Iterable[Protection] = ()) -> Model:
        """Collect every rule of the modules, in the order in which they are written.

        protections: the statement of each name that require(protection=...) and protected() use.
        Raises RuleError for a rule of another state, a name used twice, or a protection without a statement.
        """
        schema = schema_of(state)
        found = [rule for module in modules for rule in vars(module).values()]
        actions = _unique(rule for rule in found if isinstance(rule, Action))
        stated = _unique(rule for rule in found if isinstance(rule, Property))
        properties = tuple(p for p in stated if p.kind != ASSUMPTION)
        rules: tuple[Action | Property, ...] = (*actions, *stated)
        for rule in rules:
            if rule.schema is not schema:
                raise RuleError(f"{rule.name} is a rule of another state than {state.__name__}")
        described = tuple(protections)
        _check_protections(actions, stated, described)
        _check_causes(actions, properties)
        _check_basis(properties)
        assumptions = tuple(p for p in stated if p.kind == ASSUMPTION)
        return cls(name, schema, actions, properties, described, assumptions)

    def action_named(self, name: str) -> Action:
        return _find("action", self.actions, name)

    def property_named(self, name: str) -> Property:
        return _find("invariant", self.properties, name)

    def protection_named(self, name: str) -> Protection:
        return _find("protection", self.protections, name)

    def of_kind(self, *kinds: str) -> tuple[Property, ...]:
        return tuple(p for p in self.properties if p.kind in kinds)

    @property
    def causes(self) -> tuple[str, ...]:
        """Every cause of the environment's actions."""
        return tuple(dict.fromkeys(a.cause for a in self.actions if a.cause != SYSTEM))

    @property
    def limits(self) -> tuple[str, ...]:
        """Names of the numbers that an instance must fix."""
        nodes = [g.condition for a in self.actions for g in a.guards] + [
            u.value for a in self.actions for u in a.updates
        ]
        nodes += [p.condition for p in self.properties]
        nodes += [f.upto for f in self.schema.functions if f.upto is not None]
        return tuple(dict.fromkeys(part.name for node in nodes for part in walk(node) if isinstance(part, Limit)))


N = TypeVar("N", Action, Property, Protection)


def _find(kind: str, among: tuple[N, ...], name: str) -> N:
    for candidate in among:
        if candidate.name == name:
            return candidate
    close = difflib.get_close_matches(name, [c.name for c in among], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(c.name for c in among)}"
    raise RuleError(f"no {kind} is called {name!r}{hint}")


def _unique(rules: Iterable[N]) -> tuple[N, ...]:
    seen: dict[str, N] = {}
    for rule in rules:
        if seen.setdefault(rule.name, rule) is not rule:
            raise RuleError(f"two rules are called {rule.name}")
    return tuple(seen.values())


def _check_protections(
    actions: tuple[Action, ...], properties: tuple[Property, ...], described: tuple[Protection, ...]
) -> None:
    used = frozenset[str]().union(*(a.protections for a in actions))
    if any(protections_in(p.condition) for p in properties):
        raise RuleError("a promise may not depend on a protection; it must fail when the protection is removed")
    for name in sorted(used ^ {p.name for p in described}):
        what = "is not described in protections=" if name in used else "is described but no action uses it"
        raise RuleError(f"the protection {name!r} {what}")


def _check_basis(properties: tuple[Property, ...]) -> None:
    invariants = {p.name for p in properties if p.kind == INVARIANT}
    for p in properties:
        for name in sorted(set(p.rests_on) - invariants):
            raise RuleError(f"{p.name} rests on {name!r}, which is no invariant")


def _check_causes(actions: tuple[Action, ...], properties: tuple[Property, ...]) -> None:
    known = {a.name for a in actions} | {a.cause for a in actions}
    for p in properties:
        for name in sorted(p.without):
            if name not in known:
                raise RuleError(f"{p.name} names {name!r}, which is neither an action nor a cause")
