"""The published table of the guard, and shapes of public reports, each as it was observed and as it is shipped."""

from __future__ import annotations

import pytest
from attrs import evolve

from onestart_conformance.flows.outcomes import comparable
from onestart_conformance.flows.rows import ROWS, play_row
from onestart_conformance.flows.run import examined
from onestart_conformance.flows.shapes import SHAPES, play_shape


@pytest.mark.parametrize("name", list(ROWS))
def test_a_row_shows_what_was_published(name: str) -> None:
    """Without its protection the flow does what the table says; with it, it is refused or indexed."""
    played = play_row(ROWS[name])
    assert played.bare == ROWS[name].without
    assert played.guarded == ROWS[name].shipped


def test_a_protection_makes_the_difference() -> None:
    """Rows of a protection differ in their two columns; the others hold either way."""
    for row in ROWS.values():
        assert (row.without != row.shipped) == bool(row.removed), row.name
    assert sum(not row.removed for row in ROWS.values()) == 5


def test_a_row_can_fail() -> None:
    """A row that expects something else is not said to hold."""
    assert not play_row(evolve(ROWS["run-on-llm"], shipped="L completed")).holds


def test_an_in_order_resume_writes_what_the_first_run_would_have() -> None:
    """The row's journal is compared byte for byte with that of a run without a stop."""
    world = examined(ROWS["in-order"].plan)
    assert comparable(world)
    assert world.objection is None


@pytest.mark.parametrize("name", list(SHAPES))
def test_a_reported_shape(name: str) -> None:
    """With causal ids it resumes, unless nobody can know the order; with counted ones it is refused, and nothing runs
    again but what was under way.
    """
    shaped = play_shape(SHAPES[name])
    assert shaped.holds, shaped
