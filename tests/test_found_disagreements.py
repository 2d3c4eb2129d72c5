"""Rules on which two semantics once disagreed, each as small as it gets. Random rules found most of them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from onestart_model import (
    Action,
    Bool,
    Enumeration,
    Fn,
    Instance,
    Model,
    Number,
    Property,
    RuleError,
    Sort,
    Stamp,
    action,
    durable,
    exists,
    fixed,
    forall,
    invariant,
    ite,
    limit,
    member,
    require,
    state,
)
from onestart_model.execution import explore_by_execution
from onestart_proofs import search
from onestart_proofs.bmc import bounded_check
from onestart_proofs.induction import prove
from onestart_proofs.search import explore
from onestart_report.verdict import Verdict


class Key(Sort): ...


class Color(Enumeration):
    RED, GREEN, BLUE = member(), member(), member()


@state
class Flags:
    lit: Fn[Key, Bool] = durable("flags", True)
    hot: Fn[Key, Bool] = durable("flags", True)
    done: Fn[Key, Bool] = durable("flags", False)
    count: Fn[Key, Number] = durable("counts", 0, upto=3)


@state
class Tokens:
    top: Fn[Key, Stamp] = durable("tokens", 0)
    held: Fn[Key, Stamp] = durable("tokens", 0)
    done: Fn[Key, Bool] = durable("tokens", False)


def build(declared: type, *rules: Action | Property) -> Model:
    module = ModuleType("rules")
    for rule in rules:
        setattr(module, rule.name, rule)
    return Model.of("found", declared, module)


@action
def raise_top(s: Tokens, k: Key) -> None:
    """A token is given out."""
    s.top[k] = s.top[k].next()


@invariant
def never_done(s: Flags) -> Bool:
    """Nothing is ever done."""
    return forall(Key, lambda k: ~s.done[k])


@invariant
def tokens_never_done(s: Tokens) -> Bool:
    """Nothing is ever done."""
    return forall(Key, lambda k: ~s.done[k])


def test_a_proof_keeps_equal_names_apart() -> None:
    """Protects proofs: a property that an instance breaks is not proved, whatever its variables are called."""

    @action
    def spread(s: Flags) -> None:
        """Every key is marked that has another one beside it."""
        s.done.update(lambda x: exists(Key, lambda j: (j != x) & s.lit[j]))

    @invariant
    def alone(s: Flags) -> Bool:
        """No key is marked beside another one."""
        return forall(Key, lambda k: ~exists(Key, lambda j: s.done[j] & (j != k)))

    model = build(Flags, spread, alone)
    assert "alone" in explore(Instance.of(model, sizes={"Key": 2})).sightings
    assert prove(model).verdict_of("alone") != Verdict.PROVED


def test_a_choice_of_two_members_is_not_the_third() -> None:
    """Protects the enumeration: an enumeration's third member equals neither of the first two."""

    @action
    def finish(s: Flags, k: Key) -> None:
        """Never possible: green or red is not blue."""
        require(ite(s.lit[k] & s.hot[k], Color.GREEN, Color.RED) == Color.BLUE)
        s.done[k] = True

    instance = Instance.of(build(Flags, finish, never_done), sizes={"Key": 1})
    assert explore(instance, stop=False).states == len(explore_by_execution(instance))


def test_a_large_number_stays_large_beside_a_small_column() -> None:
    """Protects the enumeration: a number of a rule may be larger than any number of the state."""

    @action
    def finish(s: Flags, k: Key) -> None:
        """Never possible: a thousand is not below 999."""
        require(ite(s.done[k], s.count[k], limit("many")) < 999)
        s.done[k] = True

    instance = Instance.of(build(Flags, finish, never_done), sizes={"Key": 1}, limits={"many": 1000})
    assert explore(instance, stop=False).states == len(explore_by_execution(instance))


def test_stamps_fit_a_dense_table() -> None:
    """Protects the enumeration: tokens grow forever, the table of visited states does not."""

    @action
    def give(s: Tokens, k: Key) -> None:
        """The key's holder gets the next token."""
        s.top[k] = s.top[k].next()
        s.held[k] = s.top[k]

    instance = Instance.of(build(Tokens, give, tokens_never_done), sizes={"Key": 1})
    assert explore(instance, stop=False).states == len(explore_by_execution(instance))


@action
def give_two(s: Tokens, k: Key) -> None:
    """The key's holder gets a token, and the next one is kept ready."""
    s.held[k] = s.top[k].next()
    s.top[k] = s.held[k].next()


@invariant
def ready(s: Tokens) -> Bool:
    """The token that is kept ready is above the one that is held, once there are any."""
    return forall(Key, lambda k: (s.held[k] < s.top[k]) | ((s.held[k] == 0) & (s.top[k] == 0)))


def test_two_tokens_of_one_step_fit_the_cells_of_an_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Protects the enumeration: an action may give out two tokens, one after the other."""
    monkeypatch.setattr(search, "dense_visited", lambda model, layout: None)
    instance = Instance.of(build(Tokens, give_two, ready), sizes={"Key": 1})
    exploration = explore(instance, stop=False)
    assert not exploration.sightings
    assert exploration.states == len(explore_by_execution(instance))


def test_two_tokens_of_one_step_fit_the_vectors_of_a_bounded_check() -> None:
    """Protects bounded model checking: no trace breaks what every step keeps."""
    instance = Instance.of(build(Tokens, give_two, ready), sizes={"Key": 1})
    assert bounded_check(instance, ready, depth=4).verdict == Verdict.UNDETERMINED


def test_next_of_a_stamp_is_no_guard() -> None:
    """Protects renumbering: that two stamps are further apart than one step is not about their order alone."""
    with pytest.raises(RuleError, match=r"next\(\) of a stamp is only for assigning"):

        @action
        def finish(s: Tokens, k: Key) -> None:
            """Possible once two tokens were given out since the one that is held."""
            require(s.held[k].next() < s.top[k])
            s.done[k] = True


@pytest.mark.parametrize("explored", [explore, explore_by_execution])
def test_a_number_beyond_its_bound_ends_an_enumeration(explored: Callable[[Instance], object]) -> None:
    """Protects the enumeration: a number that leaves its bounds is an error of the rule, for constants as well."""

    @action
    def overflow(s: Flags, k: Key) -> None:
        """Writes four where three is the most."""
        s.count[k] = 4

    with pytest.raises(RuleError, match="bound"):
        explored(Instance.of(build(Flags, overflow, never_done), sizes={"Key": 1}))


def test_a_helper_may_quantify_twice() -> None:
    """Protects reading: a quantifier written once and nested in itself binds two variables."""

    def every(body: Callable[[Key], Bool]) -> Bool:
        return forall(Key, lambda k: body(k))

    @action
    def darken(s: Flags, k: Key) -> None:
        """A key goes dark."""
        s.lit[k] = False

    @invariant
    def alike(s: Flags) -> Bool:
        """All keys are lit or none is."""
        return every(lambda a: every(lambda b: s.lit[a] == s.lit[b]))

    assert "alike" in explore(Instance.of(build(Flags, darken, alike), sizes={"Key": 2})).sightings


def test_a_stamp_above_all_others_is_the_only_new_one() -> None:
    """Protects renumbering: next() of a stamp that is not the highest ends the enumeration."""

    @action
    def take(s: Tokens, k: Key) -> None:
        """Takes a token that may have been given out before."""
        s.held[k] = s.held[k].next()

    instance = Instance.of(build(Tokens, raise_top, take, tokens_never_done), sizes={"Key": 1})
    assert "highest" in explore(instance, stop=False).reason


def test_a_token_may_not_cross_groups_by_an_update() -> None:
    """Protects renumbering: an update of all arguments copies within a group, like an assignment of one."""
    with pytest.raises(RuleError, match="stamps of two different groups"):

        @action
        def spread(s: Tokens, k: Key) -> None:
            """Every key gets the token of one."""
            s.held.update(lambda x: s.top[k])


def test_a_first_token_is_checked_like_any_other() -> None:
    """Protects renumbering: next() of the literal 0 is a new stamp too, and has to be above all others."""

    @action
    def restart(s: Tokens, k: Key) -> None:
        """Tokens begin anew."""
        s.held[k] = s.top[k]
        s.top[k] = ite(s.done[k], s.top[k], 0).next()

    instance = Instance.of(build(Tokens, restart, tokens_never_done), sizes={"Key": 1})
    assert "highest" in explore(instance, stop=False).reason


def test_fixed_functions_have_finite_domains() -> None:
    """Protects instances: an enumeration goes through every value of a fixed function, so there may be only so many."""
    for kind in (Number, Stamp):
        with pytest.raises(RuleError, match="a fixed function is of a sort, an enumeration, a Bool or a Maybe"):
            state(type("S", (), {"__annotations__": {"n": Fn[Key, kind]}, "n": fixed()}))  # type: ignore[valid-type]
