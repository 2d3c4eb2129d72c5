"""Bounded model checking: is there a trace of a given length, in an instance of a given size?

The cells of the state after each step are bit vectors, and a number chosen for each step says which ground action it
is. A satisfying assignment is a trace, which the reference machine then repeats. It finds short traces without visiting
the states on the way, and says nothing beyond its depth: an empty result is undetermined, never proved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3
from attrs import field, frozen

from onestart_model.counterexample import Counterexample
from onestart_model.execution import Machine
from onestart_model.expression import RuleError, StampType
from onestart_model.instance import Instance
from onestart_model.rules import INVARIANT, REACHABLE, STEP, Property
from onestart_proofs.folding import Cell, Const, Expr, Op
from onestart_proofs.ground import GroundModel, ground, stamp_growth
from onestart_proofs.induction import Options, resources_of
from onestart_proofs.symmetry import check_size, representatives
from onestart_report.verdict import Verdict

MOST_DEPTH = 60


@frozen
class Outcome:
    """refuted (for a reachable property: proved) with a trace, or undetermined up to the depth."""

    property: str
    verdict: Verdict
    depth: int
    resources: int
    trace: Counterexample | None = field(default=None, repr=False)
    reason: str = ""


Report = Callable[[int, int], None]


def bounded_check(
    instance: Instance, prop: Property, *, depth: int, options: Options | None = None, report: Report | None = None
) -> Outcome:
    """Look for a trace of at most `depth` steps that breaks the property (or shows it, if it is to be reachable).

    report: called with each depth that was passed and the resources spent. Raises RuleError for a property about what
    can still happen, or a depth outside of 1 to 60.
    """
    if prop.kind not in (INVARIANT, STEP, REACHABLE):
        raise RuleError(f"{prop.name} says what can still happen; bounded model checking cannot tell, use explore")
    if not 1 <= depth <= MOST_DEPTH:
        raise RuleError(f"a depth of {depth} cannot be checked; choose one from 1 to {MOST_DEPTH}")
    check_size(instance, symmetry=True)
    unrollings = [_Unrolling(ground(instance, f), prop, depth, options or Options()) for f in representatives(instance)]
    for length in range(depth + 1):
        for unrolling in unrollings:
            result = unrolling.extend(length)
            spent = sum(u.spent for u in unrollings)
            if result == z3.sat:
                trace = unrolling.trace(length)
                verdict = Verdict.PROVED if prop.kind == REACHABLE else Verdict.REFUTED
                return Outcome(prop.name, verdict, len(trace.steps), spent, trace)
            if result == z3.unknown:
                return Outcome(prop.name, Verdict.UNDETERMINED, length, spent, None, unrolling.reason)
        if report is not None:
            report(length, spent)
    return Outcome(prop.name, Verdict.UNDETERMINED, depth, spent, None, f"no trace of at most {depth} steps")


class _Unrolling:
    def __init__(self, model: GroundModel, prop: Property, depth: int, options: Options) -> None:
        self._model, self._prop = model, prop
        self._context = z3.Context()
        self._solver = z3.SolverFor("QF_BV", self._context)
        self._solver.set("random_seed", options.seed)
        self._solver.set("rlimit", options.resources)
        self._width = [_width(model, i, depth) for i in range(len(model.cells))]
        self._choice_width = max(1, len(model.actions).bit_length())
        self._cells: list[list[Any]] = [self._frame(0)]
        self._memo: list[dict[int, Any]] = [{}]
        self._choices: list[Any] = []
        self.spent = 0
        self.reason = ""
        for variable, code in zip(self._cells[0], model.initial, strict=True):
            self._solver.add(variable == code)

    def _frame(self, time: int) -> list[Any]:
        return [z3.BitVec(f"c{i}@{time}", w, self._context) for i, w in enumerate(self._width)]

    def extend(self, length: int) -> Any:
        """Add steps up to the length, and check whether the last state (or step) is a sighting."""
        while len(self._choices) < length:
            self._add_step()
        self._solver.push()
        self._solver.add(self._sighting(length))
        result = self._solver.check()
        self.spent = resources_of(self._solver)
        if result == z3.sat:
            self._found = self._solver.model()
        elif result == z3.unknown:
            self.reason = self._solver.reason_unknown()
        self._solver.pop()
        return result

    def _add_step(self) -> None:
        time = len(self._choices)
        choice = z3.BitVec(f"a@{time}", self._choice_width, self._context)
        self._choices.append(choice)
        self._cells.append(self._frame(time + 1))
        self._memo.append({})
        self._solver.add(z3.ULT(choice, len(self._model.actions)))
        values = list(self._cells[time])
        for number, action in enumerate(self._model.actions):
            taken = choice == number
            for guard in action.guards:
                self._solver.add(z3.Implies(taken, self._truth(guard, time)))
            for cell, value in action.updates.items():
                values[cell] = z3.If(taken, self._number(value, time, self._width[cell]), values[cell])
        for variable, value in zip(self._cells[time + 1], values, strict=True):
            self._solver.add(variable == value)

    def _sighting(self, length: int) -> Any:
        if self._prop.kind != STEP:
            holds = self._truth(self._model.conditions[self._prop.name], length)
            return holds if self._prop.kind == REACHABLE else z3.Not(holds)
        if not length:
            return z3.BoolVal(False, self._context)
        conditions = self._model.steps[self._prop.name].items()
        broken = [z3.And(self._choices[-1] == n, z3.Not(self._truth(c, length - 1))) for n, c in conditions]
        return z3.Or(broken) if broken else z3.BoolVal(False, self._context)

    def _truth(self, expr: Expr, time: int) -> Any:
        """The expression as a truth value."""
        match expr:
            case Const(value=value):
                return z3.BoolVal(bool(value), self._context)
            case Cell(index=index):
                return self._cells[time][index] == 1
        if id(expr) not in self._memo[time]:
            self._memo[time][id(expr)] = self._truth_of(expr, time)
        return self._memo[time][id(expr)]

    def _truth_of(self, expr: Op, time: int) -> Any:
        match expr.op, expr.operands:
            case "not", (a,):
                return z3.Not(self._truth(a, time))
            case "and", parts:
                return z3.And([self._truth(p, time) for p in parts])
            case "or", parts:
                return z3.Or([self._truth(p, time) for p in parts])
            case "ite", (condition, yes, no):
                return z3.If(self._truth(condition, time), self._truth(yes, time), self._truth(no, time))
            case op, (a, b):
                width = max(self._bits(a), self._bits(b))
                left, right = self._number(a, time, width), self._number(b, time, width)
                return {"eq": left == right, "lt": z3.ULT(left, right), "le": z3.ULE(left, right)}[op]
        raise RuleError(f"internal: {expr.op} is no truth value")

    def _number(self, expr: Expr, time: int, width: int) -> Any:
        """The expression as a bit vector of at least its own width."""
        match expr:
            case Const(value=value):
                return z3.BitVecVal(value, width, self._context)
            case Cell(index=index):
                return self._fit(self._cells[time][index], width)
            case Op(op="add", operands=(a, b)):
                return self._number(a, time, width) + self._number(b, time, width)
            case Op(op="ite", operands=(condition, yes, no)):
                return z3.If(
                    self._truth(condition, time), self._number(yes, time, width), self._number(no, time, width)
                )
            case _:
                one, zero = (z3.BitVecVal(n, width, self._context) for n in (1, 0))
                return z3.If(self._truth(expr, time), one, zero)

    def _fit(self, vector: Any, width: int) -> Any:
        size = vector.size()
        if size < width:
            return z3.ZeroExt(width - size, vector)
        return z3.Extract(width - 1, 0, vector) if size > width else vector

    def _bits(self, expr: Expr) -> int:
        match expr:
            case Const(value=value):
                return max(1, value.bit_length())
            case Cell(index=index):
                return self._width[index]
            case Op(op="add", operands=operands):
                return max(self._bits(part) for part in operands) + 1
            case Op(op="ite", operands=(_, yes, no)):
                return max(self._bits(yes), self._bits(no))
            case _:
                return 1

    def trace(self, length: int) -> Counterexample:
        """The found trace, run on the reference machine."""
        machine = Machine(self._model.instance)
        states, steps = [machine.initial(self._model.fixing)], []
        for choice in self._choices[:length]:
            number = self._found.eval(choice, model_completion=True).as_long()
            steps.append(self._model.actions[number].step)
            states.append(machine.apply(states[-1], steps[-1]))
        return Counterexample.of(
            self._model.instance, states, steps, broken=self._prop.name, source="bounded model checking"
        )


def _width(model: GroundModel, index: int, depth: int) -> int:
    """Bits for a cell. A stamp is as large as it can get up to the depth, so it need not be renumbered."""
    cell = model.cells[index]
    stamp = cell.function is not None and isinstance(cell.function.type, StampType)
    largest = depth * stamp_growth(model.instance.model) if stamp else cell.size - 1
    return max(1, largest.bit_length())
