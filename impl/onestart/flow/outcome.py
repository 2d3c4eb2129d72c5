"""What an attempt at a flow has come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

EXIT_CODES = {"completed": 0, "failed": 1, "refused": 1, "lost": 1, "parked": 3, "held": 4}


@frozen
class Question:
    """An open question. wait: its id, to be answered under."""

    wait: str
    question: str
    to: str


@frozen
class Outcome:
    """state: what the attempt has come to.

    completed: the flow is over; value: what it returned. parked: it waits for answers to `waits`. held: of the steps in
    `held` nobody knows how far they got; an operator has to say. failed: the body raised; reason and message say what.
    refused: the flow does not fit its journal. lost: another driver has taken over.

    findings: damage among the journals of which nobody can tell whose it was; it may hide an entry of this flow.
    """

    root: str
    state: str
    value: Any = None
    reason: str = ""
    message: str = ""
    waits: tuple[Question, ...] = ()
    held: Mapping[str, str] = field(factory=dict)
    findings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As the command line gives it."""
        return EXIT_CODES[self.state]

    def to_json(self) -> dict[str, Any]:
        return {
            "root": self.root,
            "state": self.state,
            "value": self.value,
            "reason": self.reason,
            "message": self.message,
            "waits": [{"wait": q.wait, "question": q.question, "to": q.to} for q in self.waits],
            "held": dict(self.held),
            "findings": list(self.findings),
        }
