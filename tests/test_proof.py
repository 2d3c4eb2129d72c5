"""Proof: what is proved, what is not, and that the four verdicts stay apart."""

from __future__ import annotations

import sys

import pytest

from onestart_model import (
    Bool,
    Instance,
    Machine,
    Model,
    RuleError,
    action,
    exists,
    forall,
    invariant,
    reachable,
    require,
    step_invariant,
)
from onestart_model import yardstick as module
from onestart_model.catalog import entry
from onestart_model.yardstick import YARDSTICK, Attempt, Key, Receipt, State
from onestart_proofs.bmc import bounded_check
from onestart_proofs.claims import proof_claims
from onestart_proofs.induction import Options, prove
from onestart_report.claims import overall
from onestart_report.verdict import Verdict, worst

PROTECTION = "no fresh offer over damage"
CHAIN = entry("chain")


def test_the_yardstick_is_proved_for_all_sizes() -> None:
    """Ten of these obligations are what the published timing speaks of; with the lemma all hold."""
    proof = prove(YARDSTICK)
    assert proof.verdict is Verdict.PROVED
    start = next(o for o in proof.of("at_most_one_start") if o.action == "start")
    assert "no_start_before_running" in start.used
    assert "guard: attempt[k] = CLAIMED" in start.used


def test_obligations_over_impossible_actions_are_noticed() -> None:
    """An action that no state allows keeps every promise; its obligations are proved and mean nothing."""
    assert set(prove(CHAIN.model).possible.values()) == {Verdict.PROVED}

    @action
    def never(s: State, k: Key) -> None:
        """Happens when a key is and is not started."""
        require(s.attempt[k] == Attempt.NONE, s.attempt[k] == Attempt.OFFERED)
        s.starts[k] = 2

    model = Model("vacuous", YARDSTICK.schema, (*YARDSTICK.actions, never), YARDSTICK.properties, YARDSTICK.protections)
    proof = prove(model)
    assert proof.verdict is Verdict.PROVED
    assert [name for name, verdict in proof.possible.items() if verdict is not Verdict.PROVED] == ["never"]
    assert overall(proof_claims(proof)) is Verdict.UNDETERMINED


def test_without_its_lemma_the_promise_is_not_inductive() -> None:
    """A counterexample to induction is no refutation: it is two states, of which the first need not be reachable."""
    alone = Model("alone", YARDSTICK.schema, YARDSTICK.actions, YARDSTICK.properties[:1], YARDSTICK.protections)
    proof = prove(alone)
    (failed,) = (o for o in proof.obligations if o.verdict is not Verdict.PROVED)
    assert (failed.action, failed.verdict) == ("start", Verdict.NOT_INDUCTIVE)
    found = failed.counterexample
    assert found is not None
    machine, prop = Machine(found.instance), alone.properties[0]
    assert machine.holds(prop, found.states[0])
    assert not machine.holds(prop, found.states[1])
    assert machine.apply(found.states[0], found.steps[0]) == found.states[1]


def test_an_invariant_that_fails_at_once_is_refuted() -> None:
    """The initial state is reachable, so this is a refutation and not a failed induction."""

    @invariant
    def started_from_the_beginning(s: State) -> Bool:
        """Every key is started."""
        return forall(Key, lambda k: s.starts[k] == 1)

    model = Model("bad", YARDSTICK.schema, YARDSTICK.actions, (started_from_the_beginning,), YARDSTICK.protections)
    proof = prove(model)
    assert proof.verdict is Verdict.REFUTED
    assert proof.of("started_from_the_beginning")[0].action == "initially"


def test_too_few_resources_leave_it_undetermined() -> None:
    """A prover that gives up has not proved anything."""
    proof = prove(YARDSTICK, options=Options(resources=1))
    assert proof.verdict is Verdict.UNDETERMINED
    assert any(o.reason for o in proof.obligations)
    with pytest.raises(RuleError, match="leaves nothing to prove with"):
        Options(resources=0)


def test_the_same_seed_gives_the_same_proof() -> None:
    """Outcome, what was used and the resources spent depend on nothing but the rules and the seed."""

    def outcome(seed: int) -> list[tuple[str, str, tuple[str, ...], int]]:
        proof = prove(YARDSTICK, options=Options(seed=seed))
        return [(o.property, o.action, o.used, o.resources) for o in proof.obligations]

    assert outcome(7) == outcome(7)


def test_the_worst_verdict_counts() -> None:
    """A whole is proved only if every part is, and a refutation is never averaged away."""
    assert worst([]) is Verdict.PROVED
    assert worst([Verdict.PROVED, Verdict.UNDETERMINED]) is Verdict.UNDETERMINED
    assert worst([Verdict.NOT_INDUCTIVE, Verdict.UNDETERMINED]) is Verdict.NOT_INDUCTIVE
    assert worst([Verdict.NOT_INDUCTIVE, Verdict.REFUTED, Verdict.PROVED]) is Verdict.REFUTED
    assert len({v.value for v in Verdict} | {2}) == 5


def test_numbers_stay_in_their_bounds_for_all_sizes() -> None:
    """The proof's integers have no bounds of their own; that the rules keep them is proved like a promise."""
    names = {o.property for o in prove(YARDSTICK).obligations}
    assert {"range_of_epoch", "range_of_job_epoch", "range_of_starts"} <= names


def test_bounded_checking_finds_the_shortest_trace() -> None:
    """The third way to a trace agrees with the enumeration on its length, and claims nothing beyond its depth."""
    instance = CHAIN.standard("single").instance(CHAIN.model, ["intent-before-start"])
    prop = CHAIN.model.property_named("one_key_at_most_one_start")
    found = bounded_check(instance, prop, depth=12)
    assert (found.verdict, found.depth) == (Verdict.REFUTED, 9)
    assert found.trace is not None
    assert found.trace.broken()
    short = bounded_check(instance, prop, depth=8)
    assert (short.verdict, short.reason) == (Verdict.UNDETERMINED, "no trace of at most 8 steps")


def test_bounded_checking_shows_what_is_reachable() -> None:
    """For a witness the trace is the proof."""

    @reachable()
    def a_key_completes(s: State) -> Bool:
        """Some key completes."""
        return exists(Key, lambda k: s.receipt[k] == Receipt.COMPLETED)

    model = Model("shown", YARDSTICK.schema, YARDSTICK.actions, (a_key_completes,), YARDSTICK.protections)
    instance = Instance.of(model, sizes={"Key": 2, "Worker": 1}, limits={"expiries": 0})
    found = bounded_check(instance, a_key_completes, depth=6)
    assert (found.verdict, found.depth) == (Verdict.PROVED, 3)
    prop = CHAIN.model.property_named("one_key_at_most_one_start")
    instance = CHAIN.standard("single").instance(CHAIN.model)
    with pytest.raises(RuleError, match="choose one from 1 to 60"):
        bounded_check(instance, prop, depth=0)
    with pytest.raises(RuleError, match="bounded model checking cannot tell"):
        bounded_check(instance, CHAIN.model.property_named("every_accepted_command_can_end"), depth=3)


def test_the_module_is_the_model() -> None:
    """The yardstick is built from its own page; nothing is listed a second time."""
    assert Model.of("again", State, sys.modules[module.__name__], protections=YARDSTICK.protections).actions == (
        YARDSTICK.actions
    )


def test_a_proof_is_no_better_than_what_it_rests_on() -> None:
    """The promise's own obligations hold without the fence, but only from invariants that no longer do."""
    proof = prove(CHAIN.model, without=["fencing-token"], properties=["one_key_at_most_one_start"])
    assert all(o.verdict is Verdict.PROVED for o in proof.of("one_key_at_most_one_start"))
    assert proof.verdict_of("one_key_at_most_one_start") is Verdict.NOT_INDUCTIVE
    assert "who_may_start_is_alone" in proof.unproved_basis("one_key_at_most_one_start")


def test_a_step_that_changes_nothing_can_break_a_step_invariant() -> None:
    """Only a property that holds of stuttering may be skipped for the actions that do not touch it."""

    @step_invariant()
    def every_step_starts_something(s: State, after: State) -> Bool:
        """Every step starts some key."""
        return exists(Key, lambda k: s.starts[k] < after.starts[k])

    model = Model("st", YARDSTICK.schema, YARDSTICK.actions, (every_step_starts_something,), YARDSTICK.protections)
    failed = {o.action for o in prove(model).obligations if o.verdict is not Verdict.PROVED}
    assert {"submit", "corrupt", "crash"} <= failed


def test_a_number_that_leaves_its_bounds_is_not_inductive() -> None:
    """A rule that breaks its own declaration is told as a verdict, for all sizes, and not as an error."""

    @action
    def overflow(s: State, k: Key) -> None:
        """Sets the count of starts beyond its bound."""
        s.starts[k] = 5

    model = Model("of", YARDSTICK.schema, (overflow,), (), ())
    assert prove(model).verdict_of("range_of_starts") is Verdict.NOT_INDUCTIVE


def test_induction_does_not_speak_of_possibilities() -> None:
    """What can happen is no invariant; asking induction for it is a mistake, not a failed proof."""
    with pytest.raises(RuleError, match="which induction cannot show; use onestart explore"):
        prove(CHAIN.model, properties=["every_accepted_command_can_end"])
