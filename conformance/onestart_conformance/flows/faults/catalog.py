"""All seeded faults of flows, by name."""

from __future__ import annotations

from onestart_conformance.flows.faults.entries import of_entries
from onestart_conformance.flows.faults.guards import TWINS, of_guards
from onestart_conformance.flows.faults.identities import of_identities
from onestart_conformance.flows.faults.latches import UNWOKEN, of_latches

ASIDE = {fault.name: fault for fault in (TWINS, UNWOKEN)}
"""Second lines of defense: what rows take out beside a protection, so that it shows."""

FLOW_FAULTS = {fault.name: fault for fault in (*of_identities(), *of_guards(), *of_entries(), *of_latches())}
