"""A process of its own over one ledger in PostgreSQL: what it is told to do, as its arguments say."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from onestart import Chain, Command, Outcome
from onestart.ports import LedgerUnavailableError, Order, View
from onestart.records import Approval, Record
from onestart.sql.postgres import Limits, PostgresLedger

KEYS = 3


class Noting:
    """An executor whose every start is a line in a file that all processes append to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def start(self, order: Order) -> None:
        with self._path.open("a") as file:
            file.write(order.key + "\n")

    async def look_up(self, key: str, task: str, token: int) -> bool:
        return self._path.exists() and key in self._path.read_text().splitlines()

    async def running(self, key: str) -> bool:
        return False

    async def stop(self, key: str) -> None:
        """What is noted is over."""


async def submit(ledger: PostgresLedger, path: Path, name: str) -> None:
    """Keys that all processes submit, and keys of this one alone, until all have started."""
    chain = Chain(ledger=ledger, executor=Noting(path))
    for number in range(KEYS):
        for key in (f"same-{number}", f"own-{name}-{number}"):
            command = Command(key=key, task=f"task of {key}", function="note")
            while (await chain.submit(command)).outcome is not Outcome.STARTED:
                await asyncio.sleep(0.01)
    await chain.aclose()


async def sleep_on_it(ledger: PostgresLedger) -> None:
    """Stand still between reading and writing."""

    def decide(view: View) -> tuple[Record | None, int]:
        os.kill(os.getpid(), signal.SIGSTOP)
        return Approval("late", "task", "digest", "sleeper"), view.order

    try:
        await ledger.step(decide)
    except LedgerUnavailableError as error:
        sys.stdout.write(error.reason)
    else:
        sys.stdout.write("written")


async def once(ledger: PostgresLedger) -> None:
    """One record, in a ledger that there may not be yet."""
    order = await ledger.step(lambda view: (Approval("key", "task", "digest", "by"), view.order))
    sys.stdout.write(str(order))


def main() -> None:
    """Arguments: what to do, where the ledger is, its schema, and what that takes. Begins when it is told to."""
    what, conninfo, schema, *more = sys.argv[1:]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    ledger = PostgresLedger(conninfo, schema=schema, limits=Limits(idle=0.3))
    work = {"submit": lambda: submit(ledger, Path(more[0]), more[1]), "sleep": lambda: sleep_on_it(ledger)}
    asyncio.run((work.get(what) or (lambda: once(ledger)))())
    ledger.close()


if __name__ == "__main__":
    main()
