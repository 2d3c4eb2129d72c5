"""All seeded faults of flows, by name."""

from __future__ import annotations

from onestart_conformance.flows.faults.entries import of_entries
from onestart_conformance.flows.faults.guards import of_guards
from onestart_conformance.flows.faults.identities import of_identities
from onestart_conformance.flows.faults.latches import of_latches

FLOW_FAULTS = {fault.name: fault for fault in (*of_identities(), *of_guards(), *of_entries(), *of_latches())}
