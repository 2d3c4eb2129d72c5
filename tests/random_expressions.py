"""Random expressions, well-typed by construction: whatever the rule language can say, in few words.

Names of quantified variables come from a small pool and repeat, as they do in rules that people write; sites tell the
variables apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from random import Random

from attrs import evolve, frozen

from onestart_model.expression import (
    BOOL,
    FALSE,
    NUMBER,
    TRUE,
    Apply,
    EnumType,
    Limit,
    Literal,
    MaybeType,
    Node,
    NumberType,
    Protected,
    Quantified,
    Read,
    SortType,
    StampType,
    Type,
    Variable,
)
from onestart_model.state import Function

Indices = tuple[Node, ...]


@frozen
class Scope:
    """What an expression may mention. after: whether it speaks of the state after a step too."""

    functions: tuple[Function, ...]
    sorts: tuple[SortType, ...]
    enumeration: EnumType
    variables: tuple[Variable, ...] = ()
    limits: tuple[str, ...] = ()
    protections: tuple[str, ...] = ()
    after: bool = False

    def binding(self, *variables: Variable) -> Scope:
        return evolve(self, variables=(*self.variables, *variables))

    def of(self, kind: Type) -> list[Node]:
        """Variables of a type."""
        return [v for v in self.variables if v.type == kind]


def _reads(scope: Scope, kind: Type) -> Iterator[Node]:
    """Every state function of the type at every choice of variables."""
    for function in scope.functions:
        if function.type == kind:
            for indices in itertools.product(*(scope.of(sort) for sort in function.arguments)):
                yield Read(function.name, indices, kind)
                if scope.after:
                    yield Read(function.name, indices, kind, after=True)


def _constants(scope: Scope, kind: Type) -> list[Node]:
    match kind:
        case EnumType(members=members):
            return [Literal(member, kind) for member in members]
        case NumberType():
            return [*(Literal(n, NUMBER) for n in (0, 1, 2, 300)), *(Limit(name) for name in scope.limits)]
        case MaybeType(of=sort):
            return [Literal(None, kind), *(Apply("some", (v,), kind) for v in scope.of(sort))]
        case SortType():
            return []
        case _:
            return [TRUE, FALSE, *(Protected(name) for name in scope.protections)]


def leaves(scope: Scope, kind: Type) -> list[Node]:
    return [*scope.of(kind), *_reads(scope, kind), *_constants(scope, kind)]


def leaf(rng: Random, scope: Scope, kind: Type) -> Node:
    """A variable or a reading where there is one, mostly; else a constant."""
    living = [*scope.of(kind), *_reads(scope, kind)]
    constants = _constants(scope, kind)
    if living and (not constants or rng.randint(0, 3 if kind != BOOL else 15)):
        return rng.choice(living)
    return rng.choice(constants)


def constant(rng: Random, scope: Scope, kind: Type) -> Node:
    """A value that does not depend on the state; a reference to a variable is one."""
    return rng.choice(_constants(scope, kind) or scope.of(kind))


def value(rng: Random, scope: Scope, kind: Type, depth: int) -> Node:
    """An expression of any type but a stamp's. A sort needs a variable of it in the scope."""
    if kind == BOOL:
        return condition(rng, scope, depth)
    if depth == 0 or not rng.randint(0, 2):
        return leaf(rng, scope, kind)
    makers = [_choice]
    if kind == NUMBER:
        makers += [_sum]
    if isinstance(kind, MaybeType) and scope.of(kind.of):
        makers += [_some]
    if _functions(scope, kind):
        makers += [_deep_read]
    return rng.choice(makers)(rng, scope, kind, depth - 1)


def _choice(rng: Random, scope: Scope, kind: Type, depth: int) -> Node:
    """One of two values, often of two constants, as in `ite(lost, Receipt.DAMAGED, Receipt.PENDING)`."""
    makers = [value if kind == BOOL or rng.random() < 0.5 else _flat for _ in range(2)]
    return Apply("ite", (condition(rng, scope, depth), *(maker(rng, scope, kind, depth) for maker in makers)), kind)


def _flat(rng: Random, scope: Scope, kind: Type, depth: int) -> Node:
    return constant(rng, scope, kind)


def _sum(rng: Random, scope: Scope, kind: Type, depth: int) -> Node:
    return Apply("add", (value(rng, scope, kind, depth), value(rng, scope, kind, depth)), kind)


def _some(rng: Random, scope: Scope, kind: Type, depth: int) -> Node:
    assert isinstance(kind, MaybeType)
    return Apply("some", (value(rng, scope, kind.of, depth),), kind)


def _functions(scope: Scope, kind: Type) -> list[Function]:
    return [f for f in scope.functions if f.type == kind and all(scope.of(sort) for sort in f.arguments)]


def _deep_read(rng: Random, scope: Scope, kind: Type, depth: int) -> Node:
    function = rng.choice(_functions(scope, kind))
    after = scope.after and (rng.random() < 0.5)
    return Read(function.name, indices_of(rng, scope, function, depth), kind, after)


def indices_of(rng: Random, scope: Scope, function: Function, depth: int) -> Indices:
    """Arguments that may depend on the state: another function's value, or a choice between elements."""
    return tuple(value(rng, scope, sort, depth) for sort in function.arguments)


def condition(rng: Random, scope: Scope, depth: int) -> Node:
    """A Boolean expression."""
    if depth == 0 or not rng.randint(0, 4):
        return leaf(rng, scope, BOOL)
    makers: list[Callable[[Random, Scope, int], Node]] = [_not, _junction, _implies, _equal, _choose, _order, _boolean]
    makers += [quantified] if len(scope.variables) < 6 else []
    makers += [_stamp_order] if _groups(scope) else []
    return rng.choice(makers)(rng, scope, depth - 1)


def _not(rng: Random, scope: Scope, depth: int) -> Node:
    return Apply("not", (condition(rng, scope, depth),), BOOL)


def _junction(rng: Random, scope: Scope, depth: int) -> Node:
    parts = tuple(condition(rng, scope, depth) for _ in range(rng.choice([2, 2, 3])))
    return Apply(rng.choice(["and", "or"]), parts, BOOL)


def _implies(rng: Random, scope: Scope, depth: int) -> Node:
    return Apply("implies", (condition(rng, scope, depth), condition(rng, scope, depth)), BOOL)


def _boolean(rng: Random, scope: Scope, depth: int) -> Node:
    maker = _deep_read if _functions(scope, BOOL) and (rng.random() < 0.5) else _choice
    return maker(rng, scope, BOOL, depth)


def _equal(rng: Random, scope: Scope, depth: int) -> Node:
    held = [sort for sort in scope.sorts if scope.of(sort)]
    types: list[Type] = [scope.enumeration, *held, *(MaybeType(sort) for sort in scope.sorts), NUMBER, BOOL]
    present = [kind for kind in types if any(True for _ in _reads(scope, kind))]
    kind = rng.choice(present or types)
    left = value(rng, scope, kind, depth)
    right = value(rng, scope, kind, depth) if (rng.random() < 0.5) else constant(rng, scope, kind)
    return Apply("eq", (left, right), BOOL)


def _choose(rng: Random, scope: Scope, depth: int) -> Node:
    """Whether one of two constants, chosen by the state, is a third."""
    kinds: list[Type] = [scope.enumeration, NUMBER, *(MaybeType(sort) for sort in scope.sorts if scope.of(sort))]
    kind = rng.choice(kinds)
    yes, no, wanted = (constant(rng, scope, kind) for _ in range(3))
    return Apply("eq", (Apply("ite", (condition(rng, scope, depth), yes, no), kind), wanted), BOOL)


def _order(rng: Random, scope: Scope, depth: int) -> Node:
    parts = [value(rng, scope, NUMBER, depth), value(rng, scope, NUMBER, depth)]
    if rng.random() < 0.5:
        parts[rng.choice([0, 1])] = constant(rng, scope, NUMBER)
    return Apply(rng.choice(["lt", "le"]), tuple(parts), BOOL)


def quantified(rng: Random, scope: Scope, depth: int) -> Node:
    variable = quantifiable(rng, scope)
    return Quantified(rng.choice(["all", "any"]), variable, condition(rng, scope.binding(variable), depth))


def quantifiable(rng: Random, scope: Scope) -> Variable:
    """A variable to quantify over: its name may be in use, its site is not."""
    return Variable(rng.choice(["k", "j"]), rng.choice(list(scope.sorts)), f"quantified:{len(scope.variables)}")


def _stamp_functions(scope: Scope, group: SortType) -> list[Function]:
    return [f for f in scope.functions if f.type == StampType(group) and all(scope.of(s) for s in f.arguments)]


def _groups(scope: Scope) -> list[SortType]:
    return [sort for sort in scope.sorts if _stamp_functions(scope, sort)]


def _stamp_order(rng: Random, scope: Scope, depth: int) -> Node:
    group = rng.choice(_groups(scope))
    element = value(rng, scope, group, depth)
    parts = (stamp(rng, scope, group, element, depth), stamp(rng, scope, group, element, depth))
    return Apply(rng.choice(["eq", "lt", "le"]), parts, BOOL)


def stamp(rng: Random, scope: Scope, group: SortType, element: Node, depth: int) -> Node:
    """A stamp of one element of its group: 0, or one that is in the state."""
    kind = StampType(group)
    if depth > 0 and not rng.randint(0, 2):
        parts = (stamp(rng, scope, group, element, depth - 1), stamp(rng, scope, group, element, depth - 1))
        return Apply("ite", (condition(rng, scope, depth - 1), *parts), kind)
    functions = _stamp_functions(scope, group)
    if not functions or not rng.randint(0, 4):
        return Literal(0, kind)
    function = rng.choice(functions)
    first = tuple(value(rng, scope, sort, 0) for sort in function.arguments[:-1])
    return Read(function.name, (*first, element), kind, scope.after and (rng.random() < 0.5))
