"""Flows beside their model: runs are followed step by step, and what the model does not allow is objected to."""

from __future__ import annotations

import random
from contextlib import ExitStack

import pytest
from attrs import evolve

from onestart import Event
from onestart.flow import Outcome
from onestart.records import Step as Entry
from onestart_conformance.faults.fault import seeded
from onestart_conformance.flows import abstraction
from onestart_conformance.flows.abstraction import Abstraction
from onestart_conformance.flows.drawing import CHANGED, draw
from onestart_conformance.flows.faults.catalog import ASIDE, FLOW_FAULTS
from onestart_conformance.flows.heard import Heard
from onestart_conformance.flows.names import MODEL
from onestart_conformance.flows.plan import Plan, Stop
from onestart_conformance.flows.position import FOLLOWED, REFUSED_OTHERWISE, Position, how_far
from onestart_conformance.flows.program import Block, Call, Fan, Program, Saved
from onestart_conformance.flows.rows import ROWS
from onestart_conformance.flows.run import monitor_of, play
from onestart_conformance.judgement import Objection
from onestart_model.execution import Machine

A, B = Call("llm", "a"), Call("run", "b")


def followed(plan: Plan) -> Position:
    """The run of a plan on the model, whatever judges say."""
    monitor = play(plan, judged=False, followed=True).followed
    assert monitor is not None
    return monitor


def drawn(number: int, uses: frozenset[str] = frozenset()) -> Plan:
    """A plan at random that does not change."""
    return evolve(draw(random.Random(number), uses - {CHANGED}), changed=None)


def test_a_program_is_an_instance_of_the_model() -> None:
    """Its calls in their causal order fit what the model assumes of every program."""
    for number in range(40):
        found = Abstraction.of(drawn(number))
        if not found.uncovered:
            machine = Machine(found.instance)
            assert next(machine.initial_states(), None) == machine.initial(tuple(found.fixed.items()))


def test_an_order_is_that_of_the_text() -> None:
    """What comes before a call, which calls a hook makes, and which take an ordinal."""
    hook = Call("hook", "h", body=(B,))
    found = Abstraction.of(Plan(Program((A, Fan("later", ((hook,), (B, A))), Call("on", "end"))), version=2))
    calls, fixed = found.calls, found.fixed
    before = {(a, b) for a in calls for b in calls if fixed["before"][calls[a] * len(calls) + calls[b]]}
    assert {a for a, b in before if b == "2"} == {"0", "1a0", "1b0", "1b1"}
    assert ("1b0", "1b1") in before
    assert ("1a0", "1b0") not in before
    assert fixed["part_of"][calls["1a0:0"]] == calls["1a0"]
    assert list(fixed["own"]) == [None] * len(calls)
    assert [fixed["unlike"][calls[place]] for place in ("0", "1a0", "1a0:0", "2")] == [False, True, False, True]


def test_where_the_order_is_not_known_calls_are_counted() -> None:
    """From branches that are taken as they end on, and only there."""
    found = Abstraction.of(Plan(Program((A, Fan("completed", ((B,), (A,))), B))))
    own = dict(zip(found.calls, found.own, strict=True))
    assert own == {"0": 0, "1a0": None, "1a+": None, "1b0": None, "1b+": None, "2": None, "end": None}


RACE = Fan("completed", ((A,), (B,)))
NESTED = Call("hook", "outer", body=(Call("hook", "inner"),))
UNCOVERED: dict[str, tuple[Block, int]] = {
    abstraction.COUNTED_CHILD: ((Call("dispatch", "d", body=(Fan("gather", ((A,), (B,))),)),), 2),
    abstraction.RACING_CHILD: ((Call("dispatch", "d", body=(RACE,)),), 3),
    abstraction.NESTED_HOOKS: ((NESTED,), 2),
    abstraction.LEFT_BEHIND: ((Call("hook", "h", body=(Saved(A, (Call("run", "b", fails=True),)),)),), 3),
    abstraction.RACE_FAILS: ((RACE, Call("run", "c", fails=True)), 3),
    abstraction.TOO_LARGE: ((A,) * abstraction.MOST_CALLS, 3),
}


@pytest.mark.parametrize("reason", list(UNCOVERED))
def test_what_the_model_does_not_cover_is_said(reason: str) -> None:
    """Such a run is played, and it is not said to have been followed."""
    block, version = UNCOVERED[reason]
    monitor = followed(Plan(Program(block), version=version))
    assert monitor.uncovered == reason
    assert not monitor.steps


def test_a_flow_that_changes_is_not_followed() -> None:
    """Not even up to where it changes."""
    assert followed(Plan(Program((A,)), changed=Program((B,)))).uncovered == abstraction.CHANGED


# A random plan that shows each fault, and the protections without which the model would have allowed it.
SHOWN: dict[str, tuple[int, tuple[str, ...]]] = {
    "stable-ids": (0, ()),
    "unsorted-predecessors": (87, ()),
    "one-count": (1, ()),
    "hooks-leak": (140, ()),
    "ordinal-kind": (302, ("ordinal-kind",)),
    "hook-input-bound": (117, ("hook-input-bound",)),
    "hook-calls-pass": (48, ("hook-calls-pass",)),
    "index-at-admission": (0, ("index-at-admission",)),
    "in-flight-declared": (13, ("in-flight-declared",)),
    "starts-fenced": (100, ("driver-lease",)),
    "result-not-recorded": (0, ()),
    "verdict-not-recorded": (1, ()),
    "diagnostic-ignored": (2, ()),
    "reads-on-resume-only": (0, ("reads-on-resume-only",)),
    "admitted-in-order": (0, ("admitted-in-order",)),
    "watermark-of-admitted": (1561, ("watermark-of-admitted",)),
    "latch-at-declaration": (348, ("latch-at-declaration",)),
    "latch-nowhere": (348, ("latch-at-declaration",)),
}


@pytest.mark.parametrize("name", list(SHOWN))
def test_the_model_has_teeth(name: str) -> None:
    """Without any judge, the monitor objects to what the fault does, and names the protection that it lacks."""
    fault, (number, protections) = FLOW_FAULTS[name], SHOWN[name]
    plan = drawn(number, frozenset(fault.uses))
    assert followed(plan).objection is None
    with fault.seeded():
        objection = followed(plan).objection
    assert objection is not None
    assert (objection.oracle, objection.protections) == (MODEL, protections)


FOLLOWED_ROWS = [name for name, row in ROWS.items() if row.removed and row.plan.changed is None]


@pytest.mark.parametrize("name", FOLLOWED_ROWS)
def test_the_model_forbids_what_a_row_shows(name: str) -> None:
    """A row of the published table, without its protections, is no run of the model; as shipped it is one."""
    row = ROWS[name]
    assert followed(row.plan).objection is None
    with ExitStack() as stack:
        for fault in row.removed:
            stack.enter_context(seeded(ASIDE.get(fault) or FLOW_FAULTS[fault]))
        objection = followed(row.plan).objection
    assert objection is not None
    assert set(objection.protections) & set(row.removed)


def test_what_is_told_is_what_was_written() -> None:
    """An event that is missing, of something else, or out of the blue is objected to."""
    heard = Heard()
    assert heard.over() is None
    assert heard.tells(Event("flow_index", "p", 0, "root", "t", 1, 0.0, 1, "", {})) is not None
    assert heard.tells(Event("renew", "p", 0, "root", "t", 1, 0.0, 1)) is None
    assert heard.starts("key") is not None
    assert heard.tells(Event("start", "p", 1, "key", "t", 1, 0.0, 1)) is None
    assert heard.starts("key") is None
    heard.written.append(Entry("root", "t", "index", "llm-1", 1, {}))
    assert "nobody was told" in str(heard.over())


def test_the_journal_is_compared_with_the_model() -> None:
    """An entry that nobody knows of, and one that is not there, are both objected to at the next rest."""
    plan = Plan(Program((A, B)), stops=(Stop("done a"),), version=2)
    world = play(plan)
    monitor = monitor_of(plan)
    monitor.at_rest(world.read())
    assert isinstance(monitor.objection, Objection)
    assert "the model nothing" in monitor.objection.what
    forgotten = world.followed = monitor_of(plan)
    forgotten.leased(0)
    forgotten.declared(0, next(plan.program.calls()), "llm-1")
    forgotten.take("admit", 0, 0, 0)
    forgotten.at_rest(None)
    assert forgotten.objection is not None
    assert forgotten.objection.protections == ("index-at-admission",)


@pytest.mark.parametrize(("name", "stop"), [("indexed-again", "index a"), ("completed-again", "complete")])
def test_what_is_on_record_is_not_written_again(name: str, stop: str) -> None:
    """A record that is found leaves no entry."""
    plan = Plan(Program((A,)), stops=(Stop(stop),))
    assert followed(plan).objection is None
    with FLOW_FAULTS[name].seeded():
        objection = followed(plan).objection
    assert objection is not None
    assert "is written although its record is there" in objection.what


def test_a_verdict_in_a_child_flow_moves_no_counter_of_its_root() -> None:
    """A hook with an id of its own is replayed although ordinals that were admitted before it are not claimed yet."""
    saved = Saved(Call("dispatch", "inner", body=(Call("on", "c"),)), (Call("hook", "h"),))
    fan = Fan("completed", ((Call("dispatch", "outer", body=(saved,)),), ()))
    plan = Plan(Program((fan,)), stops=(Stop("verdict h"),), version=2)
    position = followed(plan)
    assert position.objection is None
    assert how_far(position) == FOLLOWED


def test_an_attempt_comes_to_what_it_has_come_to_in_the_model() -> None:
    """Complete with the completion marker, and refused if a call was; a refusal for what is not counted is told."""
    for state, said in (("completed", "it is completed, and in the model neither"), ("parked", "")):
        monitor = monitor_of(Plan(Program((A,))))
        monitor.leased(0)
        monitor.concluded(0, Outcome("root", state))
        assert str(monitor.objection or "").startswith(f"{MODEL}: {said}" if said else "")
        assert how_far(monitor) == FOLLOWED
    monitor = monitor_of(Plan(Program((A,))))
    monitor.leased(0)
    monitor.concluded(0, Outcome("root", "refused", reason="serial_replay_order_mismatch"))
    assert monitor.objection is None
    assert how_far(monitor) == REFUSED_OTHERWISE
    monitor.declared(0, next(Program((A,)).calls()), f"llm-after-{'0' * 64}-0")
    assert monitor.objection is not None
    assert monitor.objection.protections == ("latch-at-declaration",)
