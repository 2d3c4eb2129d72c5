"""Clocks that jump, processes that stand still, leases that many renew at once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from library_world import LEASE, World, command, story
from onestart import Chain, Outcome, Reason
from onestart.executors import CommandExecutor
from onestart.jsonl.ledger import JsonlLedger
from onestart.ledgers import open_ledger
from onestart.lines import decode, encode
from onestart.records import Lease, from_body, is_over
from stores import store

HOURS = 3600.0 * 5
MANY = 64
RENEWALS = 12
DEADLINE = 60.0


@pytest.fixture(params=["jsonl", "sqlite"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    """Ledgers whose leases end by the clocks of processes; PostgreSQL has its own."""
    return World(tmp_path, store(request.param, tmp_path))


@pytest.mark.parametrize(
    ("now", "over"), [(1000, False), (1029, False), (1030, True), (970, False), (969, True), (-1e9, True), (1e9, True)]
)
def test_a_lease_runs_out_at_its_end_or_when_the_clock_goes_back(now: float, over: bool) -> None:
    """With more than twice its length to go, nobody can have meant it."""
    assert is_over(now, 1030.0, LEASE) is over
    lease = Lease("t", 1, "k", 1030.0, "p", LEASE)
    assert lease.held_at(now) == (None if over else "k")


def test_a_lease_whose_length_is_not_recorded_ends_by_the_clock_alone() -> None:
    """As records did before there was one; they can still be read."""
    body = {"task": "t", "token": 1, "holder": "k", "ends": 1030.0, "by": "p"}
    lease = from_body("lease", body)
    assert isinstance(lease, Lease)
    assert (lease.lasts, lease.held_at(-1e9), lease.held_at(1030.0)) == (0.0, "k", None)
    assert decode(encode(lease, 1, None, {})[:-1]).record == lease


@pytest.mark.parametrize("jump", [-HOURS, HOURS])
@story
async def test_a_dead_process_blocks_nobody_after_a_jump(world: World, jump: float) -> None:
    """Its lease was written before the clock jumped; the next submission starts the key, once."""
    lease = Lease("task", 1, "other", world.clock.now() + LEASE, "dead", LEASE)
    await world.ledger().step(lambda view: (lease, None))
    world.clock.seconds += jump
    answer = await world.chain().submit(command())
    assert (answer.outcome, answer.reason) == (Outcome.STARTED, Reason.CREATED)
    assert world.effects == ["payload"]


@pytest.mark.parametrize("jump", [-HOURS, HOURS])
@story
async def test_a_holder_whose_clock_jumps_writes_nothing_more(world: World, jump: float) -> None:
    """Another one takes over while it waits for its executor; the key is started once, and both are told of it."""
    release = world.line.held = asyncio.Event()
    slow = asyncio.ensure_future(world.chain().submit(command()))
    await world.until(lambda: bool(world.line.orders))
    world.clock.seconds += jump
    world.line.held = None
    answer = await world.chain().submit(command())
    assert answer.outcome is Outcome.STARTED
    release.set()
    assert (await slow).outcome is Outcome.STARTED
    assert world.effects == ["payload"]


@story
async def test_many_leases_are_renewed_at_once(world: World) -> None:
    """Sixty-four tasks wait for a slow executor through four leases; none is lost, and each renewal is shared."""
    world.line.held = asyncio.Event()
    chain = world.chain()
    works = [asyncio.ensure_future(chain.submit(command(f"k{n}", task=f"t{n}"))) for n in range(MANY)]
    await world.until(lambda: len(world.line.orders) == MANY)
    for number in range(1, RENEWALS + 1):
        await world.slept(number * MANY)
        world.clock.advance(LEASE / 3)
        await world.seen("renew", number * MANY)
    world.line.held.set()
    answers = await asyncio.gather(*works)
    assert [answer.reason for answer in answers] == [Reason.CREATED] * MANY
    assert "abandon" not in world.actions()
    assert len(world.effects) == MANY


STOPPING = """
import asyncio, os, signal, sys
from onestart import Chain, Command
from onestart.executors import CommandExecutor
from onestart.ledgers import open_ledger

class Stopping(CommandExecutor):
    async def start(self, order):
        os.kill(os.getpid(), signal.SIGSTOP)
        await super().start(order)

async def main():
    folder, address = sys.argv[1:]
    events = []
    chain = Chain(ledger=open_ledger(address), executor=Stopping(folder + "/launches"), lease_seconds=0.2,
                  observer=lambda event: events.append(event.action))
    command = Command(key="key", task="task", function="run",
                      payload={"argv": ["/bin/sh", "-c", f"echo x >> {folder}/starts"]})
    answer = await chain.submit(command)
    print(answer.outcome, answer.reason, "abandon" in events)

asyncio.run(main())
"""


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait for another process, with a deadline."""
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.005)


@pytest.mark.parametrize("scheme", ["jsonl", "sqlite"])
def test_a_process_that_stood_still_starts_and_writes_nothing(tmp_path: Path, scheme: str) -> None:
    """It is stopped between its intent and its start, until its lease has run out; another process takes over."""
    address = f"{scheme}:///{tmp_path}/ledger"
    arguments = [sys.executable, "-c", STOPPING, str(tmp_path), address]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        asked = {"argv": ["/bin/sh", "-c", f"echo x >> {tmp_path}/starts"]}
        other = command("key", asked, function="run", revision=None)

        async def submit() -> Outcome:
            executor = CommandExecutor(tmp_path / "launches")
            chain = Chain(ledger=open_ledger(address), executor=executor, lease_seconds=0.2)
            return (await chain.submit(other)).outcome

        eventually(lambda: asyncio.run(submit()) is Outcome.STARTED, "the lease does not run out")
        os.kill(process.pid, signal.SIGCONT)
        out, _ = process.communicate(timeout=DEADLINE)
    finally:
        process.kill()
        process.wait()
    assert out == "started idempotent_replay True\n"
    eventually((tmp_path / "starts").exists, "nothing was started")
    assert (tmp_path / "starts").read_text() == "x\n"


def test_leases_show_their_length(tmp_path: Path) -> None:
    """A submission records it."""
    world = World(tmp_path)

    async def submit() -> Lease | None:
        await world.chain().submit(command())
        ledger = JsonlLedger(tmp_path / "ledger")
        return await ledger.step(lambda view: (None, view.lease("task").records[0]))

    lease = asyncio.run(submit())
    assert lease is not None
    assert lease.lasts == LEASE
