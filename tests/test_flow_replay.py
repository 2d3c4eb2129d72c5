"""Traces of the flows model on the library: what the model does without a protection, the library does without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from onestart.command_line import run
from onestart_conformance.flows.follow import follow_flow
from onestart_conformance.flows.monitor import Monitor
from onestart_conformance.flows.run import rules_of
from onestart_conformance.flows.scripted import OfTrace, Scene
from onestart_model.catalog import entry
from onestart_model.counterexample import Counterexample, CounterexampleError, load
from onestart_model.execution import Machine
from onestart_model.expression import RuleError
from onestart_model.flows import FLOWS
from onestart_model.flows.programs import Program, program
from onestart_model.instance import Instance
from onestart_proofs.comparison import DESIGNS, SCENARIOS, compare
from onestart_proofs.search import explore
from onestart_proofs.traces import trace
from onestart_proofs.variants import promises

CHILD = program(["dispatch a"], ["llm a"], ["run a"], version=2)
THREE = program(["llm a"], ["run a"], ["helper a"], version=2)

# Where the shortest trace without each protection is looked for: a standard instance, or a program and its crashes.
WHERE: dict[str, str | tuple[Program, int]] = {
    "stable-ids": "orders",
    "ordinal-kind": "serial",
    "waits-hold": "waits",
    "dispatches-hold": "children",
    "marker-checked": "children",
    "spec-bound": "serial",
    "question-bound": "waits",
    "hook-input-bound": "hooks",
    "watermark": "hooks",
    "watermark-of-admitted": "hooks",
    "hook-calls-pass": "hooks",
    "index-at-admission": "serial",
    "effects-indexed": "waits",
    "admitted-in-order": "serial",
    "latch-at-declaration": "serial",
    "latch-at-start": (THREE, 1),
    "latch-at-slot": "waits",
    "slots-limited": "slots",
    "latch-in-children": (CHILD, 1),
    "latch-on-activities": "serial",
    "latch-on-conflict": "serial",
    "in-flight-declared": "orders",
    "driver-lease": "drivers",
    "reads-on-resume-only": "orders",
}

# Traces that the library does not take to their end, even without the protection: the last step that it takes, and why.
NOT_FOLLOWED = {
    "driver-lease": (8, "a step is a command of the chain, which starts a key once whoever drives the flow"),
}

# Shortest traces of the standard instances that go another way than the library does, and why.
OTHERWISE = {
    "latch-at-start": (
        "serial",
        "a conflict is refused as soon as its call is made, and not when it would be admitted",
    ),
    "latch-in-children": ("children", "a flow does not complete while a child is under way that nobody waits for"),
}


def shortest(protection: str, where: str | tuple[Program, int]) -> Counterexample:
    """The shortest trace to a promise that fails without the protection."""
    if isinstance(where, str):
        standard = entry("flows").standard(where)
        instance = standard.instance(FLOWS, [protection])
    else:
        chosen, crashes = where
        budgets = {"crash": crashes}
        instance = Instance.of(FLOWS, sizes=chosen.sizes, fixed=chosen.fixed, budgets=budgets, without=[protection])
    found = explore(instance, properties=[promise.name for promise in promises(FLOWS)])
    first = min(found.sightings.values(), key=lambda sighting: sighting.steps())
    return trace(found, first)


def test_every_protection_is_looked_at() -> None:
    """Each is followed, or it is said why it cannot be."""
    names = {protection.name for protection in FLOWS.protections}
    assert set(WHERE) == names
    assert set(NOT_FOLLOWED) | set(OTHERWISE) <= names


@pytest.mark.parametrize("protection", [name for name in WHERE if name not in NOT_FOLLOWED])
def test_a_trace_of_the_model_replays_on_the_library(protection: str, tmp_path: Path) -> None:
    """To the promise that it breaks; as shipped, the library leaves it before that."""
    story, path = shortest(protection, WHERE[protection]), tmp_path / "trace.itf.json"
    story.save(path)
    retold = follow_flow(load(path, [FLOWS]))
    assert retold.objection is not None, retold.instead
    assert (retold.objection.promise, retold.at) == (story.property, len(story.steps))
    assert retold.noticed is not None
    assert protection in retold.noticed.protections
    shipped = follow_flow(load(path, [FLOWS]), shipped=True)
    assert not shipped.fails
    assert shipped.instead
    assert len(shipped.told) < len(story.steps) or protection == "reads-on-resume-only"
    if "executed" in story.property or "twice" in story.property:
        assert max(retold.starts.values()) == 2
        assert max(shipped.starts.values(), default=0) <= 1


@pytest.mark.parametrize("protection", list(NOT_FOLLOWED))
def test_what_cannot_be_followed_is_said(protection: str) -> None:
    """As far as it goes, all rules object to it; and the step that the library does not take is named."""
    reached, _ = NOT_FOLLOWED[protection]
    story = shortest(protection, WHERE[protection])
    retold = follow_flow(story)
    assert retold.noticed is not None
    assert retold.noticed.protections == (protection,)
    assert len(retold.told) == reached
    assert Machine(story.instance).show_step(story.steps[reached]) in retold.instead


@pytest.mark.parametrize("protection", list(OTHERWISE))
def test_a_trace_may_go_another_way_than_the_library(protection: str) -> None:
    """Then the library does not take its next step, with the fault or without."""
    where, _ = OTHERWISE[protection]
    retold = follow_flow(shortest(protection, where))
    assert not retold.fails
    assert retold.instead.startswith("the library does not take declare(driver1, call4, id2) here")


def test_a_design_without_a_guard_is_followed() -> None:
    """A story of the comparison of designs lacks many protections at once, and so does the library."""
    (design,) = (design for design in DESIGNS if design.name == "2")
    (scenario,) = (scenario for scenario in SCENARIOS if scenario.name == "kinds")
    cells = {cell.promise: cell for cell in compare([design], [scenario])}
    story = cells["a_completed_effect_is_never_executed_again"].story
    assert story is not None
    retold = follow_flow(story)
    assert retold.objection is not None, retold.instead
    assert retold.objection.promise == story.property
    assert max(retold.starts.values()) == 2
    assert not follow_flow(story, shipped=True).fails


def test_a_replay_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 while the promise breaks, 0 as shipped, with the step at which the library refuses."""
    path = tmp_path / "trace.itf.json"
    shortest("ordinal-kind", "serial").save(path)
    assert run(["replay", str(path)]) == 1
    out = capsys.readouterr().out
    assert "the library with the fault ordinal-kind" in out
    assert "breaks a_record_keeps_its_meaning" in out
    assert run(["replay", str(path), "--shipped"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "not followed beyond step 5" in out
    assert "here, but refuse(driver1, call1, id1)" in out
    assert run(["replay", str(path), "--fault", "no-such"]) == 2
    assert "no fault of flows is called" in capsys.readouterr().err


def test_a_trace_that_begins_anywhere_is_not_followed() -> None:
    """No library can be brought into the first state of a counterexample to induction."""
    story = shortest("reads-on-resume-only", "orders")
    inductive = Counterexample.of(
        story.instance, story.states, story.steps, broken=story.property, source="a test", inductive=True
    )
    with pytest.raises(CounterexampleError, match="begins anywhere"):
        follow_flow(inductive)
    with pytest.raises(RuleError, match="no fault of flows"):
        follow_flow(story, fault="no-such")


def test_what_was_about_to_start_when_the_flow_was_refused_starts_in_the_next_resume() -> None:
    """It is on its way to its worker, through the chain, when another call is refused. The worker says that it never
    was started, so nobody has to ask an operator.
    """
    story = shortest("latch-at-slot", "waits")
    start = story.states[0]
    program = OfTrace.read(story.instance, start)
    scene = Scene(program, Monitor(program, rules_of(tuple(program.sizes.items()))))
    helper, question, other = (f"{c}" for c in (2, 1, 0))
    scene.begin(0)
    for call in (helper, question):
        scene.release(0, f"make {call}")
        scene.release(0, f"await {call}")
        scene.open(0, len(scene.leads[0].waiting) - 1)
    scene.die(0)
    scene.begin(0)
    scene.release(0, f"make {helper}")
    scene.release(0, f"await {helper}")
    for _ in range(2):
        scene.open(0, 0)
    scene.release(0, f"make {other}")
    while scene.open(0, 0):
        pass
    assert not scene.effects
    assert scene.leads[0].driver is not None
    assert scene.leads[0].driver.result().state == "refused"
    scene.die(0)
    scene.begin(0)
    scene.release(0, f"make {helper}")
    scene.release(0, f"await {helper}")
    while not scene.effects and scene.open(0, 0):
        pass
    assert [effect.position for effect in scene.effects] == [helper]
    assert scene.monitor.objection is None
    scene.close()
