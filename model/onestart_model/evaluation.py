"""Evaluating an expression on one concrete state: nodes become closures once and are called many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define

from onestart_model.expression import (
    Apply,
    Limit,
    Literal,
    Node,
    Protected,
    Quantified,
    Read,
    RuleError,
    SortType,
    Value,
    Variable,
)
from onestart_model.instance import Instance

Row = tuple[Value, ...]


@define
class Frame:
    """What an expression is evaluated in. The states are one row of values for each function of the schema."""

    before: tuple[Row, ...]
    after: tuple[Row, ...]
    bindings: dict[Variable, Value]


Evaluator = Callable[[Frame], Any]


def compile_node(node: Node, instance: Instance) -> Evaluator:
    """A function from a frame to the node's value."""
    match node:
        case Literal(value=value):
            return lambda frame: value
        case Variable():
            return lambda frame: frame.bindings[node]
        case Protected(name=name):
            kept = name not in instance.without
            return lambda frame: kept
        case Limit(name=name):
            bound = instance.limits[name]
            return lambda frame: bound
        case Read():
            return _read(node, instance)
        case Quantified():
            return _quantified(node, instance)
        case Apply(op=op, operands=operands):
            return _OPERATORS[op](*(compile_node(operand, instance) for operand in operands))
    raise RuleError(f"not an expression: {node!r}")


def _read(node: Read, instance: Instance) -> Evaluator:
    function = instance.model.schema[node.function]
    position = instance.model.schema.functions.index(function)
    first, *rest = (compile_node(index, instance) for index in node.indices)
    after = node.after
    if not rest:
        return lambda f: (f.after if after else f.before)[position][first(f)]
    second, width = rest[0], instance.sizes[function.arguments[1]]
    return lambda f: (f.after if after else f.before)[position][first(f) * width + second(f)]


def _quantified(node: Quantified, instance: Instance) -> Evaluator:
    variable, body = node.variable, compile_node(node.body, instance)
    assert isinstance(variable.type, SortType)
    elements, stop = range(instance.sizes[variable.type]), node.kind == "any"

    def run(frame: Frame) -> bool:
        for element in elements:
            frame.bindings[variable] = element
            if bool(body(frame)) is stop:
                return stop
        return not stop

    return run


def _ite(condition: Evaluator, yes: Evaluator, no: Evaluator) -> Evaluator:
    return lambda f: yes(f) if condition(f) else no(f)


_OPERATORS: Mapping[str, Callable[..., Evaluator]] = {
    "not": lambda a: lambda f: not a(f),
    "and": lambda *parts: lambda f: all(part(f) for part in parts),
    "or": lambda *parts: lambda f: any(part(f) for part in parts),
    "implies": lambda a, b: lambda f: not a(f) or b(f),
    "eq": lambda a, b: lambda f: a(f) == b(f),
    "lt": lambda a, b: lambda f: a(f) < b(f),
    "le": lambda a, b: lambda f: a(f) <= b(f),
    "add": lambda a, b: lambda f: a(f) + b(f),
    "some": lambda a: a,
    "ite": _ite,
}
