"""What a submission is answered with: an outcome, the reason for it, and how healthy the reading was."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from attrs import frozen

from onestart.health import Finding


class Reason(StrEnum):
    """Why. Those with a source come from the article "The Receipt Was Corrupted" and its observations."""

    CREATED = "task_dispatch_attempt_created"  # receipts, section 3: I7
    ALREADY_DISPATCHED = "task_already_dispatched"  # receipts, section 3: I1 to I4
    REPLAY = "idempotent_replay"  # observations: R0, R1, I0
    CONFLICT = "idempotency_key_conflict"  # observations: A4
    STALE_REVISION = "stale_task_revision"  # observations: R4, I5
    STATE_ADVANCED = "pending_command_observed_state_advance"  # observations: R7
    RECEIPTS_UNAVAILABLE = "task_command_receipt_store_unavailable"  # observations: R5
    STORE_UNAVAILABLE = "store_unavailable"
    GOVERNANCE_UNAVAILABLE = "governance_unavailable"
    APPROVAL_REQUIRED = "approval_required"
    APPROVAL_STALE = "approval_stale"  # observations: A1
    APPROVALS_CORRUPT = "approval_store_corrupt"  # observations: O1
    LEASE_CONFLICT = "lease_conflict"  # receipts, section 4
    LEASE_LOST = "lease_lost"
    LEASE_DAMAGED = "lease_damaged"
    TASK_BUSY = "task_busy"
    IN_DOUBT = "in_doubt"
    START_FAILED = "start_outcome_unknown"
    CANCELLED = "task_cancelled"
    NEVER_STARTED = "never_started"
    SETTLED = "settled_by_operator"
    RESULT_DAMAGED = "result_damaged"
    COMMAND_DAMAGED = "command_damaged"
    NOT_EXECUTABLE = "command_not_executable"
    UNKNOWN_KEY = "unknown_key"


def reason_named(text: str, otherwise: Reason) -> Reason:
    """The reason that a record gives; the other one if it gives none, or one that this release does not know."""
    try:
        return Reason(text)
    except ValueError:
        return otherwise


class Outcome(StrEnum):
    """started: the executor has started it, once. closed: it will never start. held: neither, as things stand.

    turned_away: nothing was done with the submission, which says nothing about the key.
    """

    STARTED = "started"
    CLOSED = "closed"
    HELD = "held"
    TURNED_AWAY = "turned_away"


@frozen
class Result:
    """What a completed receipt records, and every replay returns."""

    outcome: Outcome
    reason: Reason

    def to_json(self) -> dict[str, Any]:
        return {"outcome": str(self.outcome), "reason": str(self.reason)}


@frozen
class Answer:
    """reason: why this answer. result: the recorded one, which every replay returns, if there is any.

    findings: the damage that reading met. detail: more about what went wrong outside, for a person.
    """

    key: str
    outcome: Outcome
    reason: Reason
    result: Result | None = None
    findings: tuple[Finding, ...] = ()
    detail: str = ""

    @property
    def healthy(self) -> bool:
        """Whether everything that was read for this answer was legible."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "outcome": str(self.outcome),
            "reason": str(self.reason),
            "result": self.result.to_json() if self.result else None,
            "findings": [str(finding) for finding in self.findings],
            "detail": self.detail,
        }
