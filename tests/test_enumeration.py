"""Enumeration: exact counts, shortest traces, limits, and the graph."""

from __future__ import annotations

import networkx as nx
import pytest

from onestart_model import Instance, RuleError
from onestart_model.execution import explore_by_execution
from onestart_model.yardstick import YARDSTICK
from onestart_proofs import dense
from onestart_proofs.graph import can_still, to_networkx
from onestart_proofs.search import Exploration, Limits, Progress, explore
from onestart_proofs.traces import trace

PROTECTION = "no fresh offer over damage"


def yardstick(keys: int, workers: int, expiries: int, *without: str) -> Instance:
    return Instance.of(
        YARDSTICK, sizes={"Key": keys, "Worker": workers}, limits={"expiries": expiries}, without=without
    )


def counts(exploration: Exploration) -> tuple[int, int, int]:
    return exploration.states, exploration.generated, exploration.levels


@pytest.mark.parametrize(
    ("size", "expected"),
    [((2, 3, 2), (204_309, 1_041_535, 27)), ((3, 2, 1), (985_919, 5_641_510, 31))],
)
def test_the_published_counts_are_reproduced(size: tuple[int, int, int], expected: tuple[int, int, int]) -> None:
    """Eight other tools agree on these counts; a rule read wrongly, or a state lost or doubled, changes them."""
    exploration = explore(yardstick(*size), symmetry=False)
    assert counts(exploration) == expected
    assert exploration.complete
    assert not exploration.sightings


def test_symmetry_keeps_the_levels() -> None:
    """Renaming elements changes no distance, and twelve renamings save almost a factor of twelve."""
    reduced = explore(yardstick(3, 2, 1))
    assert counts(reduced) == (85_329, 486_265, 31)


def test_hashing_and_numbering_find_the_same_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of visited set are exact; the dense one only saves time."""
    numbered = explore(yardstick(2, 2, 1), symmetry=False)
    monkeypatch.setattr(dense, "MOST_ENTRIES", 0)
    hashed = explore(yardstick(2, 2, 1), symmetry=False)
    assert isinstance(numbered.components[0].visited, dense.DenseVisited)
    assert not isinstance(hashed.components[0].visited, dense.DenseVisited)
    assert counts(numbered) == counts(hashed) == (12_507, 51_567, 21)


def test_execution_and_enumeration_count_alike() -> None:
    """The plain reference machine reaches as many states, as far away."""
    instance = yardstick(1, 2, 1)
    distances = explore_by_execution(instance)
    exploration = explore(instance, symmetry=False)
    assert (len(distances), max(distances.values()) + 1) == (exploration.states, exploration.levels)


def test_the_removed_protection_gives_the_shortest_story() -> None:
    """With the published BUG a key starts twice; no shorter trace exists, and the reference machine repeats it."""
    exploration = explore(yardstick(2, 2, 1, PROTECTION), properties=["at_most_one_start"])
    sighting = exploration.sightings["at_most_one_start"]
    story = trace(exploration, sighting)
    assert len(story.steps) == sighting.level == 10
    assert story.broken()
    assert [s.action for s in story.steps].count("start") == 2
    assert exploration.reason == "a violation"


def test_a_limit_ends_undetermined() -> None:
    """What was not searched is not claimed; the limit is named."""
    by_states = explore(yardstick(2, 2, 1), limits=Limits(states=100))
    assert not by_states.complete
    assert by_states.reason == "the limit of 100 states"
    assert by_states.states >= 100
    by_memory = explore(yardstick(2, 2, 1), limits=Limits(memory=1))
    assert by_memory.reason.startswith("the limit of")
    for bad in ({"states": 0}, {"memory": -1}):
        with pytest.raises(RuleError, match="leaves nothing to search"):
            Limits(**bad)


def test_progress_is_reported_level_by_level() -> None:
    """Whoever waits sees the search move."""
    seen: list[Progress] = []
    exploration = explore(yardstick(1, 1, 1), report=seen.append)
    assert [p.level for p in seen] == list(range(1, exploration.levels + 1))
    assert seen[-1].states == exploration.states
    assert seen[-1].frontier == 0


def test_states_without_a_step_are_counted() -> None:
    """Every way of the yardstick ends: with all keys terminal nothing can happen any more."""
    exploration = explore(yardstick(1, 1, 0))
    graph = to_networkx(exploration)
    assert exploration.deadlocks == sum(1 for _, degree in graph.out_degree() if degree == 0) == 4


def test_the_graph_is_that_of_the_search() -> None:
    """networkx sees the same nodes, edges and distances."""
    exploration = explore(yardstick(1, 2, 1))
    graph = to_networkx(exploration)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (exploration.states, exploration.generated - 1)
    distances = nx.single_source_shortest_path_length(graph, (0, 0))
    assert distances == dict(graph.nodes(data="level"))
    assert set(nx.get_edge_attributes(graph, "action").values()) == {n for n, c in exploration.fired.items() if c}


def test_what_can_still_happen_needs_a_complete_search() -> None:
    """A state that was not visited might be the way out, or the dead end."""
    from onestart_model.catalog import entry

    chain = entry("chain")
    prop = chain.model.property_named("every_accepted_command_can_end")
    partial = explore(chain.standard("single").instance(chain.model), limits=Limits(states=100))
    with pytest.raises(RuleError, match="only known of a complete exploration"):
        can_still(partial, prop)
    with pytest.raises(RuleError, match="does not say what can still happen"):
        can_still(partial, chain.model.property_named("one_key_at_most_one_start"))


def test_too_large_instances_are_refused() -> None:
    """A size that could not be searched is said at once, not after the memory is gone."""
    with pytest.raises(RuleError, match="the instance is too large: 3628800 renamings"):
        explore(yardstick(10, 1, 1))
    with pytest.raises(RuleError, match="do not fit 16 bits"):
        explore(yardstick(1, 1, 10**6), symmetry=False)
