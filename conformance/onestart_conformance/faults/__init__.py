"""Seeded faults: what the suite must find, each by the oracle that is named with it."""

from onestart_conformance.faults.catalog import FAULTS, fault_named
from onestart_conformance.faults.fault import Fault, seeded

__all__ = ["FAULTS", "Fault", "fault_named", "seeded"]
