"""The library's terms in the words of the publication, and the layer that each published field is of."""

from __future__ import annotations

from collections.abc import Mapping

from onestart import Answer, Outcome, Reason, evidence
from onestart.ports import View

DISPATCH_KINDS: Mapping[Reason, str] = {
    Reason.CREATED: "dispatched",
    Reason.ALREADY_DISPATCHED: "already_dispatched",
}
ATTEMPT_STATUSES: Mapping[tuple[str, bool], str] = {  # state of the session; whether its attempt is over
    ("live", False): "running",
    ("cancelled", False): "running",
    ("live", True): "succeeded",
    ("cancelled", True): "session_failed",
}
LAYERS: Mapping[str, str] = {
    "read_preserves_original_bytes": "bytes",
    "read_preserved_bytes": "bytes",
    "loaded_state": "read",
    "missing": "read",
    "digest_equal": "read",
    "actor_fingerprint_equal": "read",
    "actor_change_digest_changed": "read",
    "decision_actor": "read",
    "subject": "read",
    "second_action_taken": "callback",
    "total_synthetic_callback_calls": "callback",
    "dispatch_kinds": "callback",
    "attempt_count": "attempt",
    "attempt_statuses": "attempt",
    "status": "attempt",
    "calls": "start",
    "executed_tool_calls": "start",
    "sdk_send_calls": "start",
    "total_sdk_send_calls": "start",
    "actor": "start",
    "actor_role": "start",
    "chat_evidence_ref_present": "start",
    "nested_trigger_chat_id": "start",
    "nested": "start",
    "trigger_chat_id": "start",
    "logical_execution_id": "start",
    "total_synthetic_effects": "effect",
}


def dispatch_kind(answer: Answer) -> str:
    """What the dispatcher made of a call of it."""
    return DISPATCH_KINDS.get(answer.reason, str(answer.reason))


def attempt_status(view: View, key: str) -> str | None:
    """How the attempt of a key stands, None if there is none."""
    state = evidence.attempt_state(view, key)
    if state == "absent":
        return None
    session = view.session(key).newest
    return ATTEMPT_STATUSES[session.state, state in evidence.OVER] if session else state


def error_code(answer: Answer) -> str | None:
    """The error that an answer stands for, None if the command was started."""
    return None if answer.outcome is Outcome.STARTED else answer.reason.upper()
