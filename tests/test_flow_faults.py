"""The teeth of the judges of flows: every seeded fault draws the objection that is named with it, soon and shortly."""

from __future__ import annotations

import pytest

from onestart_conformance.flows import judges, outcomes
from onestart_conformance.flows.campaign import EXAMPLES, flow_campaign
from onestart_conformance.flows.faults import FLOW_FAULTS
from onestart_conformance.flows.names import MODEL
from onestart_conformance.flows.run import examined
from onestart_conformance.flows.stories import flow_story
from onestart_conformance.judgement import CRASH
from onestart_model.flows import FLOWS

PROTECTIONS = tuple(protection.name for protection in FLOWS.protections)
ORACLES = (
    *(judges.EFFECT, judges.DELIVERY, judges.ADMISSION, judges.IDENTITY, judges.READING, judges.LEASE),
    *(outcomes.ORDER, outcomes.VALUE, outcomes.FIT, CRASH, MODEL),
)
LONGEST = 30  # lines of a story, of both attempts


def test_there_is_a_fault_for_each_protection_and_more() -> None:
    """Each bears the protection's name; all say which judge must notice."""
    assert set(PROTECTIONS) <= set(FLOW_FAULTS)
    assert len(FLOW_FAULTS) >= 30
    assert {fault.oracle for fault in FLOW_FAULTS.values()} <= set(ORACLES)


@pytest.mark.parametrize("name", list(FLOW_FAULTS))
def test_a_fault_is_caught_by_the_judge_that_must_catch_it(name: str) -> None:
    """Within two thousand random runs, by exactly that judge, in a short story that ends without the fault."""
    fault = FLOW_FAULTS[name]
    found = flow_campaign(fault=fault, number=0)
    assert found.world is not None, f"not within {EXAMPLES} runs; others: {found.others}"
    assert fault.caught_by(found.world.objection)
    assert flow_story(found.world, fault, "a test").lines <= LONGEST
    followed = fault.oracle == MODEL
    with fault.seeded():
        assert examined(found.world.plan, followed=followed).objection == found.world.objection
    assert examined(found.world.plan, followed=followed).objection is None
