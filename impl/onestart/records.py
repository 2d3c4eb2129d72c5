"""What is recorded, one frozen class for each kind. A record is never changed; a newer one is put beside it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from attrs import field, fields, frozen
from attrs.validators import ge, in_, instance_of, optional

_text = instance_of(str)
_real = instance_of((int, float))


class WrongShapeError(Exception):
    """A record's fields are not those of its kind."""


@frozen
class Receipt:
    """pending: the command was accepted, with all that is needed to take it up again. completed: what it came to.

    fingerprint: of what must not change about the command. result: set when completed, see `onestart.answers.Result`.
    """

    kind: ClassVar = "receipt"
    key: str = field(validator=_text)
    task: str = field(validator=_text)
    state: Literal["pending", "completed"] = field(validator=in_(("pending", "completed")))
    fingerprint: str = field(validator=_text)
    command: dict[str, Any] | None = field(default=None, validator=optional(instance_of(dict)))
    result: dict[str, Any] | None = field(default=None, validator=optional(instance_of(dict)))


@frozen
class Attempt:
    """How far a key may have got toward a start.

    token: of the lease under which an intent was recorded. executor: who was to start it, see
    `onestart.ports.Executor`. reason: why it was closed. note: who settled it, and why.
    """

    kind: ClassVar = "attempt"
    key: str = field(validator=_text)
    task: str = field(validator=_text)
    state: Literal["offered", "intended", "closed", "ended"] = field(
        validator=in_(("offered", "intended", "closed", "ended"))
    )
    fingerprint: str = field(validator=_text)
    token: int = field(default=0, validator=[instance_of(int), ge(0)])
    reason: str = field(default="", validator=_text)
    note: str = field(default="", validator=_text)
    executor: str = field(default="", validator=_text)


@frozen
class Session:
    """A start that is known. cancelled: somebody asked the executor to stop it. executor: who started it."""

    kind: ClassVar = "session"
    key: str = field(validator=_text)
    task: str = field(validator=_text)
    state: Literal["live", "cancelled"] = field(validator=in_(("live", "cancelled")))
    fingerprint: str = field(validator=_text)
    token: int = field(default=0, validator=[instance_of(int), ge(0)])
    reason: str = field(default="", validator=_text)
    executor: str = field(default="", validator=_text)


def is_over(now: float, ends: float, lasts: float) -> bool:
    """Whether a lease has run out by now.

    A lease that has more than twice its length to go was written before the clock went back: nobody meant it to last
    that long. To run out too early costs no promise, since a holder passes the fence before each of its writes.
    """
    return now >= ends or (lasts > 0 and ends - now > 2 * lasts)


@frozen
class Lease:
    """Who occupies a task. token: the fencing token, one for each acquisition. holder: a key, or None.

    ends: seconds of the ledger's clock; from then on the lease is free, whether or not its holder still works. lasts:
    how long it was to last when it was written, 0 if that is not recorded.
    """

    kind: ClassVar = "lease"
    task: str = field(validator=_text)
    token: int = field(validator=[instance_of(int), ge(1)])
    holder: str | None = field(validator=optional(_text))
    ends: float = field(validator=_real)
    by: str = field(default="", validator=_text)
    lasts: float = field(default=0.0, validator=[_real, ge(0)])

    @property
    def key(self) -> str:
        return self.holder or ""

    def held_at(self, now: float) -> str | None:
        """The key that holds the lease at this time."""
        return None if is_over(now, self.ends, self.lasts) else self.holder


@frozen
class Note:
    """An intent was recorded for the key: kept beside the leases, so that a lost attempt record is found out.

    executor: who was to start it.
    """

    kind: ClassVar = "note"
    key: str = field(validator=_text)
    task: str = field(validator=_text)
    token: int = field(validator=[instance_of(int), ge(1)])
    executor: str = field(default="", validator=_text)


@frozen
class Approval:
    """Somebody approved what is asked for under a key. digest: of who asks for what."""

    kind: ClassVar = "approval"
    key: str = field(validator=_text)
    task: str = field(validator=_text)
    digest: str = field(validator=_text)
    by: str = field(validator=_text)


@frozen
class Step:
    """An entry in the journal of a flow. key: the flow's root. what: the kind of entry. step: the id that it is about.

    token: of the driver's lease. body: see `onestart.flow.journal`.
    """

    kind: ClassVar = "step"
    key: str = field(validator=_text)
    task: str = field(validator=_text)
    what: str = field(validator=_text)
    step: str = field(default="", validator=_text)
    token: int = field(default=0, validator=[instance_of(int), ge(0)])
    body: dict[str, Any] = field(factory=dict, validator=instance_of(dict))


Record: TypeAlias = Receipt | Attempt | Session | Lease | Note | Approval | Step

KINDS: dict[str, type[Record]] = {c.kind: c for c in (Receipt, Attempt, Session, Lease, Note, Approval, Step)}
STORES: dict[str, tuple[str, ...]] = {
    "receipts": ("receipt",),
    "attempts": ("attempt",),
    "sessions": ("session",),
    "leases": ("lease", "note"),
    "approvals": ("approval",),
    "flows": ("step",),
}

_NAMES = {kind: {f.name: None for f in fields(shape)} for kind, shape in KINDS.items()}  # in order
_STORE_OF = {kind: store for store, kinds in STORES.items() for kind in kinds}


def store_of(kind: str) -> str:
    """The store that keeps records of this kind."""
    return _STORE_OF[kind]


def to_body(record: Record) -> dict[str, Any]:
    """The record as a JSON object."""
    return {name: getattr(record, name) for name in _NAMES[record.kind]}


def from_body(kind: str, body: object) -> Record:
    """The record of a JSON object. Raises WrongShapeError for unknown, missing or ill-typed fields."""
    shape = KINDS[kind]
    if not isinstance(body, dict):
        raise WrongShapeError(f"a {kind} is an object")
    if not body.keys() <= _NAMES[kind].keys():
        raise WrongShapeError(f"a {kind} has no {min(body.keys() - _NAMES[kind].keys())!r}")
    try:
        return shape(**body)
    except (TypeError, ValueError) as error:
        raise WrongShapeError(str(error).split(" (Attribute", 1)[0]) from None
