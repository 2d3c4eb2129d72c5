"""Execution: one concrete state at a time.

The reference state machine, and the semantics against which the other two are checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, field, frozen

from onestart_model.evaluation import Evaluator, Frame, compile_node
from onestart_model.expression import NumberType, RuleError, SortType, StampType, Value, Variable, show
from onestart_model.instance import FixedValues, Instance, Row, elements, show_value
from onestart_model.recording import Assign, Guard, Update
from onestart_model.rules import Action, Property
from onestart_model.state import Function


@frozen
class Step:
    """An action with its arguments: elements by index, Booleans and members of enumerations by value."""

    action: str
    arguments: tuple[Value, ...] = ()


@frozen(cache_hash=True)
class State:
    """An immutable, hashable state of an instance: one row of values for each function, row-major."""

    instance: Instance = field(eq=False, repr=False)
    rows: tuple[Row, ...]
    budgets: tuple[int, ...] = ()

    def read(self, function: str, *arguments: int) -> Value:
        """The value of a state function. Raises RuleError for an unknown function or argument."""
        place = self.instance.places.get((function, arguments))
        if place is None:
            declared = self.instance.model.schema[function]
            raise RuleError(f"{declared.name}{list(arguments)} is outside of the instance: {self.instance.scope}")
        return self.rows[place[0]][place[1]]

    def cells(self) -> Iterator[tuple[Function, tuple[int, ...], Value]]:
        """Every function, arguments and value."""
        for function, row in zip(self.instance.model.schema.functions, self.rows, strict=True):
            for arguments, value in zip(self.instance.arguments(function), row, strict=True):
                yield function, arguments, value

    def diff(self, other: State) -> tuple[str, ...]:
        """What the other state changes, a line for each cell: `attempt[key1]: OFFERED -> INTENDED`."""
        lines = []
        for (function, arguments, old), (_, _, new) in zip(self.cells(), other.cells(), strict=True):
            if old != new:
                where = show_cell(function, arguments)
                lines.append(f"{where}: {show_value(function.type, old)} -> {show_value(function.type, new)}")
        return tuple(lines)

    def show(self) -> tuple[str, ...]:
        """The state, a line for each function."""
        lines: dict[str, list[str]] = {}
        for function, arguments, value in self.cells():
            names = ", ".join(elements(function.arguments, arguments))
            lines.setdefault(function.name, []).append(f"{names}: {show_value(function.type, value)}")
        return tuple(f"{name}: {{{'; '.join(parts)}}}" for name, parts in lines.items())


def show_cell(function: Function, arguments: tuple[int, ...]) -> str:
    return f"{function.name}[{', '.join(elements(function.arguments, arguments))}]"


@frozen
class _Compiled:
    action: Action
    guards: tuple[tuple[Guard, Evaluator], ...]
    updates: tuple[tuple[Update, tuple[Evaluator, ...], Evaluator], ...]


class Machine:
    """The model of an instance, run step by step."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._schema = instance.model.schema
        self._actions = {a.name: self._compile(a) for a in instance.model.actions}
        self._properties = {p.name: compile_node(p.condition, instance) for p in instance.model.properties}
        self._assumptions = [compile_node(p.condition, instance) for p in instance.model.assumptions]

    def _compile(self, action: Action) -> _Compiled:
        instance = self.instance
        guards = tuple((guard, compile_node(guard.condition, instance)) for guard in action.guards)
        updates = tuple(
            (
                update,
                tuple(compile_node(i, instance) for i in update.indices) if isinstance(update, Assign) else (),
                compile_node(update.value, instance),
            )
            for update in action.updates
        )
        return _Compiled(action, guards, updates)

    def initial_states(self) -> Iterator[State]:
        """One for every choice of the fixed functions that the model's assumptions allow."""
        return (self.initial(fixing) for fixing in self.fixings())

    def fixings(self) -> Iterator[FixedValues]:
        """Every choice of values for the fixed functions that the model's assumptions allow."""
        for fixing in self.instance.fixings():
            rows = self.initial(fixing).rows
            if all(holds(Frame(rows, rows, {})) for holds in self._assumptions):
                yield fixing

    def initial(self, fixing: FixedValues = ()) -> State:
        """The initial state with these values of the fixed functions."""
        given = dict(fixing)
        rows = []
        for function in self._schema.functions:
            count = len(list(self.instance.arguments(function)))
            rows.append(given.get(function.name, (function.initial,) * count))
        return State(self.instance, tuple(rows), tuple(self.instance.budgets.values()))

    def steps(self) -> Iterator[Step]:
        """Every action with every choice of arguments, whether enabled or not."""
        for action in self.instance.model.actions:
            for arguments in self.instance.bindings(action.parameters):
                yield Step(action.name, arguments)

    def enabled(self, state: State) -> tuple[Step, ...]:
        """The steps that the state allows."""
        return tuple(step for step in self.steps() if self.why_not(state, step) is None)

    def why_not(self, state: State, step: Step) -> str | None:
        """None if the step is enabled, else the guard that stands in the way, as a person would write it."""
        compiled, frame = self._frame(state, step)
        for guard, holds in compiled.guards:
            if not holds(frame):
                return show(guard.condition)
        budget = self.instance.budget_of(compiled.action.cause)
        if budget is not None and state.budgets[budget] == 0:
            return f"the budget of {compiled.action.cause} is spent"
        return None

    def apply(self, state: State, step: Step) -> State:
        """The state after the step.

        Raises RuleError if the step is not enabled, or a number leaves its declared bounds.
        """
        reason = self.why_not(state, step)
        if reason is not None:
            raise RuleError(f"{self.show_step(step)} is not enabled: {reason}")
        return self.successor(state, step)

    def successor(self, state: State, step: Step) -> State:
        """The state after the step's updates, whatever its guards say; for counterexamples to induction."""
        compiled, frame = self._frame(state, step)
        rows = [list(row) for row in state.rows]
        for update, indices, value in compiled.updates:
            position = self._schema.functions.index(self._schema[update.function])
            function = self._schema.functions[position]
            if isinstance(update, Assign):
                where = self._offset(function, tuple(index(frame) for index in indices))
                rows[position][where] = self._checked(function, value(frame))
                continue
            for where, arguments in enumerate(self.instance.arguments(function)):
                frame.bindings.update(zip(update.parameters, arguments, strict=True))
                rows[position][where] = self._checked(function, value(frame))
        budgets = list(state.budgets)
        spent = self.instance.budget_of(compiled.action.cause)
        if spent is not None:
            budgets[spent] -= 1
        return evolve(state, rows=tuple(map(tuple, rows)), budgets=tuple(budgets))

    def holds(self, prop: Property, state: State, after: State | None = None) -> bool:
        """Whether a property's condition is true of a state, or of the step to `after`."""
        frame = Frame(state.rows, (after or state).rows, {})
        return bool(self._properties[prop.name](frame))

    def show_step(self, step: Step) -> str:
        """The step as in a story: `claim(process1, key2)`."""
        action = self.instance.model.action_named(step.action)
        names = (
            show_value(parameter.type, value)
            if isinstance(parameter.type, SortType)
            else f"{parameter.name}={show_value(parameter.type, value)}"
            for parameter, value in zip(action.parameters, step.arguments, strict=True)
        )
        return f"{step.action}({', '.join(names)})"

    def _frame(self, state: State, step: Step) -> tuple[_Compiled, Frame]:
        if step.action not in self._actions:
            self.instance.model.action_named(step.action)  # raises, with a name that is close
        compiled = self._actions[step.action]
        parameters = compiled.action.parameters
        if len(parameters) != len(step.arguments) or any(
            argument not in self.instance.domain(parameter.type)
            for parameter, argument in zip(parameters, step.arguments, strict=False)
        ):
            wanted = ", ".join(f"{p.name}: {p.type}" for p in parameters)
            raise RuleError(f"{step.action}({wanted}) cannot take the arguments {step.arguments}")
        bindings: dict[Variable, Value] = dict(zip(parameters, step.arguments, strict=True))
        return compiled, Frame(state.rows, state.rows, bindings)

    def _offset(self, function: Function, arguments: tuple[int, ...]) -> int:
        where = 0
        for sort, index in zip(function.arguments, arguments, strict=True):
            where = where * self.instance.sizes[sort] + index
        return where

    def _checked(self, function: Function, value: Value) -> Value:
        if isinstance(function.type, NumberType) and isinstance(value, int):
            bound = self.instance.upto(function)
            if bound is not None and not 0 <= value <= bound:
                raise RuleError(f"{function.name} becomes {value}, outside of its bound 0 to {bound}")
        return value


def renumber_stamps(state: State) -> State:
    """The state with the stamps of each group renumbered from 1 in order, 0 kept.

    Only the order of stamps means anything, so this is the same state; it makes the reachable states finite.
    """
    if not any(isinstance(function.type, StampType) for function in state.instance.model.schema.functions):
        return state
    used: dict[tuple[SortType, int], set[int]] = {}
    for function, arguments, value in state.cells():
        if isinstance(function.type, StampType) and isinstance(value, int) and value > 0:
            used.setdefault((function.type.group, arguments[-1]), set()).add(value)
    ranks = {group: {v: i + 1 for i, v in enumerate(sorted(values))} for group, values in used.items()}
    rows: list[list[Value]] = [[] for _ in state.rows]
    for function, arguments, value in state.cells():
        position = state.instance.model.schema.functions.index(function)
        if isinstance(function.type, StampType) and isinstance(value, int) and value > 0:
            value = ranks[(function.type.group, arguments[-1])][value]
        rows[position].append(value)
    return evolve(state, rows=tuple(map(tuple, rows)))


def explore_by_execution(instance: Instance, *, at_most: int = 100_000) -> Mapping[State, int]:
    """Every reachable state with its distance, by plain execution; slow, and the yardstick of the enumeration."""
    machine = Machine(instance)
    distance = {renumber_stamps(state): 0 for state in machine.initial_states()}
    frontier: Iterable[State] = list(distance)
    depth = 0
    while frontier:
        depth += 1
        found: set[State] = set()
        for state in frontier:
            for step in machine.enabled(state):
                successor = renumber_stamps(machine.successor(state, step))
                if distance.setdefault(successor, depth) == depth:
                    found.add(successor)
        frontier = found
        if len(distance) > at_most:
            raise RuleError(f"more than {at_most} states: too many for plain execution, use onestart explore")
    return distance
