"""Random small models, their instances and their states: what the agreement tests are run on.

Models are built as records, not by reading functions, so that everything that the records can say is drawn. Numbers
stay within their bounds because assignments are clipped; stamps stay within the language because one stamp of each
group is never below the others and is the only one of which a next is taken.
"""

from __future__ import annotations

from random import Random

from attrs import evolve, frozen
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from onestart_model.execution import State
from onestart_model.expression import (
    BOOL,
    NUMBER,
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
    SortType,
    StampType,
    Type,
    Value,
    Variable,
    show,
)
from onestart_model.instance import FixedValues, Instance
from onestart_model.recording import Assign, AssignAll, Guard, Update
from onestart_model.rules import INVARIANT, REACHABLE, STEP, SYSTEM, Action, Model, Property, Protection
from onestart_model.state import DURABLE, EXTERNAL, FIXED, GHOST, VOLATILE, Function, Schema
from onestart_proofs.search import Exploration, Limits, explore
from random_expressions import (
    Scope,
    condition,
    constant,
    indices_of,
    quantifiable,
    quantified,
    stamp,
    value,
)

KEY, TASK = SortType("Key"), SortType("Task")
LIMIT, PROTECTION = "most", "shield"
TOP = "top"
BOUNDS: tuple[Node, ...] = (*(Literal(n, NUMBER) for n in (1, 2, 3)), Limit(LIMIT))


def profile(examples: int) -> settings:
    """Settings under which a test draws the same examples on every machine."""
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@frozen(repr=False)
class Case:
    """An instance of a random model, printed in full."""

    instance: Instance

    def __repr__(self) -> str:
        instance = self.instance
        options = [f"without {', '.join(instance.without)}"] if instance.without else []
        options += [f"{name} fixed to {row}" for name, row in instance.fixed.items()]
        return "\n".join(["", "; ".join([instance.scope, *options]), *describe(instance.model)])


def describe(model: Model) -> list[str]:
    """The rules as a person would write them."""
    lines = [_describe_function(function) for function in model.schema.functions]
    for action in model.actions:
        parameters = ", ".join(f"{p.name}: {p.type}" for p in action.parameters)
        lines.append(f"{action.name}({parameters})  [{action.cause}]")
        lines += [f"    require {show(guard.condition)}" for guard in action.guards]
        lines += [f"    {_describe_update(update)}" for update in action.updates]
    return [*lines, *(f"{p.kind} {p.name}: {show(p.condition)}" for p in model.properties)]


def _describe_function(function: Function) -> str:
    bound = f" upto {show(function.upto)}" if function.upto is not None else ""
    arguments = ", ".join(map(str, function.arguments))
    return f"{function.home} {function.name}[{arguments}]: {function.type}{bound} = {function.initial}"


def _describe_update(update: Update) -> str:
    if isinstance(update, Assign):
        return f"{update.function}[{', '.join(map(show, update.indices))}] := {show(update.value)}"
    return f"{update.function}[all {', '.join(p.name for p in update.parameters)}] := {show(update.value)}"


def _function(rng: Random, number: int, sorts: list[SortType], enumeration: EnumType) -> Function:
    kinds: list[Type] = [BOOL, BOOL, NUMBER, enumeration, *(MaybeType(sort) for sort in sorts)]
    kind = rng.choice(kinds)
    arguments = (KEY,) if number == 0 else tuple(rng.choice(sorts) for _ in range(rng.choice([1, 1, 2])))
    home = rng.choice([DURABLE, VOLATILE, EXTERNAL, GHOST])
    upto: Node | None = None
    initial: Value = None
    match kind:
        case NumberType():
            upto = rng.choice(BOUNDS)
            initial = 0 if isinstance(upto, Limit) else rng.randint(0, 1)
        case EnumType(members=members):
            initial = rng.choice(members)
        case MaybeType():
            pass
        case _:
            initial = rng.random() < 0.5
    return Function(f"f{number}", arguments, kind, home, initial, "", upto)


def _fixed_function(rng: Random, sorts: list[SortType], enumeration: EnumType) -> Function:
    kinds: list[Type] = [BOOL, enumeration, *sorts, *sorts, MaybeType(sorts[-1])]
    return Function("fixed", (rng.choice(sorts),), rng.choice(kinds), FIXED, None, "", None)


def _stamp_functions(rng: Random, sorts: list[SortType]) -> list[Function]:
    """The top of each group, and one or two more, by element of the group alone or of another sort as well."""
    group = rng.choice(sorts)
    kind = StampType(group)
    functions = [Function(TOP, (group,), kind, DURABLE, 0, "tokens", None)]
    for number in range(rng.choice([1, 1, 2])):
        arguments = rng.choice([(group,), (sorts[0], group)]) if number == 0 else (group,)
        functions.append(Function(f"held{number}", arguments, kind, VOLATILE, 0, "", None))
    return functions


def random_schema(rng: Random) -> tuple[Schema, EnumType]:
    """A state of two to six functions over one or two sorts and an enumeration."""
    sorts = rng.choice([[KEY], [KEY, TASK]])
    enumeration = EnumType("Color", ("RED", "GREEN", "BLUE")[: rng.choice([2, 3])])
    functions = [_function(rng, number, sorts, enumeration) for number in range(rng.choice([2, 2, 3, 4]))]
    if rng.random() < 0.5:
        functions.append(_fixed_function(rng, sorts, enumeration))
    if not rng.randint(0, 2):
        functions += _stamp_functions(rng, sorts)
    return Schema(tuple(functions)), enumeration


def _clipped(node: Node, function: Function) -> Node:
    """A number kept within the bound of the function that it is assigned to."""
    if function.upto is None or node == Literal(0, NUMBER):
        return node
    return Apply("ite", (Apply("le", (node, function.upto), BOOL), node, function.upto), NUMBER)


def _given(rng: Random, scope: Scope, function: Function, indices: tuple[Node, ...]) -> Node:
    """A new value of a cell: a constant, the next number, or any expression."""
    way = rng.choice(["constant", "next", "any", "any"])
    if way == "constant":
        return _clipped(constant(rng, scope, function.type), function)
    if way == "next" and function.type in (NUMBER, BOOL):
        old = Read(function.name, indices, function.type)
        flipped = Apply("not", (old,), BOOL)
        return flipped if function.type == BOOL else _clipped(Apply("add", (old, Literal(1, NUMBER)), NUMBER), function)
    return _clipped(value(rng, scope, function.type, 2), function)


def _assignment(rng: Random, scope: Scope, function: Function) -> Update:
    """One argument, or all of them."""
    if all(scope.of(sort) for sort in function.arguments) and rng.randint(0, 3):
        indices = indices_of(rng, scope, function, rng.choice([0, 0, 1]))
        return Assign(function.name, indices, _given(rng, scope, function, indices))
    names = rng.choice([("x", "y"), ("k", "j")])
    parameters = tuple(Variable(names[i], sort, f"all:{i}") for i, sort in enumerate(function.arguments))
    inside = scope.binding(*parameters)
    if function.type == BOOL and rng.random() < 0.5:
        return AssignAll(function.name, parameters, quantified(rng, inside, 2))
    node = value(rng, inside, function.type, 2)
    return AssignAll(function.name, parameters, _clipped(node, function))


def _next(element: Node, kind: StampType) -> Node:
    return Apply("add", (Read(TOP, (element,), kind), Literal(1, kind)), kind)


def _stamp_updates(rng: Random, scope: Scope) -> list[Update]:
    """The top raised or left alone, and another stamp given a value that is not above it."""
    kind = next(f.type for f in scope.functions if f.name == TOP)
    assert isinstance(kind, StampType)
    others = [f for f in scope.functions if f.type == kind and f.name != TOP]
    function = rng.choice(others)
    if all(scope.of(sort) for sort in function.arguments) and rng.randint(0, 3):
        *first, element = indices_of(rng, scope, function, 1)
        raised = rng.random() < 0.5
        updates: list[Update] = [Assign(TOP, (element,), _next(element, kind))] if raised else []
        given = _stamp_value(rng, scope, kind, element, raised=raised)
        return [*updates, Assign(function.name, (*first, element), given)]
    return _all_stamps(rng, scope, kind, function)


def _stamp_value(rng: Random, scope: Scope, kind: StampType, element: Node, *, raised: bool) -> Node:
    node = stamp(rng, scope, kind.group, element, 1)
    if not raised or not rng.randint(0, 2):
        return node
    if rng.random() < 0.5:
        return _next(element, kind)
    return Apply("ite", (condition(rng, scope, 1), _next(element, kind), node), kind)


def _all_stamps(rng: Random, scope: Scope, kind: StampType, function: Function) -> list[Update]:
    """Every stamp of a function at once; the tops are raised where a condition holds."""
    element = Variable("x", kind.group, "all:top")
    when = condition(rng, scope.binding(element), 1)
    kept = Read(TOP, (element,), kind)
    raised = AssignAll(TOP, (element,), Apply("ite", (when, _next(element, kind), kept), kind))
    parameters = tuple(Variable(f"y{i}", sort, "all:held") for i, sort in enumerate(function.arguments))
    inside = scope.binding(*parameters)
    given = stamp(rng, inside, kind.group, parameters[-1], 1)
    updates: list[Update] = [AssignAll(function.name, parameters, given)]
    return [raised, *updates] if (rng.random() < 0.5) else updates


def _parameters(rng: Random, scope: Scope) -> tuple[Variable, ...]:
    kinds: list[Type] = [*scope.sorts, *scope.sorts, KEY, BOOL, scope.enumeration]
    return tuple(Variable(f"p{i}", rng.choice(kinds)) for i in range(rng.choice([0, 1, 1, 2, 2, 3])))


def _guard(rng: Random, scope: Scope) -> Guard:
    """A condition that reads no ghost, perhaps one that a removed protection drops."""
    readable = tuple(f for f in scope.functions if f.home != GHOST)
    node = condition(rng, evolve(scope, functions=readable), rng.choice([1, 2, 3]))
    if rng.randint(0, 5):
        return Guard(node)
    return Guard(Apply("or", (node, Apply("not", (Protected(PROTECTION),), BOOL)), BOOL), PROTECTION)


def _action(rng: Random, scope: Scope, schema: Schema, number: int) -> Action:
    inside = scope.binding(*_parameters(rng, scope))
    guards = tuple(_guard(rng, inside) for _ in range(rng.choice([0, 0, 1, 1, 2])))
    plain = [f for f in schema.functions if f.home != FIXED and not isinstance(f.type, StampType)]
    updates = [_assignment(rng, inside, rng.choice(plain)) for _ in range(rng.choice([1, 1, 2, 3]))]
    if TOP in schema and (rng.random() < 0.5):
        updates += _stamp_updates(rng, inside)
    cause = rng.choice([SYSTEM, SYSTEM, "crash", "clock"])
    return Action(f"act{number}", "A random step.", "", cause, inside.variables, guards, tuple(updates), schema)


def _property(rng: Random, scope: Scope, schema: Schema, name: str, kind: str) -> Property:
    bound = evolve(scope, protections=(), after=kind == STEP)
    variable = quantifiable(rng, bound)
    maker = rng.choice([condition, quantified])
    body = maker(rng, bound.binding(variable), rng.choice([1, 2, 2, 3]))
    node = Quantified("all" if kind != REACHABLE else "any", variable, body)
    without = frozenset({"crash"}) if kind == STEP and not rng.randint(0, 3) else frozenset[str]()
    return Property(name, "A random promise.", "", kind, node, "", False, without, schema)


def random_model(rng: Random) -> Model:
    """A model of one to four actions, with invariants, a step invariant and a reachable property."""
    schema, enumeration = random_schema(rng)
    scope = Scope(schema.functions, schema.sorts, enumeration, limits=(LIMIT,), protections=(PROTECTION,))
    actions = tuple(_action(rng, scope, schema, number) for number in range(rng.choice([2, 3, 4, 4])))
    kinds = {"first": INVARIANT, "second": INVARIANT, "stepwise": STEP, "shown": REACHABLE}
    properties = tuple(_property(rng, scope, schema, name, kind) for name, kind in kinds.items())
    return Model("random", schema, actions, properties, (Protection(PROTECTION, "A random protection."),))


def _budgets(rng: Random, causes: tuple[str, ...]) -> dict[str, int]:
    if len(causes) > 1 and (rng.random() < 0.5):
        return {"+".join(causes): rng.randint(0, 2)}
    return {cause: rng.randint(0, 2) for cause in causes if (rng.random() < 0.5)}


def random_case(rng: Random) -> Case:
    """A random model with sizes, limits and budgets, perhaps without its protection or with a function fixed."""
    model = random_model(rng)
    small = any(len(function.arguments) > 1 for function in model.schema.functions)
    sizes = {sort.name: rng.choice([1, 2, 2] if small else [1, 2, 2, 3]) for sort in model.schema.sorts}
    limits = {name: rng.randint(0, 2) for name in model.limits}
    without = (PROTECTION,) if not rng.randint(0, 3) else ()
    budgets = _budgets(rng, model.causes)
    instance = Instance.of(model, sizes=sizes, limits=limits, budgets=budgets, without=without)
    if model.schema.of(FIXED) and not rng.randint(0, 2):
        fixed = dict(rng.choice(list(instance.fixings())))
        instance = Instance.of(model, sizes=sizes, limits=limits, budgets=budgets, without=without, fixed=fixed)
    return Case(instance)


def _value(rng: Random, instance: Instance, function: Function) -> Value:
    if isinstance(function.type, NumberType):
        return rng.randint(0, instance.upto(function) or 0)
    if isinstance(function.type, StampType):
        return rng.choice([0, 1, 2, 5])
    return rng.choice(list(instance.domain(function.type)))


def random_state(rng: Random, instance: Instance, fixing: FixedValues) -> State:
    """Any state with these values of the fixed functions, whether reachable or not; no stamp is above the top."""
    rows = {
        function.name: tuple(_value(rng, instance, function) for _ in instance.arguments(function))
        for function in instance.model.schema.functions
    }
    rows.update(fixing)
    if TOP in instance.model.schema:
        rows[TOP] = tuple(rng.choice([5, 6, 9]) for _ in rows[TOP])
    budgets = tuple(rng.randint(0, budget) for budget in instance.budgets.values())
    return State(instance, tuple(rows.values()), budgets)


def random_expressions(rng: Random, instance: Instance, count: int) -> tuple[list[Node], dict[Variable, Value]]:
    """Expressions of every type over the state and some parameters, with values for those."""
    schema = instance.model.schema
    kinds = [function.type for function in schema.functions]
    enumeration = next((kind for kind in kinds if isinstance(kind, EnumType)), EnumType("Color", ("RED", "GREEN")))
    types: list[Type] = [*schema.sorts, *schema.sorts, BOOL, enumeration]
    parameters = tuple(Variable(f"p{i}", kind) for i, kind in enumerate(types))
    scope = Scope(schema.functions, schema.sorts, enumeration, parameters, instance.model.limits, (PROTECTION,))
    wanted: list[Type] = [BOOL, BOOL, BOOL, NUMBER, NUMBER, enumeration, *schema.sorts, *map(MaybeType, schema.sorts)]
    nodes = [value(rng, scope, rng.choice(wanted), rng.choice([2, 3])) for _ in range(count)]
    return nodes, {p: rng.choice(list(instance.domain(p.type))) for p in parameters}


def sources() -> st.SearchStrategy[Random]:
    """Where the randomness of an example comes from.

    A seed spreads examples more evenly than choices of Hypothesis do. To shrink a failing example, put
    st.randoms(use_true_random=False) here for a while: the generators work with either.
    """
    return st.integers(0, 2**32 - 1).map(Random)


def cases() -> st.SearchStrategy[Case]:
    return sources().map(random_case)


def explore_all(instance: Instance, *, symmetry: bool, limit: int | None = None) -> Exploration:
    """Every state up to a limit, with the first sighting of every property, none of which ends the search."""
    watched, limits = instance.model.properties, Limits(states=limit)
    return explore(instance, symmetry=symmetry, properties=[], watched=watched, limits=limits)
