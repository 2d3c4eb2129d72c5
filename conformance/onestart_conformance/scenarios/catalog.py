"""Every published row, in published order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onestart_conformance.scenarios import approvals, dispatch, identity, receipts, sessions
from onestart_conformance.scenarios.row import Row, Scenario, run

SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        *approvals.SCENARIOS,
        *receipts.SCENARIOS,
        *sessions.SCENARIOS,
        *approvals.CORRUPT,
        *dispatch.SCENARIOS,
        *identity.SCENARIOS,
    )
}


def run_all(names: Iterable[str] = SCENARIOS) -> list[Row]:
    """Play these scenarios, all of them by default."""
    return [run(SCENARIOS[name]) for name in names]
