"""Columns: ground expressions as operations on whole columns of states.

Expressions are put in order once; a block of states is then evaluated by running down the list, each part that
several rules share being computed once for the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from attrs import frozen

from onestart_proofs.folding import Cell, Const, Expr, Op
from onestart_proofs.packing import Column


@frozen
class Instruction:
    target: int
    function: Callable[..., Column]
    operands: tuple[int, ...]


class Program:
    """All expressions of some roots in an order in which each can be computed from earlier ones."""

    def __init__(self, roots: Iterable[Expr]) -> None:
        self._register: dict[int, int] = {}
        self._keep: list[Expr] = []
        self._inputs: list[tuple[int, int]] = []
        self._constants: list[tuple[int, int]] = []
        self._instructions: list[Instruction] = []
        for root in roots:
            self._place(root)

    def _place(self, expr: Expr) -> int:
        if id(expr) in self._register:
            return self._register[id(expr)]
        operands = tuple(self._place(part) for part in expr.operands) if isinstance(expr, Op) else ()
        register = self._register[id(expr)] = len(self._register)
        self._keep.append(expr)
        match expr:
            case Const(value=value):
                self._constants.append((register, value))
            case Cell(index=index):
                self._inputs.append((register, index))
            case Op(op=op):
                self._instructions.append(Instruction(register, _FUNCTIONS[op], operands))
        return register

    def run(self, columns: list[Column]) -> Registers:
        """Evaluate everything on a block. columns: one for each cell, all of one length."""
        values: list[Any] = [None] * len(self._register)
        for register, constant in self._constants:
            values[register] = constant
        for register, cell in self._inputs:
            values[register] = columns[cell]
        for instruction in self._instructions:
            values[instruction.target] = instruction.function(*(values[o] for o in instruction.operands))
        return Registers(self._register, values)


@frozen(eq=False)
class Registers:
    """The values of a block, found by expression: a column, or an int where the expression is constant."""

    _places: dict[int, int]
    _values: list[Any]

    def __getitem__(self, expr: Expr) -> Any:
        return self._values[self._places[id(expr)]]


def _truth(value: Any) -> Any:
    return bool(value) if isinstance(value, int) else value


def _add(a: Any, b: Any) -> Column:
    result: Column = np.add(a, b, dtype=np.int32)
    return result


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    return np.where(condition, _wide(yes), _wide(no))


def _wide(value: Any) -> Any:
    """A constant in a type that holds it: np.where would make it as narrow as the column beside it."""
    if type(value) is not int:
        return value
    return np.uint8(value) if 0 <= value < 256 else np.int64(value)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "not": np.logical_not,
    "and": lambda a, b: np.logical_and(_truth(a), _truth(b)),
    "or": lambda a, b: np.logical_or(_truth(a), _truth(b)),
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "add": _add,
    "ite": _choose,
}
