"""onestart_model: rules written once, to be executed, enumerated and proved.

Read `yardstick` first: a whole model on one page. `chain` is the model that the project is about.
"""

from onestart_model.counterexample import Counterexample, CounterexampleError
from onestart_model.execution import Machine, State, Step
from onestart_model.expression import RuleError
from onestart_model.instance import Instance
from onestart_model.recording import forget, require
from onestart_model.rules import (
    Action,
    Model,
    Property,
    Protection,
    action,
    assumption,
    can_still,
    environment,
    invariant,
    reachable,
    step_invariant,
)
from onestart_model.state import Fn, durable, external, fixed, ghost, state, volatile
from onestart_model.terms import (
    NONE,
    Bool,
    Enumeration,
    Maybe,
    Number,
    Sort,
    Stamp,
    exists,
    forall,
    implies,
    ite,
    limit,
    member,
    protected,
)

__all__ = [
    "NONE",
    "Action",
    "Bool",
    "Counterexample",
    "CounterexampleError",
    "Enumeration",
    "Fn",
    "Instance",
    "Machine",
    "Maybe",
    "Model",
    "Number",
    "Property",
    "Protection",
    "RuleError",
    "Sort",
    "Stamp",
    "State",
    "Step",
    "action",
    "assumption",
    "can_still",
    "durable",
    "environment",
    "exists",
    "external",
    "fixed",
    "forall",
    "forget",
    "ghost",
    "implies",
    "invariant",
    "ite",
    "limit",
    "member",
    "protected",
    "reachable",
    "require",
    "state",
    "step_invariant",
    "volatile",
]
