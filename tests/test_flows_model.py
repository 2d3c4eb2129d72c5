"""Flows: their promises, by proof and by enumeration, what each protection is for, and the comparison of designs."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
from attrs import evolve

from onestart.command_line import run
from onestart_model import Bool, Model, RuleError, forall, invariant
from onestart_model.catalog import Standard, entry
from onestart_model.counterexample import load
from onestart_model.execution import Machine
from onestart_model.expression import Read, walk
from onestart_model.flows import Driver, State
from onestart_model.flows.programs import program
from onestart_model.instance import Instance
from onestart_model.rules import CAN_STILL, INVARIANT, STEP, assumption
from onestart_proofs.comparison import DESIGNS, PARTS, SCENARIOS, compare
from onestart_proofs.graph import can_still
from onestart_proofs.induction import prove
from onestart_proofs.search import explore
from onestart_proofs.symmetry import permutations_of
from onestart_proofs.traces import trace
from onestart_proofs.variants import ladder, promises, without
from onestart_report.verdict import Verdict

FLOWS = entry("flows")
MODEL = FLOWS.model
AGAIN = "a_completed_effect_is_never_executed_again"
TWICE = "an_effect_runs_twice_only_if_declared"
MEANING = "a_record_keeps_its_meaning"
REACHES = "what_is_recorded_reaches_only_who_asked_for_it"
AFTER = "nothing_goes_on_after_a_refusal"

# For every protection: the promises that fail when it alone is removed, with the length of the shortest trace to each.
FAILING = {
    "stable-ids": {
        "identical_calls_exchange_nothing": 10,
        TWICE: 11,
        "no_order_is_refused_under_version_3": 11,
        AGAIN: 12,
    },
    "ordinal-kind": {MEANING: 7, TWICE: 11, AGAIN: 12},
    "waits-hold": {MEANING: 7, TWICE: 11, AGAIN: 12},
    "dispatches-hold": {MEANING: 7, TWICE: 11, AGAIN: 12},
    "marker-checked": {MEANING: 7},
    "spec-bound": {REACHES: 16, TWICE: 18, AGAIN: 19},
    "question-bound": {REACHES: 9},
    "hook-input-bound": {REACHES: 10, AGAIN: 20, TWICE: 20},
    "watermark": {TWICE: 16, AGAIN: 17},
    "watermark-of-admitted": {TWICE: 21, AGAIN: 22},
    "hook-calls-pass": {"an_in_order_resume_is_never_refused": 14},
    "index-at-admission": {MEANING: 7, TWICE: 11, AGAIN: 12},
    "effects-indexed": {MEANING: 7, TWICE: 11, AGAIN: 12},
    "admitted-in-order": {TWICE: 10, AGAIN: 11},
    "latch-at-declaration": {AFTER: 7},
    "latch-at-start": {AFTER: 16},
    "latch-at-slot": {AFTER: 12},
    "slots-limited": {"a_worker_carries_out_no_more_than_it_has_slots_for": 7},
    "latch-in-children": {AFTER: 13},
    "latch-on-activities": {AFTER: 7},
    "latch-on-conflict": {TWICE: 18, AGAIN: 19},
    "in-flight-declared": {TWICE: 10},
    "driver-lease": {TWICE: 9},
    "reads-on-resume-only": {"a_first_attempt_reads_nothing_extra": 1},
}

# States, steps and levels of the standard instances that are searched in seconds.
COUNTS = {
    "orders": (829, 3_136, 37),
    "guarded": (23_472, 79_827, 55),
    "drivers": (651, 2_643, 17),
    "slots": (844, 2_213, 23),
    "serial": (3_644, 8_756, 31),
    "waits": (3_005, 9_853, 28),
    "children": (26_029, 89_768, 29),
    "hooks": (122_161, 343_829, 37),
    "raced": (367_239, 1_676_378, 44),
    "stable": (74_971, 333_929, 46),
}


def instance(name: str) -> Instance:
    return FLOWS.standard(name).instance(MODEL)


def test_every_promise_is_proved_for_any_program() -> None:
    """The whole argument, for any number of calls, ids and drivers, any causal order, and both versions of ids."""
    proof = prove(MODEL)
    assert [(o.property, o.action) for o in proof.obligations if o.verdict is not Verdict.PROVED] == []
    assert {o.property for o in proof.obligations} >= {p.name for p in MODEL.of_kind(INVARIANT, STEP)}
    assert set(proof.possible.values()) == {Verdict.PROVED}


@pytest.mark.parametrize("protection", [p.name for p in MODEL.protections])
def test_every_protection_is_needed(protection: str) -> None:
    """Without it the proof fails, and a shortest trace breaks exactly the promises that it is there for."""
    variant = without(MODEL, protection, ladder(FLOWS))
    assert variant.failing == FAILING[protection]
    assert variant.needed is Verdict.PROVED
    assert variant.story is not None
    assert variant.story.broken()
    assert len(variant.story.steps) == min(variant.failing.values())


def test_every_promise_can_fail() -> None:
    """A promise that no removal breaks might be true for reasons that have nothing to do with the rules."""
    broken = {name for failing in FAILING.values() for name in failing}
    assert broken == {p.name for p in promises(MODEL)}


@pytest.mark.parametrize("name", list(COUNTS))
def test_standard_instances_are_exhausted(name: str) -> None:
    """All states of each, exactly, and no promise broken in any."""
    exploration = explore(instance(name))
    assert exploration.complete
    assert (exploration.states, exploration.generated, exploration.levels) == COUNTS[name]
    assert not {p.name for p in promises(MODEL)} & set(exploration.sightings)


@pytest.mark.parametrize("name", ["orders", "guarded"])
def test_every_root_can_still_end(name: str) -> None:
    """With version 3 every root can complete; with version 2 it can, or is refused."""
    exploration = explore(instance(name))
    assert can_still(exploration, MODEL.property_named("every_root_can_still_end")).stuck == 0


def test_three_branches_of_all_sorts() -> None:
    """Six calls, two resumes, version 2: every order in which they can come."""
    exploration = explore(instance("branches"))
    assert exploration.complete
    assert (exploration.states, exploration.generated, exploration.levels) == (1_729_301, 5_792_845, 48)
    assert not {p.name for p in promises(MODEL)} & set(exploration.sightings)


def test_the_guard_is_needed_where_the_seed_says_so() -> None:
    """Version 2 without a guard runs a completed effect again: the story of a model call on a command's ordinal."""
    (design,) = (d for d in DESIGNS if d.name == "2")
    (scenario,) = (s for s in SCENARIOS if s.name == "kinds")
    cells = {cell.promise: cell for cell in compare([design], [scenario])}
    story = cells[AGAIN].story
    assert story is not None
    assert story.broken()
    machine = Machine(story.instance)
    assert sum(machine.show_step(step).startswith("crash") for step in story.steps) == 1
    assert 2 in [story.states[-1].read("executions", call) for call in range(3)]


def test_the_comparison_says_what_the_seed_says() -> None:
    """Who keeps what: version 2 without guard, with it and late indexing, with all of it; and version 3 without any."""
    chosen = [d for d in DESIGNS if d.name in ("2", "2G-c", "2G-a", "3")]
    scenarios = [s for s in SCENARIOS if s.name in ("kinds", "alike")]
    cells = {(c.design.name, c.promise): c for c in compare(chosen, scenarios)}
    failing = {
        name: {p for (d, p), c in cells.items() if d == name and c.verdict is Verdict.REFUTED} for name, _ in cells
    }
    exchanged, refused = "calls_exchange_what_is_recorded", "a_resume_is_refused"
    assert failing["2"] >= {AGAIN, TWICE, MEANING, exchanged}
    assert failing["2G-c"] == {AGAIN, TWICE, MEANING, exchanged, refused}
    assert failing["2G-a"] == {exchanged, refused}
    assert failing["3"] == set()
    assert all(c.verdict in (Verdict.PROVED, Verdict.REFUTED) for c in cells.values())


def test_compare_prints_tables_and_saves_stories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table for people, a document for machines, and a file for each story."""
    chosen = [d for d in DESIGNS if d.name in ("2G-c", "2G-a")]
    monkeypatch.setattr("onestart_proofs.commands.compare.DESIGNS", chosen)
    monkeypatch.setattr("onestart_proofs.commands.compare.PARTS", [d for d in PARTS if d.without == {"watermark"}])
    kinds = [s for s in SCENARIOS if s.name in ("kinds", "watermark")]
    monkeypatch.setattr("onestart_proofs.commands.compare.SCENARIOS", kinds)
    assert run(["compare", "--save", str(tmp_path / "stories")]) == 0
    out = capsys.readouterr().out
    assert "12 kinds" in out
    assert "16 watermark" in out
    saved = sorted((tmp_path / "stories").iterdir())
    assert saved
    assert all(load(path, [MODEL]).broken() for path in saved)
    assert run(["compare", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {c["design"] for c in document["cells"]} == {"2G-c", "2G-a", "2G-a, no watermark"}


def test_a_program_in_words() -> None:
    """Branches are chains, what closes the body comes after all, and a hook's calls are its own."""
    written = program(["run a", "llm b again"], ["hook", ">run a"], ["run c raced"], last=["marker"])
    assert written.sizes == {"Call": 6, "Id": 6, "Spec": 3, "Driver": 1}
    fixed = written.fixed
    assert fixed["part_of"] == (None, None, None, 2, None, None)
    assert fixed["unlike"] == (False, True, True, False, True, True)
    assert fixed["own"] == (0, 1, 2, 3, None, 5)
    assert fixed["ordinal"] == (False, False, False, False, True, False)
    before = {(a, b) for a in range(6) for b in range(6) if fixed["before"][a * 6 + b]}
    assert before == {(0, 1), (0, 5), (1, 5), (2, 5), (4, 5)}


def test_assumptions_are_of_the_program_alone() -> None:
    """What is taken for granted is about functions that never change, and an instance that breaks it is turned away."""
    with pytest.raises(RuleError, match="reads active, which is not fixed"):

        @assumption(source="here")
        def drivers_are_active(s: State) -> Bool:
            """All drivers are active."""
            return forall(Driver, lambda d: s.active[d])

    small = FLOWS.standard("drivers")
    circle = {**small.fixed, "before": (False, True, True, False)}
    broken = evolve(small, fixed=circle).instance(MODEL)
    with pytest.raises(RuleError, match="no choice of the instance's fixed functions"):
        explore(broken)


def test_a_proof_rests_on_invariants_alone() -> None:
    """A hint that names nothing that is proved would be passed over without a word."""
    hinted = ModuleType("hinted")

    @invariant(supporting=True, rests_on=["no_such_thing"])
    def nothing_is_known(s: State) -> Bool:
        """No driver is active."""
        return forall(Driver, lambda d: ~s.active[d])

    hinted.nothing_is_known = nothing_is_known  # type: ignore[attr-defined]
    with pytest.raises(RuleError, match="rests on 'no_such_thing', which is no invariant"):
        Model.of("hinted", State, hinted)


def test_an_open_kind_is_searched_in_every_way() -> None:
    """Left open, a fixed function takes every value that the assumptions allow: here all kinds of two calls."""
    small = program(["run a"], ["run b"], version=2)
    open_ = Standard("any", "", small.sizes, {"crash": 1}, fixed={k: v for k, v in small.fixed.items() if k != "kind"})
    chosen = open_.instance(MODEL)
    assert chosen.scope.endswith("any kind")
    exploration = explore(chosen)
    assert exploration.complete
    assert len(exploration.components) == 78
    assert not {p.name for p in promises(MODEL)} & set(exploration.sightings)


def test_given_functions_leave_few_renamings() -> None:
    """An order of the elements that an instance gives leaves one renaming of them, without going through all."""
    assert len(list(permutations_of(instance("drivers")))) == 2
    assert len(list(permutations_of(instance("branches")))) == 2


def test_an_action_writes_one_store() -> None:
    """No two stores can be written in one step, so a rule that did would prove something that cannot be built."""
    for rule in MODEL.actions:
        stores = {MODEL.schema[name].store for name in rule.written} - {""}
        assert len(stores) <= 1, rule.name


def test_what_the_system_reads_of_the_world_comes_from_the_executor() -> None:
    """What is launched outside is read by nothing but the question to the executor; and no guard reads it."""
    readers = {
        rule.name
        for rule in MODEL.actions
        for node in [g.condition for g in rule.guards] + [u.value for u in rule.updates]
        for part in walk(node)
        if isinstance(part, Read) and MODEL.schema[part.function].home == "external"
    }
    assert readers == {"ask"}


def test_every_rule_says_what_it_is_and_where_it_comes_from() -> None:
    """Auditors read statements and sources, not code."""
    for rule in MODEL.actions:
        assert rule.source, rule.name
    for taken in MODEL.assumptions:
        assert taken.source, taken.name
    for prop in MODEL.properties:
        assert prop.supporting or (prop.source and (prop.layer or prop.kind == CAN_STILL)), prop.name
    assert all(len(protection.statement) > 20 for protection in MODEL.protections)


def test_a_trace_can_be_followed_by_the_machine() -> None:
    """A witness of a replayed result, as a story that the reference machine takes."""
    exploration = explore(instance("orders"))
    assert trace(exploration, exploration.sightings["a_result_is_replayed"]).broken()
