"""A step from its declaration to its result: checked when declared, when awaited, and once more when a slot frees.

Awaited twice it is carried out once. Its result is what JSON makes of it, so a replay gives the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from typing import TYPE_CHECKING, Any

from onestart.flow.errors import BadFlowError, FlowError, OrderMismatchError, RefusedError, StepFailedError
from onestart.flow.journal import Ended
from onestart.flow.scope import Scope
from onestart.flow.tasks import FlowFuture, FlowTask, current
from onestart.flow.values import cut, diagnostic, plain

if TYPE_CHECKING:
    from onestart.flow.definition import Worker

VERDICTS = ("pass", "fail", "noop")
HookBody = Callable[..., Awaitable[object]]


class Step(Coroutine[Any, Any, Any]):
    """A call of a flow, to be awaited, or made a task of like a coroutine. Subclasses say how it is carried out."""

    def __init__(self, scope: Scope, kind: str, spec: Mapping[str, Any]) -> None:
        self.asked, self._line = scope.declare(kind, spec)
        self.scope = scope
        self.root = scope.root
        self.spec = spec
        self._after = self._line.frontier if self._line is not None else frozenset[str]()
        self._future: FlowFuture | None = None
        self._iterator: Generator[Any, Any, Any] | None = None

    @property
    def id(self) -> str:
        return self.asked.step

    def __await__(self) -> Generator[Any, None, Any]:
        self.root.latch.check()
        if self._future is None:
            self._future = FlowFuture(loop=self.root.loop)
            self._future.add_done_callback(_seen)
            self.start(self._future)
        try:
            if not self._future.done():
                yield from self._waiter(self._future).__await__()
            return self._future.result()
        finally:
            task = current()
            if task is not None and self._future.done():
                name = self.asked.id
                task.line.stepped(str(name), self._after, self._line)
                if not name.after:
                    task.line.unclear(self._line.unknown if self._line is not None else "a call from a callback")

    def send(self, value: Any) -> Any:
        if self._iterator is None:
            self._iterator = self.__await__()
        return self._iterator.send(value)

    def throw(self, error: Any, *rest: Any) -> Any:
        if self._iterator is None:
            self._iterator = self.__await__()
        return self._iterator.throw(error, *rest)

    def close(self) -> None:
        if self._iterator is not None:
            self._iterator.close()

    def _waiter(self, future: FlowFuture) -> FlowFuture:
        """A future of its own for each who waits: who is cancelled takes it along, and nobody else's."""
        waiter = FlowFuture(loop=self.root.loop)
        future.add_done_callback(lambda _: None if waiter.done() else waiter.set_result(None))
        return waiter

    def start(self, future: FlowFuture) -> None:
        """Bring the future about."""
        raise NotImplementedError

    def replay(self, future: FlowFuture, ended: Ended) -> None:
        """What the step came to in an earlier attempt.

        In the loop's next round: at once, a branch would run ahead through all that is recorded before another one has
        made its first call, and a counted flow with branches could never be resumed in the order of its first run.
        """
        self.root.soon(lambda: self.settle(future, ended))

    def settle(self, future: FlowFuture, ended: Ended) -> None:
        """What the step has come to, now or in an earlier attempt."""
        if future.done():
            return
        if ended.failed is not None:
            future.set_exception(StepFailedError(self.id, ended.failed))
        else:
            future.set_result(ended.result)

    async def turn(self) -> None:
        """Nothing that is on record and not reached yet asks for the same as this step, which is not on record."""
        if self.scope.guard is not None and self.has_twin():
            await self.root.withhold(self.asked, self.scope.guard)

    def has_twin(self) -> bool:
        """Whether there is such a step."""
        guard = self.scope.guard
        return guard is not None and not self.root.known(self.id) and guard.twin(self.asked) is not None

    def recorded(self) -> Ended | None:
        """What an earlier attempt has recorded."""
        return None if self.root.journal is None else self.root.journal.ended.get(self.id)

    def index(self) -> dict[str, Any]:
        """The entry that shows that the step is admitted, and where it stands."""
        body: dict[str, Any] = {"kind": self.asked.id.kind, "spec": self.asked.spec, "shown": self.asked.shown}
        return body | self.standing()

    async def put_on_record(self, what: str, body: dict[str, Any]) -> None:
        """Append the first entry of the step."""
        await self.root.append(what, self.id, body)
        self.scope.on_record(self.asked.id)

    def standing(self) -> dict[str, Any]:
        """Where the step stands among the others."""
        line, body = self._line, dict[str, Any]()
        declared = self.scope.declared(self.asked.id)
        if declared:
            body["declared"] = declared
        if line is None:
            return body
        if self.root.causal:
            if self.asked.id.after:
                body["after"] = sorted(self._after)
                body["closed"] = {after: list(counts) for after, counts in sorted(self.asked.closed.items())}
            elif self.asked.place is not None:
                body["place"] = list(self.asked.place)
        if line.within:
            body["within"] = line.within
        return body


class Effect(Step):
    """A step that a worker carries out."""

    def __init__(self, scope: Scope, kind: str, spec: Mapping[str, Any]) -> None:
        self.worker: Worker = scope.root.worker(kind)
        super().__init__(scope, kind, spec)

    def start(self, future: FlowFuture) -> None:
        ended = self.recorded()
        if ended is not None:
            self.replay(future, ended)
        else:
            self.root.spawn(self._carry_out(future), future)

    async def _carry_out(self, future: FlowFuture) -> None:
        await self.turn()
        async with self.root.slot(self.asked.id.kind):
            self.root.latch.check()
            if not self.root.indexed(self.id):
                await self.put_on_record("index", self.index())
            ended = await self.root.execution.execute(self.root, self)
            if ended is None:
                return
            await self.root.append("done", self.id, ended.body)
        self.settle(future, ended)


class Human(Step):
    """A question. Without an answer, the flow parks."""

    def start(self, future: FlowFuture) -> None:
        wait = self.root.journal.waits.get(self.id) if self.root.journal is not None else None
        if wait is not None and wait.answered:
            self.replay(future, Ended(wait.value))
            return
        if wait is None:
            self.root.spawn(self._ask(), future)
        self.root.parked[self.id] = (str(self.spec["question"]), str(self.spec["to"]))

    async def _ask(self) -> None:
        await self.turn()
        self.root.latch.check()
        body = {"question": self.spec["question"], "to": self.spec["to"], "digest": self.asked.spec}
        await self.put_on_record("wait", body | self.standing())


class Hook(Step):
    """A part of the flow that comes to a verdict, and may have steps of its own; replayed as one."""

    def __init__(self, scope: Scope, spec: Mapping[str, Any], body: HookBody, handle: object) -> None:
        super().__init__(scope, "hook", spec)
        self._body, self._handle = body, handle

    def start(self, future: FlowFuture) -> None:
        journal = self.root.journal
        verdict = journal.verdicts.get(self.id) if journal is not None else None
        if verdict is None:
            self.root.spawn(self._run(future), future)
            return
        if verdict.input and verdict.input != self.asked.spec:
            refusal = OrderMismatchError(
                f"the verdict of {self.id!r} was given for another input than {self.asked.shown}"
            )
            raise self.root.latch.refuse(refusal)
        self._restore(verdict.after_step)
        self.replay(future, Ended(verdict.verdict))

    def _restore(self, after_step: int) -> None:
        """The counter goes to where the hook left it."""
        if self.asked.id.after or after_step <= self.scope.counter:
            return
        if self.scope.guard is not None:
            self.scope.guard.check_restored(self.id, self.scope.counter, after_step)
        self.scope.counter = after_step

    async def _run(self, future: FlowFuture) -> None:
        await self.turn()
        self.root.latch.check()
        if not self.root.indexed(self.id):
            await self.put_on_record("index", self.index())
        line = self._line.inside(self.id) if self._line is not None else self.scope.line()
        task = self.root.task(self._judge(), line)
        self.root.afterwards(task, lambda: self._conclude(task, future), future)

    async def _judge(self) -> str:
        try:
            verdict = await self._body(self._handle, self.spec["input"])
        except RefusedError:
            raise
        except Exception:
            return "fail"
        if verdict is None:
            return "noop"
        if verdict not in VERDICTS:
            raise BadFlowError(f"a hook's verdict is one of {', '.join(VERDICTS)}, not {verdict!r}")
        return str(verdict)

    async def _conclude(self, task: FlowTask, future: FlowFuture) -> None:
        verdict = task.result()
        self.root.latch.check()
        body = {"verdict": verdict, "input": self.asked.spec}
        if not self.asked.id.after:
            body["after_step"] = self.scope.watermark()
        await self.root.append("verdict", self.id, body)
        future.set_result(verdict)


class Dispatch(Step):
    """A child flow, under the root's latch and lease; its steps have ids under its own."""

    def __init__(self, scope: Scope, spec: Mapping[str, Any], run: Callable[[Scope], Awaitable[Any]]) -> None:
        super().__init__(scope, "dispatch", spec)
        self._run = run

    def start(self, future: FlowFuture) -> None:
        ended = self.recorded()
        if ended is not None:
            self.replay(future, ended)
        elif self.has_twin():
            self.root.spawn(self._in_turn(future), future)
        else:
            self._begin(future)

    async def _in_turn(self, future: FlowFuture) -> None:
        await self.turn()
        self._begin(future)

    def _begin(self, future: FlowFuture) -> None:
        child = Scope(self.root, self.id, (self.scope, self.asked.id))
        line = child.line()
        if self._line is not None:
            line.unclear(self._line.unknown)
        task = self.root.task(self._child(child), line)
        self.root.afterwards(task, lambda: self._conclude(task, future), future)

    async def _child(self, child: Scope) -> Ended:
        try:
            result = plain(await self._run(child), f"the result of {self.id}")
        except FlowError as error:
            if isinstance(error, RefusedError):
                raise
            return Ended(failed=cut(str(error)))
        except Exception as error:
            return Ended(failed=diagnostic(error))
        task = current()
        if task is not None:
            child.complete(task.line)
        return Ended(result)

    async def _conclude(self, task: FlowTask, future: FlowFuture) -> None:
        ended = task.result()
        self.root.latch.check()
        await self.put_on_record("done", self.index() | ended.body)
        self.settle(future, ended)


def _seen(future: FlowFuture) -> None:
    """A failure that nobody awaits is on record all the same."""
    if not future.cancelled():
        future.exception()
