"""What a flow is: a function with a name. What its steps are carried out by: workers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from typing import Any, Literal, overload

from attrs import field, frozen
from attrs.validators import in_, instance_of, is_callable, optional

from onestart.command import check_name
from onestart.flow.errors import BadFlowError, bad_flow
from onestart.flow.identity import KINDS

InFlight = Literal["again", "ask", "hold"]
Body = Callable[..., Awaitable[Any]]


@frozen
class Call:
    """What a worker gets. key: the idempotency key of this execution, the same after a crash. spec: JSON."""

    key: str
    root: str
    step: str
    kind: str
    spec: Mapping[str, Any]


@frozen
class Known:
    """What a worker has found out about an earlier execution: its result, or the diagnostic of its failure."""

    result: Any = None
    failed: str | None = None


class Again(Enum):
    """What an operator may say of a step that was under way: that it may be carried out again."""

    AGAIN = auto()


AGAIN = Again.AGAIN
NEVER = object()
"""What a worker's look_up returns for a key that was never started."""


@frozen
class Worker:
    """What carries out the steps of a kind.

    function: awaited with the `Call`; returns JSON. Raising fails the step, for good. in_flight: what happens to a step
    that was under way when its driver died: `again` runs it again, `ask` asks look_up, `hold` leaves it to an operator.
    look_up: awaited with the `Call`; returns `Known`, `NEVER`, or None if it cannot tell. slots: how many steps of this
    kind are under way at a time, None for any number.

    Raises BadFlowError for `ask` without look_up, and for less than one slot.
    """

    function: Callable[[Call], Awaitable[Any]] = field(validator=is_callable())
    in_flight: InFlight = field(default="hold", kw_only=True, validator=in_(("again", "ask", "hold")))
    look_up: Callable[[Call], Awaitable[object]] | None = field(default=None, kw_only=True)
    slots: int | None = field(default=None, kw_only=True, validator=optional(instance_of(int)))

    def __attrs_post_init__(self) -> None:
        if self.in_flight == "ask" and self.look_up is None:
            raise BadFlowError('a worker with in_flight="ask" needs look_up')
        if self.slots is not None and self.slots < 1:
            raise BadFlowError(f"a worker needs at least one slot, not {self.slots}; None stands for any number")


@frozen
class Flow:
    """A flow's body under a name. workers: by kind of step; those given to `Flows` come first."""

    name: str
    body: Body = field(repr=False)
    workers: Mapping[str, Worker] = field(factory=dict, repr=False)

    def __attrs_post_init__(self) -> None:
        check_workers(self.workers)


def check_workers(workers: Mapping[str, Worker]) -> None:
    """Raises BadFlowError for a kind of step that there is not, or one that needs no worker."""
    for kind, worker in workers.items():
        if kind not in KINDS or kind in ("human", "dispatch", "hook"):
            known = ", ".join(k for k in KINDS if k not in ("human", "dispatch", "hook"))
            raise BadFlowError(f"there are no workers of kind {kind!r}; known: {known}")
        if not isinstance(worker, Worker):
            raise BadFlowError(f"the worker of {kind} must be a Worker, not {type(worker).__name__}")


@overload
def flow(body: Body, /) -> Flow: ...
@overload
def flow(*, name: str | None = None, workers: Mapping[str, Worker] | None = None) -> Callable[[Body], Flow]: ...
def flow(
    body: Body | None = None, /, *, name: str | None = None, workers: Mapping[str, Worker] | None = None
) -> Flow | Callable[[Body], Flow]:
    """Make a flow of an `async def` that takes a handle first. name: on record, the function's own if not given."""

    def declare(function: Body) -> Flow:
        called = str(name or getattr(function, "__name__", ""))
        with bad_flow():
            check_name("flow's name", called)
        return Flow(called, function, dict(workers or {}))

    return declare if body is None else declare(body)
