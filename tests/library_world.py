"""What is around a chain in the tests of the library: a real ledger and executor, and time that is moved by hand."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from onestart import CannotTellError, Chain, Command, Event, LedgerUnavailableError, Order, Ruling
from onestart.executors import CallableExecutor
from onestart.ports import Executor, Ledger, View
from onestart.records import Record
from stores import Store, store

T = TypeVar("T")
P = ParamSpec("P")

LEASE = 30.0
HANG = 20.0  # real seconds, so that a hang is a failure


class DiedError(BaseException):
    """The process is gone: nothing that it still holds may do anything."""


class World:
    """Everything outside of a chain. effects: the payloads of what was really executed."""

    def __init__(self, folder: Path, kept: Store | None = None) -> None:
        self.folder = folder
        self.store = kept or store("jsonl", folder)
        self.events: list[Event] = []
        self.effects: list[Any] = []
        self.news = asyncio.Event()
        self.clock = ManualClock(self.news)
        self.office = Office()
        self.ending = asyncio.Event()
        self.functions = CallableExecutor(folder / "launches", {"note": self._note, "wait": self._wait})
        self.functions.on_end = self._end
        self.line = Line(self.functions)
        self._ended: list[str] = []

    def chain(self, **more: Any) -> Chain:
        """A new process over the same folder."""
        ports: dict[str, Any] = {
            "ledger": self.ledger(),
            "executor": self.line,
            "governance": self.office,
            "clock": self.clock,
            "observer": self.see,
            "lease_seconds": LEASE,
        }
        return Chain(**(ports | more))

    def ledger(self) -> Ledger:
        """The ledger as a process opens it that has just come up."""
        return self.store.ledger(self.clock)

    def see(self, event: Event) -> None:
        self.events.append(event)
        self.news.set()

    def actions(self) -> list[str]:
        return [event.action for event in self.events]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for it to come about; looked at whenever an event is told or somebody goes to sleep."""
        while not condition():
            self.news.clear()
            await self.news.wait()

    async def ended(self, key: str) -> None:
        """Wait until a function is over, and its end on record."""
        await self.until(lambda: key in self._ended)

    async def slept(self, times: int) -> None:
        """Wait until somebody has gone to sleep for that many times in all."""
        await self.until(lambda: self.clock.slept >= times)

    async def seen(self, action: str, times: int = 1) -> None:
        await self.until(lambda: self.actions().count(action) >= times)

    def lines(self, name: str) -> list[bytes]:
        """The lines of a store, none if there is no such store yet."""
        return self.store.lines(name)

    def damage(self, name: str, old: bytes, new: bytes) -> None:
        """Change bytes in the last line of a store that has them."""
        assert len(old) == len(new)
        number = max(number for number, line in enumerate(self.lines(name)) if old in line)
        self.store.put(name, number, new.join(self.lines(name)[number].rsplit(old, 1)))

    def lose(self, name: str) -> None:
        """Lose a store."""
        self.store.lose(name)

    def spot(self, name: str, number: int, place: str) -> str:
        """Where a finding says that a record is: its line, or its place."""
        return self.store.spot(name, number, place)

    async def _end(self, key: str) -> None:
        self._ended.append(key)
        self.news.set()

    async def _note(self, payload: Any) -> None:
        self.effects.append(payload)

    async def _wait(self, payload: Any) -> None:
        self.effects.append(payload)
        await self.ending.wait()


class ManualClock:
    """A clock that moves when it is told to."""

    def __init__(self, news: asyncio.Event) -> None:
        self.seconds = 1000.0
        self.slept = 0
        self._news = news
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.seconds + seconds, future))
        self.slept += 1
        self._news.set()
        await future

    @property
    def sleepers(self) -> int:
        """How many are asleep now."""
        return sum(not future.done() for _, future in self._sleepers)

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        for end, future in self._sleepers:
            if end <= self.seconds and not future.done():
                future.set_result(None)


class Office:
    """A governance: its revision, whether it wants approvals, what it raises."""

    def __init__(self) -> None:
        self.revision = "r1"
        self.wants = False
        self.error: Exception | None = None

    async def rule(self, command: Command) -> Ruling:
        if self.error is not None:
            raise self.error
        return Ruling(self.revision, self.wants)


class Line:
    """The executor as one reaches it, over a line that can fail.

    before, after: raised by `start` in place of starting, and once it has started. held: what `start` waits for first.
    late: what it waits for once it has started. asked: the keys that were looked up.
    mute: `look_up` cannot tell. broken: raised by `stop`.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.before: BaseException | None = None
        self.after: BaseException | None = None
        self.held: asyncio.Event | None = None
        self.late: asyncio.Event | None = None
        self.mute = False
        self.broken: Exception | None = None
        self.orders: list[Order] = []
        self.asked: list[str] = []

    async def identify(self) -> str:
        identify = getattr(self.executor, "identify", None)
        return "" if identify is None else await identify()

    async def start(self, order: Order) -> None:
        self.orders.append(order)
        held, late, before, after = self.held, self.late, self.before, self.after
        if held is not None:
            await held.wait()
        if before is not None:
            raise before
        await self.executor.start(order)
        if late is not None:
            await late.wait()
        if after is not None:
            raise after

    async def look_up(self, key: str, task: str, token: int) -> bool:
        self.asked.append(key)
        if self.mute:
            raise CannotTellError(key)
        return await self.executor.look_up(key, task, token)

    async def running(self, key: str) -> bool:
        return await self.executor.running(key)

    async def stop(self, key: str) -> None:
        if self.broken is not None:
            raise self.broken
        await self.executor.stop(key)

    def works(self) -> None:
        self.before = self.after = self.held = self.late = self.broken = None
        self.mute = False


class MortalLedger:
    """A ledger whose process dies, or whose disk fails, at its last step, before or after the record is durable."""

    def __init__(self, ledger: Ledger, last: int, *, durable: bool, fails: bool = False) -> None:
        self.count = 0
        self.dead = False
        self._ledger, self._last, self._durable, self._fails = ledger, last, durable, fails

    async def step(self, decide: Callable[[View], tuple[Record | None, T]]) -> T:
        self.count += 1
        self.dead = self.dead or self.count >= self._last
        if self.count < self._last or (self.count == self._last and self._durable):
            value = await self._ledger.step(decide)
        if self.dead:
            raise LedgerUnavailableError("attempts", "the disk is gone") if self._fails else DiedError
        return value


def command(key: str = "key", payload: Any = "payload", **more: Any) -> Command:
    return Command(**{"key": key, "task": "task", "function": "note", "payload": payload, "revision": "r1", **more})


def story(test: Callable[Concatenate[World, P], Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, in a loop of its own."""

    @functools.wraps(test)
    def run(world: World, *arguments: P.args, **named: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(world, *arguments, **named), HANG))

    return run


async def fallen(work: Awaitable[object]) -> bool:
    """Whether the process died doing this."""
    try:
        await work
    except DiedError:
        return True
    return False
