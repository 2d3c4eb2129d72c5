"""Expressions over numbered cells, each distinct one built once, and folded as it is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce

from attrs import frozen


@frozen(eq=False)
class Const:
    value: int


@frozen(eq=False)
class Cell:
    index: int


@frozen(eq=False)
class Op:
    """op is one of: not and or eq lt le add ite."""

    op: str
    operands: tuple[Expr, ...]


Expr = Const | Cell | Op


class Builder:
    """Builds expressions. sizes: how many values each cell can take.

    Equal expressions are one object, so that what several rules share is computed once.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self._interned: dict[tuple[object, ...], Expr] = {}
        self.true, self.false = self.const(1), self.const(0)

    def intern(self, key: tuple[object, ...], expr: Expr) -> Expr:
        """The expression that is known under the key, or this one from now on."""
        return self._interned.setdefault(key, expr)

    def const(self, value: int) -> Expr:
        return self.intern(("const", value), Const(value))

    def cell(self, index: int) -> Expr:
        return self.intern(("cell", index), Cell(index))

    def op(self, op: str, *operands: Expr) -> Expr:
        """The folded expression of an operator."""
        folded = _FOLDS[op](self, *operands)
        if folded is not None:
            return folded
        return self.intern((op, *map(id, operands)), Op(op, operands))


def _fold_not(g: Builder, a: Expr) -> Expr | None:
    match a:
        case Const(value=value):
            return g.const(1 - value)
        case Op(op="not", operands=(inner,)):
            return inner
    return None


def _flatten(op: str, parts: tuple[Expr, ...]) -> Iterator[Expr]:
    for part in parts:
        if isinstance(part, Op) and part.op == op:
            yield from _flatten(op, part.operands)
        else:
            yield part


def _fold_junction(op: str, g: Builder, parts: tuple[Expr, ...]) -> Expr | None:
    neutral, absorbing = (g.true, g.false) if op == "and" else (g.false, g.true)
    flat = [part for part in dict.fromkeys(_flatten(op, parts)) if part is not neutral]
    if absorbing in flat or any(isinstance(p, Op) and p.op == "not" and p.operands[0] in flat for p in flat):
        return absorbing
    if not flat:
        return neutral
    return reduce(lambda a, b: g.intern((op, id(a), id(b)), Op(op, (a, b))), flat)


def _fold_eq(g: Builder, a: Expr, b: Expr) -> Expr | None:
    if a is b:
        return g.true
    if isinstance(a, Const) and isinstance(b, Const):
        return g.const(int(a.value == b.value))
    if isinstance(a, Const):
        return g.op("eq", b, a)
    if isinstance(a, Cell) and isinstance(b, Const) and b.value >= g.sizes[a.index]:
        return g.false
    if isinstance(a, Op) and a.op == "ite" and (isinstance(b, Const) or any(isinstance(x, Const) for x in a.operands)):
        condition, yes, no = a.operands
        return g.op("ite", condition, g.op("eq", yes, b), g.op("eq", no, b))
    if isinstance(b, Const) and _is_boolean(g, a):
        return {0: g.op("not", a), 1: a}.get(b.value, g.false)
    return None


def _fold_order(op: str, g: Builder, a: Expr, b: Expr) -> Expr | None:
    if isinstance(a, Const) and isinstance(b, Const):
        return g.const(int(a.value < b.value if op == "lt" else a.value <= b.value))
    if a is b:
        return g.const(int(op == "le"))
    return None


def _fold_add(g: Builder, a: Expr, b: Expr) -> Expr | None:
    if isinstance(a, Const) and isinstance(b, Const):
        return g.const(a.value + b.value)
    return None


def _fold_ite(g: Builder, condition: Expr, yes: Expr, no: Expr) -> Expr | None:
    if isinstance(condition, Const):
        return yes if condition.value else no
    if yes is no:
        return yes
    if _is_boolean(g, yes) and _is_boolean(g, no) and (isinstance(yes, Const) or isinstance(no, Const)):
        either = g.op("and", condition, yes)
        other = g.op("and", g.op("not", condition), no)
        return g.op("or", either, other)
    return None


def _is_boolean(g: Builder, e: Expr) -> bool:
    """Whether the value is 0 or 1 and may be computed as a truth value."""
    match e:
        case Op(op=op):
            return op in ("not", "and", "or", "eq", "lt", "le")
        case Const(value=value):
            return value in (0, 1)
        case Cell(index=index):
            return g.sizes[index] == 2
    return False


_FOLDS: Mapping[str, Callable[..., Expr | None]] = {
    "not": _fold_not,
    "and": lambda g, *parts: _fold_junction("and", g, parts),
    "or": lambda g, *parts: _fold_junction("or", g, parts),
    "eq": _fold_eq,
    "lt": lambda g, a, b: _fold_order("lt", g, a, b),
    "le": lambda g, a, b: _fold_order("le", g, a, b),
    "add": _fold_add,
    "ite": _fold_ite,
}
