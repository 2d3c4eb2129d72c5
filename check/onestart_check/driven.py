"""What a check drives on the library: published rows, drives, traces without a protection, seeded faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from typing import Protocol

from attrs import define, field, frozen

from onestart_check.over import Over
from onestart_conformance.campaign import Campaign, campaign
from onestart_conformance.coverage import Coverage, of_tally
from onestart_conformance.faults import FAULTS
from onestart_conformance.hunts import Hunt, hunt_all
from onestart_conformance.rules import Rules
from onestart_conformance.scenarios import run_all
from onestart_conformance.scenarios.row import Row
from onestart_conformance.standard import BOUNDS, Bound, bound_named, chain
from onestart_conformance.stories import Retold, retell, story
from onestart_conformance.walks import Walked, walked
from onestart_model.catalog import PROFILES
from onestart_model.counterexample import Counterexample
from onestart_proofs.evidence import Evidence, Phase
from onestart_report.claims import Claim
from onestart_report.verdict import Verdict


@frozen
class Effort:
    """How much of it a profile asks for. examples: random runs. hunts: random runs for each fault, 0 for no hunts."""

    examples: int
    moves: int
    hunts: int
    systematic: int = 0


EFFORTS: Mapping[str, Effort] = {
    "quick": Effort(examples=100, moves=5_000, hunts=0),
    "standard": Effort(examples=400, moves=25_000, hunts=2_000),
    "deep": Effort(examples=20_000, moves=300_000, hunts=2_000, systematic=20_000),
}


@define
class Driven:
    """What has been driven so far. walks: of the bounded worlds. over: further kinds of ledgers, by name.

    followed: the variants' traces, on the library.
    """

    rows: list[Row] = field(factory=list)
    random: Campaign | None = None
    coverage: Coverage | None = None
    walks: list[tuple[Bound, Walked]] = field(factory=list)
    over: dict[str, Over] = field(factory=dict)
    followed: dict[str, Retold] = field(factory=dict)
    hunts: list[Hunt] = field(factory=list)
    claims: list[Claim] = field(factory=list)
    traces: list[Counterexample] = field(factory=list)


def walks(profile: str, pool: Executor) -> dict[str, Future[Walked]]:
    """The systematic drives of a profile, under way in the pool."""
    effort = EFFORTS[profile]
    bounds = [bound for bound in BOUNDS if PROFILES.index(bound.profile) <= PROFILES.index(profile)]
    return {bound.name: pool.submit(walked, bound.name, effort.moves) for bound in bounds}


def drive(
    walking: Mapping[str, Future[Walked]],
    over: Mapping[str, Future[Over]],
    *,
    profile: str,
    seed: int,
    phase: Phase,
) -> Driven:
    """Published rows and drives. The same seed gives the same runs. walking, over: what is under way."""
    driven = Driven()
    with phase("published rows") as tell:
        driven.rows = run_all()
        tell(f"{len(driven.rows)} rows, as published and as shipped", 1.0)
    driven.claims += [_row_claim(row) for row in driven.rows]
    _random(driven, EFFORTS[profile].examples, seed, phase)
    for name, walk in walking.items():
        _walked(driven, bound_named(name), walk, phase)
    for ledger, future in over.items():
        _driven_over(driven, ledger, future, seed, phase)
    return driven


def _driven_over(driven: Driven, ledger: str, future: Future[Over], seed: int, phase: Phase) -> None:
    with phase(f"drives over {ledger}, seed {seed}") as tell:
        done = driven.over[ledger] = future.result()
        moves = f", {done.moves:,} moves of bounded worlds" if done.moves else ""
        tell(f"{done.runs:,} random runs{moves}, {done.steps:,} steps of the implementation", 1.0)
    if done.story is not None:
        scope = f"the library over {ledger}"
        driven.claims.append(Claim("library", "drives", scope, Verdict.REFUTED, done.objection))
        driven.traces.append(done.story)


def drive_without(driven: Driven, evidence: Evidence, *, profile: str, seed: int, phase: Phase, pool: Executor) -> None:
    """The library without its protections: as the model's traces say, and with each seeded fault."""
    effort = EFFORTS[profile]
    if not effort.hunts:
        return
    names = list(FAULTS)
    hunts = hunt_all(names, seed=seed, examples=effort.hunts, moves=effort.systematic, pool=pool)
    _follow(driven, evidence, phase)
    driven.hunts = hunted(hunts, len(names), seed, phase)
    driven.claims += map(hunt_claim, driven.hunts)


def _row_claim(row: Row) -> Claim:
    verdict = Verdict.PROVED if row.equal and row.kept else Verdict.REFUTED
    return Claim(row.name, "published row", "the library on a simulated disk", verdict, row.scenario.statement)


def _walked(driven: Driven, bound: Bound, walk: Future[Walked], phase: Phase) -> None:
    with phase(f"systematic drive, {bound.name}: {bound.statement}") as tell:
        done = walk.result()
        tell(f"{done.taken:,} moves, {done.situations:,} situations", None)
    driven.walks.append((bound, done))
    scope = f"the library, {bound.statement}"
    complete, left = done.coverage.complete, done.coverage.left
    detail = f"{done.taken:,} moves, {'none' if complete else f'{left:,}'} left"
    verdict = Verdict.PROVED if complete else Verdict.UNDETERMINED
    if done.story is not None:
        verdict, detail = Verdict.REFUTED, str(done.objection)
        driven.traces.append(done.story)
    if verdict is not Verdict.UNDETERMINED:
        driven.claims.append(Claim(bound.name, "systematic drive", scope, verdict, detail))


def _random(driven: Driven, examples: int, seed: int, phase: Phase) -> None:
    rules = Rules(chain())
    with phase(f"random drive, seed {seed}") as tell:
        done = campaign(
            rules,
            number=seed,
            examples=examples,
            report=lambda runs, gates: tell(f"{runs:,} runs, {gates:,} steps", runs / examples),
        )
        tell(f"{done.tally.examples:,} runs, {done.tally.gates:,} steps of the implementation", 1.0)
    driven.random, driven.coverage = done, of_tally(rules, done.tally)
    if done.run is not None and done.run.objection is not None:
        scope = f"the library, {rules.instance.scope}"
        driven.claims.append(Claim("library", "random drive", scope, Verdict.REFUTED, str(done.run.objection)))
        driven.traces.append(story(done))


def _follow(driven: Driven, evidence: Evidence, phase: Phase) -> None:
    """The traces of the model without a protection, on the library without the same protection."""
    variants = [v for v in evidence.variants if v.story is not None and v.protection in FAULTS]
    with phase("traces without a protection, on the library without it") as tell:
        for number, variant in enumerate(variants, 1):
            assert variant.story is not None
            retold = driven.followed[variant.protection] = retell(variant.story)
            tell(f"{number} of {len(variants)}: {variant.protection}", number / len(variants))
            verdict = Verdict.PROVED if retold.objection is not None else Verdict.REFUTED
            detail = str(retold.objection or retold.instead or "nobody objects")
            driven.claims.append(Claim(variant.protection, "trace on the library", variant.scope, verdict, detail))


def hunted(hunts: Iterator[Hunt], total: int, seed: int, phase: Phase) -> list[Hunt]:
    """What came of looking for each of the seeded faults."""
    done: list[Hunt] = []
    with phase(f"seeded faults, seed {seed}") as tell:
        for hunt in hunts:
            done.append(hunt)
            tell(f"{len(done)} of {total}: {hunt.fault}", len(done) / total)
    return done


class Hunter(Protocol):
    """Keeps hunts for seeded faults, with what they say."""

    hunts: list[Hunt]
    claims: list[Claim]


def hunt_down(hunter: Hunter, faults: Iterable[str], *, seed: int, examples: int, phase: Phase, pool: Executor) -> None:
    """Look for each of the seeded faults."""
    names = list(faults)
    hunts = hunt_all(names, seed=seed, examples=examples, pool=pool)
    hunter.hunts = hunted(hunts, len(names), seed, phase)
    hunter.claims += map(hunt_claim, hunter.hunts)


def hunt_claim(hunt: Hunt) -> Claim:
    """That a fault is caught by its oracle."""
    verdict = Verdict.PROVED if hunt.caught else Verdict.REFUTED
    detail = f"after {hunt.examples} runs" if hunt.caught else f"not within {hunt.examples} runs"
    return Claim(hunt.fault, "seeded fault", "the library, random drive", verdict, detail)
