"""`python -m onestart_conformance.stores.workers LEDGER FOLDER KILLS SEED`: workers that submit, and are killed.

A worker submits commands, some of which others submit too. It is killed from outside at a random moment, or kills
itself where it was told to: before or after a record of some kind is written, an event is told, a program is started.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, field

from onestart import Chain, Command, Event, Outcome
from onestart.executors import CommandExecutor
from onestart.launches import AlreadyLaunchedError
from onestart.ledgers import open_ledger
from onestart.ports import Ledger, LedgerUnavailableError, Order, View
from onestart.records import Record
from onestart_conformance.storage import POSTGRES
from onestart_conformance.stores.killing import CONNINFO

if TYPE_CHECKING:
    from onestart_conformance.stores.postgres_backends import Backends

T = TypeVar("T")

AT_ONCE = 8
LEASE = 0.4  # seconds: a killed worker's task is free soon
WINDOW = 12  # keys that are submitted at one time, each by several workers
DEADLINE = 120.0  # seconds for everything to come to its end
STARTS, AGAIN, ACKNOWLEDGED = "starts", "again", "acknowledged"
EVENTS = ("accept", "enter", "offer", "claim", "intend", "note", "start", "record", "report_dispatched", "replay")
RECORDS = (
    "receipt pending",
    "attempt offered",
    "lease ",
    "attempt intended",
    "note ",
    "session live",
    "receipt completed",
)
POINTS = (
    *(f"after {name}" for name in EVENTS),
    *(f"before {name}" for name in RECORDS),
    "before it starts",
    "once it started",
)


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@define
class MortalLedger:
    """Kills its process when a record of this kind was decided and is not written yet."""

    ledger: Ledger
    point: str

    async def step(self, decide: Callable[[View], tuple[Record | None, T]]) -> T:
        def decided(view: View) -> tuple[Record | None, T]:
            record, answer = decide(view)
            if record is not None and self.point == f"before {record.kind} {getattr(record, 'state', '')}":
                die()
            return record, answer

        return await self.ledger.step(decided)


class MortalExecutor(CommandExecutor):
    """Kills its process before or after it has started a program. It refuses second starts, which are noted."""

    point = ""
    noted: Callable[[str, str], None]

    async def start(self, order: Order) -> None:
        if self.point == "before it starts":
            die()
        try:
            await super().start(order)
        except AlreadyLaunchedError:
            self.noted(AGAIN, order.key)
            raise
        if self.point == "once it started":
            die()


@define
class Site:
    """A ledger and what is beside it, in a folder. backends: where the ledger is, if it is on a server."""

    ledger: str
    folder: Path
    seed: int
    backends: Backends | None = None

    @property
    def starts(self) -> Counter[str]:
        return self.counted(STARTS)

    def counted(self, what: str) -> Counter[str]:
        """What was noted, by key."""
        path = self.folder / what
        return Counter(path.read_text().split()) if path.exists() else Counter()

    def note(self, what: str, key: str) -> None:
        """Beside the ledger, so that nothing that happens to the ledger happens to it."""
        with (self.folder / what).open("a") as file:
            file.write(f"{key}\n")

    def command(self, number: int) -> Command:
        """Every third key has a task that it shares with others."""
        task = f"shared{number % 2}" if number % 3 == 0 else f"t{number}"
        argv = ["/bin/sh", "-c", 'echo "$0" >> "$1"', f"k{number}", str(self.folder / STARTS)]
        return Command(key=f"k{number}", task=task, function="run", payload={"argv": argv})

    def chain(self, point: str = "") -> Chain:
        """A new process."""

        def told(event: Event) -> None:
            if point == f"after {event.action}":
                die()

        executor = MortalExecutor(self.folder / "launches")
        executor.point, executor.noted = point, self.note
        ledger = self._ledger()
        mortal = MortalLedger(ledger, point) if point.startswith("before") else ledger
        return Chain(ledger=mortal, executor=executor, observer=told, lease_seconds=LEASE)

    def _ledger(self) -> Ledger:
        if self.backends is not None:
            return self.backends.ledger()
        name = "ledger" if self.ledger == "jsonl" else "ledger.sqlite"
        return open_ledger(f"{self.ledger}:///{self.folder / name}")

    def work(self, number: int, first: int, point: str) -> None:
        """What a worker does until it is killed. first: of the keys that are submitted now."""
        chance = random.Random(f"{self.seed}/{number}")  # noqa: S311
        asyncio.run(self._work(chance, first, point))

    async def _work(self, chance: random.Random, first: int, point: str) -> None:
        chain = self.chain(point)
        while True:
            wanted = [self.command(first + chance.randrange(WINDOW)) for _ in range(chance.choice((1, 1, 3)))]
            try:
                answers = await asyncio.gather(*(chain.submit(command) for command in wanted))
                for command, answer in zip(wanted, answers, strict=True):
                    if answer.outcome is Outcome.STARTED:
                        self.note(ACKNOWLEDGED, command.key)
                await chain.reconcile(wanted[0].key)
            except LedgerUnavailableError:
                if self.backends is None:
                    return
            first += chance.random() < 0.5


@define
class Supervisor:
    """Has eight workers at work, and kills one after the other."""

    site: Site
    kills: int
    chance: random.Random
    done: int = 0
    backends: int = 0
    at_points: int = 0
    born: int = 0
    workers: dict[int, bool] = field(factory=dict)
    breaches: list[str] = field(factory=list)

    def run(self) -> None:
        while self.done < self.kills:
            while len(self.workers) < AT_ONCE:
                self._bear()
            signal.sigtimedwait([signal.SIGCHLD], self.chance.uniform(0.001, 0.04))
            self._bury()
            if self.site.backends is not None and self.chance.random() < 0.25:
                self.backends += self.site.backends.end_one()
            if self.workers and self.chance.random() < 0.5:
                os.kill(self.chance.choice(list(self.workers)), signal.SIGKILL)
                self._bury()
            if self.done % 20 == 0:
                self.tell()
        for pid in self.workers:
            os.kill(pid, signal.SIGKILL)
        while self.workers:
            self._bury(0)

    def tell(self, **more: object) -> None:
        counted: dict[str, object] = {"kills": self.done, "at_points": self.at_points, "backends": self.backends}
        counted |= {"starts": self.site.starts.total(), **more}
        print(json.dumps(counted), flush=True)  # noqa: T201

    def _bear(self) -> None:
        self.born += 1
        point = self.chance.choice(POINTS) if self.chance.random() < 0.5 else ""
        first = max(1, self.born // 3)
        pid = os.fork()
        if pid == 0:
            try:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
                self.site.work(self.born, first, point)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        self.workers[pid] = bool(point)

    def _bury(self, flags: int = os.WNOHANG) -> None:
        """Take note of who has died. A worker that ends by itself has met an error, which it has printed."""
        while self.workers:
            pid, status = os.waitpid(-1, flags)
            if pid == 0:
                return
            at_point = self.workers.pop(pid)
            if os.WIFSIGNALED(status):
                self.done += 1
                self.at_points += at_point
            else:
                self.breaches.append(f"a worker ended with {os.waitstatus_to_exitcode(status)}")


async def conclude(site: Site, most: int) -> dict[str, Any]:
    """Bring every accepted command to its end, and count."""
    chain, deadline = site.chain(), time.monotonic() + DEADLINE
    keys = [number for number in range(1, most) if await chain.status(f"k{number}") is not None]
    left, answers = set(keys), dict[int, Any]()
    while left and time.monotonic() < deadline:
        await chain.recover()
        for number in sorted(left):
            answers[number] = await chain.submit(site.command(number))
            if answers[number].outcome in (Outcome.STARTED, Outcome.CLOSED):
                left.discard(number)
        if left:
            await asyncio.sleep(LEASE / 4)
    twice = [f"{key} was started {count} times" for key, count in site.starts.items() if count > 1]
    twice += [f"{key} was to be started again, {count} times" for key, count in site.counted(AGAIN).items()]
    known = {f"k{number}" for number in keys}
    lost = [f"{key} was acknowledged, and is not there" for key in site.counted(ACKNOWLEDGED) if key not in known]
    held = [f"k{number} is held for good: {answers[number].reason}" for number in sorted(left)]
    counts = {"commands": len(keys), "ended": len(keys) - len(left), "second": len(twice), "lost": len(lost)}
    return {**counts, "found": [*twice, *lost, *held]}


def main() -> None:
    ledger, folder, kills, seed = sys.argv[1:]
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # it tells of every connection that is lost
    backends = _backends(os.environ[CONNINFO]) if ledger == POSTGRES else None
    site = Site(ledger, Path(folder), int(seed), backends)
    try:
        _run(site, int(kills))
    finally:
        if backends is not None:
            backends.drop()


def _backends(conninfo: str) -> Backends:
    from onestart_conformance.stores.postgres_backends import Backends  # needs a driver that is an extra

    return Backends(conninfo, f"onestart_kills_{os.getpid()}")


def _run(site: Site, kills: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    supervisor = Supervisor(site, kills, random.Random(site.seed))  # noqa: S311
    supervisor.run()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    end = asyncio.run(conclude(site, supervisor.born * 4 + WINDOW))
    supervisor.tell(**end, breaches=[*supervisor.breaches, *end["found"]])


if __name__ == "__main__":
    main()
