"""Successors of a whole block of states at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from onestart_model.expression import NumberType, RuleError
from onestart_proofs.columns import Program, Registers
from onestart_proofs.folding import Const, Expr, Op
from onestart_proofs.ground import GroundAction, GroundModel
from onestart_proofs.packing import Layout, Words, stamp_group
from onestart_proofs.symmetry import Canonical

Rows = npt.NDArray[np.intp]
Choices = tuple[tuple[Expr, bool], ...]


@frozen(eq=False)
class Moves:
    """What can happen in a block of states.

    spans: for each ground action that is enabled anywhere its number, the rows of the block where it is, and where its
    successors begin. successors: all of them, canonical.
    """

    spans: tuple[tuple[int, Rows, int], ...]
    successors: Words

    def of(self, span: tuple[int, Rows, int]) -> Words:
        _, rows, start = span
        return self.successors[:, start : start + len(rows)]


class StampError(RuleError):
    """next() was taken of a stamp that is not the highest of its group, where renumbering would be wrong."""


@frozen(eq=False)
class _Compiled:
    """clear and constant: what every successor loses and gains in each word. computed: the other cells.

    raised: new stamps, each with the choices under which it is taken and the cells of its group.
    """

    number: int
    action: GroundAction
    clear: npt.NDArray[np.uint64]
    constant: npt.NDArray[np.uint64]
    computed: tuple[tuple[int, Expr], ...]
    raised: tuple[tuple[Expr, Choices, tuple[int, ...]], ...]


class Expander:
    """The rules of a grounded model, compiled once."""

    def __init__(
        self, model: GroundModel, layout: Layout, canonical: Canonical, watched: tuple[Expr, ...] = ()
    ) -> None:
        self.model, self.layout, self._canonical = model, layout, canonical
        self._stamps = [i for i in range(len(model.cells)) if stamp_group(model, i) is not None]
        self._moves = [self._compile(number, action) for number, action in enumerate(model.actions)]
        roots = [guard for action in model.actions for guard in action.guards]
        roots += [value for move in self._moves for _, value in move.computed]
        roots += [condition for conditions in model.steps.values() for condition in conditions.values()]
        self._program = Program([*roots, *watched])

    def _compile(self, number: int, action: GroundAction) -> _Compiled:
        clear = np.full(self.layout.words, 2**64 - 1, dtype=np.uint64)
        constant = np.zeros(self.layout.words, dtype=np.uint64)
        computed = []
        for cell, value in action.updates.items():
            field = self.layout.fields[cell]
            clear[field.word] &= np.uint64((2**64 - 1) ^ (field.mask << field.shift))
            if isinstance(value, Const) and self._is_plain(cell, value.value):
                constant[field.word] |= np.uint64(value.value << field.shift)
            else:
                computed.append((cell, value))
        raised = tuple(
            (new, choices, self._group(cell))
            for cell, value in computed
            if cell in self._stamps
            for new, choices in _increments(value, ())
        )
        return _Compiled(number, action, clear, constant, tuple(computed), raised)

    def _is_plain(self, cell: int, value: int) -> bool:
        """Whether a constant needs no check: within bounds, and no new stamp."""
        return value < self.model.cells[cell].size and not (value and cell in self._stamps)

    def _group(self, cell: int) -> tuple[int, ...]:
        group = stamp_group(self.model, cell)
        return tuple(i for i in self._stamps if stamp_group(self.model, i) == group)

    def evaluate(self, states: Words) -> Registers:
        """Every expression of the rules on a block."""
        return self._program.run(self.layout.columns(states))

    def moves(self, states: Words, registers: Registers, allowed: frozenset[int] | None = None) -> Moves:
        """Every step from every state of the block; only of the allowed ground actions, if they are given."""
        spans: list[tuple[int, Rows, int]] = []
        found: list[Words] = [np.empty((self.layout.words, 0), dtype=np.uint64)]
        start = 0
        for move in self._moves:
            if allowed is not None and move.number not in allowed:
                continue
            rows = self._enabled(move, states.shape[1], registers)
            if len(rows):
                spans.append((move.number, rows, start))
                found.append(self._successors(move, states, rows, registers))
                start += len(rows)
        return Moves(tuple(spans), self._canonical.states(np.concatenate(found, axis=1)))

    def _enabled(self, move: _Compiled, count: int, registers: Registers) -> Rows:
        enabled: npt.NDArray[np.bool_] | None = None
        for guard in move.action.guards:
            column = registers[guard]
            enabled = column if enabled is None else enabled & column
        return np.arange(count) if enabled is None else enabled.nonzero()[0]

    def _successors(self, move: _Compiled, states: Words, rows: Rows, registers: Registers) -> Words:
        successors = states.take(rows, axis=1)
        if not move.action.updates:
            return successors
        for word, (clear, constant) in enumerate(zip(move.clear, move.constant, strict=True)):
            successors[word] &= clear
            successors[word] |= constant
        for cell, value in move.computed:
            field = self.layout.fields[cell]
            column = _on_rows(registers[value], rows)
            self._check_range(move, cell, column)
            successors[field.word] |= column.astype(np.uint64) << np.uint64(field.shift)
        for new, choices, group in move.raised:
            self._check_highest(
                move, _on_rows(registers[new], rows), _chosen(registers, rows, choices), group, states[:, rows]
            )
        return successors

    def _check_highest(self, move: _Compiled, new: Any, chosen: Any, group: tuple[int, ...], states: Words) -> None:
        for cell in group:
            field = self.layout.fields[cell]
            other = (states[field.word] >> np.uint64(field.shift)) & np.uint64(field.mask)
            if (chosen & (new <= other)).any():
                name = move.action.step.action
                raise StampError(f"{name} takes next() of a stamp that is not the highest of its group")

    def _check_range(self, move: _Compiled, cell: int, column: npt.NDArray[np.generic]) -> None:
        info = self.model.cells[cell]
        if info.function is None or not isinstance(info.function.type, NumberType):
            return
        if int(column.max()) >= info.size:
            raise RuleError(f"{move.action.step.action} takes {info.function.name} beyond its bound {info.size - 1}")


def _on_rows(value: Any, rows: Rows) -> npt.NDArray[np.generic]:
    column: npt.NDArray[np.generic] = np.full(len(rows), value) if isinstance(value, int) else value[rows]
    return column


def _increments(value: Expr, choices: Choices) -> Iterator[tuple[Expr, Choices]]:
    match value:
        case Const(value=number) if number:
            yield value, choices
        case Op(op="add", operands=operands):
            yield value, choices
            for operand in operands:
                if not isinstance(operand, Const):
                    yield from _increments(operand, choices)
        case Op(op="ite", operands=(condition, yes, no)):
            yield from _increments(yes, (*choices, (condition, True)))
            yield from _increments(no, (*choices, (condition, False)))


def _chosen(registers: Registers, rows: Rows, choices: Choices) -> npt.NDArray[np.bool_]:
    chosen = np.ones(len(rows), dtype=np.bool_)
    for condition, wanted in choices:
        chosen &= registers[condition][rows].astype(np.bool_) == wanted
    return chosen
