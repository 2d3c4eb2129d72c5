"""Events: one for each durable or external step, with what is needed to check the step afterwards.

The action of an event is the name of a step of the command chain (`accept`, `claim`, `start`, ...). `ruled` and
`stopped` are answers from outside that later steps rest on; `dropped` says that a strand ended without finishing.
Those that begin with `flow_` tell of entries in a flow's journal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

LAYERS: Mapping[str, str] = {
    "ruled": "read",
    "accept": "bytes",
    "replay": "read",
    "conflict": "read",
    "enter": "callback",
    "refuse": "attempt",
    "cancel": "attempt",
    "report": "read",
    "report_closed": "read",
    "report_dispatched": "read",
    "offer": "attempt",
    "claim": "attempt",
    "intend": "attempt",
    "ask": "attempt",
    "note": "attempt",
    "start": "start",
    "look_up": "start",
    "record": "attempt",
    "give_up": "attempt",
    "renew": "attempt",
    "withdraw": "attempt",
    "abandon": "attempt",
    "dropped": "attempt",
    "cancel_session": "attempt",
    "stopped": "effect",
    "reconcile": "attempt",
    "release": "attempt",
    "settle": "attempt",
    "repair_lease": "attempt",
    "flow_lease": "attempt",
    "flow_release": "attempt",
    "flow_begin": "callback",
    "flow_index": "attempt",
    "flow_again": "attempt",
    "flow_done": "effect",
    "flow_wait": "attempt",
    "flow_answer": "bytes",
    "flow_verdict": "attempt",
    "flow_complete": "bytes",
    "flow_ended": "read",
}


@frozen
class Event:
    """process: one running process, never the same twice. strand: one submission in it, 0 for steps outside of any.

    fingerprint: of the command that the step is about, empty if it is not known.
    order: how many records the ledger had at that step. at: seconds of the chain's clock. details: what the step rests
    on, by name: JSON values only.
    """

    action: str
    process: str
    strand: int
    key: str
    task: str
    order: int
    at: float
    token: int = 0
    fingerprint: str = ""
    details: Mapping[str, Any] = field(factory=dict)

    @property
    def layer(self) -> str:
        """Which of the six layers the step belongs to."""
        return LAYERS[self.action]

    def to_json(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "layer": self.layer,
            "process": self.process,
            "strand": self.strand,
            "key": self.key,
            "task": self.task,
            "order": self.order,
            "at": self.at,
            "token": self.token,
            "fingerprint": self.fingerprint,
            "details": dict(self.details),
        }


Observer: TypeAlias = Callable[[Event], None]
"""Is told of each step after it was taken, and must not raise: a submission ends in what it raises."""


def nobody(event: Event) -> None:
    """An observer that looks away."""
