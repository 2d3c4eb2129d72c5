"""Grounding: the rules of an instance as plain expressions over numbered cells.

Quantifiers are written out, arguments are resolved, fixed functions and removed protections become constants, and
what is constant is folded away. Values are small integers: a Boolean 0 or 1, a member of an enumeration by its place,
an element of a sort from 1 up with 0 for NONE.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from onestart_model.execution import State, Step
from onestart_model.expression import (
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
    RuleError,
    SortType,
    StampType,
    Type,
    Value,
    Variable,
    children,
    walk,
)
from onestart_model.instance import FixedValues, Instance
from onestart_model.recording import Assign
from onestart_model.rules import STEP, Action, Model, Property
from onestart_model.state import FIXED, Function
from onestart_proofs.folding import Builder, Const, Expr


@frozen
class CellInfo:
    """One value of the state: a function at some arguments, or what has been spent of a budget.

    size: how many values it can take, before stamps are renumbered.
    """

    function: Function | None
    arguments: tuple[int, ...]
    size: int
    causes: str = ""


@frozen(eq=False)
class GroundAction:
    """An action with its arguments: when it may happen and which cells it gives which value."""

    step: Step
    action: Action
    guards: tuple[Expr, ...]
    updates: Mapping[int, Expr]


@frozen(eq=False)
class GroundModel:
    """The rules of an instance for one choice of the fixed functions.

    steps: for each step invariant, its condition for each action that could break it.
    """

    instance: Instance
    fixing: FixedValues
    cells: tuple[CellInfo, ...]
    initial: tuple[int, ...]
    actions: tuple[GroundAction, ...]
    conditions: Mapping[str, Expr]
    steps: Mapping[str, Mapping[int, Expr]] = field(factory=dict)


def stamp_growth(model: Model) -> int:
    """By how much a step can raise the highest stamp: the deepest nesting of next() in any assignment."""
    values = [update.value for action in model.actions for update in action.updates]
    return max((_depth(value) for value in values if isinstance(value.type, StampType)), default=0)


def _depth(node: Node) -> int:
    below = max(map(_depth, children(node)), default=0)
    return below + (isinstance(node, Apply) and node.op == "add")


def encode(kind: Type, value: Value) -> int:
    match kind, value:
        case _, None:
            return 0
        case EnumType(members=members), str():
            return members.index(value)
        case ((SortType() | MaybeType()), int()):
            return value + 1
        case _:
            return int(value)


def decode(kind: Type, code: int) -> Value:
    match kind:
        case EnumType(members=members):
            return members[code]
        case SortType():
            return code - 1
        case MaybeType():
            return code - 1 if code else None
        case NumberType() | StampType():
            return code
        case _:
            return bool(code)


class Grounder(Builder):
    """Builds the expressions of an instance's rules."""

    def __init__(self, instance: Instance, fixing: FixedValues) -> None:
        self.instance = instance
        self.fixing = dict(fixing)
        self.cells = tuple(self._cells())
        super().__init__([cell.size for cell in self.cells])
        self._index = {(c.function.name, c.arguments): i for i, c in enumerate(self.cells) if c.function}

    def _cells(self) -> list[CellInfo]:
        instance = self.instance
        cells = [
            CellInfo(function, arguments, self._size(function))
            for function in instance.model.schema.functions
            if function.home != FIXED
            for arguments in instance.arguments(function)
        ]
        return cells + [CellInfo(None, (), budget + 1, causes) for causes, budget in instance.budgets.items()]

    def _size(self, function: Function) -> int:
        match function.type:
            case EnumType(members=members):
                return len(members)
            case MaybeType(of=sort) | (SortType() as sort):
                return self.instance.sizes[sort] + 1
            case NumberType():
                return (self.instance.upto(function) or 0) + 1
            case StampType(group=group):
                functions = [f for f in self.instance.model.schema.functions if f.group == group]
                cells = sum(len(list(self.instance.arguments(f))) for f in functions) // self.instance.sizes[group]
                return cells + stamp_growth(self.instance.model) + 1
            case _:
                return 2

    def expr(self, node: Node, bindings: Mapping[Variable, int], after: Mapping[int, Expr] | None = None) -> Expr:
        """The ground expression of a node; `after` gives the cells that a step changes."""
        match node:
            case Literal(value=value, type=kind):
                return self.const(encode(kind, value))
            case Variable():
                return self.const(bindings[node])
            case Limit(name=name):
                return self.const(self.instance.limits[name])
            case Protected(name=name):
                return self.false if name in self.instance.without else self.true
            case Read(function=name, indices=indices):
                resolved = [self.expr(index, bindings, after) for index in indices]
                return self._read(self.instance.model.schema[name], resolved, after if node.after else None)
            case Quantified(kind=kind, variable=variable, body=body):
                domain = (encode(variable.type, value) for value in self.instance.domain(variable.type))
                parts = (self.expr(body, {**bindings, variable: code}, after) for code in domain)
                return self._joined("and" if kind == "all" else "or", parts)
            case Apply(op="some", operands=(operand,)):
                return self.expr(operand, bindings, after)
            case Apply(op="implies", operands=(left, right)):
                no = self.op("not", self.expr(left, bindings, after))
                return no if no is self.true else self.op("or", no, self.expr(right, bindings, after))
            case Apply(op="and" | "or" as op, operands=operands):
                return self._joined(op, (self.expr(operand, bindings, after) for operand in operands))
            case Apply(op=op, operands=operands):
                return self.op(op, *(self.expr(operand, bindings, after) for operand in operands))
        raise RuleError(f"not an expression: {node!r}")

    def _joined(self, op: str, parts: Iterable[Expr]) -> Expr:
        """The parts joined; what follows one that decides is not even built."""
        decides = self.false if op == "and" else self.true
        built = []
        for part in parts:
            if part is decides:
                return decides
            built.append(part)
        return self.op(op, *built)

    def _read(self, function: Function, indices: list[Expr], after: Mapping[int, Expr] | None) -> Expr:
        """The cell, or where the arguments depend on the state a choice among all cells."""
        if all(isinstance(index, Const) for index in indices):
            return self._cell_of(function, tuple(i.value - 1 for i in indices if isinstance(i, Const)), after)
        result: Expr | None = None
        for arguments in self.instance.arguments(function):
            value = self._cell_of(function, arguments, after)
            here = self.matches(indices, arguments)
            if here is self.true:
                return value
            if here is not self.false:
                result = value if result is None else self.op("ite", here, value, result)
        assert result is not None
        return result

    def _cell_of(self, function: Function, arguments: tuple[int, ...], after: Mapping[int, Expr] | None) -> Expr:
        if function.home == FIXED:
            _, place = self.instance.places[(function.name, arguments)]
            return self.const(encode(function.type, self.fixing[function.name][place]))
        index = self._index[(function.name, arguments)]
        return self.cell(index) if after is None else after.get(index, self.cell(index))

    def matches(self, indices: list[Expr], arguments: tuple[int, ...]) -> Expr:
        pairs = (self.op("eq", index, self.const(i + 1)) for index, i in zip(indices, arguments, strict=True))
        return self.op("and", *pairs)

    def action(self, action: Action, arguments: tuple[Value, ...]) -> GroundAction | None:
        """The action with these arguments, or None if it can never happen."""
        codes = (encode(p.type, value) for p, value in zip(action.parameters, arguments, strict=True))
        bindings = dict(zip(action.parameters, codes, strict=True))
        guards = []
        for guard in action.guards:
            guards.append(self.expr(guard.condition, bindings))
            if guards[-1] is self.false:
                return None
        updates = self._updates(action, bindings)
        budget = self.instance.budget_of(action.cause)
        if budget is not None:
            index = len(self.cells) - len(self.instance.budgets) + budget
            guards.append(self.op("lt", self.cell(index), self.const(self.cells[index].size - 1)))
            updates[index] = self.op("add", self.cell(index), self.const(1))
        guards = [guard for guard in dict.fromkeys(guards) if guard is not self.true]
        if self.false in guards:  # a budget of nothing
            return None
        return GroundAction(Step(action.name, arguments), action, tuple(guards), updates)

    def _updates(self, action: Action, bindings: Mapping[Variable, int]) -> dict[int, Expr]:
        updates: dict[int, Expr] = {}
        for update in action.updates:
            function = self.instance.model.schema[update.function]
            for arguments in self.instance.arguments(function):
                index = self._index[(function.name, arguments)]
                if isinstance(update, Assign):
                    here = self.matches([self.expr(i, bindings) for i in update.indices], arguments)
                    if here is self.false:
                        continue
                    old = updates.get(index, self.cell(index))
                    updates[index] = self.op("ite", here, self.expr(update.value, bindings), old)
                else:
                    codes = {p: i + 1 for p, i in zip(update.parameters, arguments, strict=True)}
                    updates[index] = self.expr(update.value, {**bindings, **codes})
        return {index: value for index, value in updates.items() if value is not self.cell(index)}

    def initial(self) -> tuple[int, ...]:
        return tuple(encode(c.function.type, c.function.initial) if c.function else 0 for c in self.cells)


def ground(instance: Instance, fixing: FixedValues, properties: Iterable[Property] | None = None) -> GroundModel:
    """All rules of the instance for one choice of the fixed functions. properties: those to ground (all)."""
    grounder = Grounder(instance, fixing)
    candidates = (
        grounder.action(action, arguments)
        for action in instance.model.actions
        for arguments in instance.bindings(action.parameters)
    )
    actions = tuple(candidate for candidate in candidates if candidate is not None)
    chosen = instance.model.properties if properties is None else tuple(properties)
    conditions = {p.name: grounder.expr(p.condition, {}) for p in chosen if p.kind != STEP}
    steps = {p.name: _step_conditions(grounder, p, actions) for p in chosen if p.kind == STEP}
    return GroundModel(instance, fixing, grounder.cells, grounder.initial(), actions, conditions, steps)


def _step_conditions(grounder: Grounder, prop: Property, actions: tuple[GroundAction, ...]) -> dict[int, Expr]:
    later = {n.function for n in walk(prop.condition) if isinstance(n, Read) and n.after}
    unchanged = grounder.expr(prop.condition, {}, {})
    conditions = {}
    for number, action in enumerate(actions):
        if prop.concerns(action.action):
            touched = later & set(action.action.written)
            condition = grounder.expr(prop.condition, {}, action.updates) if touched else unchanged
            if condition is not grounder.true:
                conditions[number] = condition
    return conditions


def to_codes(model: GroundModel, state: State) -> tuple[int, ...]:
    """The cells of a concrete state."""
    values = {(f.name, arguments): encode(f.type, value) for f, arguments, value in state.cells()}
    spent = {
        causes: limit - left
        for (causes, limit), left in zip(model.instance.budgets.items(), state.budgets, strict=True)
    }
    return tuple(values[(c.function.name, c.arguments)] if c.function else spent[c.causes] for c in model.cells)


def to_state(model: GroundModel, codes: tuple[int, ...]) -> State:
    """The concrete state of some cells."""
    rows: dict[str, list[Value]] = {name: list(row) for name, row in model.fixing}
    left: list[int] = []
    for cell, code in zip(model.cells, codes, strict=True):
        if cell.function:
            rows.setdefault(cell.function.name, []).append(decode(cell.function.type, code))
        else:
            left.append(cell.size - 1 - code)
    order = (tuple(rows[function.name]) for function in model.instance.model.schema.functions)
    return State(model.instance, tuple(order), tuple(left))
