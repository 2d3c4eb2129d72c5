"""The rule language: what it reads, and what it refuses with which advice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from onestart_model import (
    NONE,
    Bool,
    Enumeration,
    Fn,
    Maybe,
    Model,
    Number,
    Protection,
    RuleError,
    Sort,
    Stamp,
    action,
    can_still,
    durable,
    environment,
    exists,
    fixed,
    forall,
    forget,
    ghost,
    implies,
    invariant,
    ite,
    limit,
    member,
    protected,
    require,
    state,
    step_invariant,
    volatile,
)
from onestart_model.expression import Variable, show, walk
from onestart_model.recording import Assign


class Item(Sort):
    pass


class Shelf(Sort):
    pass


class Color(Enumeration):
    RED, BLUE = member("like a rose"), member()


@state
class State:
    color: Fn[Item, Color] = durable("colors", Color.RED)
    place: Fn[Item, Shelf] = fixed()
    top: Fn[Shelf, Maybe[Item]] = durable("shelves", NONE)
    stamp: Fn[Shelf, Stamp] = durable("shelves", 0)
    known: Fn[Item, Shelf, Stamp] = volatile(0)
    count: Fn[Item, Number] = volatile(0, upto=limit("most"))
    moved: Fn[Item, Bool] = ghost(False)


def refuses(match: str, function: Callable[..., None]) -> None:
    with pytest.raises(RuleError, match=match):
        action(function)


def test_a_state_value_has_no_truth_value() -> None:
    """Python's own logic would decide while the rule is read, and lose the condition without a word."""

    def uses_if(s: State, i: Item) -> None:
        """."""
        if s.color[i] == Color.RED:
            s.color[i] = Color.BLUE

    def uses_and(s: State, i: Item) -> None:
        """."""
        require((s.color[i] == Color.RED) and (s.color[i] == Color.BLUE))

    def uses_not(s: State, i: Item) -> None:
        """."""
        require(not s.moved[i])  # type: ignore[arg-type]

    def uses_in(s: State, i: Item) -> None:
        """."""
        require(s.color[i] in (Color.RED, Color.BLUE))  # type: ignore[arg-type]

    def chains(s: State, i: Item) -> None:
        """."""
        require(Number(s.count[i].node) < s.count[i] < 3)

    def iterates(s: State, i: Item) -> None:
        """."""
        for _ in i:
            pass

    for function in (uses_if, uses_and, uses_not, uses_in, chains):
        refuses(rf"{function.__name__}: a state value has no truth value.*write `&`.*ite\(condition.*one_of", function)
    refuses(r"cannot be iterated over; write forall", iterates)


def test_variables_on_one_line_are_told_apart() -> None:
    """Two lambdas of one line and one name are two variables, also inside of an update."""

    @action
    def spreads(s: State, j: Item) -> None:
        """."""
        hit = lambda k: exists(Item, lambda i: (i != k) & s.moved[i]); s.moved.update(lambda i: hit(i))  # type: ignore[no-untyped-call]  # fmt: skip # noqa: E702, E731

    assert show(spreads.updates[0].value) == "any i: Item (i != i & moved[i])"
    names = {n for n in walk(spreads.updates[0].value) if isinstance(n, Variable)}
    assert len(names) == 2


def test_guards_come_before_assignments() -> None:
    """A guard after an assignment would speak of a state that exists only half-way."""

    def late(s: State, i: Item) -> None:
        """."""
        s.color[i] = Color.BLUE
        require(s.color[i] == Color.RED)

    refuses(r"require\(\) comes before the assignments", late)


def test_a_guard_may_not_read_a_ghost() -> None:
    """A real system could not decide on history that exists only for the promises."""

    def cheats(s: State, i: Item) -> None:
        """."""
        require(~s.moved[i])
        s.moved[i] = True

    refuses(r"cheats: the guard reads the ghost moved", cheats)


@pytest.mark.parametrize(
    ("match", "assign"),
    [
        (r"a Color is expected here, but this is a Shelf", lambda s, i: s.color.__setitem__(i, s.place[i])),
        (r"argument of color: a Item is expected here, but this is a Shelf", lambda s, i: s.color[s.place[i]]),
        (r"place is fixed and never changes", lambda s, i: s.place.__setitem__(i, s.place[i])),
        (r"assigning count: -1 is not a Number", lambda s, i: s.count.__setitem__(i, -1)),
        (r"stamp's only literal is 0", lambda s, i: s.stamp.__setitem__(s.place[i], 2)),
        (r"known takes 2 arguments, not 1", lambda s, i: s.known[i]),
        (r"assign one argument at a time", lambda s, i: setattr(s, "color", Color.RED)),
        (r"the state has no function 'colour'", lambda s, i: s.colour[i]),
        (r"expected here, but this is 'RED'", lambda s, i: s.color.__setitem__(i, "RED")),
        (r"at least one condition", lambda s, i: require()),
        (r"`yes` must be a state value", lambda s, i: ite(s.moved[i], 2, s.count[i])),  # type: ignore[type-var]
        (r"this lambda takes 2 arguments where 1 are bound", lambda s, i: forall(Item, lambda a, b: a == b)),  # type: ignore[arg-type, misc]
        (r"write forall\(Sort, lambda x: ...\)", lambda s, i: forall(i, lambda a: a == i)),
        (r"one_of\(\) needs at least one value", lambda s, i: require(s.color[i].one_of())),
    ],
)
def test_a_wrong_type_is_named(match: str, assign: Callable[..., object]) -> None:
    """A slip in a rule is found when it is read, and the message says which function and what to write."""

    def slips(s: State, i: Item) -> None:
        """."""
        assign(s, i)

    refuses(match, slips)


def test_stamps_of_two_groups_are_not_compared() -> None:
    """An enumeration renumbers stamps within a group, so an order between groups would be an accident."""

    def mixes(s: State, i: Item, a: Shelf, b: Shelf) -> None:
        """."""
        require(s.stamp[a] < s.known[i, b])

    refuses(r"stamps of two different groups", mixes)


def test_assignments_read_as_in_python() -> None:
    """What was assigned is what is read afterwards, also where two arguments may be the same element."""

    @action
    def moves(s: State, i: Item, j: Item) -> None:
        """."""
        t = s.place[i]
        s.stamp[t] = s.stamp[t].next()
        s.known[i, t] = s.stamp[t]
        s.color[i] = Color.BLUE
        s.color[j] = ite(s.color[j] == Color.BLUE, Color.RED, s.color[j])

    updates = {u.function: u for u in moves.updates if isinstance(u, Assign)}
    assert show(updates["known"].value) == "stamp[place[i]] + 1"
    assert "if i = j then BLUE else color[j]" in show(updates["color"].value)


def test_everything_can_be_inspected() -> None:
    """Reports print an action from what was read: parameters, guards with their protection, updates, docstring."""

    @environment("weather", source="a seed")
    def rain(s: State, i: Item, hard: Bool, to: Color) -> None:
        """It rains
        on an item."""
        require(s.color[i] != to, protection="umbrella")
        s.color[i] = to
        s.moved[i] = hard

    assert (rain.name, rain.cause, rain.source, rain.statement) == ("rain", "weather", "a seed", "It rains on an item.")
    assert [(p.name, str(p.type)) for p in rain.parameters] == [("i", "Item"), ("hard", "Bool"), ("to", "Color")]
    assert show(rain.guards[0].condition) == 'color[i] != to | not protected("umbrella")'
    assert rain.protections == {"umbrella"}
    assert rain.written == ("color", "moved")


def test_forget_resets_what_a_crash_loses() -> None:
    """A crash takes all memory of a process and nothing else."""

    @environment("crash")
    def crash(s: State, i: Item) -> None:
        """."""
        forget(s, i)

    assert set(crash.written) == {"known", "count"}


def test_properties_are_read_only() -> None:
    """An invariant that assigned something would change what it speaks of."""
    with pytest.raises(RuleError, match="an invariant may not assign color"):

        @invariant
        def assigns(s: State) -> Bool:
            """."""
            s.color[Item(forall.__doc__)] = Color.RED  # type: ignore[arg-type]
            return forall(Item, lambda i: s.moved[i])

    with pytest.raises(RuleError, match="must return what holds"):

        @invariant
        def returns_nothing(s: State) -> Bool:
            """."""
            return None  # type: ignore[return-value]

    with pytest.raises(RuleError, match=r"needs a docstring"):

        @invariant
        def says_nothing(s: State) -> Bool:
            return forall(Item, lambda i: s.moved[i])


def test_a_step_invariant_tells_before_from_after() -> None:
    """The two states of a step must not be mixed up."""

    @step_invariant(except_for=["weather"])
    def grows(s: State, after: State) -> Bool:
        """."""
        return forall(Item, lambda i: s.count[i] <= after.count[i])

    assert show(grows.condition) == "all i: Item (count[i] <= count'[i])"
    assert grows.without == {"weather"}


@pytest.mark.parametrize(
    ("match", "declare"),
    [
        (r"needs a bound: upto=", lambda: type("S", (), {"__annotations__": {"n": Fn[Item, Number]}, "n": ghost(0)})),
        (r"says not where it lives", lambda: type("S", (), {"__annotations__": {"n": Fn[Item, Bool]}})),
        (r"has no type", lambda: type("S", (), {"n": ghost(0)})),
        (r"must be annotated as Fn", lambda: type("S", (), {"__annotations__": {"n": Bool}, "n": ghost(False)})),
        (r"is no value type", lambda: type("S", (), {"__annotations__": {"n": Fn[Item, int]}, "n": ghost(False)})),  # type: ignore[type-var]
        (r"one or two arguments", lambda: type("S", (), {"__annotations__": {"n": Fn[Bool, Bool]}, "n": ghost(False)})),
    ],
)
def test_a_wrong_declaration_is_named(match: str, declare: Callable[[], type]) -> None:
    """A state function says its type, where it lives and, for numbers, how large it gets."""
    with pytest.raises(RuleError, match=match):
        state(declare())


def test_a_model_describes_every_protection() -> None:
    """A protection without a statement could not be explained; one that nothing uses would be a typo."""

    class module:  # noqa: N801
        @action
        def paint(s: State, i: Item) -> None:  # noqa: N805
            """."""
            require(s.color[i] == Color.RED, protection="once")
            s.color[i] = ite(protected("once"), Color.BLUE, Color.RED)

    def build(*names: str) -> Model:
        return Model.of("m", State, module, protections=[Protection(n, "") for n in names])  # type: ignore[arg-type]

    assert build("once").limits == ("most",)
    with pytest.raises(RuleError, match="'once' is not described"):
        build()
    with pytest.raises(RuleError, match="'twice' is described but no action uses it"):
        build("once", "twice")
    with pytest.raises(RuleError, match="no action is called 'pain'; did you mean 'paint'"):
        build("once").action_named("pain")


def test_a_promise_may_not_depend_on_a_protection() -> None:
    """A promise that knew of the removal could excuse itself."""

    class module:  # noqa: N801
        @invariant
        def excused(s: State) -> Bool:  # noqa: N805
            """."""
            return implies(protected("once"), exists(Item, lambda i: s.moved[i]))

    with pytest.raises(RuleError, match="may not depend on a protection"):
        Model.of("m", State, module)  # type: ignore[arg-type]


def test_a_property_names_known_causes() -> None:
    """A misspelled cause would silently exempt nothing."""

    class module:  # noqa: N801
        @can_still(avoiding=["wether"])
        def dries(s: State) -> Bool:  # noqa: N805
            """."""
            return forall(Item, lambda i: s.moved[i])

    with pytest.raises(RuleError, match="'wether', which is neither an action nor a cause"):
        Model.of("m", State, module)  # type: ignore[arg-type]
