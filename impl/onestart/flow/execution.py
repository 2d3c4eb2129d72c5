"""Steps as commands of the chain: each is submitted under a key of its own, bound to its spec, and started once.

What is known of a step that was under way when its driver died, the chain says; what happens then, the worker declares.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING, Any

from attrs import define, field

from onestart.answers import Answer, Outcome, Reason
from onestart.chain import Chain
from onestart.command import Command
from onestart.flow.definition import NEVER, Call, Known, Worker
from onestart.flow.errors import AdmissionConflictError, BadFlowError, RefusedError, StoreLostError
from onestart.flow.identity import admission_key
from onestart.flow.journal import Ended
from onestart.flow.values import cut, diagnostic, plain
from onestart.ports import CannotTellError, LedgerUnavailableError, Order

if TYPE_CHECKING:
    from onestart.flow.root import Root
    from onestart.flow.steps import Effect

OCCUPIED = (Reason.LEASE_CONFLICT, Reason.TASK_BUSY, Reason.LEASE_LOST)
PATIENCE = 30  # tries, a tenth of a lease apart: longer than the lease of a driver that has died


@define(eq=False)
class StepExecutor:
    """The chain's executor: workers' functions as tasks of this process. context: what they run in."""

    context: Context
    _expected: dict[str, tuple[Root, Call, Worker]] = field(factory=dict)
    _running: dict[str, asyncio.Task[Any]] = field(factory=dict)
    _known: dict[str, Known] = field(factory=dict)

    def expect(self, root: Root, call: Call, worker: Worker) -> None:
        """Say what a key stands for, before it is submitted."""
        self._expected[call.key] = (root, call, worker)

    def started(self, key: str) -> asyncio.Task[Any] | None:
        """What this process runs under the key."""
        return self._running.get(key)

    def forget(self, key: str) -> None:
        self._expected.pop(key, None)
        self._running.pop(key, None)
        self._known.pop(key, None)

    async def start(self, order: Order) -> None:
        loop = asyncio.get_running_loop()
        work = _carried_out(*self._expected[order.key])
        self._running[order.key] = asyncio.Task(work, loop=loop, context=self.context.copy())

    async def look_up(self, key: str, task: str, token: int) -> bool:
        """Raises CannotTellError unless this process has started it, or the worker can be asked."""
        if key in self._running:
            return True
        return await self.ask(key) is not NEVER

    async def ask(self, key: str) -> object:
        """What the worker knows of an earlier execution: `Known`, or `NEVER`. Raises CannotTellError."""
        if key in self._known:
            return self._known[key]
        _, call, worker = self._expected[key]
        if worker.in_flight != "ask" or worker.look_up is None:
            raise CannotTellError("the worker does not look up what was under way")
        found = await worker.look_up(call)
        if isinstance(found, Known):
            self._known[key] = found
        elif found is not NEVER:
            raise CannotTellError("the worker cannot tell")
        return found

    async def running(self, key: str) -> bool:
        return key in self._running and not self._running[key].done()

    async def stop(self, key: str) -> None:
        if key in self._running:
            self._running[key].cancel()


@define(eq=False)
class Execution:
    """The way of a root's steps through the chain."""

    chain: Chain
    executor: StepExecutor
    pause: Any  # awaited with seconds
    lease_seconds: float

    async def execute(self, root: Root, step: Effect) -> Ended | None:
        """Bring a step to its result. None if nobody knows how far an earlier execution got; `root.held` says why."""
        again = root.journal.again.get(step.id, 0) if root.journal is not None else 0
        while True:
            call = Call(admission_key(root.id, step.id, again), root.id, step.id, step.asked.id.kind, step.spec)
            self.executor.expect(root, call, step.worker)
            try:
                answer = await self._submit(root, step, call)
                ended = await self._outcome(root, step, call, answer)
            finally:
                self.executor.forget(call.key)
            if ended is not None or step.id in root.held:
                return ended
            again += 1
            root.latch.check()
            await root.append("again", step.id, {"number": again})

    async def _submit(self, root: Root, step: Effect, call: Call) -> Answer:
        command = Command(
            key=call.key,
            task=f"step:{call.key}",
            function=call.kind,
            payload={"step": step.id, "of": root.id, "spec": dict(step.spec)},
            actor="flow",
        )
        for _ in range(PATIENCE):
            answer = await self.chain.submit(command)
            if answer.reason is Reason.CONFLICT:
                raise root.latch.refuse(
                    AdmissionConflictError(f"step {step.id!r} was admitted with something else than {step.asked.shown}")
                )
            if answer.outcome is not Outcome.HELD or answer.reason not in OCCUPIED:
                break
            await self.pause(self.lease_seconds / 10)
        return answer

    async def _outcome(self, root: Root, step: Effect, call: Call, answer: Answer) -> Ended | None:
        running = self.executor.started(call.key)
        if running is not None:
            return await self._result(root, step, running)
        if answer.outcome is Outcome.STARTED or answer.reason in (Reason.IN_DOUBT, Reason.START_FAILED):
            return await self._earlier(root, step, call)
        root.held[step.id] = f"{answer.reason}: {answer.detail}" if answer.detail else str(answer.reason)
        return None

    async def _result(self, root: Root, step: Effect, running: asyncio.Task[Any]) -> Ended:
        try:
            return Ended(plain(await running, f"the result of {step.id}"))
        except RefusedError:
            raise
        except Exception as error:
            return Ended(failed=diagnostic(error))

    async def _earlier(self, root: Root, step: Effect, call: Call) -> Ended | None:
        """An earlier attempt has started it, or may have. None if it is to be carried out again, or held."""
        if step.worker.in_flight == "again":
            return None
        why = "it was under way when its driver died, and its worker holds what was under way"
        if step.worker.in_flight == "ask":
            try:
                found = await self.executor.ask(call.key)
            except CannotTellError as error:
                found, why = None, f"it was under way when its driver died: {error}"
            if found is NEVER:
                return None
            if isinstance(found, Known):
                return _known(step, found)
        root.held[step.id] = why
        return None


def _known(step: Effect, found: Known) -> Ended:
    """What a worker has found out."""
    if found.failed is not None:
        return Ended(failed=cut(found.failed))
    try:
        return Ended(plain(found.result, f"the result of {step.id}"))
    except BadFlowError as error:
        return Ended(failed=diagnostic(error))


async def _carried_out(root: Root, call: Call, worker: Worker) -> Any:
    """A driver that has stood still may have been taken over by now, and the step with it; or the flow was refused."""
    try:
        await root.check_lease()
    except LedgerUnavailableError as error:  # not a failure of the step, which was not begun
        raise root.latch.refuse(StoreLostError(f"the ledger is not available: {error}")) from None
    root.check_refused()
    return await worker.function(call)
