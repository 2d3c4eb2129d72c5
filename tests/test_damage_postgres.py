"""Rows on a real PostgreSQL server, edited and deleted by hand: the same oracles."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from onestart_conformance.damage.drawn import draw_pairs
from onestart_conformance.damage.grammar import Edited
from onestart_conformance.damage.limits import LIMITS
from onestart_conformance.damage.postgres import PostgresMedium
from onestart_conformance.damage.prepared import prepared
from onestart_conformance.damage.systematic import Scope, Tally, cases, tried
from postgres_server import RealServer, real_server


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    with real_server() as server:
        yield server


def test_no_oracle_objects_to_rows_edited_by_hand(server: RealServer) -> None:
    """Some of every kind of damage; `onestart damage --ledger postgres --at ADDRESS` takes all."""
    medium = PostgresMedium(server.conninfo)
    ledger = prepared(medium)
    tally = Tally()
    for number, store in enumerate(("receipts", "attempts", "leases")):
        every = list(cases(ledger, store, Scope(every=1000, pairs=500, records=8)))
        edits = [case for case in every if isinstance(case[0][0], Edited)]
        for done in tried(ledger, medium, [*edits[number::11], *every[number :: len(every) // 2]]):
            tally.add(*done)
    pairs = draw_pairs(ledger, medium, number=5, examples=3)
    assert not tally.objected, tally.objected[0]
    assert not pairs.objected, pairs.objected[0]
    medium.close()
    assert "edited column" in {name for _, name in tally.counts}


def test_limits_and_a_schema_that_goes_again(server: RealServer) -> None:
    """What cannot be noticed is what it is with every database; nothing of the medium stays on the server."""
    medium = PostgresMedium(server.conninfo)
    limit = LIMITS["intent-and-note-cut-off"]
    assert limit.shown_by(limit.play(medium))
    medium.close()
    assert not server.ask("SELECT 1 FROM pg_namespace WHERE left(nspname, 15) = 'onestart_damage'")
