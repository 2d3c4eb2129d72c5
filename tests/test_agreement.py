"""One rule, three semantics: what a step requires and does is the same in execution, enumeration and proof.

The rules are random, the states need not be reachable, and every step of the instance is tried in each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import z3
from attrs import frozen
from hypothesis import given

from onestart_model.evaluation import Frame, compile_node
from onestart_model.execution import Machine, State, Step, renumber_stamps
from onestart_model.expression import MaybeType, SortType, Type, Value, Variable, show
from onestart_model.instance import FixedValues, Instance
from onestart_model.rules import STEP, Action
from onestart_proofs.columns import Program
from onestart_proofs.frontier import Expander
from onestart_proofs.ground import Grounder, GroundModel, decode, encode, ground, to_codes, to_state
from onestart_proofs.induction import after_the_step
from onestart_proofs.packing import Words, lay_out
from onestart_proofs.smt import Optional, Term, Vocabulary
from onestart_proofs.symmetry import Canonical
from random_models import Case, cases, profile, random_expressions, random_state, sources

BLOCK = 6


def some_states(rng: Random, instance: Instance) -> tuple[FixedValues, list[State]]:
    """Random states that share the values of the fixed functions, as a block of the enumeration does."""
    fixing = rng.choice(list(instance.fixings()))
    return fixing, [random_state(rng, instance, fixing) for _ in range(BLOCK)]


class Columns:
    """What the enumeration makes of a block of states."""

    def __init__(self, instance: Instance, fixing: FixedValues, states: list[State]) -> None:
        self.model: GroundModel = ground(instance, fixing)
        layout = lay_out(self.model)
        canonical = Canonical(self.model, layout, symmetry=False)
        expander = Expander(self.model, layout, canonical, tuple(self.model.conditions.values()))
        packed = [layout.pack(to_codes(self.model, renumber_stamps(state))) for state in states]
        block: Words = np.stack(packed, axis=1)
        self.registers = expander.evaluate(block)
        moves = expander.moves(block, self.registers)
        self.successors: dict[tuple[Step, int], State] = {}
        self.numbers = {action.step: number for number, action in enumerate(self.model.actions)}
        for span in moves.spans:
            for row, packed_row in zip(span[1], moves.of(span).T, strict=True):
                step = self.model.actions[span[0]].step
                self.successors[step, int(row)] = to_state(self.model, layout.unpack(packed_row))

    def holds(self, prop: str, row: int) -> bool:
        return _at(self.registers[self.model.conditions[prop]], row)

    def holds_of(self, prop: str, step: Step, row: int) -> bool:
        """A step invariant; one without a condition for the step cannot be broken by it."""
        condition = self.model.steps[prop].get(self.numbers[step])
        return condition is None or _at(self.registers[condition], row)


@profile(120)
@given(cases(), sources())
def test_columns_have_the_values_of_execution(case: Case, rng: Random) -> None:
    """Protects grounding, folding and columns: every expression has the value that execution gives it."""
    fixing, states = some_states(rng, case.instance)
    nodes, bindings = random_expressions(rng, case.instance, 40)
    model, grounder = ground(case.instance, fixing, []), Grounder(case.instance, fixing)
    layout = lay_out(model)
    codes = {variable: encode(variable.type, value) for variable, value in bindings.items()}
    exprs = [grounder.expr(node, codes) for node in nodes]
    packed = [layout.pack(to_codes(model, renumber_stamps(state))) for state in states]
    registers = Program(exprs).run(layout.columns(np.stack(packed, axis=1)))
    for node, expr in zip(nodes, exprs, strict=True):
        run, column = compile_node(node, case.instance), registers[expr]
        for row, state in enumerate(states):
            code = int(column if isinstance(column, int) else column[row])
            expected = run(Frame(state.rows, state.rows, dict(bindings)))
            assert decode(node.type, code) == expected, (show(node), bindings, state)


def _at(column: Any, row: int) -> bool:
    return bool(column if isinstance(column, int) else column[row])


@profile(120)
@given(cases(), sources())
def test_columns_do_what_the_machine_does(case: Case, rng: Random) -> None:
    """Protects grounding, folding, packing and columns: the same steps are enabled and lead to the same states."""
    fixing, states = some_states(rng, case.instance)
    machine, columns = Machine(case.instance), Columns(case.instance, fixing, states)
    for row, state in enumerate(states):
        expected = {step: renumber_stamps(machine.successor(state, step)) for step in machine.enabled(state)}
        found = {step: successor for (step, at), successor in columns.successors.items() if at == row}
        assert found == expected, state


@profile(120)
@given(cases(), sources())
def test_columns_judge_as_the_machine_does(case: Case, rng: Random) -> None:
    """Protects the checks of an enumeration: promises of states and of steps hold in the same places."""
    fixing, states = some_states(rng, case.instance)
    machine, columns = Machine(case.instance), Columns(case.instance, fixing, states)
    for row, state in enumerate(states):
        for prop in case.instance.model.properties:
            if prop.kind != STEP:
                assert columns.holds(prop.name, row) == machine.holds(prop, state), (prop.name, state)
                continue
            for step in machine.enabled(state):
                if prop.concerns(case.instance.model.action_named(step.action)):
                    expected = machine.holds(prop, state, machine.successor(state, step))
                    assert columns.holds_of(prop.name, step, row) == expected, (step, state)


@profile(60)
@given(cases(), sources())
def test_a_state_survives_packing(case: Case, rng: Random) -> None:
    """Protects the encoding: cells, codes and machine words lose nothing of a state, budgets included."""
    fixing, states = some_states(rng, case.instance)
    model = ground(case.instance, fixing)
    layout = lay_out(model)
    for state in map(renumber_stamps, states):
        assert to_state(model, layout.unpack(layout.pack(to_codes(model, state)))) == state


@frozen
class Fact:
    """Something that execution says, as a z3 formula that must follow from the state."""

    what: str
    formula: Any


class Pinned:
    """A vocabulary whose sorts have the elements of an instance and whose functions have the values of one state."""

    def __init__(self, state: State) -> None:
        self.state, self.instance = state, state.instance
        self.words = Vocabulary(self.instance.model, self.instance.without)
        self.elements = {
            sort: [z3.Const(f"element.{sort}.{i}", self.words.sort(sort)) for i in range(size)]
            for sort, size in self.instance.sizes.items()
        }
        self.solver = z3.Solver(ctx=self.words.context)
        self.solver.add(*self._universe(), *self._values())

    def _universe(self) -> Iterator[Any]:
        for sort, elements in self.elements.items():
            yield z3.Distinct(*elements) if len(elements) > 1 else elements[0] == elements[0]
            x = z3.Const("x", self.words.sort(sort))
            yield z3.ForAll([x], z3.Or(*(x == e for e in elements)))

    def _values(self) -> Iterator[Any]:
        for name, bound in self.instance.limits.items():
            yield self.words.limit(name) == bound
        for function, arguments, value in self.state.cells():
            yield self.equal(
                function.type, self.words.before(function.name, self.places(function.arguments, arguments)), value
            )

    def places(self, sorts: tuple[SortType, ...], arguments: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple(self.elements[sort][i] for sort, i in zip(sorts, arguments, strict=True))

    def constant(self, kind: Type, value: Value) -> Any:
        if isinstance(kind, SortType) and isinstance(value, int):
            return self.elements[kind][value]
        if isinstance(value, str):
            return self.words.member(kind, value)  # type: ignore[arg-type]
        if isinstance(value, bool):
            return z3.BoolVal(value, self.words.context)
        return z3.IntVal(value, self.words.context)

    def equal(self, kind: Type, term: Term, value: Value) -> Any:
        """That a term has a value."""
        if not isinstance(kind, MaybeType):
            return term == self.constant(kind, value)
        assert isinstance(term, Optional)
        if value is None:
            return z3.Not(term.present)
        return z3.And(term.present, term.element == self.constant(kind.of, value))

    def bindings(self, action: Action, step: Step) -> dict[Variable, Any]:
        return {p: self.constant(p.type, v) for p, v in zip(action.parameters, step.arguments, strict=True)}

    def refuted(self, facts: list[Fact]) -> list[str]:
        """Those of the facts that do not follow; found with one question if there are none."""
        wrong = []
        if self._follow(facts):
            return []
        wrong = [fact.what for fact in facts if not self._follow([fact])]
        return wrong or ["only together"]

    def _follow(self, facts: list[Fact]) -> bool:
        self.solver.push()
        self.solver.add(z3.Or(*(z3.Not(fact.formula) for fact in facts)))
        result = self.solver.check()
        self.solver.pop()
        assert result != z3.unknown, self.solver.reason_unknown()
        return bool(result == z3.unsat)


def _guard_facts(pinned: Pinned, machine: Machine, action: Action, step: Step) -> Iterator[Fact]:
    """Each guard that holds, up to the first that does not."""
    reason = machine.why_not(pinned.state, step)
    for guard in action.guards:
        term = pinned.words.term(guard.condition, pinned.bindings(action, step))
        if show(guard.condition) == reason:
            yield Fact(f"{step} is not enabled", z3.Not(term))
            return
        yield Fact(f"a guard of {step} holds", term)


def _step_facts(pinned: Pinned, machine: Machine, action: Action, step: Step) -> Iterator[Fact]:
    """Every value of the state after the step, and what each promise says of it, as a proof asks."""
    successor, bindings = machine.successor(pinned.state, step), pinned.bindings(action, step)
    after = pinned.words.after(action, bindings)
    for function, arguments, value in successor.cells():
        term = after(function.name, pinned.places(function.arguments, arguments))
        yield Fact(f"{function.name}{arguments} after {step}", pinned.equal(function.type, term, value))
    for prop in machine.instance.model.properties:
        condition = prop.condition if prop.kind == STEP else after_the_step(prop.condition)
        term = pinned.words.term(condition, bindings, after)
        holds = machine.holds(prop, pinned.state if prop.kind == STEP else successor, successor)
        yield Fact(f"{prop.name} of {step} is {holds}", term if holds else z3.Not(term))


def _facts(pinned: Pinned, machine: Machine, steps: list[Step]) -> Iterator[Fact]:
    model = pinned.instance.model
    for prop in model.properties:
        if prop.kind != STEP:
            term, holds = pinned.words.term(prop.condition, {}), machine.holds(prop, pinned.state)
            yield Fact(f"{prop.name} is {holds}", term if holds else z3.Not(term))
    for step in steps:
        action = model.action_named(step.action)
        yield from _guard_facts(pinned, machine, action, step)
        if machine.why_not(pinned.state, step) is None:
            yield from _step_facts(pinned, machine, action, step)


@profile(100)
@given(cases(), sources())
def test_proofs_have_the_values_of_execution(case: Case, rng: Random) -> None:
    """Protects the vocabulary of proofs: every expression has the value that execution gives it."""
    state = random_state(rng, case.instance, rng.choice(list(case.instance.fixings())))
    nodes, bindings = random_expressions(rng, case.instance, 40)
    pinned, frame = Pinned(state), Frame(state.rows, state.rows, dict(bindings))
    constants = {variable: pinned.constant(variable.type, value) for variable, value in bindings.items()}
    values = [compile_node(node, case.instance)(frame) for node in nodes]
    terms = [pinned.words.term(node, constants) for node in nodes]
    facts = [
        Fact(f"{show(node)} is {value}", pinned.equal(node.type, term, value))
        for node, term, value in zip(nodes, terms, values, strict=True)
    ]
    wrong = pinned.refuted(facts)
    assert not wrong, (wrong, bindings, state)


@profile(200)
@given(cases(), sources())
def test_a_proof_speaks_of_what_the_machine_does(case: Case, rng: Random) -> None:
    """Protects the vocabulary of proofs: guards, successors and promises have the values that execution gives them."""
    state = random_state(rng, case.instance, rng.choice(list(case.instance.fixings())))
    pinned, machine = Pinned(state), Machine(case.instance)
    every = list(machine.steps())
    wrong = pinned.refuted(list(_facts(pinned, machine, rng.sample(every, min(8, len(every))))))
    assert not wrong, (wrong, state)


@profile(100)
@given(cases(), sources())
def test_a_guard_is_named_exactly_where_a_step_is_not_enabled(case: Case, rng: Random) -> None:
    """Protects what the machine tells a person: it gives a reason exactly where the enumeration sees no step."""
    fixing, states = some_states(rng, case.instance)
    machine, columns = Machine(case.instance), Columns(case.instance, fixing, states)
    for row, state in enumerate(states):
        for step in machine.steps():
            action = case.instance.model.action_named(step.action)
            known = {show(guard.condition) for guard in action.guards} | {f"the budget of {action.cause} is spent"}
            reason = machine.why_not(state, step)
            assert (reason is None) == ((step, row) in columns.successors), (step, state)
            assert reason is None or reason in known
