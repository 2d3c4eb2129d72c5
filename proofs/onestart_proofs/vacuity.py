"""Non-vacuity: a promise of the form "if A then B" says nothing unless A occurs.

For every promise, the antecedents under its quantifiers become properties of their own that say "A never holds". An
exploration that sees one of them broken has found a state, or a step, where the promise has something to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from onestart_model.expression import BOOL, Apply, Node, Protected, Quantified, Variable
from onestart_model.rules import INVARIANT, STEP, Action, Model, Property


def antecedents(model: Model) -> tuple[Property, ...]:
    """Properties that say that a promise's antecedent never holds; each is to be seen broken."""
    found = []
    for prop in model.of_kind(INVARIANT, STEP):
        for number, (variables, antecedent) in enumerate(_under(prop.condition, ()), 1):
            condition: Node = Apply("not", (antecedent,), BOOL)
            for variable in reversed(variables):
                condition = Quantified("all", variable, condition)
            found.append(evolve(prop, name=f"{prop.name}, antecedent {number}", condition=condition))
    return tuple(found)


def _under(node: Node, variables: tuple[Variable, ...]) -> Iterator[tuple[tuple[Variable, ...], Node]]:
    match node:
        case Quantified(kind="all", variable=variable, body=body):
            yield from _under(body, (*variables, variable))
        case Apply(op="and", operands=parts):
            for part in parts:
                yield from _under(part, variables)
        case Apply(op="implies", operands=(antecedent, consequent)):
            yield variables, antecedent
            for inner, further in _under(consequent, variables):
                yield inner, Apply("and", (antecedent, further), BOOL)
        case _:
            return


def is_fault(action: Action) -> bool:
    """Whether the action is there only for when a protection is removed."""
    faults = {Apply("not", (Protected(name),), BOOL) for name in action.protections}
    return any(guard.condition in faults for guard in action.guards)
