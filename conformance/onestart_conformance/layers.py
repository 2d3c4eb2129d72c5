"""The six layers, compared where the implementation is at rest: bytes, read, callbacks, attempts, starts, effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onestart import evidence
from onestart.evidence import ReceiptState
from onestart.ports import View
from onestart_conformance.judgement import ATTEMPT, BYTES, EFFECT, READ, START, Objection
from onestart_model.execution import State

RECEIPTS = {
    "ABSENT": (ReceiptState.ABSENT,),
    "PENDING": (ReceiptState.PENDING,),
    "PENDING_DAMAGED": (ReceiptState.PENDING_DAMAGED,),
    "DISPATCHED": (ReceiptState.COMPLETED,),
    "CLOSED": (ReceiptState.COMPLETED,),
    "COMPLETION_DAMAGED": (ReceiptState.COMPLETION_DAMAGED,),
}


def compare_records(
    state: State, view: View, keys: Mapping[str, int], tasks: Mapping[str, int], now: float
) -> Iterator[Objection]:
    """What a fresh reader sees, against the model's durable state."""
    for key, index in keys.items():
        receipt = evidence.receipt_state(view.receipt(key))
        said = str(state.read("receipt", index))
        if receipt not in RECEIPTS[said]:
            yield Objection(READ, f"the receipt of {key} reads {receipt.name}, and the model says {said}")
        result = evidence.recorded_result(view, key)
        if said in ("DISPATCHED", "CLOSED") and result is not None:
            outcome = "started" if said == "DISPATCHED" else "closed"
            if result.outcome != outcome:
                yield Objection(READ, f"the receipt of {key} records {result.outcome}, and the model says {said}")
        attempt = evidence.attempt_state(view, key).upper()
        if attempt != state.read("attempt", index):
            model = state.read("attempt", index)
            yield Objection(ATTEMPT, f"the attempt of {key} reads {attempt}, and the model says {model}")
        session = _session(view, key)
        if session != state.read("session", index):
            model = state.read("session", index)
            yield Objection(READ, f"the session of {key} reads {session}, and the model says {model}")
        if view.note(key).exists != state.read("noted", index):
            yield Objection(READ, f"a note of {key} is {view.note(key).exists}, and the model says otherwise")
    for task, index in tasks.items():
        yield from _compare_lease(state, view, keys, task, index, now)


def _session(view: View, key: str) -> str:
    reading = view.session(key)
    if not reading.exists:
        return "ABSENT"
    cancelled = reading.newest is not None and reading.newest.state == "cancelled"
    return "CANCELLED" if cancelled else "LIVE"


def _compare_lease(
    state: State, view: View, keys: Mapping[str, int], task: str, index: int, now: float
) -> Iterator[Objection]:
    damaged = evidence.lease_damaged(view, task)
    if damaged != state.read("lease_damaged", index):
        yield Objection(READ, f"the lease of {task} is {'not ' * (not damaged)}damaged, and the model says otherwise")
    holder = evidence.lease_holder(view, task, now)
    model = state.read("holder", index)
    if (None if holder is None else keys[holder]) != model:
        yield Objection(READ, f"the lease of {task} names {holder}, and the model says {model}")


def compare_counts(
    state: State, keys: Mapping[str, int], starts: Mapping[str, int], effects: Mapping[str, int]
) -> Iterator[Objection]:
    """What the executor has done, against the model."""
    for key, index in keys.items():
        model = state.read("starts", index)
        if min(starts.get(key, 0), 2) != model:
            yield Objection(START, f"{key} was started {starts.get(key, 0)} times, and the model says {model}")
        if effects.get(key, 0) > starts.get(key, 0):
            yield Objection(EFFECT, f"{key} had {effects[key]} effects in {starts.get(key, 0)} starts")


def compare_bytes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[Objection]:
    """Files only grow, and what was in them stays."""
    for path, data in before.items():
        now = after.get(path)
        if now is None:
            yield Objection(BYTES, f"{path} is gone")
        elif not now.startswith(data):
            yield Objection(BYTES, f"what was recorded in {path} changed")
