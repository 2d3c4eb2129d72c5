"""All seeded faults, by name."""

from __future__ import annotations

import difflib

from onestart_conformance.faults.fault import Fault
from onestart_conformance.faults.records import of_records
from onestart_conformance.faults.removed import removed
from onestart_conformance.faults.steps import of_steps
from onestart_model.expression import RuleError

FAULTS = {fault.name: fault for fault in (*removed(), *of_steps(), *of_records())}


def fault_named(name: str) -> Fault:
    """Raises RuleError, with a name that is close, if there is no such fault."""
    if name in FAULTS:
        return FAULTS[name]
    near = difflib.get_close_matches(name, FAULTS, 1)
    hint = f"; did you mean {near[0]}?" if near else "; `onestart faults --list` shows all"
    raise RuleError(f"no fault is called {name!r}{hint}")
