"""Expressions: what a rule says once it has been read.

A rule is a Python function; reading it (see `recording`) leaves an expression over the state *before* the step.
The three semantics are three interpreters of these nodes and of nothing else, which is why they cannot drift apart
by more than an interpreter's bug, and why the agreement tests draw random nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve, frozen


class RuleError(Exception):
    """A rule, a model or an instance is written wrongly; the message says what to write instead."""


@frozen
class BoolType:
    def __str__(self) -> str:
        return "Bool"


@frozen
class NumberType:
    """Whole numbers from 0 up. Bounds belong to the declaration of a state function, not to the type."""

    def __str__(self) -> str:
        return "Number"


@frozen
class EnumType:
    name: str
    members: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@frozen
class SortType:
    name: str

    def __str__(self) -> str:
        return self.name


@frozen
class MaybeType:
    of: SortType

    def __str__(self) -> str:
        return f"Maybe[{self.of}]"


@frozen
class StampType:
    """Numbers of which only the order matters, compared within one element of `group` (a task's tokens)."""

    group: SortType

    def __str__(self) -> str:
        return f"Stamp[{self.group}]"


Type = BoolType | NumberType | EnumType | SortType | MaybeType | StampType
Value = bool | int | str | None
BOOL = BoolType()
NUMBER = NumberType()


@frozen(cache_hash=True)
class Literal:
    value: Value
    type: Type


@frozen(cache_hash=True)
class Variable:
    """A parameter of a rule or a quantified variable. `site` tells apart equal names from different lines."""

    name: str
    type: Type
    site: str = ""


@frozen(cache_hash=True)
class Read:
    """A state function at some arguments; `after` only in step invariants."""

    function: str
    indices: tuple[Node, ...]
    type: Type
    after: bool = False


@frozen(cache_hash=True)
class Apply:
    """op is one of: not and or implies eq lt le add some ite."""

    op: str
    operands: tuple[Node, ...]
    type: Type


@frozen(cache_hash=True)
class Quantified:
    """kind is `all` or `any`."""

    kind: str
    variable: Variable
    body: Node
    type: Type = BOOL


@frozen(cache_hash=True)
class Protected:
    """True unless the protection of this name has been removed."""

    name: str
    type: Type = BOOL


@frozen(cache_hash=True)
class Limit:
    """A number that each instance fixes; arbitrary (but not negative) in a proof."""

    name: str
    type: Type = NUMBER


Node = Literal | Variable | Read | Apply | Quantified | Protected | Limit

TRUE = Literal(True, BOOL)
FALSE = Literal(False, BOOL)


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Read(indices=nodes) | Apply(operands=nodes):
            return nodes
        case Quantified(body=body):
            return (body,)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """Every node of the expression, the node itself first."""
    yield node
    for child in children(node):
        yield from walk(child)


def substitute(node: Node, bindings: Mapping[Variable, Node]) -> Node:
    """The expression with variables replaced; a quantifier that would capture one is renamed."""
    match node:
        case Variable():
            return bindings.get(node, node)
        case Read(indices=nodes):
            return evolve(node, indices=tuple(substitute(child, bindings) for child in nodes))
        case Apply(operands=nodes):
            return evolve(node, operands=tuple(substitute(child, bindings) for child in nodes))
        case Quantified(variable=variable, body=body):
            incoming = {v for replacement in bindings.values() for v in variables_in(replacement)}
            inner = variable
            while inner in incoming:
                inner = evolve(inner, site=inner.site + "'")
            return evolve(node, variable=inner, body=substitute(body, {**bindings, variable: inner}))
        case _:
            return node


def variables_in(node: Node) -> frozenset[Variable]:
    return frozenset(part for part in walk(node) if isinstance(part, Variable))


def conjunction(nodes: tuple[Node, ...]) -> Node:
    if len(nodes) == 1:
        return nodes[0]
    return Apply("and", nodes, BOOL) if nodes else TRUE


def protections_in(node: Node) -> frozenset[str]:
    return frozenset(part.name for part in walk(node) if isinstance(part, Protected))


_PRECEDENCE = {"implies": 0, "or": 1, "and": 2, "eq": 3, "lt": 3, "le": 3, "add": 4}
_SYMBOLS = {"implies": " => ", "or": " | ", "and": " & ", "eq": " = ", "lt": " < ", "le": " <= ", "add": " + "}


def show(node: Node, above: int = -1) -> str:
    """The expression as a person would write it."""
    match node:
        case Literal(value=None):
            return "none"
        case Literal(value=value) | Variable(name=value) | Limit(name=value):
            return str(value).lower() if isinstance(value, bool) else str(value)
        case Read(function=name, indices=nodes, after=after):
            return f"{name}{chr(39) if after else ''}[{', '.join(map(show, nodes))}]"
        case Protected(name=name):
            return f'protected("{name}")'
        case Quantified(kind=kind, variable=variable, body=body):
            return f"{kind} {variable.name}: {variable.type} ({show(body)})"
        case Apply(op="not", operands=(Apply(op="eq", operands=(left, right)),)):
            return f"{show(left, 3)} != {show(right, 3)}"
        case Apply(op="not", operands=(operand,)):
            return f"not {show(operand, 9)}"
        case Apply(op="some", operands=(operand,)):
            return show(operand, above)
        case Apply(op="ite", operands=(condition, yes, no)):
            return f"(if {show(condition)} then {show(yes)} else {show(no)})"
        case Apply(op=op, operands=nodes):
            level = _PRECEDENCE[op]
            text = _SYMBOLS[op].join(show(child, level) for child in nodes)
            return f"({text})" if level <= above else text
