"""Flows: the calls of one root's program, in whatever order their results arrive, over crashes and resumes.

Read `state`, then `program`, `identity` and `guard`, then `admission`, `effects` and `hooks`; `promises` is what it is
all for, `lemmas` is how the proof goes, `environment` is what can happen, with the assumptions.

Sources that rules name: *serial ordinals* is the change that introduced the guard of version 2, with its gaps and its
follow-up; *design* is this project's own.
"""

from onestart_model.flows import admission, effects, environment, hooks, lemmas, program, promises
from onestart_model.flows.protections import PROTECTIONS
from onestart_model.flows.state import Call, Driver, Id, Spec, State
from onestart_model.rules import Model

FLOWS = Model.of(
    "flows", State, program, admission, effects, hooks, environment, promises, lemmas, protections=PROTECTIONS
)

__all__ = ["FLOWS", "Call", "Driver", "Id", "Spec", "State"]
