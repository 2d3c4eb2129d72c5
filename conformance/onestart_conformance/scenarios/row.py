"""A published row as a scenario: played with what the experiment had, and again as shipped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

from onestart_conformance.scenarios import published
from onestart_conformance.scenarios.bench import AS_SHIPPED, Bench, Equipment, Layers
from onestart_conformance.scenarios.promises import Shipped, judge
from onestart_conformance.scenarios.words import LAYERS

Fields: TypeAlias = dict[str, Any]


@frozen
class Scenario:
    """play: what happens, and what is observed of it, in published words. equipment: what the experiment had.

    starts: of how many keys, as shipped. gist: the published fields that say what the row is about. short: what happens
    in it, where the published name does not say so.
    """

    name: str
    statement: str
    play: Callable[[Bench], Fields] = field(repr=False)
    equipment: Equipment
    starts: int = 1
    gist: tuple[str, ...] = ("second_reason",)
    short: str = ""


@frozen
class Row:
    """published: by the first formal run. layers: of the run as published. differences: to any of the formal runs."""

    scenario: Scenario
    published: Mapping[str, Any]
    as_published: Mapping[str, Any]
    layers: Layers
    as_shipped: Shipped
    differences: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.scenario.name

    @property
    def equal(self) -> bool:
        """Whether the run as published shows what was published."""
        return not self.differences

    @property
    def kept(self) -> bool:
        """Whether the run as shipped keeps its promises."""
        return not self.as_shipped.broken

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "statement": self.scenario.statement,
            "published": dict(self.published),
            "as_published": dict(self.as_published),
            "layers": self.layers.to_json(),
            "differences": list(self.differences),
            "equal": self.equal,
            "as_shipped": self.as_shipped.to_json(),
            "kept": self.kept,
        }


def run(scenario: Scenario, *, equipment: Equipment | None = None, wholly: bool = False) -> Row:
    """Play a scenario both ways. equipment: another one than the experiment had. wholly: see `Bench`."""
    bench = Bench(equipment or scenario.equipment, wholly)
    seen = scenario.play(bench)
    shipped = Bench(AS_SHIPPED, wholly)
    scenario.play(shipped)
    formal = published.rows()[scenario.name]
    found = tuple(dict.fromkeys(text for run in formal for text in differences(run, seen)))
    return Row(scenario, formal[0], seen, bench.layers(), judge(shipped, scenario.starts), found)


def differences(published: Mapping[str, Any], seen: Mapping[str, Any]) -> Iterator[str]:
    """The fields that are not the same, with the layer that each is of."""
    for name in dict.fromkeys([*published, *seen]):
        here, there = shown(seen, name), shown(published, name)
        if here != there:
            layer = f" ({LAYERS[name]})" if name in LAYERS else ""
            yield f"{name}{layer}: published {there}, here {here}"


def shown(fields: Mapping[str, Any], name: str) -> str:
    """A field as JSON, or that there is none."""
    return json.dumps(fields[name], sort_keys=True) if name in fields else "nothing"
