"""What is wrong with a ledger, in plain words, and what would happen next, for all that needs somebody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from onestart import evidence
from onestart.evidence import ReceiptState
from onestart.health import Health, Reading
from onestart.ports import View
from onestart.records import STORES


@frozen
class Complaint:
    """about: "key", "task" or "keys". what: what is the matter. then: what the next submission comes to.

    todo: who can mend it. resolve: whether `onestart ledger resolve` is what mends it.
    """

    about: str
    name: str
    what: str
    then: str
    todo: str = ""
    resolve: bool = False


def complaints(view: View, tasks: Iterator[str], now: float) -> Iterator[Complaint]:
    """All that stands in somebody's way, what concerns everybody first. now: seconds, by which leases end."""
    now = now if view.now is None else view.now
    if evidence.every_key_in_doubt(view):
        yield Complaint(
            "keys",
            "without a record",
            "receipts, attempts and leases have lost records, and nobody can tell whose",
            "the executor is asked about a key that seems new; if it was never started, it is closed",
            "save what can be read; from then on a key without a record is new",
        )
    for task in tasks:
        yield from _of_task(view, task)
    for key in view.all_keys():
        of = view.task_of(key)
        if of is not None:
            yield from _of_key(view, key, of, now)


def _of_task(view: View, task: str) -> Iterator[Complaint]:
    if evidence.lease_damaged(view, task):
        yield Complaint(
            "task",
            task,
            f"its lease is {_said(view.lease(task).health)} ({view.lease(task).where}): who holds it cannot be told",
            "no command of the task starts, whatever its key",
            "make sure that nothing of the task runs or is about to start, then put a new lease record beside it",
            resolve=True,
        )


def _of_key(view: View, key: str, task: str, now: float) -> Iterator[Complaint]:
    state = evidence.receipt_state(view.receipt(key))
    held = evidence.lease_holder(view, task, now) == key
    if state is ReceiptState.ABSENT and not view.attempt(key).exists:
        pass  # an approval alone, or a lease
    elif evidence.in_doubt(view, key, task) and not held:
        yield Complaint(
            "key",
            key,
            f"whether it was started is not on record: {_why_in_doubt(view, key)}",
            "it is not started again; its executor is asked, and if that cannot tell, it is held and so is its task",
            "submit it again where its executor can be asked; else find out, and settle it",
            resolve=True,
        )
    elif state is ReceiptState.PENDING and not held:
        what, then = (
            "it was accepted, and nothing has come of it yet",
            "the next submission, or a recovery, goes on with it",
        )
        yield Complaint("key", key, what, then)
    elif state is ReceiptState.PENDING_DAMAGED:
        then = "submitted again, it goes on; a recovery cannot, since it does not know what was asked for"
        yield Complaint("key", key, f"its receipt is {_at(view.receipt(key))}", then)
    elif state is ReceiptState.COMPLETION_DAMAGED:
        then = "it never starts again; whether it was started is answered from its other records, and reported"
        yield Complaint("key", key, f"what it came to is {_at(view.receipt(key))}", then)
    yield from _damage(view, key)


def _damage(view: View, key: str) -> Iterator[Complaint]:
    """Other damage to its records, of which the next submission only tells."""
    if evidence.attempt_state(view, key) == "damaged" and view.session(key).exists:
        yield Complaint(
            "key",
            key,
            f"it was started, and its attempt record is {_at(view.attempt(key))}",
            "it never starts again; other keys of its task wait until its executor says that it is over",
        )
    for store, reading in (("session", view.session(key)), ("approval", view.approval(key)), ("note", view.note(key))):
        if reading.health.degraded:
            then = (
                "it needs another approval" if store == "approval" else "its answers report it, and do not depend on it"
            )
            yield Complaint("key", key, f"its {store} record is {_at(reading)}", then)


def _why_in_doubt(view: View, key: str) -> str:
    state = evidence.attempt_state(view, key)
    if state == "damaged":
        return f"its attempt record is {_at(view.attempt(key))}"
    if state == "intended":
        return "a process meant to start it, and has not said that it did"
    return "its attempt record is gone, or behind what others have seen"


def _at(reading: Reading[Any]) -> str:
    where, comma, missing = reading.where.rpartition(", missing")
    return f"missing ({where})" if comma and not missing else f"{_said(reading.health)} ({reading.where})"


def _said(health: Health) -> str:
    return health.replace("_", " ")


def unavailable(store: str) -> str:
    """What it means that a store cannot be read."""
    kinds = " and ".join(f"{kind}s" for kind in STORES.get(store, ()))
    return f"the {kinds or 'records'} cannot be read at all: every submission is held until they can"
