"""Identity probes: what of a command reaches executor and governance. Rows J0 to J3.

The library hands its payload on untouched, so what the experiment's commands carry beside actor and task is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from attrs import evolve

from onestart import Command
from onestart_conformance.doubles import REVISION
from onestart_conformance.scenarios.bench import ROUND_TWO, Bench
from onestart_conformance.scenarios.row import Fields, Scenario

CHAT = "CHAT-SYNTHETIC-001"
LOGICAL = "logical-synthetic-001"
TRIGGER = "trigger_chat_id"
SUBJECT = ("role", "project_id", "agent_id", "session_id")


def dispatch(payload: Mapping[str, Any]) -> Command:
    """A command whose key is its logical execution id."""
    return Command(
        key=LOGICAL,
        task="TASK-20260908-901",
        function="dispatch",
        payload=dict(payload),
        actor="ADMIN",
        revision=REVISION,
    )


def construct(actor: str, role: str, chat: str) -> Command:
    """A command as the product builds it: who asks, the chat as evidence, and the chat as its trigger."""
    evidence = [{"kind": "chat", "ref": chat}]
    subject = {"actor": actor, "role": role}
    return dispatch({"subject": subject, "evidence": evidence, "trigger": {TRIGGER: chat}})


def play_constructed(bench: Bench) -> Fields:
    """What the executor is given of a constructed command."""
    bench.submit(construct("ADMIN", "ADMIN", CHAT))
    payload = bench.process.executor.orders[0].payload
    return {
        "actor": payload["subject"]["actor"],
        "actor_role": payload["subject"]["role"],
        "chat_evidence_ref_present": any(each["kind"] == "chat" and each["ref"] for each in payload["evidence"]),
        "nested_trigger_chat_id": nested_trigger(payload),
    }


def play_trigger(bench: Bench, payload: Mapping[str, Any]) -> Fields:
    """What the executor is given of a command with a trigger, somewhere; it looks for it at the top."""
    bench.submit(dispatch(payload))
    order = bench.process.executor.orders[0]
    return {
        "nested": nested_trigger(order.payload) is not None,
        "trigger_chat_id": order.payload.get(TRIGGER),
        "logical_execution_id": order.key,
        "sdk_send_calls": bench.layers().start,
    }


def nested_trigger(payload: Mapping[str, Any]) -> str | None:
    """The trigger below the top level, if there is one."""
    below = [value[TRIGGER] for value in payload.values() if isinstance(value, dict) and TRIGGER in value]
    return below[0] if below else None


def play_policy(bench: Bench) -> Fields:
    """What governance is asked about, when the same is asked for by one actor and then by another."""
    bench.governance.needs_approval = True
    command = Command(
        key="policy-1",
        task="TASK-20260908-902",
        function="tool",
        payload={
            "role": "DEV",
            "project_id": "synthetic-project",
            "agent_id": "DEV-01",
            "session_id": "session-policy",
        },
        actor="DEV-01",
        revision=REVISION,
    )
    bench.submit(command)
    bench.submit(evolve(command, key="policy-2", actor="DEV-02"))
    one, other = bench.governance.asked
    return {
        "subject": {"actor": one.actor, "task_id": one.task, **{name: one.payload[name] for name in SUBJECT}},
        "actor_change_digest_changed": one.fingerprint != other.fingerprint,
        "executed_tool_calls": bench.layers().start,
    }


SCENARIOS = (
    Scenario(
        "J0",
        "Actor, role and the chat that is evidence reach the executor.",
        play_constructed,
        ROUND_TWO,
        gist=("actor", "chat_evidence_ref_present"),
        short="constructed",
    ),
    Scenario(
        "J1",
        "The trigger is at the top of the payload.",
        partial(play_trigger, payload={TRIGGER: CHAT}),
        ROUND_TWO,
        gist=("nested",),
        short="trigger at top",
    ),
    Scenario(
        "J2",
        "The trigger is nested, where the executor does not look for it.",
        partial(play_trigger, payload={"trigger": {TRIGGER: CHAT}}),
        ROUND_TWO,
        gist=("nested", "trigger_chat_id"),
        short="trigger nested",
    ),
    Scenario(
        "J3",
        "Governance is asked about the same for one actor and for another.",
        play_policy,
        ROUND_TWO,
        starts=0,
        gist=("actor_change_digest_changed",),
        short="actor change",
    ),
)
