"""All the evidence for a model: proofs, enumerations, variants without a protection, and that none of it is vacuous."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager

from attrs import define, field, frozen

from onestart_model.catalog import PROFILES, Entry, Standard
from onestart_model.counterexample import Counterexample
from onestart_model.rules import CAN_STILL, REACHABLE, Property
from onestart_proofs.claims import exploration_claims, possibility_claim, proof_claims
from onestart_proofs.graph import can_still
from onestart_proofs.induction import Options, Proof, prove
from onestart_proofs.search import MOST_MEMORY, Exploration, Limits, Progress, explore
from onestart_proofs.traces import trace
from onestart_proofs.vacuity import antecedents, is_fault
from onestart_proofs.variants import Variant, promises, without_by_name
from onestart_report.claims import Claim
from onestart_report.verdict import Verdict


@frozen
class Enumerated:
    """An instance that was searched, with what a summary shows of it."""

    standard: Standard
    scope: str
    states: int
    generated: int
    levels: int
    complete: bool


@define
class Evidence:
    """What has been gathered so far."""

    entry: Entry
    proof: Proof | None = None
    enumerated: list[Enumerated] = field(factory=list)
    variants: list[Variant] = field(factory=list)
    claims: list[Claim] = field(factory=list)
    traces: list[Counterexample] = field(factory=list)
    fired: dict[str, int] = field(factory=dict)
    occurred: set[str] = field(factory=set)


Phase = Callable[[str], AbstractContextManager[Callable[[str, float | None], None]]]


def removals(entry: Entry, *, options: Options, pool: Executor) -> dict[str, Future[Variant]]:
    """The model without each of its protections, under way in the pool."""
    names = [protection.name for protection in entry.model.protections]
    return {name: pool.submit(without_by_name, entry.model.name, name, options) for name in names}


def gather(entry: Entry, *, profile: str, options: Options, phase: Phase) -> Evidence:
    """Everything that a profile asks for. phase: opens a part of the work, and takes its progress as text and share."""
    evidence = Evidence(entry)
    with phase(f"{entry.model.name}: proofs for all sizes") as tell:
        total = f"{len(entry.model.properties)} properties"
        evidence.proof = prove(
            entry.model, options=options, report=lambda o, n, of: tell(f"{n} of {of} obligations, {total}", n / of)
        )
    evidence.claims += proof_claims(evidence.proof)
    for standard in instances_for(entry, profile):
        _enumerate(evidence, standard, phase)
    _find_witnesses(evidence, phase)
    return evidence


def instances_for(entry: Entry, profile: str) -> list[Standard]:
    """The instances of a profile: its own and those of the quicker ones."""
    return [s for s in entry.instances if PROFILES.index(s.profile) <= PROFILES.index(profile)]


def _enumerate(evidence: Evidence, standard: Standard, phase: Phase) -> None:
    model = evidence.entry.model
    watched = antecedents(model)
    with phase(f"enumeration, {standard.name}: {standard.statement}") as tell:
        instance = standard.instance(model)
        exploration = explore(
            instance, watched=watched, limits=Limits(memory=MOST_MEMORY), report=lambda p: tell(describe(p), None)
        )
    _keep(evidence, standard, exploration)
    evidence.occurred |= {p.name for p in watched if p.name in exploration.sightings}
    if standard.budgets:
        return
    claims, traces = possibilities(exploration, model.of_kind(CAN_STILL), phase)
    evidence.claims += claims
    evidence.traces += traces


def possibilities(
    exploration: Exploration, properties: Iterable[Property], phase: Phase
) -> tuple[list[Claim], list[Counterexample]]:
    """What can still happen, with a trace to a state from which it cannot.

    Only a complete exploration without budgets decides it; of any other the claims are undetermined.
    """
    claims, traces = [], []
    for prop in properties:
        stuck = None
        if exploration.complete and not exploration.instance.budgets:
            with phase(f"what can still happen: {prop.name}") as tell:
                stuck = can_still(exploration, prop, report=lambda n, left: tell(f"round {n}, {left:,} left", None))
        claims.append(possibility_claim(exploration, prop, stuck))
        if stuck is not None and stuck.first is not None:
            traces.append(trace(exploration, stuck.first))
    return claims, traces


def _keep(evidence: Evidence, standard: Standard, exploration: Exploration) -> None:
    properties = evidence.entry.model.properties
    # A witness that an instance is too small for is not refuted by it; some instance has to show it.
    decided = [p for p in properties if p.kind != REACHABLE or p.name in exploration.sightings]
    evidence.claims += exploration_claims(exploration, decided)
    evidence.traces += [
        trace(exploration, exploration.sightings[p.name])
        for p in properties
        if p.name in exploration.sightings and p.kind != REACHABLE
    ]
    evidence.enumerated.append(
        Enumerated(
            standard,
            exploration.instance.scope,
            exploration.states,
            exploration.generated,
            exploration.levels,
            exploration.complete,
        )
    )
    for action, count in exploration.fired.items():
        evidence.fired[action] = evidence.fired.get(action, 0) + count


def describe(progress: Progress) -> str:
    return f"level {progress.level}, {progress.states:,} states, {progress.generated:,} steps"


def _find_witnesses(evidence: Evidence, phase: Phase) -> None:
    """Look for each reachable property in larger and larger instances, as far as it is not seen yet."""
    model = evidence.entry.model
    seen = {c.subject for c in evidence.claims if c.verdict is Verdict.PROVED}
    for prop in (p for p in model.of_kind(REACHABLE) if p.name not in seen):
        for standard in evidence.entry.instances:
            with phase(f"witness of {prop.name}, {standard.name}") as tell:
                instance = standard.instance(model)
                found = explore(instance, properties=[prop.name], report=lambda p: tell(describe(p), None))
            claims = exploration_claims(found, [prop])
            if claims[0].verdict is Verdict.PROVED:
                break
        evidence.claims += claims


def conclude(evidence: Evidence, pending: Mapping[str, Future[Variant]], phase: Phase) -> None:
    """Take in what removals have shown, and whether anything holds for nothing."""
    _variants(evidence, pending, phase)
    evidence.claims += list(_vacuity(evidence))


def _variants(evidence: Evidence, pending: Mapping[str, Future[Variant]], phase: Phase) -> None:
    with phase(f"{evidence.entry.model.name} without each of its protections") as tell:
        for number, (protection, found) in enumerate(pending.items(), 1):
            tell(f"{number} of {len(pending)}: without {protection}", number / len(pending))
            evidence.variants.append(found.result())
    for variant in evidence.variants:
        detail = f"breaks {len(variant.broken)} obligations and {len(variant.failing)} promises"
        evidence.claims.append(Claim(variant.protection, "removal", variant.scope, variant.needed, detail))


def _vacuity(evidence: Evidence) -> Iterator[Claim]:
    """Every action happens, every antecedent occurs, and every promise can fail if something is removed."""
    scope = "; ".join(e.scope for e in evidence.enumerated)
    for action in evidence.entry.model.actions:
        if not is_fault(action):
            happened = evidence.fired.get(action.name, 0) > 0
            verdict = Verdict.PROVED if happened else Verdict.UNDETERMINED
            yield Claim(action.name, "vacuity", scope, verdict, "happens" if happened else "never happens")
    if any(e.standard.profile != "quick" for e in evidence.enumerated):
        for prop in antecedents(evidence.entry.model):
            verdict = Verdict.PROVED if prop.name in evidence.occurred else Verdict.UNDETERMINED
            yield Claim(prop.name, "vacuity", scope, verdict, "occurs" if verdict is Verdict.PROVED else "never occurs")
    for name in toothless(evidence):
        yield Claim(name, "vacuity", scope, Verdict.UNDETERMINED, "no removed protection breaks it")


def toothless(evidence: Evidence) -> list[str]:
    """Promises that no removed protection breaks, so that nothing shows that they could fail."""
    broken = {name for variant in evidence.variants for name in variant.failing}
    return [p.name for p in promises(evidence.entry.model) if p.name not in broken]
