"""Designs of a flow's identity compared: each promise under each design, with the shortest story where it fails.

A design is a version of the ids, without some of the protections. It is searched in several scenarios, each a small
program that is resumed once or twice; a promise holds for a design if it fails in none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from attrs import field, frozen

from onestart_model.counterexample import Counterexample
from onestart_model.flows import FLOWS
from onestart_model.flows.programs import Program, program
from onestart_model.instance import Instance
from onestart_proofs.search import MOST_MEMORY, Exploration, Limits, explore
from onestart_proofs.traces import trace
from onestart_report.claims import Claim
from onestart_report.verdict import Verdict


@frozen
class Scenario:
    """What is side by side in a program that is resumed so often."""

    name: str
    statement: str
    branches: tuple[tuple[str, ...], ...]
    spare: int = 0
    resumes: int = 1

    def program(self, version: int) -> Program:
        return program(*self.branches, version=version, spare=self.spare)


SCENARIOS = (
    Scenario("kinds", "commands and a model call", (("run a", "run b"), ("llm a",))),
    Scenario("specs", "commands that ask for different things", (("run a",), ("run b",))),
    Scenario("alike", "commands that nothing tells apart", (("run a",), ("run a",))),
    Scenario("questions", "two questions and a command", (("human a",), ("human b",), ("run a",))),
    Scenario("inputs", "two hooks with different inputs", (("hook a",), ("hook b",))),
    Scenario("watermark", "a hook beside a command", (("hook a",), ("run a",)), spare=1, resumes=2),
    Scenario("children", "a child flow and a helper effect", (("dispatch a",), ("helper a",))),
    Scenario("closing", "a body that does not wait for its command", (("run a",), ("marker",))),
)

GUARD = frozenset({"ordinal-kind", "waits-hold", "dispatches-hold", "marker-checked", "question-bound", "watermark"})
COMPLETION = frozenset({"index-at-admission"})
# What the guard of version 2 does not have as it was described.
BEYOND = frozenset({"hook-input-bound", "watermark-of-admitted", "admitted-in-order", "latch-on-conflict"})


@frozen
class Design:
    """version: of the ids. without: the protections that it does without."""

    name: str
    statement: str
    version: int
    without: frozenset[str]


DESIGNS = (
    Design("2", "ordinals and no guard", 2, GUARD | BEYOND | COMPLETION),
    Design("2g-c", "the guard as described; steps are indexed at completion", 2, BEYOND | COMPLETION),
    Design("2g-a", "the guard as described; steps are indexed at admission", 2, BEYOND),
    Design("2G-c", "the whole guard, with order, inputs and one latch; indexed at completion", 2, COMPLETION),
    Design("2G-a", "the whole guard; indexed at admission", 2, frozenset()),
    Design("3", "ids of their own and no guard", 3, GUARD | BEYOND | COMPLETION),
    Design("3G-a", "ids of their own, all protections", 3, frozenset()),
)

PARTS = tuple(
    Design(f"2G-a, no {part}", f"the whole guard without {part}", 2, frozenset({part}))
    for part in sorted(GUARD | BEYOND | COMPLETION | {"spec-bound", "effects-indexed"})
)

# The last two are no promises of version 2: that they can happen is what it costs.
PROMISES: Mapping[str, str] = {
    "a_completed_effect_is_never_executed_again": "a completed effect is never executed again",
    "an_effect_runs_twice_only_if_declared": "an effect in flight does not run twice",
    "what_is_recorded_reaches_only_who_asked_for_it": "what is recorded reaches only who asked for it",
    "a_record_keeps_its_meaning": "an id on record keeps its meaning",
    "calls_exchange_what_is_recorded": "identical calls exchange nothing",
    "a_resume_is_refused": "no resume is refused",
}


@frozen
class Cell:
    """A promise under a design. steps: of the shortest story in which it fails; in: the scenario of that story."""

    design: Design
    promise: str
    verdict: Verdict
    scenario: str = ""
    steps: int = 0
    story: Counterexample | None = field(default=None, repr=False)

    def claim(self) -> Claim:
        detail = f"fails after {self.steps} steps: {self.scenario}" if self.steps else f"in {len(SCENARIOS)} scenarios"
        scope = f"identity {self.design.name}: {self.design.statement}"
        return Claim(self.promise, "enumeration", scope, self.verdict, detail)


Report = Callable[[str, float], None]


def compare(
    designs: Iterable[Design] = DESIGNS, scenarios: Iterable[Scenario] = SCENARIOS, *, report: Report | None = None
) -> list[Cell]:
    """Every promise under every design. report: what is searched next, and the share that is done."""
    designs, scenarios = list(designs), list(scenarios)
    cells = []
    for number, design in enumerate(designs):
        found = {}
        for place, scenario in enumerate(scenarios):
            if report is not None:
                share = (number * len(scenarios) + place) / (len(designs) * len(scenarios))
                report(f"{design.name}, {scenario.name}", share)
            found[scenario.name] = _search(design, scenario)
        cells += [_cell(design, promise, found) for promise in PROMISES]
    return cells


def _search(design: Design, scenario: Scenario) -> Exploration:
    chosen = scenario.program(design.version)
    instance = Instance.of(
        FLOWS, sizes=chosen.sizes, fixed=chosen.fixed, budgets={"crash": scenario.resumes}, without=design.without
    )
    return explore(instance, properties=list(PROMISES), stop=False, limits=Limits(memory=MOST_MEMORY))


def _cell(design: Design, promise: str, found: Mapping[str, Exploration]) -> Cell:
    seen = {name: e.sightings[promise] for name, e in found.items() if promise in e.sightings}
    if not seen:
        complete = all(e.complete for e in found.values())
        return Cell(design, promise, Verdict.PROVED if complete else Verdict.UNDETERMINED)
    first = min(seen, key=lambda name: seen[name].steps())
    return Cell(design, promise, Verdict.REFUTED, first, seen[first].steps(), trace(found[first], seen[first]))
