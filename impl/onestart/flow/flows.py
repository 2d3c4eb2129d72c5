"""Flows over a ledger: run or resume one by its id, answer its questions, ask how it stands."""

from __future__ import annotations

import contextvars
from collections.abc import Mapping
from typing import Any

from onestart import evidence
from onestart.chain import Chain, Permissive
from onestart.clocks import SystemClock
from onestart.command import canonical, check_name
from onestart.events import Observer, nobody
from onestart.flow.definition import Again, Flow, Known, Worker, check_workers
from onestart.flow.driver import Driver, lease_of
from onestart.flow.errors import BadFlowError, WaitError, bad_flow
from onestart.flow.execution import StepExecutor
from onestart.flow.identity import LATEST, SERIAL
from onestart.flow.journal import Ended, Journal, read, told
from onestart.flow.outcome import Outcome
from onestart.flow.programs import RUN
from onestart.flow.values import check_value
from onestart.outside import Decision, Outside, Strand
from onestart.ports import Clock, Ledger, View
from onestart.records import Lease
from onestart.records import Step as Entry

MOST_ID = 400


class Flows:
    """Durable flows: what has been done is recorded, and never done again.

    ledger: where journals and commands live; several processes may share it. workers: what carries out the steps, by
    kind; `run` has one, which runs programs. clock, observer, process, lease_seconds: as for `Chain`. identity: the
    version of step ids that new roots begin with, 2 or 3; a root keeps the one that it has begun with.

    Raises BadFlowError for arguments that cannot be used.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        workers: Mapping[str, Worker] | None = None,
        clock: Clock | None = None,
        observer: Observer = nobody,
        process: str | None = None,
        lease_seconds: float = 30.0,
        identity: int = LATEST,
    ) -> None:
        if identity not in (SERIAL, LATEST):
            raise BadFlowError(f"new roots begin with step ids of version {SERIAL} or {LATEST}, not {identity!r}")
        self._workers = dict(workers or {})
        check_workers(self._workers)
        self._identity = identity
        self._executor = StepExecutor(contextvars.copy_context())
        clock = clock or SystemClock()
        self._chain = Chain(
            ledger=ledger,
            executor=self._executor,
            clock=clock,
            observer=observer,
            process=process,
            lease_seconds=lease_seconds,
        )
        self._outside = Outside(
            ledger, self._executor, Permissive(), clock, observer, self._chain.process, float(lease_seconds)
        )

    async def run(self, flow: Flow, root: str, *arguments: Any) -> Outcome:
        """Begin a flow under this id, or resume it; one that is completed gives its value again.

        arguments: JSON, passed on to the body; the same ones on every resume. Raises DriverBusyError if another driver
        is at it, JournalError if the journal cannot be used, LedgerUnavailableError; nothing was done then.
        """
        if not isinstance(flow, Flow):
            raise BadFlowError(f"a flow is declared with @flow; {type(flow).__name__} is none")
        check_root(root)
        check_value(list(arguments), "what the flow is given")
        workers = {"run": RUN} | dict(flow.workers) | self._workers
        return await Driver(
            self._outside, self._chain, self._executor, flow, root, arguments, workers, self._identity
        ).drive()

    async def answer(self, root: str, wait: str, value: Any, *, by: str = "anybody") -> None:
        """Answer a question that a flow is parked on. The flow goes on when it is resumed.

        Raises WaitError if there is no such question, or it has another answer already; BadFlowError for no JSON.
        """
        check_root(root)
        check_value(value, "the answer")
        with bad_flow():
            check_name("answerer", by)

        def decide(view: View) -> Decision[str]:
            journal = read(root, view.steps(root))
            found = journal.waits.get(wait) if journal is not None else None
            if found is None:
                return Decision(f"{root!r} has no question {wait!r}; see onestart flow status")
            if found.answered:
                same = canonical(found.value, "the answer") == canonical(value, "the answer")
                return Decision("" if same else f"{wait!r} of {root!r} is answered already")
            entry = Entry(root, lease_of(root), "answer", wait, 0, {"value": value, "by": by})
            return Decision("", "flow_answer", entry, told(entry))

        problem = await self._outside.step(Strand(0, root, lease_of(root)), decide)
        if problem:
            raise WaitError(problem)

    async def resolve(self, root: str, step: str, resolution: Again | Known, *, by: str, why: str) -> None:
        """An operator says what became of a step that was under way when its driver died.

        resolution: `AGAIN` to carry it out again, or `Known` with what it came to. by, why: kept beside it. Raises
        WaitError if the step is not under way, or a driver may still be carrying it out; BadFlowError for no JSON.
        """
        check_root(root)
        with bad_flow():
            check_name("operator", by)
            check_name("reason", why)
        if isinstance(resolution, Known):
            check_value([resolution.result, resolution.failed], "what the step came to")

        def decide(view: View) -> Decision[str]:
            now = self._outside.now(view)
            return resolve(view, root=root, step=step, resolution=resolution, by=by, why=why, now=now)

        problem = await self._outside.step(Strand(0, root, lease_of(root)), decide)
        if problem:
            raise WaitError(problem)

    async def status(self, root: str) -> Journal | None:
        """What is recorded of a flow, None if there is nothing. Raises JournalError if it cannot be read."""
        check_root(root)
        return await self._outside.ledger.step(lambda view: (None, read(root, view.steps(root))))

    async def holder(self, root: str) -> Lease | None:
        """The lease of a driver that is at it, or has died so lately that the lease has not run out."""
        check_root(root)

        def look(view: View) -> tuple[None, Lease | None]:
            lease = view.lease(lease_of(root)).newest
            return None, lease if lease is not None and lease.held_at(self._outside.now(view)) else None

        return await self._outside.ledger.step(look)

    async def aclose(self) -> None:
        """Wait for the submissions that are under way."""
        await self._chain.aclose()


def resolve(
    view: View, *, root: str, step: str, resolution: Again | Known, by: str, why: str, now: float
) -> Decision[str]:
    """The entry that says what became of a step, or what stands in its way."""
    journal, task = read(root, view.steps(root)), lease_of(root)
    if journal is None or step not in journal.index or step in journal.ended or step in journal.verdicts:
        return Decision(f"no step {step!r} of {root!r} is under way; see onestart flow status")
    if not evidence.lease_free(view, task, now):
        return Decision(f"a driver may be carrying out {step!r}; wait until it has ended, or its lease has run out")
    lease = view.lease(task).newest
    said: dict[str, Any] = {"by": by, "why": why}
    if isinstance(resolution, Known):
        what = "done"
        said |= Ended(resolution.result, resolution.failed).body
    else:
        what = "again"
        said |= {"number": journal.again.get(step, 0) + 1}
    entry = Entry(root, task, what, step, lease.token if lease is not None else 0, said)
    return Decision("", f"flow_{what}", entry, told(entry))


def check_root(root: object) -> None:
    """Raises BadFlowError unless this may be a flow's id."""
    with bad_flow():
        check_name("flow's id", root)
    if len(str(root)) > MOST_ID:
        raise BadFlowError(f"the flow's id has {len(str(root))} characters; {MOST_ID} are allowed")
