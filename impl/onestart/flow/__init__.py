"""Durable flows: plain `async def` functions whose steps are recorded, and never carried out twice.

A flow may fan out with plain asyncio. Resumed after a crash it runs from the top: what is on record is replayed, in
whatever order its branches get there, and a flow that does not fit its record is refused before it does anything.
"""

from onestart.flow.definition import AGAIN, NEVER, Call, Flow, Known, Worker, flow
from onestart.flow.errors import (
    AdmissionConflictError,
    BadFlowError,
    DriverBusyError,
    FlowError,
    JournalError,
    NewerJournalError,
    OrderMismatchError,
    RefusedError,
    StepFailedError,
    UnknownKindError,
    WaitError,
)
from onestart.flow.flows import Flows
from onestart.flow.handle import Handle
from onestart.flow.outcome import Outcome, Question
from onestart.flow.steps import Step

__all__ = [
    "AGAIN",
    "NEVER",
    "AdmissionConflictError",
    "BadFlowError",
    "Call",
    "DriverBusyError",
    "Flow",
    "FlowError",
    "Flows",
    "Handle",
    "JournalError",
    "Known",
    "NewerJournalError",
    "OrderMismatchError",
    "Outcome",
    "Question",
    "RefusedError",
    "Step",
    "StepFailedError",
    "UnknownKindError",
    "WaitError",
    "Worker",
    "flow",
]
