"""Execution: the reference state machine, and instances of it."""

from __future__ import annotations

import pytest

from onestart_model import Instance, Machine, RuleError, Step
from onestart_model.catalog import CATALOG, entry
from onestart_model.execution import explore_by_execution, renumber_stamps
from onestart_model.yardstick import YARDSTICK


def small(**budgets: int) -> Instance:
    return Instance.of(YARDSTICK, sizes={"Key": 1, "Worker": 2}, limits={"expiries": 1}, budgets=budgets)


def test_a_step_says_what_stands_in_its_way() -> None:
    """A person who asks why something cannot happen gets the guard, not a refusal."""
    machine = Machine(small())
    start = machine.initial()
    assert machine.why_not(start, Step("submit", (0,))) is None
    assert machine.why_not(start, Step("offer", (0,))) == "receipt[k] = PENDING"
    with pytest.raises(RuleError, match=r"offer\(key1\) is not enabled: receipt\[k\] = PENDING"):
        machine.apply(start, Step("offer", (0,)))
    assert [machine.show_step(step) for step in machine.enabled(start)] == ["submit(key1)"]


def test_states_are_values() -> None:
    """States can be compared, put in sets, and printed as what has changed."""
    machine = Machine(small())
    start = machine.initial()
    pending = machine.apply(start, Step("submit", (0,)))
    assert pending == machine.apply(start, Step("submit", (0,)))
    assert len({start, pending, machine.initial()}) == 2
    assert start.diff(pending) == ("receipt[key1]: ABSENT -> PENDING",)
    assert start.show()[2:4] == ("holder: {key1: none}", "epoch: {key1: 0}")
    assert start.read("holder", 0) is None
    with pytest.raises(RuleError, match=r"holder\[3\] is outside of the instance: 1 key, 2 workers, expiries = 1"):
        start.read("holder", 3)
    with pytest.raises(AttributeError):
        start.rows = ()  # type: ignore[misc]


def test_steps_take_arguments_of_their_types() -> None:
    """A step from a file or a log may be nonsense; it is named, not executed."""
    machine = Machine(small())
    for step in (Step("submit", ()), Step("submit", (1,)), Step("claim", (0, "x")), Step("submit", (None,))):
        with pytest.raises(RuleError, match="cannot take the arguments"):
            machine.why_not(machine.initial(), step)
    with pytest.raises(RuleError, match="no action is called 'sumbit'; did you mean 'submit'"):
        machine.why_not(machine.initial(), Step("sumbit", (0,)))


def test_a_budget_bounds_a_cause() -> None:
    """A spent budget stands in the way like a guard; a shared one counts for all its causes."""
    machine = Machine(small(crash=0))
    state = machine.initial()
    for step in (Step("submit", (0,)), Step("offer", (0,)), Step("claim", (0, 1))):
        state = machine.apply(state, step)
    assert machine.why_not(state, Step("crash", (1,))) == "the budget of crash is spent"
    shared = Instance.of(YARDSTICK, sizes={"Key": 1, "Worker": 1}, limits={"expiries": 1}, budgets={"crash+damage": 1})
    machine = Machine(shared)
    state = machine.apply(machine.apply(machine.initial(), Step("submit", (0,))), Step("corrupt", (0,)))
    assert machine.why_not(state, Step("corrupt", (0,))) == "the budget of damage is spent"


def test_a_number_stays_in_its_bounds() -> None:
    """A counter that leaves its declared bounds is a mistake in the rules and is said, not wrapped."""
    machine = Machine(small())
    state = machine.initial()
    step = Step("expire", (0,))
    state = machine.successor(state, step)
    with pytest.raises(RuleError, match="epoch becomes 2, outside of its bound 0 to 1"):
        machine.successor(state, step)


def test_stamps_keep_their_order_when_renumbered() -> None:
    """Renumbering is what makes states with ever growing tokens finite; it must change nothing but the numbers."""
    chain = entry("chain")
    machine = Machine(chain.standard("single").instance(chain.model))
    state = machine.initial((("task", (0,)),))
    todo = [
        Step("accept", (0, 0)),
        Step("enter", (0, 0, True, True)),
        Step("enter", (1, 0, True, True)),
        Step("offer", (0, 0)),
        Step("claim", (0, 0)),
        Step("expire", (0,)),
        Step("claim", (1, 0)),
        Step("crash", (0,)),
    ]
    for step in todo:
        state = machine.apply(state, step)
    assert (state.read("token", 0), state.read("held", 1, 0)) == (2, 2)
    compact = renumber_stamps(state)
    assert (compact.read("token", 0), compact.read("held", 1, 0), compact.read("held", 0, 0)) == (1, 1, 0)


def test_plain_execution_counts_the_yardstick() -> None:
    """Small exact counts, so that a slip in the semantics shows without any of the fast machinery."""
    distances = explore_by_execution(small())
    assert (len(distances), max(distances.values())) == (133, 10)


@pytest.mark.parametrize(
    ("match", "options"),
    [
        (r"says nothing of the sort 'Worker'", {"sizes": {"Key": 1}}),
        (r"'Kee' is no sort of this model; known: Key, Worker", {"sizes": {"Kee": 1, "Worker": 1}}),
        (r"the size of Key must be a whole number of at least 1, not 0", {"sizes": {"Key": 0, "Worker": 1}}),
        (r"says nothing of the limit 'expiries'", {"limits": {}}),
        (r"the limit of expiries must be a whole number of at least 0", {"limits": {"expiries": -1}}),
        (r"'flood' is no cause of this model; known: crash, clock, damage", {"budgets": {"flood": 1}}),
        (r"the cause 'crash' has two budgets", {"budgets": {"crash": 1, "crash+damage": 1}}),
        (r"no protection is called 'x'", {"without": ["x"]}),
        (r"receipt is not fixed", {"fixed": {"receipt": (0,)}}),
    ],
)
def test_a_wrong_instance_is_named(match: str, options: dict[str, object]) -> None:
    """Every option of an instance is checked, with a message that says what would do."""
    defaults: dict[str, object] = {"sizes": {"Key": 1, "Worker": 1}, "limits": {"expiries": 1}}
    with pytest.raises(RuleError, match=match):
        Instance.of(YARDSTICK, **{**defaults, **options})  # type: ignore[arg-type]


def test_every_standard_instance_can_be_built() -> None:
    """The catalog's names are what commands and documentation speak of."""
    for model in CATALOG:
        names = [standard.name for standard in model.instances]
        assert len(set(names)) == len(names)
        for standard in model.instances:
            assert standard.instance(model.model).scope
