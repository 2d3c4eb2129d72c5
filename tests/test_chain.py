"""The command chain: its promises, by proof and by enumeration, and what each protection is for."""

from __future__ import annotations

import pytest
from attrs import evolve

from onestart_model import Model, Protection, action, require
from onestart_model.catalog import entry
from onestart_model.chain import Key, State
from onestart_model.expression import Read, walk
from onestart_model.rules import CAN_STILL, INVARIANT, STEP
from onestart_proofs.graph import can_still
from onestart_proofs.induction import prove
from onestart_proofs.search import explore
from onestart_proofs.traces import trace
from onestart_proofs.vacuity import antecedents
from onestart_proofs.variants import promises, without
from onestart_report.verdict import Verdict

CHAIN = entry("chain")
MODEL = CHAIN.model

# For every protection: the promises that fail when it alone is removed, with the length of the shortest trace to each.
FAILING = {
    "fingerprint": {"a_result_reaches_only_its_command": 4},
    "approval-digest": {"only_what_was_approved_starts": 2},
    "revision-in-force": {"a_stale_revision_never_starts": 2},
    "refusal-before-answer": {"no_start_after_refusal_or_cancellation": 8},
    "result-recorded-once": {"a_recorded_result_stays": 11, "bytes_are_never_destroyed": 11},
    "degraded-read-reported": {"a_degraded_read_is_reported": 3},
    "damage-is-not-absence": {"bytes_are_never_destroyed": 5},
    "notes-are-evidence": {"no_start_after_refusal_or_cancellation": 10, "one_key_at_most_one_start": 15},
    "results-are-evidence": {"no_start_after_refusal_or_cancellation": 10},
    "one-lease-per-task": {"a_live_lease_is_not_taken": 6},
    "token-per-acquisition": {
        "a_lost_lease_stays_lost": 7,
        "one_task_at_most_one_live_lease": 7,
        "one_key_at_most_one_start": 14,
        "no_start_after_refusal_or_cancellation": 15,
    },
    "task-serial": {"one_task_at_most_one_execution": 15},
    "fencing-token": {
        "only_the_holder_writes": 6,
        "one_key_at_most_one_start": 14,
        "no_start_after_refusal_or_cancellation": 15,
    },
    "renewal-fenced": {"a_lost_lease_stays_lost": 6, "tokens_only_grow": 7, "a_live_lease_is_not_taken": 7},
    "intent-before-start": {"no_start_after_refusal_or_cancellation": 7, "one_key_at_most_one_start": 9},
    "intent-noted": {"no_start_after_refusal_or_cancellation": 8, "one_key_at_most_one_start": 12},
    "intent-stands": {"no_start_after_refusal_or_cancellation": 9},
    "ask-before-restart": {"one_key_at_most_one_start": 14},
    "lookup-bars-older-starts": {
        "one_key_at_most_one_start": 14,
        "no_start_after_refusal_or_cancellation": 15,
    },
    "executor-fence": {"one_key_at_most_one_start": 14, "no_start_after_refusal_or_cancellation": 15},
    "reconcile-asks-executor": {"one_task_at_most_one_execution": 17},
    "operator-looks-first": {"no_start_after_refusal_or_cancellation": 9},
}


def test_every_promise_is_proved_for_all_sizes() -> None:
    """The whole argument, for any number of keys, tasks and processes; no obligation may be left over."""
    proof = prove(MODEL)
    assert [(o.property, o.action) for o in proof.obligations if o.verdict is not Verdict.PROVED] == []
    assert {o.property for o in proof.obligations} >= {p.name for p in MODEL.of_kind(INVARIANT, STEP)}


@pytest.mark.parametrize("protection", [p.name for p in MODEL.protections])
def test_every_protection_is_needed(protection: str) -> None:
    """Without it the proof fails, and a shortest trace breaks exactly the promises that it is there for."""
    variant = without(MODEL, protection, CHAIN.instances[:2])
    assert variant.failing == FAILING[protection]
    assert variant.needed is Verdict.PROVED
    assert variant.broken
    assert all(o.verdict is Verdict.NOT_INDUCTIVE for o in variant.broken)
    assert variant.story is not None
    assert variant.story.broken()
    assert len(variant.story.steps) == min(variant.failing.values())


def test_an_idle_protection_is_found_out() -> None:
    """A protection that nothing rests on is refuted; one that only the proof misses is left open."""
    idle = Protection("idle", "Guards what another guard guards already.")

    @action
    def finish_twice(s: State, k: Key) -> None:
        """What the executor ran comes to an end, and is asked for twice."""
        require(s.running[k])
        require(s.running[k], protection="idle")
        s.running[k] = False

    model = Model("idle", MODEL.schema, (*MODEL.actions, finish_twice), MODEL.properties, (*MODEL.protections, idle))
    variant = without(model, "idle", CHAIN.instances[:1])
    assert variant.needed is Verdict.REFUTED
    assert evolve(variant, complete=False).needed is Verdict.UNDETERMINED


def test_every_promise_can_fail() -> None:
    """A promise that no removal breaks might be true for reasons that have nothing to do with the rules."""
    broken = {name for failing in FAILING.values() for name in failing}
    assert broken == {p.name for p in promises(MODEL)}


def test_one_command_with_everything_unlimited() -> None:
    """The smallest instance, exactly: every crash, damage, rollback, expiry and operator, as often as they like."""
    exploration = explore(CHAIN.standard("single").instance(MODEL))
    assert exploration.complete
    assert (exploration.states, exploration.generated, exploration.levels) == (40_707, 447_903, 36)
    assert not exploration.sightings
    for prop in MODEL.of_kind(CAN_STILL):
        assert can_still(exploration, prop).stuck == 0


def test_two_commands_with_everything_unlimited() -> None:
    """Two keys, two processes, one task, and no limit on what the environment does; and nothing of it is vacuous."""
    watched = antecedents(MODEL)
    exploration = explore(CHAIN.standard("unlimited").instance(MODEL), watched=watched)
    assert exploration.complete
    assert (exploration.states, exploration.generated, exploration.levels) == (8_439_129, 124_063_140, 51)
    witness = exploration.sightings["a_new_key_starts_after_a_cancelled_one"]
    assert trace(exploration, witness).broken()
    assert set(exploration.sightings) == {witness.property, *(p.name for p in watched)}
    assert [action for action, count in exploration.fired.items() if not count] == []
    for prop in MODEL.of_kind(CAN_STILL):
        assert can_still(exploration, prop).stuck == 0


def test_three_commands_with_budgets() -> None:
    """Three keys, two processes, two tasks, with a budget of crashes, damages and expiries."""
    exploration = explore(CHAIN.standard("budgeted").instance(MODEL))
    assert exploration.complete
    assert (exploration.states, exploration.generated, exploration.levels) == (4_076_524, 49_133_965, 54)
    assert set(exploration.sightings) == {"a_new_key_starts_after_a_cancelled_one"}


def test_stuck_commands_would_be_found() -> None:
    """Without lookups and without an operator a key in doubt has no way out, and the search says so."""
    prop = MODEL.property_named("every_accepted_command_can_end")
    stricter = evolve(prop, without=prop.without | {"look_up"})
    exploration = explore(CHAIN.standard("single").instance(MODEL))
    stuck = can_still(exploration, stricter)
    assert stuck.stuck > 0
    assert stuck.first is not None
    story = trace(exploration, stuck.first)
    assert story.states[-1].read("attempt", 0) in ("INTENDED", "DAMAGED")
    assert story.states[-1].read("session", 0) == "ABSENT"


def test_an_action_writes_one_store() -> None:
    """No two stores can be written in one step, so a rule that did would prove something that cannot be built."""
    for rule in MODEL.actions:
        stores = {MODEL.schema[name].store for name in rule.written} - {""}
        assert len(stores) <= 1, rule.name


def test_what_the_system_reads_of_the_world_comes_through_a_port() -> None:
    """Facts of the outside are read by the actions that ask the executor, and by the operator; by no other guard."""
    readers = {
        rule.name
        for rule in MODEL.actions
        for guard in rule.guards
        for node in walk(guard.condition)
        if isinstance(node, Read) and MODEL.schema[node.function].home == "external"
    }
    assert readers == {"start", "look_up", "reconcile", "settle", "finish"}


def test_every_rule_says_what_it_is_and_where_it_comes_from() -> None:
    """Auditors read statements and sources, not code."""
    for rule in MODEL.actions:
        assert rule.source, rule.name
    for prop in MODEL.properties:
        assert prop.supporting or (prop.source and (prop.layer or prop.kind == CAN_STILL)), prop.name
    assert all(len(protection.statement) > 20 for protection in MODEL.protections)
