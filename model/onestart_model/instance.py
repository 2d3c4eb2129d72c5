"""A bounded instance of a model: how many elements each sort has, and what is limited."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from attrs import evolve, field, frozen

from onestart_model.expression import (
    EnumType,
    Literal,
    MaybeType,
    Node,
    NumberType,
    RuleError,
    SortType,
    Type,
    Value,
    Variable,
)
from onestart_model.rules import Model
from onestart_model.state import FIXED, Function
from onestart_model.terms import Sort

Row = tuple[Value, ...]
FixedValues = tuple[tuple[str, Row], ...]


@frozen(eq=False)
class Instance:
    """Sizes of all sorts, values of all limits, and budgets of causes; a cause without one is unlimited.

    A budget may be shared: {"crash+damage": 2} allows two steps of either cause together. without: names of the
    protections that are removed. fixed: values of the fixed functions, one for each argument; those left out take every
    value. label: what the choice of fixed functions is called. Build one with `Instance.of`, which checks everything.
    """

    model: Model
    sizes: Mapping[SortType, int]
    limits: Mapping[str, int] = field(factory=dict)
    budgets: Mapping[str, int] = field(factory=dict)
    without: frozenset[str] = frozenset()
    fixed: Mapping[str, Row] = field(factory=dict)
    label: str = ""

    @classmethod
    def of(
        cls,
        model: Model,
        *,
        sizes: Mapping[type[Sort], int] | Mapping[str, int],
        limits: Mapping[str, int] | None = None,
        budgets: Mapping[str, int] | None = None,
        without: Iterable[str] = (),
        fixed: Mapping[str, Row] | None = None,
        label: str = "",
    ) -> Instance:
        """Raises RuleError for a sort without a size, an unknown limit, cause or protection, or a bad number."""
        named = {sort if isinstance(sort, str) else sort.type.name: size for sort, size in sizes.items()}
        known = {sort.name: sort for sort in model.schema.sorts}
        _check_names("sort", named, known, "sizes")
        _check_counts("size", named, least=1)
        _check_names("limit", limits or {}, model.limits, "limits")
        _check_counts("limit", limits or {}, least=0)
        _check_causes(model, budgets or {})
        _check_counts("budget", budgets or {}, least=0)
        removed = frozenset(model.protection_named(name).name for name in without)
        instance = cls(
            model, {known[n]: size for n, size in named.items()}, dict(limits or {}), dict(budgets or {}), removed
        )
        for name, row in (fixed or {}).items():
            _check_fixed(instance, name, row)
        return evolve(instance, fixed=dict(fixed or {}), label=label)

    def domain(self, kind: Type) -> tuple[Value, ...]:
        """Every value of a parameter's or quantified variable's type, in order."""
        match kind:
            case SortType():
                return tuple(range(self.sizes[kind]))
            case MaybeType(of=sort):
                return (None, *range(self.sizes[sort]))
            case EnumType(members=members):
                return members
            case NumberType():
                raise RuleError("a Number has no finite domain here")
            case _:
                return (False, True)

    def arguments(self, function: Function) -> Iterator[tuple[int, ...]]:
        """Every tuple of arguments of a state function, in row-major order."""
        return itertools.product(*(range(self.sizes[sort]) for sort in function.arguments))

    def bindings(self, parameters: tuple[Variable, ...]) -> Iterator[tuple[Value, ...]]:
        return itertools.product(*(self.domain(parameter.type) for parameter in parameters))

    @cached_property
    def places(self) -> Mapping[tuple[str, tuple[int, ...]], tuple[int, int]]:
        """Where a state keeps the value of a function for its arguments: row and column."""
        return {
            (function.name, arguments): (row, column)
            for row, function in enumerate(self.model.schema.functions)
            for column, arguments in enumerate(self.arguments(function))
        }

    def upto(self, function: Function) -> int | None:
        """The largest number that a Number function may hold."""
        return None if function.upto is None else self.number(function.upto)

    def number(self, node: Node) -> int:
        if isinstance(node, Literal) and isinstance(node.value, int):
            return node.value
        name = getattr(node, "name", "")
        return self.limits[name]

    def fixings(self) -> Iterator[FixedValues]:
        """Every choice of values for the fixed functions; one empty choice if there are none."""
        choices: list[list[tuple[str, Row]]] = []
        for function in self.model.schema.of(FIXED):
            rows: Iterable[Row] = itertools.product(*(self.domain(function.type) for _ in self.arguments(function)))
            if function.name in self.fixed:
                rows = [self.fixed[function.name]]
            choices.append([(function.name, row) for row in rows])
        return (tuple(choice) for choice in itertools.product(*choices))

    def choices(self, function: Function) -> int:
        """How many fixed functions of this declaration there are."""
        arguments = math.prod(self.sizes[sort] for sort in function.arguments)
        return int(len(self.domain(function.type)) ** min(arguments, 64))

    def budget_of(self, cause: str) -> int | None:
        """The place of the budget that steps of this cause spend, None if they are unlimited."""
        return next((i for i, causes in enumerate(self.budgets) if cause in causes.split("+")), None)

    @property
    def scope(self) -> str:
        """The claim's scope in words: "2 keys, 1 task, crash at most 1"."""
        parts = [f"{n} {plural(sort.name, n)}" for sort, n in self.sizes.items()]
        parts += [f"{name} = {value}" for name, value in self.limits.items()]
        parts += [f"{' or '.join(causes.split('+'))} at most {n}" for causes, n in self.budgets.items()]
        open_ = [f.name for f in self.model.schema.of(FIXED) if f.name not in self.fixed]
        if self.fixed:
            parts.append(f"program {self.label}" if self.label else "one program")
            parts += [f"any {' and '.join(open_)}"] if open_ else []
        return ", ".join(parts)


def plural(sort: str, n: int) -> str:
    word = sort.lower()
    if n == 1:
        return word
    return word + ("es" if word.endswith(("s", "x", "ch")) else "s")


def element(sort: SortType, index: int) -> str:
    """The printed name of an element, counted from 1: key1."""
    return f"{sort.name.lower()}{index + 1}"


def elements(sorts: tuple[SortType, ...], indices: tuple[int, ...]) -> tuple[str, ...]:
    """The printed names of a function's arguments."""
    return tuple(element(sort, index) for sort, index in zip(sorts, indices, strict=True))


def show_value(kind: Type, value: Value) -> str:
    match kind, value:
        case (MaybeType(), None):
            return "none"
        case (MaybeType(of=sort), int(index)) | (SortType() as sort, int(index)):
            return element(sort, index)
        case _, bool():
            return "yes" if value else "no"
        case _:
            return str(value)


def _check_names(what: str, given: Mapping[str, int], wanted: Iterable[str], option: str) -> None:
    names = list(wanted)
    for name in given:
        if name not in names:
            raise RuleError(f"{name!r} is no {what} of this model; known: {', '.join(names) or 'none'}")
    missing = [name for name in names if name not in given]
    if missing:
        raise RuleError(f"the instance says nothing of the {what} {missing[0]!r}: add it to {option}=")


def _check_counts(what: str, counts: Mapping[str, int], *, least: int) -> None:
    for name, n in counts.items():
        if type(n) is not int or n < least:
            raise RuleError(f"the {what} of {name} must be a whole number of at least {least}, not {n!r}")


def _check_causes(model: Model, budgets: Mapping[str, int]) -> None:
    seen: set[str] = set()
    for cause in (cause for key in budgets for cause in key.split("+")):
        if cause not in model.causes:
            raise RuleError(f"{cause!r} is no cause of this model; known: {', '.join(model.causes) or 'none'}")
        if cause in seen:
            raise RuleError(f"the cause {cause!r} has two budgets; give it one, its own or a shared one")
        seen.add(cause)


def _check_fixed(instance: Instance, name: str, row: Row) -> None:
    function = instance.model.schema[name]
    if function.home != FIXED:
        raise RuleError(f"{name} is not fixed; only fixed functions take values in fixed=")
    count = len(list(instance.arguments(function)))
    if len(row) != count or any(value not in instance.domain(function.type) for value in row):
        raise RuleError(f"fixed {name} needs {count} values, each one of {instance.domain(function.type)}")
