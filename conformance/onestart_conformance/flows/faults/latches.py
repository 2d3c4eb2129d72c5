"""Faults of the latch: a check that is not made, for all steps or for some."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import nullcontext
from typing import Any

from attrs import evolve

from onestart.flow.errors import AdmissionConflictError, RefusedError
from onestart.flow.latch import Latch
from onestart.flow.line import Line
from onestart.flow.root import Root
from onestart.flow.scope import Scope
from onestart.flow.steps import Dispatch, Effect, Step
from onestart.flow.tasks import FlowFuture
from onestart_conformance.faults.fault import Fault, Patch
from onestart_conformance.flows.drawing import CHANGED, COUNTED, NESTED, SAVED, SLOTS
from onestart_conformance.flows.faults.promises import NOTHING_AFTER, SLOTS_KEPT
from onestart_conformance.flows.judges import ADMISSION
from onestart_conformance.flows.names import MODEL

Applies = Callable[[str], bool]

ALL: Applies = lambda kind: True  # noqa: E731
ACTIVITIES: Applies = lambda kind: kind in ("memory", "on")  # noqa: E731


class OpenLatch(Latch):
    """A latch that nobody checks. It takes refusals all the same."""

    def check(self) -> None:
        return


def _open(root: Root) -> Root:
    """The same root, of which nobody checks the latch."""
    return evolve(root, latch=OpenLatch(root.latch.refusal))


def _at_declaration(applies: Applies) -> Patch:
    declare = Scope.declare

    def unchecked(self: Scope, kind: str, spec: Mapping[str, Any]) -> tuple[Any, Line | None]:
        root = self.root
        if applies(kind):
            self.root = _open(root)
        try:
            return declare(self, kind, spec)
        finally:
            self.root = root

    return Scope, "declare", unchecked


def _at_start(applies: Applies) -> Patch:
    """What is awaited after a refusal is begun, and its beginning does not look either."""
    awaited = Step.__await__

    def unchecked(self: Step) -> Generator[Any, None, Any]:
        if applies(self.asked.id.kind) and self.root.latch.refusal is not None:
            self.root = _open(self.root)
        return awaited(self)

    return Step, "__await__", unchecked


def _at_slot(applies: Applies) -> Patch:
    carry_out = Effect._carry_out

    async def unchecked(self: Effect, future: FlowFuture) -> None:
        if not applies(self.asked.id.kind):
            return await carry_out(self, future)
        async with self.root.slot(self.asked.id.kind):
            if not self.root.indexed(self.id):
                await self.root.append("index", self.id, self.index())
            ended = await self.root.execution.execute(_open(self.root), self)
            if ended is None:
                return None
            body = {"failed": ended.failed} if ended.failed is not None else {"result": ended.result}
            await self.root.append("done", self.id, body)
        self.settle(future, ended)
        return None

    return Effect, "_carry_out", unchecked


def _in_children() -> list[Patch]:
    start = Dispatch.start

    def apart(self: Dispatch, future: FlowFuture) -> None:
        root, self.root = self.root, evolve(self.root, latch=Latch())
        try:
            start(self, future)
        finally:
            self.root = root

    return [(Dispatch, "start", apart)]


def _nowhere() -> list[Patch]:
    return [_at_declaration(ALL), _at_start(ALL), _at_slot(ALL)]


def _unwoken() -> list[Patch]:
    def refuse(self: Latch, refusal: RefusedError) -> RefusedError:
        self.refusal = self.refusal or refusal
        return self.refusal

    return [(Latch, "refuse", refuse)]


UNWOKEN = Fault(
    "refusal-ends-attempt",
    "a driver waits for a refused flow's body to end: nobody's promise, but it hides what other faults let through",
    NOTHING_AFTER,
    ADMISSION,
    _unwoken,
)


def of_latches() -> list[Fault]:
    """One for each place where the latch is checked, and one for the latch itself."""
    latches: list[tuple[str, str, Callable[[], list[Patch]], tuple[str, ...]]] = [
        (
            "latch-at-declaration",
            "a refused flow may declare steps",
            lambda: [_at_declaration(ALL)],
            (NESTED,),
        ),
        (
            "latch-at-start",
            "a step that was declared before a refusal may be awaited after it",
            lambda: [_at_start(ALL)],
            (SAVED, "llm", "run"),
        ),
        (
            "latch-at-slot",
            "a step that waits for a slot is carried out after a refusal",
            lambda: [_at_slot(ALL)],
            (SLOTS, "llm"),
        ),
        (
            "latch-in-children",
            "a child flow goes on after its parent was refused",
            _in_children,
            ("dispatch",),
        ),
        (
            "latch-on-activities",
            "memory and subscriptions go on after a refusal",
            lambda: [_at_declaration(ACTIVITIES), _at_start(ACTIVITIES), _at_slot(ACTIVITIES)],
            ("memory", "on", NESTED),
        ),
    ]
    faults = [
        Fault(name, statement, NOTHING_AFTER, ADMISSION, patches, name, (CHANGED, *uses))
        for name, statement, patches, uses in latches
    ]
    kept = Fault(
        "latch-nowhere",
        "a refusal is raised once, and nobody looks at the latch",
        NOTHING_AFTER,
        ADMISSION,
        _nowhere,
        "latch-at-declaration",
        (CHANGED, NESTED),
    )
    conflict = Fault(
        "latch-on-conflict",
        "a call that is refused as a conflict can be caught, and the flow goes on",
        NOTHING_AFTER,
        ADMISSION,
        lambda: [(Latch, "refuse", _unless_conflict())],
        "latch-at-declaration",
        (COUNTED, CHANGED, NESTED),
    )
    slots = Fault(
        "slots-limited",
        "a worker is given more to carry out than it has slots for",
        SLOTS_KEPT,
        MODEL,
        lambda: [(Root, "slot", lambda self, kind: nullcontext())],
        "slots-limited",
        (SLOTS, "llm"),
    )
    return [*faults, kept, conflict, slots]


def _unless_conflict() -> Callable[[Latch, RefusedError], RefusedError]:
    refuse = Latch.refuse

    def lenient(self: Latch, refusal: RefusedError) -> RefusedError:
        return refusal if isinstance(refusal, AdmissionConflictError) else refuse(self, refusal)

    return lenient
