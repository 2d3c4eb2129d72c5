"""Seeded faults of flows: what the judges must find, each by the one that is named with it."""

from onestart_conformance.flows.faults.catalog import FLOW_FAULTS

__all__ = ["FLOW_FAULTS"]
