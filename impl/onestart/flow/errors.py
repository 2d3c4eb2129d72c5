"""What can go wrong with a flow. The message of each says what to do or where to look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from onestart.command import BadCommandError


class FlowError(Exception):
    """Anything that a flow can be refused for. reason: the same text as in events and on the command line."""

    reason = "flow_error"


class RefusedError(FlowError):
    """A resumed flow does not fit its journal. Nothing of it is admitted any more in this attempt."""


class OrderMismatchError(RefusedError):
    """A call stands where the journal has another one, or where it had none."""

    reason = "serial_replay_order_mismatch"


class AdmissionConflictError(RefusedError):
    """A call has the id of a journaled step, and asks for something else."""

    reason = "run_admission_conflict"


class LeaseLostError(RefusedError):
    """Another driver has taken the root over."""

    reason = "driver_lease_lost"


class StoreLostError(RefusedError):
    """The ledger has failed; what it holds is not known to this attempt any more."""

    reason = "store_unavailable"


class EndedError(RefusedError):
    """The flow has come to its end, or is parked; nothing more is admitted in this attempt."""

    reason = "flow_ended"


class StepFailedError(FlowError):
    """A step's effect has failed; recorded, so it fails in the same way when it is replayed."""

    reason = "step_failed"

    def __init__(self, step: str, diagnostic: str) -> None:
        super().__init__(f"{step}: {diagnostic}")
        self.step = step
        self.diagnostic = diagnostic


class DriverBusyError(FlowError):
    """Another driver holds the root's lease."""

    reason = "lease_conflict"


class JournalError(FlowError):
    """The journal cannot be used: it is damaged, of a newer version, or of another flow. Nothing was written."""

    reason = "journal_unusable"


class NewerJournalError(JournalError):
    """The journal was begun by a newer version of this library."""

    reason = "journal_from_newer_version"


class UnknownKindError(FlowError):
    """No worker is registered for what the flow asks for."""

    reason = "unknown_kind"


class WaitError(FlowError):
    """There is no such question to answer, or it is answered already."""

    reason = "wait_closed"


class BadFlowError(FlowError, ValueError):
    """An argument that cannot be used; the message says what to do."""

    reason = "bad_flow"


@contextmanager
def bad_flow() -> Iterator[None]:
    """What a command cannot be given, a flow cannot either: raises BadFlowError in place of BadCommandError."""
    try:
        yield
    except BadCommandError as error:
        raise BadFlowError(str(error)) from None
