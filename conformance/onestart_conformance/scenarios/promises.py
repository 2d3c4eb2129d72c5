"""What every scenario has to show of the library as it is shipped, whatever was damaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from onestart import Answer, Reason
from onestart_conformance.scenarios.bench import Bench, Heard, Layers

TELLING: Mapping[Reason, str] = {  # reasons that are a report in themselves
    Reason.RECEIPTS_UNAVAILABLE: "receipts unavailable",
}


@frozen
class Shipped:
    """What came of a scenario as shipped.

    reasons: of all answers but those before any damage. health: what the answers said of it. starts, effects: by key.
    broken: the promises that were not kept, in words.
    """

    reasons: tuple[str, ...]
    health: tuple[str, ...]
    layers: Layers
    starts: Mapping[str, int]
    effects: Mapping[str, int]
    broken: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "reasons": list(self.reasons),
            "health": list(self.health),
            "layers": self.layers.to_json(),
            "starts": dict(self.starts),
            "effects": dict(self.effects),
            "broken": list(self.broken),
        }


def judge(bench: Bench, starts: int) -> Shipped:
    """Hold a run against the promises. starts: how many there have to be in all, of as many keys."""
    health = {text for heard in bench.heard for text in reported(heard.answer)}
    return Shipped(
        reasons=tuple(bench.said(heard.answer) for heard in bench.heard),
        health=tuple(sorted(health)),
        layers=bench.layers(),
        starts=dict(bench.starts),
        effects=dict(bench.effects),
        broken=tuple(broken(bench, starts)),
    )


def broken(bench: Bench, starts: int) -> Iterator[str]:
    """The promises that a run does not keep."""
    for what, counted in (("starts", bench.starts), ("effects", bench.effects)):
        yield from (f"{key} had {number} {what}" for key, number in counted.items() if number > 1)
    if len(bench.starts) != starts:
        yield f"{len(bench.starts)} keys were started, and {starts} have to be"
    if not bench.kept:
        yield "reading changed bytes"
    yield from bench.rewritten
    for heard in bench.heard:
        yield from _health(heard)
    if bench.harmed and not any(heard.damaged for heard in bench.heard):
        yield "nobody was answered after the damage"


def _health(heard: Heard) -> Iterator[str]:
    said = f"{heard.key} was answered {heard.answer.reason}"
    if heard.damaged and not reported(heard.answer):
        yield f"{said}, and the damage was not reported"
    if not heard.damaged and any(finding.concerns for finding in heard.answer.findings):
        yield f"{said}, and damage was reported where none is"


def reported(answer: Answer) -> tuple[str, ...]:
    """What an answer tells of damage."""
    found = [f"{f.store} {f.health.replace('_', ' ')}{'' if f.concerns else ' (whose?)'}" for f in answer.findings]
    return tuple(dict.fromkeys([*found, *([TELLING[answer.reason]] if answer.reason in TELLING else [])]))
