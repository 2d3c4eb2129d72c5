"""The suite's teeth: every seeded fault draws the objection that is named with it, soon and in a short story."""

from __future__ import annotations

import pytest

from onestart_conformance.campaign import EXAMPLES, LONG, campaign
from onestart_conformance.faults import FAULTS, fault_named
from onestart_conformance.judgement import ORACLES
from onestart_conformance.rules import Rules
from onestart_conformance.runs import replay
from onestart_conformance.standard import chain
from onestart_model.chain import CHAIN
from onestart_model.expression import RuleError
from test_chain import FAILING

PROTECTIONS = [protection.name for protection in CHAIN.protections]


def test_there_is_a_fault_for_each_protection_and_more() -> None:
    """At least thirty, each with a promise of the model and an oracle; a removed protection bears its own name."""
    assert list(FAULTS)[: len(PROTECTIONS)] == PROTECTIONS
    assert len(FAULTS) >= 40
    promises = {prop.name for prop in CHAIN.properties if not prop.supporting}
    for fault in FAULTS.values():
        assert fault.promise in promises, fault.name
        assert fault.oracle in ORACLES, fault.name
        assert not fault.protection or fault.protection in PROTECTIONS, fault.name


@pytest.mark.parametrize("name", PROTECTIONS)
def test_the_promise_at_stake_is_the_models(name: str) -> None:
    """The promise that is named with a fault is one that the model breaks without the same protection."""
    assert FAULTS[name].promise in FAILING[name]


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_fault_is_caught_by_the_oracle_that_must_catch_it(name: str) -> None:
    """Within two thousand random runs, by exactly that oracle, in a story that replays and ends without the fault."""
    fault = FAULTS[name]
    found = campaign(Rules(chain()), fault=fault, number=0)
    assert found.run is not None, f"not within {EXAMPLES} runs; others: {found.others}"
    assert fault.caught_by(found.run.objection)
    assert len(found.run.steps) <= LONG
    rules = Rules(found.instance)
    with fault.seeded():
        assert replay(rules, found.run.moves).objection == found.run.objection
    shipped = replay(rules, found.run.moves).objection
    assert shipped is None or fault.careless, shipped


def test_a_fault_is_gone_afterwards() -> None:
    """A seeded fault is patched in from outside, and taken out again."""
    from onestart import evidence

    before = evidence.quiet
    with FAULTS["task-serial"].seeded():
        assert evidence.quiet is not before
    assert evidence.quiet is before


def test_names_of_faults_are_checked() -> None:
    """A typing mistake is told, with a name that is close."""
    with pytest.raises(RuleError, match="did you mean fencing-token"):
        fault_named("fencing-tokens")
