"""Rules as z3 terms over unbounded sorts.

Sorts are uninterpreted, state functions are uninterpreted functions, numbers and stamps are integers, and a reference
that may be NONE is a pair of a truth value and an element. The successor state needs no functions of its own: where a
property speaks of it, each function is replaced by what the action makes of it, an if-then-else over the old one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import z3
from attrs import define, field, frozen

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
    Variable,
)
from onestart_model.recording import Assign, Update
from onestart_model.rules import Action, Model
from onestart_model.state import Function


@frozen(eq=False)
class Optional:
    """A reference or NONE."""

    present: Any
    element: Any


Term = Any  # a z3 expression, or an Optional
Lookup = Callable[[str, tuple[Term, ...]], Term]
Bindings = Mapping[Variable, Term]


@define
class Vocabulary:
    """The z3 sorts and functions of a model, in a context of their own."""

    model: Model
    without: frozenset[str]
    context: z3.Context = field(factory=z3.Context)
    _sorts: dict[str, Any] = field(factory=dict)
    _members: dict[str, dict[str, Any]] = field(factory=dict)
    _functions: dict[str, Any] = field(factory=dict)
    _numbers: Iterator[int] = field(factory=itertools.count)

    def sort(self, kind: Type) -> Any:
        match kind:
            case SortType(name=name) | EnumType(name=name) if name in self._sorts:
                return self._sorts[name]
            case SortType(name=name):
                self._sorts[name] = z3.DeclareSort(name, self.context)
            case EnumType(name=name, members=members):
                declared, constants = z3.EnumSort(name, [f"{name}.{m}" for m in members], self.context)
                self._sorts[name] = declared
                self._members[name] = dict(zip(members, constants, strict=True))
            case NumberType() | StampType():
                return z3.IntSort(self.context)
            case MaybeType():
                raise RuleError("internal: an optional reference has no single z3 sort")
            case _:
                return z3.BoolSort(self.context)
        return self._sorts[name]

    def constant(self, name: str, kind: Type) -> Term:
        """A fresh constant of a type; the name must be unique."""
        if isinstance(kind, MaybeType):
            present = z3.Bool(f"{name}?", self.context)
            return Optional(present, z3.Const(name, self.sort(kind.of)))
        return z3.Const(name, self.sort(kind))

    def member(self, kind: EnumType, value: str) -> Any:
        self.sort(kind)
        return self._members[kind.name][value]

    def declared(self, function: Function) -> Any:
        """The z3 function of a state function; a pair of them for optional references."""
        if function.name not in self._functions:
            domain = [self.sort(argument) for argument in function.arguments]
            if isinstance(function.type, MaybeType):
                present = z3.Function(f"{function.name}?", *domain, z3.BoolSort(self.context))
                element = z3.Function(function.name, *domain, self.sort(function.type.of))
                self._functions[function.name] = (present, element)
            else:
                self._functions[function.name] = z3.Function(function.name, *domain, self.sort(function.type))
        return self._functions[function.name]

    def before(self, name: str, arguments: tuple[Term, ...]) -> Term:
        """A state function of the state before the step."""
        function = self.model.schema[name]
        declared = self.declared(function)
        if isinstance(function.type, MaybeType):
            return Optional(declared[0](*arguments), declared[1](*arguments))
        return declared(*arguments)

    def limit(self, name: str) -> Any:
        return z3.Int(f"limit.{name}", self.context)

    def after(self, action: Action, bindings: Bindings) -> Lookup:
        """The state functions of the state after a step of the action."""

        def look(name: str, arguments: tuple[Term, ...]) -> Term:
            value = self.before(name, arguments)
            for update in action.updates:
                if update.function == name:
                    value = self._updated(update, bindings, arguments, value)
            return value

        return look

    def _updated(self, update: Update, bindings: Bindings, arguments: tuple[Term, ...], old: Term) -> Term:
        if isinstance(update, Assign):
            indices = [self.term(index, bindings) for index in update.indices]
            here = z3.And([i == a for i, a in zip(indices, arguments, strict=True)])
            return _ite(here, self.term(update.value, bindings), old)
        return self.term(update.value, {**bindings, **dict(zip(update.parameters, arguments, strict=True))})

    def term(self, node: Node, bindings: Bindings, after: Lookup | None = None) -> Term:
        """The z3 term of an expression. after: how reads of the successor state are resolved."""
        match node:
            case Literal():
                return self._literal(node)
            case Variable():
                return bindings[node]
            case Limit(name=name):
                return self.limit(name)
            case Protected(name=name):
                return z3.BoolVal(name not in self.without, self.context)
            case Read(function=name, indices=indices):
                arguments = tuple(self.term(index, bindings, after) for index in indices)
                return after(name, arguments) if node.after and after else self.before(name, arguments)
            case Quantified():
                return self._quantified(node, bindings, after)
            case Apply(op=op, operands=operands):
                return _OPERATORS[op](*(self.term(operand, bindings, after) for operand in operands))
        raise RuleError(f"not an expression: {node!r}")

    def _literal(self, node: Literal) -> Term:
        match node.type, node.value:
            case (EnumType() as kind, str() as name):
                return self.member(kind, name)
            case (MaybeType(of=sort), None):
                return Optional(z3.BoolVal(False, self.context), z3.Const(f"any.{sort}", self.sort(sort)))
            case (NumberType() | StampType(), int() as number):
                return z3.IntVal(number, self.context)
            case _, value:
                return z3.BoolVal(bool(value), self.context)

    def _quantified(self, node: Quantified, bindings: Bindings, after: Lookup | None) -> Any:
        variables, body = [node.variable], node.body
        while isinstance(body, Quantified) and body.kind == node.kind:
            variables.append(body.variable)
            body = body.body
        # A number of its own for every bound constant: z3 binds by name, and the term of an update that is substituted
        # under a quantifier must not be caught by it.
        bound = [z3.Const(f"{v.name}!{next(self._numbers)}", self.sort(v.type)) for v in variables]
        inner = self.term(body, {**bindings, **dict(zip(variables, bound, strict=True))}, after)
        return z3.ForAll(bound, inner) if node.kind == "all" else z3.Exists(bound, inner)


def _ite(condition: Any, yes: Term, no: Term) -> Term:
    if isinstance(yes, Optional):
        return Optional(z3.If(condition, yes.present, no.present), z3.If(condition, yes.element, no.element))
    return z3.If(condition, yes, no)


def _equal(a: Term, b: Term) -> Any:
    if isinstance(a, Optional):
        return z3.And(a.present == b.present, z3.Implies(a.present, a.element == b.element))
    return a == b


def _some(element: Any) -> Optional:
    return Optional(z3.BoolVal(True, element.ctx), element)


_OPERATORS: Mapping[str, Callable[..., Any]] = {
    "not": z3.Not,
    "and": z3.And,
    "or": z3.Or,
    "implies": z3.Implies,
    "eq": _equal,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "add": lambda a, b: a + b,
    "some": _some,
    "ite": _ite,
}
