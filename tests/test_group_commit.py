"""Group commit: steps that wait while others are made durable share what comes next, and nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from onestart import LedgerUnavailableError
from onestart.group_commit import MOST, GroupCommit, Step, Take
from onestart.jsonl import JsonlLedger, LocalFiles
from onestart.memory import MemoryView
from onestart.ports import View
from onestart.records import Note, Receipt, Record
from onestart.sql.sqlite import SqliteLedger
from onestart.worker_thread import in_loop

HANG = 60


class Slow:
    """A ledger in memory that is made durable when it is told to. groups: how many steps each had."""

    def __init__(self) -> None:
        self.view = MemoryView()
        self.groups: list[int] = []
        self.taken = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.fails: LedgerUnavailableError | None = None

    def carry_out(self, take: Take) -> None:
        steps = take()
        self.groups.append(len(steps))
        for step in steps:
            record = step.decide(self.view)
            if record is not None:
                self.view.append(record)
        self.taken.release()
        assert self.go.acquire(timeout=HANG)
        for step in steps:
            if self.fails is not None:
                step.failed(self.fails)
            else:
                step.done()

    async def until_taken(self) -> None:
        assert await asyncio.to_thread(self.taken.acquire, timeout=HANG)


def noted(key: str) -> Callable[[View], tuple[Record | None, str]]:
    return lambda view: (Note(key, "t", 1), f"{key} after {view.order}")


def story(test: Callable[[Slow, GroupCommit], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        slow = Slow()
        asyncio.run(asyncio.wait_for(test(slow, GroupCommit(slow.carry_out)), HANG))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@story
async def test_those_that_wait_share_the_next(slow: Slow, group: GroupCommit) -> None:
    """Whoever comes first waits for nobody; all that come meanwhile are one group, in their order."""
    first = asyncio.ensure_future(group.step(noted("a")))
    await slow.until_taken()
    others = [asyncio.ensure_future(group.step(noted(key))) for key in "bcd"]
    slow.go.release(2)
    assert await first == "a after 0"
    assert await asyncio.gather(*others) == ["b after 1", "c after 2", "d after 3"]
    assert slow.groups == [1, 3]


@story
async def test_nobody_is_told_before_it_is_durable(slow: Slow, group: GroupCommit) -> None:
    waiting = asyncio.ensure_future(group.step(noted("a")))
    await slow.until_taken()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    slow.go.release()
    await waiting


@story
async def test_a_mistake_is_of_its_step_alone(slow: Slow, group: GroupCommit) -> None:
    """What deciding raises does not touch the others of the group."""

    def mistaken(view: View) -> tuple[None, None]:
        raise ValueError("mine")

    first = asyncio.ensure_future(group.step(noted("a")))
    await slow.until_taken()
    wrong, right = (asyncio.ensure_future(group.step(decide)) for decide in (mistaken, noted("b")))
    slow.go.release(2)
    with pytest.raises(ValueError, match="mine"):
        await wrong
    assert (await first, await right) == ("a after 0", "b after 1")


@story
async def test_what_could_not_be_made_durable_fails_for_all(slow: Slow, group: GroupCommit) -> None:
    """Also for a step that has only read what the others wrote; the next group is another matter."""
    slow.fails = LedgerUnavailableError("receipts", "no space")
    reads: list[asyncio.Future[Any]] = [asyncio.ensure_future(group.step(noted("a")))]
    await slow.until_taken()
    reads += [
        asyncio.ensure_future(group.step(noted("b"))),
        asyncio.ensure_future(group.step(lambda v: (None, v.order))),
    ]
    slow.go.release(2)
    for read in reads:
        with pytest.raises(LedgerUnavailableError):
            await read
    slow.fails = None
    slow.go.release()
    assert await group.step(noted("c")) == "c after 2"


@story
async def test_one_that_is_cancelled_before_it_is_taken_never_happens(slow: Slow, group: GroupCommit) -> None:
    first = asyncio.ensure_future(group.step(noted("a")))
    await slow.until_taken()
    gone, stays = (asyncio.ensure_future(group.step(noted(key))) for key in "bc")
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([gone])
    slow.go.release(2)
    await first
    assert await stays == "c after 1"
    assert [record.key for record in slow.view.records] == ["a", "c"]


@story
async def test_one_that_is_cancelled_when_it_was_taken_ends_first(slow: Slow, group: GroupCommit) -> None:
    """Whoever waited may be gone; the step is carried out to its end before the task is."""
    leading = asyncio.ensure_future(group.step(noted("a")))
    await slow.until_taken()
    leading.cancel()
    await asyncio.sleep(0)
    assert not leading.done()
    following = asyncio.ensure_future(group.step(noted("b")))
    await asyncio.sleep(0)
    slow.go.release()
    await asyncio.wait([leading])
    assert leading.cancelled()
    await slow.until_taken()
    following.cancel()
    await asyncio.sleep(0)
    assert not following.done()
    slow.go.release()
    await asyncio.wait([following])
    assert [record.key for record in slow.view.records] == ["a", "b"]


@story
async def test_one_that_is_cancelled_in_the_group_of_another_ends_first(slow: Slow, group: GroupCommit) -> None:
    first = asyncio.ensure_future(group.step(noted("a")))
    await slow.until_taken()
    second, third = (asyncio.ensure_future(group.step(noted(key))) for key in "bc")
    await asyncio.sleep(0)
    slow.go.release()
    await first
    await slow.until_taken()
    third.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not third.done()
    slow.go.release()
    assert await second == "b after 1"
    await asyncio.wait([third])
    assert third.cancelled()
    assert [record.key for record in slow.view.records] == ["a", "b", "c"]


@story
async def test_the_lead_goes_on_past_one_that_is_cancelled_with_it(slow: Slow, group: GroupCommit) -> None:
    """The first of those that wait is cancelled at the moment when it is to lead: the next one does."""

    async def lead() -> None:
        await group.step(noted("a"))
        second.cancel()

    first = asyncio.ensure_future(lead())
    await slow.until_taken()
    second, third = (asyncio.ensure_future(group.step(noted(key))) for key in "bc")
    await asyncio.sleep(0)
    slow.go.release(3)
    await first
    assert await third == "c after 1"
    assert second.cancelled() or await second


@story
async def test_a_group_has_an_end(slow: Slow, group: GroupCommit) -> None:
    first = asyncio.ensure_future(group.step(noted("first")))
    await slow.until_taken()
    others = [asyncio.ensure_future(group.step(noted(f"{n}"))) for n in range(MOST + 1)]
    slow.go.release(3)
    await asyncio.gather(first, *others)
    assert slow.groups == [1, MOST, 1]


@pytest.mark.parametrize("ledger", [JsonlLedger, SqliteLedger])
def test_a_ledger_without_a_thread(tmp_path: Any, ledger: Any) -> None:
    """In the loop's own thread, those that are ready together are one group, and each has what it would have had."""
    opened = ledger(tmp_path / "ledger", thread=in_loop)
    threads, groups = set[int](), list[int]()

    def decide(view: View) -> tuple[Record | None, str]:
        threads.add(threading.get_ident())
        return noted("k")(view)

    carry_out = opened._group._carry_out

    def counted(take: Take) -> None:
        def taken() -> list[Step[Any]]:
            steps = take()
            groups.append(len(steps))
            return steps

        carry_out(taken)

    opened._group._carry_out = counted

    async def go() -> list[Any]:
        return await asyncio.gather(*(opened.step(decide) for _ in range(5)))

    assert asyncio.run(go()) == [f"k after {n}" for n in range(5)]
    assert threads == {threading.get_ident()}
    assert groups == [5]


def test_one_that_is_cancelled_without_a_thread_ends_first() -> None:
    """As in a thread: what leads a group is carried out, and those with it are."""
    slow = Slow()
    slow.go.release(3)
    group = GroupCommit(slow.carry_out, thread=in_loop)

    async def go() -> None:
        gone, stays = (asyncio.ensure_future(group.step(noted(key))) for key in "ab")
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        assert gone.cancelled()
        assert await stays == "b after 1"
        assert await group.step(noted("c")) == "c after 2"

    asyncio.run(asyncio.wait_for(go(), HANG))


def test_a_step_that_nobody_carried_out_says_so() -> None:
    step: Step[str] = Step(noted("a"))
    assert step.under_way
    with pytest.raises(LedgerUnavailableError, match="not carried out"):
        step.result()


class Watched(LocalFiles):
    """told: every write and every sync, by the name of the file."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def append(self, path: str, data: bytes) -> None:
        self.told.append(f"append {path.rpartition('/')[2]}")
        super().append(path, data)

    def sync(self, path: str) -> None:
        self.told.append(f"sync {path.rpartition('/')[2]}")
        super().sync(path)


def test_a_store_is_durable_before_another_is_written(tmp_path: Any) -> None:
    """A record that has seen another one is never kept by a crash that loses that one; one sync serves neighbors."""
    files = Watched()
    ledger = JsonlLedger(tmp_path / "ledger", files=files)
    receipts = [Receipt(key, key, "pending", "f") for key in "ab"]
    records: list[Record] = [*receipts, *(Note(key, key, 1) for key in "ab")]

    async def go() -> None:
        await ledger.step(lambda view: (None, None))
        files.told.clear()
        steps = [Step(putting(record)) for record in records]
        await asyncio.to_thread(ledger._carry_out, lambda: steps)
        for step in steps:
            step.result()

    asyncio.run(go())
    assert files.told == [
        *["append receipts.jsonl"] * 2,
        "sync receipts.jsonl",
        *["append leases.jsonl"] * 2,
        "sync leases.jsonl",
    ]


def putting(record: Record) -> Callable[[View], tuple[Record, None]]:
    return lambda view: (record, None)
