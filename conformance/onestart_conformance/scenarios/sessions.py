"""Sessions: a record that is not there is told from one that cannot be read. Rows S0 to S2."""

from __future__ import annotations

from functools import partial

from attrs import frozen

from onestart.ports import View
from onestart.records import Session
from onestart_conformance.scenarios import corruption
from onestart_conformance.scenarios.bench import ROUND_TWO, Bench
from onestart_conformance.scenarios.corruption import Harm
from onestart_conformance.scenarios.receipts import COMMAND
from onestart_conformance.scenarios.row import Fields, Scenario


class RegistryWriteError(Exception):
    """What the experiment's registry of sessions raises for a record that is there and cannot be read."""


@frozen
class Found:
    """What such a registry comes to. error: the name of what it raised."""

    session: Session | None
    error: str | None


def find(view: View, key: str) -> Session | None:
    """The session of a key, as that registry finds it: our reading's health, in its terms."""
    reading = view.session(key)
    if reading.health.degraded:
        raise RegistryWriteError(reading.where)
    return reading.newest


def look(view: View, key: str) -> Found:
    try:
        return Found(find(view, key), None)
    except RegistryWriteError as error:
        return Found(None, type(error).__name__)


def play(bench: Bench, harm: Harm | None) -> Fields:
    """Start and damage, unless nothing was ever started; read; submit."""
    if harm is not None:
        bench.submit(COMMAND)
        harm(bench, COMMAND.key)
    found = bench.look(partial(look, key=COMMAND.key))
    preserved = bench.layers().bytes
    bench.submit(COMMAND)
    return {
        "error": found.error,
        "missing": found.error is None and found.session is None,
        "read_preserves_original_bytes": preserved,
    }


def scenario(name: str, statement: str, harm: Harm | None) -> Scenario:
    return Scenario(name, statement, partial(play, harm=harm), ROUND_TWO, gist=("error", "missing"))


SCENARIOS = (
    scenario("S0-missing", "There is no session: nothing was started.", None),
    scenario("S1-invalid-json", "The session's record cannot be parsed.", corruption.session_unparseable),
    scenario("S2-empty", "The file with the session's record is empty.", corruption.sessions_emptied),
)
