"""Faults of step ids with causality: something of the order that is not told, or told by the wrong thing."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Generator
from typing import Any
from weakref import WeakKeyDictionary

from onestart.flow import tasks
from onestart.flow.identity import frontier_hash
from onestart.flow.line import Line
from onestart.flow.scope import Scope
from onestart.flow.tasks import FlowTask
from onestart_conformance.faults.fault import Fault, Patch
from onestart_conformance.flows.drawing import CAUSAL, FAILS
from onestart_conformance.flows.faults.promises import ANY_ORDER
from onestart_conformance.flows.judges import IDENTITY
from onestart_conformance.flows.outcomes import ORDER

STABLE = "stable-ids"
LATER = ("later", "tasks")
KEPT = ("kept",)


def _counted() -> list[Patch]:
    return [(Scope, "_causal", lambda self, line: False)]


def _in_order_of_arrival() -> list[Patch]:
    arrivals: WeakKeyDictionary[Any, dict[str, int]] = WeakKeyDictionary()
    stepped = Line.stepped

    def noted(self: Line, step: str, after: frozenset[str], declared_by: Line | None) -> None:
        arrived = arrivals.setdefault(self.tally, {})
        arrived.setdefault(step, len(arrived))
        stepped(self, step, after, declared_by)

    def after(self: Line) -> str:
        self.settle()
        arrived = arrivals.get(self.tally, {})
        names = sorted(self.frontier, key=lambda name: (arrived.get(name, -1), name))
        return hashlib.sha256("\n".join(names).encode()).hexdigest()

    return [(Line, "stepped", noted), (Line, "after", property(after))]


def _done_task_forgotten() -> list[Patch]:
    awaited = FlowTask.__await__

    def forgetful(self: FlowTask) -> Generator[Any, None, Any]:
        if self.done():
            return (yield from asyncio.Task.__await__(self))
        return (yield from awaited(self))

    return [(FlowTask, "__await__", forgetful)]


def _only_when_it_suspends() -> list[Patch]:
    def unseen(self: Any) -> Generator[Any, None, Any]:
        return (yield from asyncio.Future.__await__(self))

    return [(tasks._Gathered, "__await__", unseen)]


def _one_count() -> list[Patch]:
    def call(self: Line) -> int:
        ordinal = sum(self.tally.calls.values())
        after = self.after
        self.tally.calls[after] = self.tally.calls.get(after, 0) + 1
        return ordinal

    return [(Line, "call", call)]


def _hooks_leak() -> list[Patch]:
    return [(Line, "inside", lambda self, step: self)]


def _after_the_body() -> list[Patch]:
    def failed(self: Line, group: object, tasks: object) -> None:
        self._move({f"failure-after-{frontier_hash(self.frontier)}"}, self.frontier)

    return [(Line, "group_failed", failed)]


def of_identities() -> list[Fault]:
    """Each makes an id depend on the order in which results arrive."""
    stable = Fault(
        "stable-ids", "every step is counted in call order", ANY_ORDER, ORDER, _counted, STABLE, (CAUSAL, "gather")
    )
    body = Fault(
        "failure-after-the-body",
        "what follows a failed group comes after whatever its body had done",
        ANY_ORDER,
        ORDER,
        _after_the_body,
        STABLE,
        (CAUSAL, "within", FAILS, "llm"),
    )
    others = (
        (
            "unsorted-predecessors",
            "predecessors are hashed in the order of their results",
            _in_order_of_arrival,
            ("gather", "llm"),
        ),
        ("done-task-forgotten", "awaiting a task that is done already joins nothing", _done_task_forgotten, LATER),
        ("gathering-done-forgotten", "awaiting a gathering that is done joins nothing", _only_when_it_suspends, KEPT),
        ("one-count", "calls are counted together, whatever they come after", _one_count, ()),
        ("hooks-leak", "the steps of a hook count outside of it", _hooks_leak, ("hook",)),
    )
    return [
        stable,
        body,
        *(
            Fault(name, statement, ANY_ORDER, IDENTITY, patches, STABLE, (CAUSAL, *uses))
            for name, statement, patches, uses in others
        ),
    ]
