"""A driver takes a root: its lease, then its journal, then the body from the top; what is recorded is replayed."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from attrs import evolve, field, frozen

from onestart import evidence, leases
from onestart.chain import Chain
from onestart.command import canonical
from onestart.flow.definition import Flow, Worker
from onestart.flow.errors import (
    DriverBusyError,
    FlowError,
    JournalError,
    LeaseLostError,
    RefusedError,
    StepFailedError,
    StoreLostError,
)
from onestart.flow.execution import Execution, StepExecutor
from onestart.flow.handle import Handle
from onestart.flow.identity import LEGACY
from onestart.flow.journal import Journal, read, told
from onestart.flow.outcome import Outcome, Question
from onestart.flow.root import Root
from onestart.flow.scope import Scope
from onestart.flow.tasks import FlowTask, factory
from onestart.flow.values import cut, diagnostic, plain
from onestart.leases import Renewal
from onestart.outside import Decision, Outside, Strand
from onestart.ports import LedgerUnavailableError, View
from onestart.records import Step as Entry
from onestart.records import store_of

STORE = store_of(Entry.kind)


@frozen
class Driver:
    """arguments: of the flow's body, as JSON. version: of step ids, for a root that begins now."""

    outside: Outside
    chain: Chain
    executor: StepExecutor
    flow: Flow
    root: str
    arguments: Sequence[Any]
    workers: Mapping[str, Worker]
    version: int
    strand: Strand = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "strand", Strand(0, self.root, lease_of(self.root)))

    async def drive(self) -> Outcome:
        """One attempt. Raises DriverBusyError, JournalError, or what the ledger raises; nothing was done then."""
        await self._acquire()
        renewal = Renewal(self.outside, self.strand)
        try:
            journal, findings = await self._begin()
            if journal is not None and journal.complete is not None:
                return Outcome(self.root, "completed", value=journal.complete.result, findings=findings)
            return evolve(await self._attempt(journal), findings=findings)
        finally:
            await renewal.stop()
            await self._release()

    async def _acquire(self) -> None:
        def decide(view: View) -> Decision[bool | None]:
            if evidence.lease_damaged(view, self.strand.task):
                return Decision(None)
            if not evidence.lease_free(view, self.strand.task, self.outside.now(view)):
                return Decision(False)
            lease = leases.acquire(view, strand=self.strand, outside=self.outside)
            self.strand.token = lease.token
            return Decision(True, "flow_lease", lease, {"root": self.root})

        taken = await self.outside.step(self.strand, decide)
        if taken is None:
            raise JournalError(
                f"nobody can read who drives {self.root!r}: its lease is damaged; see Chain.repair_lease"
            )
        if not taken:
            raise DriverBusyError(
                f"another driver holds {self.root!r}, or has died less than {self.outside.lease_seconds:g} s ago"
            )

    async def _release(self) -> None:
        def decide(view: View) -> Decision[None]:
            if not leases.holds(view, strand=self.strand, outside=self.outside):
                return Decision(None)
            return Decision(None, "flow_release", leases.given_back(view, self.strand), {"root": self.root})

        with suppress(LedgerUnavailableError):  # the lease runs out by itself
            await self.outside.step(self.strand, decide)

    async def _begin(self) -> tuple[Journal | None, tuple[str, ...]]:
        """Read the journal, and record the attempt; in the first one there is nothing to read."""

        def decide(view: View) -> Decision[tuple[Journal | None, tuple[str, ...]]]:
            findings = tuple(str(finding) for finding in view.stray() if finding.store == STORE)
            journal = read(self.root, view.steps(self.root))
            if journal is not None:
                self._check(journal)
            if journal is not None and journal.complete is not None:
                return Decision((journal, findings))
            entry = self._entry(journal)
            return Decision((journal, findings), "flow_begin", entry, told(entry))

        return await self.outside.step(self.strand, decide)

    def _entry(self, journal: Journal | None) -> Entry:
        task, token = self.strand.task, self.strand.token
        if journal is None:
            body = {"flow": self.flow.name, "version": self.version, "arguments": list(self.arguments)}
            return Entry(self.root, task, "root", "", token, body)
        return Entry(self.root, task, "attempt", "", token, {"number": journal.attempts + 1})

    def _check(self, journal: Journal) -> None:
        if journal.flow != self.flow.name:
            raise JournalError(f"{self.root!r} is a flow {journal.flow!r}, not {self.flow.name!r}")
        if journal.version > LEGACY or journal.arguments is not None:
            began, now = canonical(journal.arguments or [], "arguments"), canonical(list(self.arguments), "arguments")
            if began != now:
                raise JournalError(f"{self.root!r} was begun with the arguments {began[:100]}, not {now[:100]}")

    async def _attempt(self, journal: Journal | None) -> Outcome:
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        root = Root(
            self.root,
            journal.version if journal is not None else self.version,
            journal,
            self.workers,
            self.outside,
            Execution(self.chain, self.executor, self.outside.clock.sleep, self.outside.lease_seconds),
            self.strand,
            loop,
            context,
        )
        scope = Scope(root)
        root.latch.wake = root.finish
        with flow_tasks(loop):
            main = root.task(_body(self.flow, scope, self.arguments), scope.line())
            rest = asyncio.Task(root.over.wait(), loop=loop)
            try:
                await asyncio.wait([main, rest], return_when=asyncio.FIRST_COMPLETED)
                if main.done() and not main.cancelled() and main.exception() is None:
                    await root.drain()
                outcome = await self._conclude(root, scope, main)
                await root.close(finish=True)
            finally:
                rest.cancel()
                await root.close(finish=False)
        return await self._record(root, outcome)

    async def _conclude(self, root: Root, scope: Scope, main: FlowTask) -> Outcome:
        if root.latch.refusal is not None:
            return _refused(root, root.latch.refusal)
        if not main.done() or root.waiting_for_somebody():
            questions = tuple(Question(step, *asked) for step, asked in sorted(root.parked.items()))
            return Outcome(root.id, "held" if root.held else "parked", waits=questions, held=dict(root.held))
        try:
            value = plain(main.result(), "what the flow returns")
            marker = scope.complete(main.line)
            await root.close(finish=True)  # what nobody awaits may go on, and nothing comes after the marker
            await root.append("complete", marker, {"result": value})
            return Outcome(root.id, "completed", value=value)
        except RefusedError as error:
            return _refused(root, error)
        except LedgerUnavailableError as error:
            return _refused(root, StoreLostError(f"the ledger is not available: {error}"))
        except FlowError as error:
            return Outcome(root.id, "failed", reason=error.reason, message=cut(str(error)))
        except asyncio.CancelledError:
            if not main.cancelled():
                raise
            return Outcome(root.id, "failed", reason="cancelled", message="the flow's body was cancelled")
        except Exception as error:
            return Outcome(root.id, "failed", reason=StepFailedError.reason, message=diagnostic(error))

    async def _record(self, root: Root, outcome: Outcome) -> Outcome:
        """Why the attempt ended, for whoever asks for the root's status."""
        if outcome.state != "completed" and not isinstance(root.latch.refusal, LeaseLostError):
            body = {"state": outcome.state, "reason": outcome.reason, "message": outcome.message}
            with suppress(RefusedError, LedgerUnavailableError):
                await root.append("ended", "", body)
        return outcome


async def _body(flow: Flow, scope: Scope, arguments: Sequence[Any]) -> Any:
    return await flow.body(Handle(scope), *arguments)


def _refused(root: Root, refusal: RefusedError) -> Outcome:
    state = "lost" if isinstance(refusal, LeaseLostError) else "refused"
    return Outcome(root.id, state, reason=refusal.reason, message=str(refusal))


def lease_of(root: str) -> str:
    """The task whose lease a root's driver holds."""
    return f"flow:{root}"


@contextmanager
def flow_tasks(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """While a flow runs, the loop makes flow tasks where flow tasks ask for tasks."""
    previous = loop.get_task_factory()
    made = factory(previous)
    loop.set_task_factory(made)
    try:
        yield
    finally:
        if loop.get_task_factory() is made:
            loop.set_task_factory(previous)
