"""One ledger in PostgreSQL and several processes of the operating system."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from onestart.records import STORES, Approval
from onestart_conformance.stores.killing import kill_all
from postgres_server import RealServer
from postgres_worker import KEYS
from stores import PostgresStore

WORKER = Path(__file__).parent / "postgres_worker.py"
PROCESSES = 8
HANG = 60


class Worker:
    """A process that waits to be told to begin."""

    def __init__(self, kept: PostgresStore, *what: str) -> None:
        name, *more = what
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), name, kept.server.conninfo, kept.schema, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def begin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def said(self) -> str:
        out, _ = self.process.communicate(timeout=HANG)
        assert self.process.returncode == 0
        return out.strip()


@contextmanager
def workers(kept: PostgresStore, what: list[tuple[str, ...]]) -> Iterator[list[Worker]]:
    """All ready to begin at once, and gone afterwards."""
    with ExitStack() as stack:
        made = [Worker(kept, *each) for each in what]
        for worker in made:
            stack.enter_context(worker.process)
            stack.callback(worker.process.kill)
        for worker in made:
            worker.ready()
        yield made


def test_eight_processes_start_each_key_once(kept: PostgresStore, tmp_path: Path) -> None:
    """The same key submitted by all of them starts once, and so does each that one of them has for itself."""
    starts = tmp_path / "starts"
    with workers(kept, [("submit", str(starts), str(number)) for number in range(PROCESSES)]) as made:
        for worker in made:
            worker.begin()
        for worker in made:
            worker.said()
    own = [f"own-{process}-{number}" for process in range(PROCESSES) for number in range(KEYS)]
    assert Counter(starts.read_text().splitlines()) == Counter([f"same-{number}" for number in range(KEYS)] + own)
    orders = [order for (order,) in kept.ask(" UNION ALL ".join(f'SELECT "order" FROM "{name}"' for name in STORES))]
    ((records,),) = kept.ask('SELECT "records" FROM "ledger"')
    assert sorted(orders) == list(range(1, records + 1))


def test_a_ledger_is_made_once_by_whoever_comes_first(kept: PostgresStore) -> None:
    """Eight processes that find no ledger make one, and all of them write to it."""
    with workers(kept, [("once",)] * PROCESSES) as made:
        for worker in made:
            worker.begin()
        assert sorted(int(worker.said()) for worker in made) == list(range(PROCESSES))
    assert kept.ask('SELECT "version" FROM "migrations"') == [(1,)]


def test_a_process_that_stood_still_writes_nothing(kept: PostgresStore) -> None:
    """Stopped between reading and writing, it loses the ledger to the others, and its own write when it goes on."""
    with workers(kept, [("sleep",)]) as (sleeper,):
        sleeper.begin()
        _, status = os.waitpid(sleeper.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        record = Approval("early", "task", "digest", "us")
        assert asyncio.run(kept.open().step(lambda view: (record, view.order))) == 0
        os.kill(sleeper.process.pid, signal.SIGCONT)
        assert sleeper.said().startswith("the connection was lost")
    assert [key for (key,) in kept.ask('SELECT "key" FROM "approvals"')] == ["early"]


def test_workers_may_be_killed_anywhere_and_so_may_their_backends(postgres: RealServer) -> None:
    """At most one effect for each key, and every accepted command comes to its end; the schema is gone afterwards."""
    before = postgres.ask("SELECT nspname FROM pg_namespace")
    kills = kill_all("postgres", 30, seed=0, report=lambda text, share: None, conninfo=postgres.conninfo)
    assert kills.breaches == ()
    assert kills.kills >= 30
    assert kills.backends > 0
    assert kills.ended == kills.commands >= kills.starts
    assert postgres.ask("SELECT nspname FROM pg_namespace") == before
