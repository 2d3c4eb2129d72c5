"""Plain asyncio inside a flow: tasks that know their line, and what awaiting them means for whoever awaits.

Inside a flow the event loop's task factory makes `FlowTask`s, whatever makes tasks: `create_task`, `gather`,
`TaskGroup`, `wait_for`. Nothing in asyncio is replaced. How tasks are waited for is seen in two places: the future that
a task waits for, when it does; and the callbacks that aggregates put on a task, since awaiting what is done already
never suspends anybody. A callback of an aggregate that is not known here makes the order unknown.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import Context
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from onestart.flow.line import Line

_GATHERING: type = getattr(asyncio.tasks, "_GatheringFuture")  # noqa: B009
_RELEASE = getattr(asyncio.tasks, "_release_waiter", None)  # in wait_for, up to Python 3.11
_GATHERED = ("asyncio.tasks", "gather.<locals>._done_callback")
_COMPLETED = ("asyncio.tasks", "as_completed.<locals>._on_completion")
_OTHERS = (("asyncio.tasks", "_wait.<locals>._on_completion"), _COMPLETED)

_ORDERLY = (asyncio.Lock.acquire.__code__, asyncio.Semaphore.acquire.__code__)  # these say when, and not what
_BETWEEN_TASKS = (asyncio.locks.__file__, asyncio.queues.__file__)  # brought about by other tasks, not by a timer

Callback = Callable[..., object]


class FlowFuture(asyncio.Future[Any]):
    """What a step is waited for by."""


class FlowTask(asyncio.Task[Any]):
    """A task of a flow. waiting: what it is suspended on. begun: whether it has run at all.

    others: callbacks by which it hears of several tasks in the order of their ends. cancelled_by: how often it was
    cancelled by the time when it was suspended, and the groups among those who did.
    """

    def __init__(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        line: Line,
        tasks: set[FlowTask],
        waited: Callable[[], None],
        loop: asyncio.AbstractEventLoop,
        name: str | None = None,
        context: Context | None = None,
    ) -> None:
        self.line = line
        self.tasks = tasks
        self.waited = waited
        self.waiting: object = None
        self.begun = False
        self.waiters: WeakKeyDictionary[object, FlowTask] = WeakKeyDictionary()
        self.others: list[Callback] = []
        self.cancelled_by: tuple[int, list[asyncio.TaskGroup]] = (0, [])
        super().__init__(_Watched(coro, self), loop=loop, name=name, context=context)
        tasks.add(self)
        super().add_done_callback(FlowTask._ended)

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            return (yield from super().__await__())
        finally:
            if self.done():
                _joined(self)

    def result(self) -> Any:
        if self.done():
            _joined(self)
        return super().result()

    def exception(self) -> BaseException | None:
        if self.done():
            _joined(self)
        return super().exception()

    def add_done_callback(self, callback: Any, /, *, context: Context | None = None) -> None:
        _watch(self, callback)
        super().add_done_callback(callback, context=context)

    def _ended(self) -> None:
        """One task less: those that are left may all wait for somebody outside."""
        if self.cancelled():
            self.line.cut_off()
        self.tasks.discard(self)
        self.waited()

    def fork(self, coro: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop, **options: Any) -> FlowTask:
        """A task that this one makes."""
        options = {name: value for name, value in options.items() if name in ("name", "context")}
        return FlowTask(coro, line=self.line.fork(), tasks=self.tasks, waited=self.waited, loop=loop, **options)


def current() -> FlowTask | None:
    """The flow's task that is running, None outside of flows and in callbacks."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return None
    return task if isinstance(task, FlowTask) else None


def factory(previous: Any) -> Callable[..., Any]:
    """A task factory that makes flow tasks where a flow's task makes one, and what there was before elsewhere."""

    def make(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Any:
        maker = current()
        if maker is not None:
            return maker.fork(coro, loop, **options)
        if previous is not None:
            return previous(loop, coro, **options)
        return asyncio.Task(coro, loop=loop, **options)

    return make


class _Watched(Coroutine[Any, Any, Any]):
    """Runs a coroutine, and sees what it waits for. Everything else is the coroutine's own."""

    def __init__(self, coro: Coroutine[Any, Any, Any], task: FlowTask) -> None:
        self._coro = coro
        self._task = task

    def send(self, value: Any) -> Any:
        self._resumed(None)
        return self._suspended(self._coro.send(value))

    def throw(self, error: Any, *rest: Any) -> Any:
        self._resumed(error)
        return self._suspended(self._coro.throw(error, *rest))

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coro.__await__()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coro, name)

    def _resumed(self, error: BaseException | None) -> None:
        task = self._task
        if task.begun:
            waited, task.waiting = task.waiting, None
            _waited(task, waited, error)
        task.begun = True

    def _suspended(self, waited: Any) -> Any:
        self._task.waiting = waited
        self._task.line.settle()  # a group within another one is left before it
        self._task.cancelled_by = _cancellations(self._task)
        self._task.waited()
        return waited


def _waited(task: FlowTask, waited: Any, error: BaseException | None) -> None:
    """What a line is after, now that what it waited for has come about."""
    line = task.line
    if isinstance(error, asyncio.CancelledError):
        _broken_off(task)
    if isinstance(waited, FlowTask | FlowFuture):
        pass  # whoever awaits them says so, also where nobody had to wait
    elif isinstance(waited, _GATHERING):
        _gathered(line, waited)
    elif waited in task.waiters:
        waiter = task.waiters[waited]
        if waiter.done():
            line.join(waiter.line)
        else:
            line.unclear("a timer")
    elif _leaves_group(line, waited):
        pass  # the group is joined when it is left
    elif _innermost(task) not in _ORDERLY:
        line.unclear("something that is not of the flow")


def _cancellations(task: FlowTask) -> tuple[int, list[asyncio.TaskGroup]]:
    """How often the task was cancelled, and the groups of its own that did so because one of their tasks has failed."""
    return task.cancelling(), [g for g in task.line.groups if getattr(g, "_parent_cancel_requested", False)]


def _broken_off(task: FlowTask) -> None:
    """Somebody has cancelled the task, or what it has waited for was cancelled, which whoever awaits that says."""
    (before, known_groups), (times, groups) = task.cancelled_by, _cancellations(task)
    own = [group for group in groups if group not in known_groups]
    if times - before > len(own):
        task.line.unclear("a cancellation")
    elif own and not getattr(own[0], "_exiting", False):
        task.line.interrupted(own[0])


def known(task: FlowTask, waited: object) -> bool:
    """Whether only the flow's own steps and tasks bring about what the task waits for."""
    if isinstance(waited, FlowTask | FlowFuture | _GATHERING):
        return True
    if any(_released(callback, waited) for callback in task.others):
        return True
    return _leaves_group(task.line, waited)


def _leaves_group(line: Line, waited: object) -> bool:
    """Whether it is what a group is waited for by, when it is left."""
    return any(getattr(group, "_on_completed_fut", None) is waited for group in line.groups)


def held_up(task: FlowTask) -> bool:
    """Whether the task waits for a lock, a signal or a queue, which other tasks of the flow bring about."""
    code = _innermost(task)
    return code is not None and code.co_filename in _BETWEEN_TASKS


def _innermost(task: FlowTask) -> CodeType | None:
    """The code that a task is suspended in."""
    code: CodeType | None = None
    coro: Any = task.get_coro()
    while coro is not None:
        code = getattr(coro, "cr_code", None) or getattr(coro, "gi_code", None) or code
        coro = getattr(coro, "cr_await", None) or getattr(coro, "gi_yieldfrom", None)
    return code


def _released(callback: Callback, waited: object) -> bool:
    """Whether an aggregate's callback, and no timer beside it, brings about what is waited for."""
    cells = _cells(callback)
    if cells.get("timeout_handle") is not None:
        return False
    return waited is cells.get("waiter") or waited in getattr(cells.get("done"), "_getters", ())


def _joined(task: FlowTask) -> None:
    awaiting = current()
    if awaiting is not None and awaiting is not task:
        awaiting.line.join(task.line)
        if task.cancelled():
            awaiting.line.unclear("a cancellation")


def _watch(task: FlowTask, callback: Any) -> None:
    """Somebody wants to know when the task is done: who?"""
    owner = getattr(callback, "__self__", None)
    awaiting = current()
    if isinstance(owner, asyncio.Task):
        return
    if isinstance(owner, asyncio.TaskGroup):
        maker = getattr(owner, "_parent_task", None)
        if isinstance(maker, FlowTask):
            maker.line.groups.setdefault(owner, []).append(task)
    elif isinstance(callback, functools.partial) and callback.func is _RELEASE is not None and awaiting is not None:
        awaiting.waiters[callback.args[0]] = task
    elif _is_gather(callback):
        asyncio.Task.add_done_callback(task, functools.partial(_mark, callback))
    elif awaiting is not None:
        awaiting.line.unclear("a way of waiting that is not known")
        if _named(callback) in _OTHERS:
            awaiting.others.append(callback)
        if _named(callback) == _COMPLETED and not task.begun:
            task.line.unclear("it may have been made in any order")  # as_completed makes tasks out of a set


def _named(callback: object) -> tuple[str | None, str | None]:
    return getattr(callback, "__module__", None), getattr(callback, "__qualname__", None)


def _cells(callback: Any) -> dict[str, Any]:
    return {
        name: cell.cell_contents
        for name, cell in zip(callback.__code__.co_freevars, callback.__closure__ or (), strict=False)
    }


def _is_gather(callback: object) -> bool:
    return _named(callback) == _GATHERED


class _Gathered(_GATHERING):  # type: ignore[misc]
    """A gathering whose awaiting is seen even where it is done already."""

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            return (yield from super().__await__())
        finally:
            awaiting = current()
            if awaiting is not None and self.done():
                _gathered(awaiting.line, self)


def _mark(callback: Any, _: object = None) -> None:
    """Before a gathering can be done: have it say who awaits it, and those that it is part of."""
    gathering = _cells(callback)["outer"]
    if type(gathering) is _GATHERING:
        gathering.__class__ = _Gathered
        for other, _context in getattr(gathering, "_callbacks", None) or ():
            if _is_gather(other):
                _mark(other)


def _gathered(line: Line, gathering: Any) -> None:
    if not gathering.done():
        return
    joined_by = getattr(gathering, "_joined_by", ())
    if any(other is line for other in joined_by):
        return
    gathering._joined_by = (*joined_by, line)
    if gathering.cancelled() or gathering.exception() is not None:
        line.failed()
        return
    _join_each(line, gathering._children)


def _join_each(line: Line, futures: Iterable[Any]) -> None:
    for future in futures:
        if isinstance(future, FlowTask):
            line.join(future.line)
        elif isinstance(future, _GATHERING):
            _gathered(line, future)
        else:
            line.unclear("something that is not of the flow")
