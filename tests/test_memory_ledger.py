"""The ledger in memory shows what the ledger of JSON lines shows."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from onestart import Chain, Command, Outcome, Reason
from onestart.answers import Answer, Result
from onestart.kernel import receive
from onestart.memory import MemoryLedger, MemoryView
from onestart.outside import Strand
from onestart.ports import Order
from onestart.records import Receipt, Record
from test_jsonl_ledger import Disk, ledger_on, look, put, shown, whole

RECORDS = [record for number in range(3) for record in whole(number)]


def told(seen: dict[str, tuple[Any, ...]]) -> Any:
    """A view without the places of records, which files have and memory has not."""
    return {
        key: [(one.records, one.count, one.health) if hasattr(one, "records") else one for one in shown]
        for key, shown in seen.items()
    }


@given(st.lists(st.sampled_from(RECORDS), max_size=20))
def test_it_shows_what_files_show(records: list[Record]) -> None:
    """Readings, the order, whose task a key is of, and which keys there are."""
    files, memory = ledger_on(Disk()), MemoryLedger(records)
    put(files, *records)

    async def see(decide: Any) -> Any:
        return await memory.step(lambda view: (None, decide(view)))

    assert told(look(files, shown)) == told(asyncio.run(see(shown)))
    for decide in (
        lambda view: [view.task_of(key) for key in ("k0", "k1", "k2")],
        lambda view: (sorted(view.keys("t")), sorted(view.all_keys())),
    ):
        assert look(files, decide) == asyncio.run(see(decide))
    assert memory.records == tuple(records)


def test_a_chain_goes_over_it() -> None:
    """A command starts once, however often it is submitted."""
    started: list[str] = []

    class Starts:
        async def start(self, order: Order) -> None:
            started.append(order.key)

        async def look_up(self, key: str, task: str, token: int) -> bool:
            return key in started

        async def running(self, key: str) -> bool:
            return False

        async def stop(self, key: str) -> None:
            return None

    async def twice() -> list[Answer]:
        ledger = MemoryLedger()
        command = Command(key="k", task="t", function="work")
        return [await Chain(ledger=ledger, executor=Starts()).submit(command) for _ in range(2)]

    first, second = asyncio.run(twice())
    assert (first.reason, second.reason, second.result) == (Reason.CREATED, Reason.REPLAY, first.result)
    assert started == ["k"]


def test_who_started_a_key_that_was_settled_is_not_told_that_it_is_started() -> None:
    """An operator settled it in the meantime, and that is the recorded result, which nobody is told another of."""
    command = Command(key="k", task="t", function="work")
    view = MemoryView()
    for result in (None, Result(Outcome.CLOSED, Reason.SETTLED)):
        state, body = ("completed", result.to_json()) if result else ("pending", None)
        view.append(Receipt("k", "t", state, command.fingerprint, command.to_json(), body))  # type: ignore[arg-type]
    answer = receive(view, command=command, strand=Strand(1, "k", "t", started=True)).value
    assert isinstance(answer, Answer)
    assert (answer.outcome, answer.reason) == (Outcome.CLOSED, Reason.REPLAY)
