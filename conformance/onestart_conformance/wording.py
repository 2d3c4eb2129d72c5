"""Moves in plain words, for stories."""

from __future__ import annotations

from collections.abc import Mapping

from onestart_conformance.gates import LEDGER, LOOK_UP, RULE, RUNNING, SLEEP, START, STOP
from onestart_conformance.moves import Move

CALLS: Mapping[str, str] = {
    "submit": "submits {key}",
    "cancel": "cancels {key}",
    "reconcile": "reconciles {key}",
    "recover": "recovers what was left over",
    "settle": "settles {key}, for an operator",
    "repair_lease": "repairs the lease of {key}'s task, for an operator",
    "approve": "files an approval of {key}",
}
GATES: Mapping[str, str] = {
    LEDGER: "takes its turn at the ledger",
    RULE: "hears from governance: {answer}",
    START: "asks the executor to start it",
    LOOK_UP: "asks the executor whether it ever started",
    RUNNING: "asks the executor whether it runs",
    STOP: "asks the executor to stop it",
    SLEEP: "wakes up to renew its lease",
}
FATES: Mapping[str, str] = {"lost": ", and the response is lost", "failed": ", and the request is lost"}


def in_words(move: Move) -> str:
    """What happens, as one would tell it."""
    match move.name, move.arguments:
        case "call", (int(node), str(name), str(key), int(foreign)):
            words = CALLS[name].format(key=key)
            return f"process {node + 1} {words}{', with another command' * foreign}"
        case "open", (int(node), str(call), str(kind), int(), str(answer)):
            return f"process {node + 1} ({call}) {GATES[kind].format(answer=answer)}{FATES.get(answer, '')}"
        case "break", (int(node), str(call), *_, str(fate), int(), int()):
            how = "dies" if fate == "dies" else "meets an I/O error"
            return f"process {node + 1} ({call}) {how} in the middle of its turn at the ledger"
        case "die", (int(node),):
            return f"process {node + 1} dies"
        case "pass_time", _:
            return "time passes, until the next lease runs out"
        case "finish", (key,):
            return f"what was started for {key} comes to its end"
        case "damage", (kind, key, how):
            return f"the newest {kind} record of {key} is damaged ({how})"
        case "lose_attempt", (key,):
            return f"the store of attempts is rolled back to before {key}"
        case "power_failure", _:
            return "the power fails: all processes die, what was not synced may be lost"
    return str(move)
