"""Shared by all tests: one deterministic Hypothesis profile, and a PostgreSQL server for those that ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from postgres_server import RealServer
    from stores import PostgresStore

settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")


@pytest.fixture(scope="session")
def postgres() -> Iterator[RealServer]:
    """One server for all tests of a process, started when the first asks for it."""
    from postgres_server import real_server

    with real_server() as server:
        yield server


@pytest.fixture
def kept(postgres: RealServer) -> Iterator[PostgresStore]:
    """A ledger of its own on that server."""
    from stores import PostgresStore

    kept = PostgresStore(postgres)
    yield kept
    kept.close()
