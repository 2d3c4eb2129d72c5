"""The command chain: from a submission under an idempotency key to at most one start.

Read `state`, then `evidence`, then `kernel` and `dispatcher`; `promises` is what it is all for, `lemmas` is how the
proof goes, `environment` is what can happen, with the assumptions.

Sources that rules name: *receipts* is the article "The Receipt Was Corrupted. Why Didn't the Task Start Again?", and
*observations* are the rows published with it (R0 to R8, A0 to A4, S0 to S2, O1, I0 to I7, J0 to J3); *design* is this
project's own.
"""

from onestart_model.chain import dispatcher, environment, kernel, lemmas, promises, sessions
from onestart_model.chain.protections import PROTECTIONS
from onestart_model.chain.state import Key, Process, State, Task
from onestart_model.rules import Model

CHAIN = Model.of("chain", State, kernel, dispatcher, sessions, environment, promises, lemmas, protections=PROTECTIONS)

__all__ = ["CHAIN", "Key", "Process", "State", "Task"]
