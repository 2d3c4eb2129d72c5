"""Declaring a state: functions of one or two arguments, each with where it lives.

    @state
    class State:
        receipt: Fn[Key, Receipt] = durable("receipts", Receipt.ABSENT)
        serving: Fn[Process, Maybe[Key]] = volatile(NONE)
        starts: Fn[Key, Number] = ghost(0, upto=2)
        task: Fn[Key, Task] = fixed()

Where a function lives decides what a crash does to it and what the model may claim about it: a *durable* record is in
a store, an *external* one is a fact about the world outside (the executor, the regulator), a *volatile* one is lost
when its process crashes, a *ghost* one is only there to state a promise, and a *fixed* one never changes.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar, TypeVarTuple, cast, get_args, get_origin, get_type_hints, overload

from attrs import frozen

from onestart_model.expression import (
    MaybeType,
    Node,
    NumberType,
    RuleError,
    SortType,
    StampType,
    Type,
    Value,
)
from onestart_model.terms import Maybe, Sort, Stamp, Term, coerce

Ks = TypeVarTuple("Ks")
K = TypeVar("K", bound=Sort)
L = TypeVar("L", bound=Sort)
V = TypeVar("V", bound=Term)
C = TypeVar("C")


class Fn(Generic[*Ks, V]):
    """A state function, read as `s.attempt[k]` or `s.held[p, t]` and updated by assignment.

    Only declared, never constructed by a model: while a rule is read, a recorder stands in for it.
    """

    @overload
    def __getitem__(self: Fn[K, V], key: K) -> V: ...
    @overload
    def __getitem__(self: Fn[K, L, V], key: tuple[K, L]) -> V: ...
    def __getitem__(self, key: Any) -> Any:
        raise NotImplementedError

    @overload
    def __setitem__(self: Fn[K, V], key: K, value: Term | bool | int) -> None: ...
    @overload
    def __setitem__(self: Fn[K, L, V], key: tuple[K, L], value: Term | bool | int) -> None: ...
    def __setitem__(self, key: Any, value: Any) -> None:
        raise NotImplementedError

    def update(self, value: Any) -> None:
        """Give every argument a new value at once: `s.noted.update(lambda k: ite(lost, FALSE, s.noted[k]))`."""
        raise NotImplementedError


DURABLE, EXTERNAL, VOLATILE, GHOST, FIXED = "durable", "external", "volatile", "ghost", "fixed"


@frozen
class Declaration:
    home: str
    initial: object
    store: str
    upto: object


def durable(store: str, initial: object, *, upto: object = None) -> Any:
    """A record in the store of that name; it survives crashes, and only the environment may lose or damage it."""
    if not store:
        raise RuleError('a durable function names its store: durable("receipts", ...)')
    return Declaration(DURABLE, initial, store, upto)


def external(initial: object, *, upto: object = None) -> Any:
    """A fact about the world outside, which no crash of ours undoes."""
    return Declaration(EXTERNAL, initial, "", upto)


def volatile(initial: object, *, upto: object = None) -> Any:
    """Memory of a process (its first argument): a crash sets it back to the initial value."""
    return Declaration(VOLATILE, initial, "", upto)


def ghost(initial: object, *, upto: object = None) -> Any:
    """History that no guard may read; it exists for the invariants."""
    return Declaration(GHOST, initial, "", upto)


def fixed() -> Any:
    """A function that never changes, such as the task of a key; any values are possible."""
    return Declaration(FIXED, None, "", None)


@frozen
class Function:
    """A declared state function.

    upto: the largest number it may hold, a literal, an instance's limit, or None for unbounded.
    """

    name: str
    arguments: tuple[SortType, ...]
    type: Type
    home: str
    initial: Value
    store: str
    upto: Node | None

    @property
    def group(self) -> SortType | None:
        return self.type.group if isinstance(self.type, StampType) else None


@frozen
class Schema:
    """All functions of a state, in the order of their declaration."""

    functions: tuple[Function, ...]

    def __getitem__(self, name: str) -> Function:
        for function in self.functions:
            if function.name == name:
                return function
        raise RuleError(f"the state has no function {name!r}; it has {', '.join(f.name for f in self.functions)}")

    def __contains__(self, name: str) -> bool:
        return any(function.name == name for function in self.functions)

    @property
    def sorts(self) -> tuple[SortType, ...]:
        """Every sort that is an argument or a value, in the order of first appearance."""
        found: dict[SortType, None] = {}
        for function in self.functions:
            for kind in (*function.arguments, _sort_in(function.type)):
                if kind is not None:
                    found[kind] = None
        return tuple(found)

    def of(self, home: str) -> tuple[Function, ...]:
        return tuple(function for function in self.functions if function.home == home)


def _sort_in(kind: Type) -> SortType | None:
    match kind:
        case SortType():
            return kind
        case MaybeType(of=sort):
            return sort
        case _:
            return None


def state(cls: type[C]) -> type[C]:
    """Class decorator: read the declarations of a state. Raises RuleError for anything that is not one."""
    hints = get_type_hints(cls)
    declared = {name: value for name, value in vars(cls).items() if isinstance(value, Declaration)}
    for name in hints:
        if name not in declared:
            raise RuleError(f"{cls.__name__}.{name} says not where it lives: give it durable(...), volatile(...), ...")
    for name in declared:
        if name not in hints:
            raise RuleError(f"{cls.__name__}.{name} has no type: annotate it as Fn[Sort, Value]")
    functions = tuple(_function(name, hints[name], declaration) for name, declaration in declared.items())
    cls.__schema__ = Schema(functions)  # type: ignore[attr-defined]
    return cls


def schema_of(cls: type) -> Schema:
    schema = getattr(cls, "__schema__", None)
    if not isinstance(schema, Schema):
        raise RuleError(f"{cls.__name__} is not a state: decorate it with @state")
    return schema


def _function(name: str, hint: object, declaration: Declaration) -> Function:
    if get_origin(hint) is not Fn:
        raise RuleError(f"{name} must be annotated as Fn[Sort, Value] or Fn[Sort, Sort, Value]")
    *sorts, value = get_args(hint)
    if not 1 <= len(sorts) <= 2 or not all(isinstance(sort, type) and issubclass(sort, Sort) for sort in sorts):
        raise RuleError(f"{name}: a state function has one or two arguments, each a Sort")
    arguments = tuple(cast(SortType, sort.type) for sort in sorts)
    kind = _value_type(name, value, arguments)
    if declaration.home == FIXED and isinstance(kind, NumberType | StampType):
        raise RuleError(f"{name}: a fixed function is of a sort, an enumeration, a Bool or a Maybe")
    if isinstance(kind, NumberType) and declaration.upto is None:
        raise RuleError(f"{name} is a Number and needs a bound: upto=2, or upto=limit('NAME') for one of the instance")
    upto = None if declaration.upto is None else coerce(declaration.upto, NumberType())
    return Function(name, arguments, kind, declaration.home, _initial(name, kind, declaration), declaration.store, upto)


def _value_type(name: str, value: object, arguments: tuple[SortType, ...]) -> Type:
    if get_origin(value) is Maybe:
        return MaybeType(get_args(value)[0].type)
    if value is Stamp:
        return StampType(arguments[-1])
    kind = getattr(value, "type", None)
    if isinstance(kind, Type):
        return kind
    raise RuleError(
        f"{name}: {value!r} is no value type; use Bool, Number, Stamp, an Enumeration, a Sort or Maybe[Sort]"
    )


def _initial(name: str, kind: Type, declaration: Declaration) -> Value:
    if declaration.home == FIXED:
        return None
    node = coerce(declaration.initial, kind)
    value = getattr(node, "value", declaration)
    if isinstance(value, Declaration) or isinstance(kind, SortType):
        raise RuleError(f"{name}: the initial value must be a literal of {kind}")
    return cast(Value, value)
