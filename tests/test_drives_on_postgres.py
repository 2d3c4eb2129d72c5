"""Drives over PostgreSQL: a real server, the ledger as it is shipped, its connection lost at any statement."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onestart.command_line import run
from onestart.ports import LedgerUnavailableError
from onestart.sql.postgres import PostgresLedger
from onestart_conformance.campaign import campaign
from onestart_conformance.faults import fault_named
from onestart_conformance.gates import LEDGER
from onestart_conformance.moves import Move
from onestart_conformance.postgres_storage import PostgresStorage
from onestart_conformance.rules import Rules
from onestart_conformance.runs import replay, step
from onestart_conformance.standard import chain
from onestart_conformance.storage import POSTGRES
from onestart_conformance.stories import retell, story
from onestart_conformance.world import World
from onestart_model.counterexample import CounterexampleError
from postgres_server import RealServer

SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE %s"


@pytest.fixture
def server(postgres: RealServer) -> Iterator[RealServer]:
    """On which nothing is left behind."""
    yield postgres
    assert not postgres.ask(SCHEMAS, ["onestart_drive_%"])


def rules() -> Rules:
    return Rules(chain(keys=2, processes=3))


def test_random_runs_follow_the_model(server: RealServer) -> None:
    """Interleavings, deaths, lost connections, damage: nobody objects, and all of them occur."""
    done = campaign(rules(), number=5, examples=25, ledger=server.conninfo)
    assert done.objection is None
    assert done.tally.examples == 25
    for action in ("crash", "start", "record", "damage_receipt", "lose_attempt", "expire"):
        assert done.tally.taken[action], action


def test_the_same_seed_gives_the_same_run(server: RealServer) -> None:
    """Although a server is another process, with numbers and a clock of its own."""
    first, second = (campaign(rules(), number=9, examples=6, ledger=server.conninfo) for _ in range(2))
    assert first.tally == second.tally


def test_a_fault_is_caught_and_its_story_told_again(server: RealServer) -> None:
    """The file says that it is of PostgreSQL, and not where that was: it is told again wherever one says."""
    done = campaign(rules(), fault=fault_named("one-lease-per-task"), number=0, examples=500, ledger=server.conninfo)
    assert done.objection is not None, done.others
    trace = story(done)
    assert trace.replay["ledger"] == POSTGRES
    assert server.conninfo not in json.dumps(dict(trace.replay))
    assert retell(trace, at=server.conninfo).fails
    assert not retell(trace, at=server.conninfo, shipped=True).fails
    with pytest.raises(CounterexampleError, match="--at"):
        retell(trace)


@pytest.mark.parametrize("at", [(0, 0), *((1, torn) for torn in range(7)), (2, 0), (3, 0)])
@pytest.mark.parametrize("failure", ["dies", "fails"])
def test_a_step_that_breaks_off_anywhere_is_there_or_not(server: RealServer, at: tuple[int, int], failure: str) -> None:
    """The first one, which makes the schema, and one after it: whoever comes next finds it to be one or the other."""
    for before in (0, 2):
        moves = [
            Move("call", (0, "submit", "key1", 0)),
            *[Move("open", (0, "submit key1", *gate)) for gate in GOING[:before]],
            Move("break", (0, "submit key1", LEDGER, 0, failure, *at)),
            Move("call", (1, "submit", "key1", 0)),
            *[Move("open", (1, "submit key1", *gate)) for gate in GOING for _ in range(6)],
        ]
        found = replay(rules(), moves, server.conninfo)
        assert found.objection is None
        assert any(move.name == "break" for move in found.moves)
        assert len(found.moves) > before + 4


GOING = ((LEDGER, 0, "go"), ("rule", 0, "in force"), (LEDGER, 0, "go"), ("start", 0, "go"), (LEDGER, 0, "go"))


def test_an_end_that_nobody_heard_of_is_looked_up(server: RealServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes it for done, or for not done, is caught."""

    def taken_for_done(self: PostgresLedger, lost: object, why: LedgerUnavailableError) -> None:
        pass

    monkeypatch.setattr(PostgresLedger, "_resolve", taken_for_done)
    done = campaign(rules(), number=5, examples=200, ledger=server.conninfo)
    assert done.objection is not None
    assert "broken off" in done.objection.what


def test_where_it_is_is_not_shown(server: RealServer) -> None:
    """An address may hold a password."""
    world = World(rules(), server.conninfo)
    assert isinstance(world.storage, PostgresStorage)
    step(world, Move("call", (0, "submit", "key1", 0)))
    assert server.conninfo not in f"{world} {world.storage} {world.nodes}"
    world.end()


def test_the_command_says_over_what(server: RealServer, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["drive", "--ledger", "postgres", "--at", server.conninfo, "--examples", "3"]) == 0
    assert "random drive over postgres, seed 0" in capsys.readouterr().err
    assert run(["drive", "--ledger", "postgres"]) == 2
    assert "PostgreSQL needs --at" in capsys.readouterr().err
    fault = ["--fault", "one-lease-per-task", "--save", str(tmp_path)]
    assert run(["drive", "--ledger", "postgres", "--at", server.conninfo, *fault]) == 1
    (file,) = tmp_path.iterdir()
    capsys.readouterr()
    assert run(["replay", str(file)]) == 2
    assert "say with --at where one may be" in capsys.readouterr().err
    assert run(["replay", str(file), "--at", server.conninfo]) == 1


SILENT = """
import sys
from onestart_conformance.moves import Move
from onestart_conformance.rules import Rules
from onestart_conformance.runs import replay
from onestart_conformance.standard import chain
going = [("ledger", 0, "go"), ("rule", 0, "in force"), ("ledger", 0, "go")]
moves = [
    Move("call", (0, "submit", "key1", 0)),
    *[Move("open", (0, "submit key1", *gate)) for gate in going],
    Move("break", (0, "submit key1", "ledger", 0, "fails", 2)),
]
print(len(replay(Rules(chain()), moves, sys.argv[1]).moves))
"""


def test_the_driver_says_nothing_by_itself(server: RealServer) -> None:
    """A connection that is lost in the midst of a transaction's end is told of in one place."""
    command = [sys.executable, "-W", "ignore", "-c", SILENT, server.conninfo]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert (done.stdout, done.stderr) == ("5\n", "")
