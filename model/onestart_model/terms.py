"""Terms: the values that a rule handles while it is read.

A term stands for a state value that is not known yet. It can be compared, combined with `&`, `|`, `~`, counted on
and assigned; it has no truth value, because a rule must read the same forevery state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar, Generic, NoReturn, Self, TypeVar, overload

from onestart_model.expression import (
    BOOL,
    NUMBER,
    Apply,
    EnumType,
    Limit,
    Literal,
    MaybeType,
    Node,
    Protected,
    Quantified,
    Read,
    RuleError,
    SortType,
    StampType,
    Type,
    Variable,
    walk,
)

_NO_TRUTH = (
    "a state value has no truth value while a rule is read, so Python's `if`, `and`, `or`, `not`, `in` and chained "
    "comparisons cannot be used on it: write `&`, `|`, `~`, implies(a, b), ite(condition, a, b) or x.one_of(a, b)"
)


class Term:
    """A state value inside a rule."""

    __slots__ = ("node",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, node: Node) -> None:
        self.node = node

    def __bool__(self) -> NoReturn:
        raise RuleError(_NO_TRUTH)

    def __iter__(self) -> NoReturn:
        raise RuleError("a state value cannot be iterated over; write forall(Sort, lambda x: ...) or exists(...)")

    def __eq__(self, other: object) -> Bool:  # type: ignore[override]
        left, right = align(self.node, other)
        _check_no_next(left, right)
        # Python asks the class of a member first, which turns the sides round; rules are printed as they are written.
        if isinstance(left, Literal):
            left, right = right, left
        return Bool(Apply("eq", (left, right), BOOL))

    def __ne__(self, other: object) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def one_of(self, *others: object) -> Bool:
        """True if the value equals one of the others; what `in` would say."""
        if not others:
            raise RuleError("one_of() needs at least one value to compare with")
        return disjunction(*(self == other for other in others))


class Bool(Term):
    type: ClassVar[Type] = BOOL

    def __and__(self, other: Bool | bool) -> Bool:
        return Bool(Apply("and", (self.node, coerce(other, BOOL)), BOOL))

    def __or__(self, other: Bool | bool) -> Bool:
        return Bool(Apply("or", (self.node, coerce(other, BOOL)), BOOL))

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> Bool:
        return Bool(Apply("not", (self.node,), BOOL))


class _Ordered(Term):
    def _compare(self, op: str, other: object, *, swap: bool) -> Bool:
        left, right = align(self.node, other)
        _check_no_next(left, right)
        return Bool(Apply(op, (right, left) if swap else (left, right), BOOL))

    def __lt__(self, other: object) -> Bool:
        return self._compare("lt", other, swap=False)

    def __le__(self, other: object) -> Bool:
        return self._compare("le", other, swap=False)

    def __gt__(self, other: object) -> Bool:
        return self._compare("lt", other, swap=True)

    def __ge__(self, other: object) -> Bool:
        return self._compare("le", other, swap=True)


class Number(_Ordered):
    """A whole number from 0 up."""

    type: ClassVar[Type] = NUMBER

    def __add__(self, other: Number | int) -> Number:
        return Number(Apply("add", (self.node, coerce(other, NUMBER)), NUMBER))


class Stamp(_Ordered):
    """A number of which only the order matters: a fencing token.

    Stamps are compared and copied within one element of their group (one task), and the only new value is the one
    above all others, `next()` of the highest. An enumeration may therefore renumber them, which keeps the state
    space finite though tokens grow forever; a proof takes them as unbounded integers.
    """

    def next(self) -> Self:
        """The stamp above this one; only ever taken of the highest of its group (an enumeration checks that)."""
        return type(self)(Apply("add", (self.node, Literal(1, NUMBER)), self.node.type))


class Sort(Term):
    """An unbounded set of interchangeable things; subclass it to declare one: `class Key(Sort): ...`."""

    type: ClassVar[SortType]

    def __init_subclass__(cls) -> None:
        cls.type = SortType(cls.__name__)


class Enumeration(Term):
    """A fixed set of named values; subclass it and list the members with `member()`."""

    type: ClassVar[EnumType]

    def __init_subclass__(cls) -> None:
        names = tuple(name for name, value in vars(cls).items() if isinstance(value, member))
        if not names:
            raise RuleError(f"enumeration {cls.__name__} has no members: write `NAME = member()` lines in its body")
        cls.type = EnumType(cls.__name__, names)


E = TypeVar("E", bound=Enumeration)
S = TypeVar("S", bound=Sort)
T = TypeVar("T", bound=Term)


class member:  # noqa: N801  (reads as a declaration)
    """One value of an enumeration, with its meaning in plain words."""

    def __init__(self, meaning: str = "") -> None:
        self.meaning = meaning

    def __set_name__(self, owner: type[Enumeration], name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[E]) -> E:
        return owner(Literal(self.name, owner.type))


class Maybe(Term, Generic[S]):
    """A reference to an element of a sort, or NONE."""


class Nothing(Term):
    """The type of NONE."""


NONE = Nothing(Literal(None, MaybeType(SortType("?"))))


def wrap(node: Node) -> Term:
    """The term class that belongs to a node's type."""
    match node.type:
        case StampType():
            return Stamp(node)
        case MaybeType():
            return Maybe(node)
        case EnumType():
            return Enumeration(node)
        case SortType():
            return Sort(node)
        case t:
            return Bool(node) if t == BOOL else Number(node)


def coerce(value: object, wanted: Type) -> Node:
    """The node of a value where a type is expected.

    Raises RuleError if the value cannot have that type.
    """
    match value, wanted:
        case Nothing() | None, MaybeType():
            return Literal(None, wanted)
        case bool(), _ if wanted == BOOL:
            return Literal(value, BOOL)
        case int(), _ if not isinstance(value, bool) and (wanted == NUMBER or isinstance(wanted, StampType)):
            if value < 0 or (value > 0 and isinstance(wanted, StampType)):
                raise RuleError(f"{value} is not a {wanted}: numbers start at 0, and a stamp's only literal is 0")
            return Literal(value, wanted)
        case Term(node=node), MaybeType(of=sort) if node.type == sort:
            return Apply("some", (node,), wanted)
        case Term(node=node), _ if node.type == wanted:
            return node
        case Term(node=node), _:
            raise RuleError(f"a {wanted} is expected here, but this is a {node.type}")
        case _:
            raise RuleError(f"a {wanted} is expected here, but this is {value!r}")


def align(left: Node, other: object) -> tuple[Node, Node]:
    """Both sides of a comparison at one type; a Maybe may be compared with an element of its sort."""
    if isinstance(left.type, SortType) and isinstance(other, Maybe):
        return coerce(wrap(left), other.node.type), other.node
    right = coerce(other, left.type)
    if isinstance(left.type, StampType):
        check_same_group(left, right)
    return left, right


def _check_no_next(left: Node, right: Node) -> None:
    if isinstance(left.type, StampType) and any(isinstance(n, Apply) and n.op == "add" for n in _both(left, right)):
        raise RuleError("next() of a stamp is only for assigning: that two stamps are next to each other means nothing")


def _both(left: Node, right: Node) -> Iterator[Node]:
    yield from walk(left)
    yield from walk(right)


def group_of(node: Node) -> Node | None:
    """The element of the group that a stamp belongs to: the last argument of the function it was read from."""
    match node:
        case Read(indices=indices):
            return indices[-1]
        case Apply(op="add", operands=(first, _)):
            return group_of(first)
        case Apply(op="ite", operands=(_, yes, no)):
            return group_of(yes) or group_of(no)
        case _:
            return None


def check_same_group(left: Node, right: Node) -> None:
    a, b = group_of(left), group_of(right)
    if a is not None and b is not None and a != b:
        raise RuleError(
            "stamps of two different groups are compared or copied; only those of one and the same "
            f"{left.type} element mean anything together"
        )


def implies(left: Bool, right: Bool | bool) -> Bool:
    """If left then right."""
    return Bool(Apply("implies", (coerce(left, BOOL), coerce(right, BOOL)), BOOL))


def disjunction(*parts: Bool) -> Bool:
    if len(parts) == 1:
        return parts[0]
    return Bool(Apply("or", tuple(coerce(part, BOOL) for part in parts), BOOL))


def ite(condition: Bool, yes: T, no: object) -> T:
    """yes where the condition holds, else no; both of one type."""
    if not isinstance(yes, Term):
        raise RuleError("ite(condition, yes, no): `yes` must be a state value; swap the two if only `no` is one")
    left, right = align(yes.node, no)
    return wrap(Apply("ite", (coerce(condition, BOOL), left, right), left.type))  # type: ignore[return-value]


def limit(name: str) -> Number:
    """A number that each instance fixes, such as how often something may happen."""
    return Number(Limit(name))


def protected(name: str) -> Bool:
    """True as long as the protection is in place; for rules whose effect, not whose guard, is what protects."""
    return Bool(Protected(name))


_bound: ContextVar[tuple[Variable, ...]] = ContextVar("bound", default=())

S1 = TypeVar("S1", bound=Sort)
S2 = TypeVar("S2", bound=Sort)


@overload
def forall(first: type[S], body: Callable[[S], Bool], /) -> Bool: ...
@overload
def forall(first: type[S1], second: type[S2], body: Callable[[S1, S2], Bool], /) -> Bool: ...
def forall(*arguments: object) -> Bool:
    """True if the body holds forevery element of the sort (or every pair of two sorts)."""
    return _quantified("all", arguments)


@overload
def exists(first: type[S], body: Callable[[S], Bool], /) -> Bool: ...
@overload
def exists(first: type[S1], second: type[S2], body: Callable[[S1, S2], Bool], /) -> Bool: ...
def exists(*arguments: object) -> Bool:
    """True if the body holds for some element of the sort (or some pair of two sorts)."""
    return _quantified("any", arguments)


def _quantified(kind: str, arguments: tuple[object, ...]) -> Bool:
    *sorts, body = arguments
    if not callable(body) or isinstance(body, type) or not all(_is_sort(sort) for sort in sorts):
        raise RuleError("write forall(Sort, lambda x: ...) or forall(Sort, Sort, lambda x, y: ...)")
    variables = bound_variables(body, tuple(sort.type for sort in sorts))  # type: ignore[attr-defined]
    with binding(variables):
        elements = (sort(variable) for sort, variable in zip(sorts, variables, strict=True))  # type: ignore[operator]
        node = coerce(body(*elements), BOOL)
    for variable in reversed(variables):
        node = Quantified(kind, variable, node)
    return Bool(node)


@contextmanager
def binding(variables: tuple[Variable, ...]) -> Iterator[None]:
    """While a lambda's body is read, no other lambda gets the same variables."""
    token = _bound.set((*_bound.get(), *variables))
    try:
        yield
    finally:
        _bound.reset(token)


def _is_sort(candidate: object) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, Sort)


def bound_variables(body: Callable[..., object], types: tuple[Type, ...]) -> tuple[Variable, ...]:
    """Variables named after the parameters of a lambda, told apart by where it is written and how deep it is nested."""
    code = body.__code__
    names = code.co_varnames[: code.co_argcount]
    if len(names) != len(types):
        raise RuleError(f"this lambda takes {len(names)} arguments where {len(types)} are bound")
    site = f"{code.co_filename}:{code.co_firstlineno}:{next(iter(code.co_positions()))[2]}"
    while any(variable.site == site for variable in _bound.get()):
        site += "'"
    return tuple(Variable(name, kind, site) for name, kind in zip(names, types, strict=True))
