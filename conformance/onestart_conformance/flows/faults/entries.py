"""Faults of what is recorded, when, and by whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onestart.flow import driver
from onestart.flow.driver import Driver
from onestart.flow.execution import Execution
from onestart.flow.identity import StepId
from onestart.flow.journal import Ended, Journal, read, told
from onestart.flow.root import Root
from onestart.flow.scope import Scope
from onestart.flow.steps import Effect, Hook, Step
from onestart.flow.tasks import FlowFuture, FlowTask
from onestart.health import Reading
from onestart.outside import Decision
from onestart.ports import View
from onestart.records import Step as Entry
from onestart_conformance.faults.fault import Fault, Patch
from onestart_conformance.flows.drawing import COUNTED, FAILS, SAVED, STALLS
from onestart_conformance.flows.faults.promises import (
    EFFECT_ONCE,
    IN_ORDER,
    NOTHING_EXTRA,
    ON_RECORD,
    ONE_DRIVER,
    OWN_RESULT,
)
from onestart_conformance.flows.judges import ADMISSION, DELIVERY, EFFECT, HELPERS, LEASE, READING
from onestart_conformance.flows.names import MODEL
from onestart_conformance.flows.outcomes import ORDER


def indexed_late(applies: Callable[[str], bool]) -> list[Patch]:
    """Steps of some kinds are indexed together with their result."""
    carry_out = Effect._carry_out

    async def late(self: Effect, future: FlowFuture) -> None:
        if not applies(self.asked.id.kind):
            return await carry_out(self, future)
        async with self.root.slot(self.asked.id.kind):
            self.root.latch.check()
            index = self.index()
            ended = await self.root.execution.execute(self.root, self)
            if ended is None:
                return None
            await self.root.append("done", self.id, index | ended.body)
        self.settle(future, ended)
        return None

    return [(Effect, "_carry_out", late)]


def never_indexed(applies: Callable[[str], bool]) -> list[Patch]:
    """Effects of some kinds leave their result, and nothing that shows their ordinal."""
    append = Root.append

    async def but_index(self: Root, what: str, step: str, body: dict[str, Any]) -> None:
        if what != "index" or not applies(body["kind"]):
            await append(self, what, step, body)

    return [(Root, "append", but_index)]


def _not_recorded(unrecorded: str) -> list[Patch]:
    append = Root.append

    async def but(self: Root, what: str, step: str, body: dict[str, Any]) -> None:
        if what != unrecorded:
            await append(self, what, step, body)

    return [(Root, "append", but)]


def _verdict_not_recorded() -> list[Patch]:
    async def conclude(self: Hook, task: FlowTask, future: FlowFuture) -> None:
        if not task.cancelled() and task.exception() is None:
            future.set_result(task.result())

    return [(Hook, "_conclude", conclude)]


def _diagnostic_ignored() -> list[Patch]:
    def settle(self: Step, future: FlowFuture, ended: Ended) -> None:
        future.set_result(ended.result)

    return [(Step, "settle", settle)]


def _declared_ignored() -> list[Patch]:
    async def earlier(self: Execution, root: Root, step: Effect, call: object) -> Ended | None:
        return None

    return [(Execution, "_earlier", earlier)]


def _unfenced() -> list[Patch]:
    async def append(self: Root, what: str, step: str, body: dict[str, Any]) -> None:
        entry = Entry(self.id, self.strand.task, what, step, self.strand.token, body)
        await self.outside.step(self.strand, lambda view: Decision(True, f"flow_{what}", entry, told(entry)))

    return [(Root, "append", append)]


def _starts_unfenced() -> list[Patch]:
    async def nothing(self: Root) -> None:
        return

    return [(Root, "check_lease", nothing)]


def _read_twice() -> list[Patch]:
    begin = Driver._begin

    async def twice(self: Driver) -> Any:
        begun = await begin(self)

        def again(view: View) -> Decision[None]:
            view.steps(self.root)
            return Decision(None)

        await self.outside.step(self.strand, again)
        return begun

    return [(Driver, "_begin", twice)]


def _indexed_again() -> list[Patch]:
    return [(Root, "indexed", lambda self, step: False)]


def _alone(self: Scope, step: StepId) -> dict[str, str]:
    self.open.pop(step, None)
    return {}


def _completed_again() -> list[Patch]:
    def forgetful(root: str, reading: Reading[Entry]) -> Journal | None:
        journal = read(root, reading)
        if journal is not None:
            journal.complete = None
        return journal

    return [(driver, "read", forgetful)]


def of_entries() -> list[Fault]:
    """What should be on record, who may write it, and what is read of it."""
    return [
        Fault(
            "index-at-admission",
            "a step is indexed when it is completed",
            ON_RECORD,
            ADMISSION,
            lambda: indexed_late(lambda kind: True),
            "index-at-admission",
        ),
        Fault(
            "effects-indexed",
            "helpers, MCP tools and plugins leave no index",
            ON_RECORD,
            ADMISSION,
            lambda: never_indexed(lambda kind: kind in HELPERS),
            "effects-indexed",
        ),
        Fault(
            "in-flight-declared",
            "what was under way is run again, whatever its worker declares",
            EFFECT_ONCE,
            EFFECT,
            _declared_ignored,
            "in-flight-declared",
        ),
        Fault(
            "driver-lease",
            "a driver that was taken over may write",
            ONE_DRIVER,
            LEASE,
            _unfenced,
            "driver-lease",
            (STALLS,),
        ),
        Fault(
            "starts-fenced",
            "a driver that was taken over may start what it was about to start",
            EFFECT_ONCE,
            EFFECT,
            _starts_unfenced,
            uses=(STALLS,),
        ),
        Fault("result-not-recorded", "results are not recorded", ON_RECORD, ADMISSION, lambda: _not_recorded("done")),
        Fault("verdict-not-recorded", "verdicts are not recorded", ON_RECORD, ADMISSION, _verdict_not_recorded),
        Fault(
            "diagnostic-ignored",
            "a failed step gives nothing instead of failing",
            OWN_RESULT,
            DELIVERY,
            _diagnostic_ignored,
            uses=(FAILS,),
        ),
        Fault("reads-on-resume-only", "a first attempt reads the journal twice", NOTHING_EXTRA, READING, _read_twice),
        Fault(
            "admitted-in-order",
            "an entry does not take along the ordinals below its own that are on no record yet",
            EFFECT_ONCE,
            MODEL,
            lambda: [(Scope, "declared", _alone)],
            "admitted-in-order",
            (COUNTED, SAVED),
        ),
        Fault(
            "watermark-of-admitted",
            "a verdict's watermark counts ordinals of others that are declared and on no record",
            EFFECT_ONCE,
            MODEL,
            lambda: [(Scope, "watermark", lambda self: self.counter)],
            "watermark-of-admitted",
            (COUNTED, "hook"),
        ),
        Fault("indexed-again", "a resume indexes again what is indexed", IN_ORDER, ORDER, _indexed_again),
        Fault("completed-again", "a flow that is completed is run again", ON_RECORD, ADMISSION, _completed_again),
    ]
