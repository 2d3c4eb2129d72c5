"""onestart check: all the evidence there is, in one summary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from onestart_check.damage import Damaged, damage, damages, drive_faults_of_damage, show_damaged
from onestart_check.driven import Driven, drive, drive_without, walks
from onestart_check.flows import FlowsDriven, drive_faults_of_flows, drive_flows, flow_walks, show_flows
from onestart_check.over import overs
from onestart_check.stores import collect, store_tests
from onestart_check.summary import show_driven, show_tried
from onestart_conformance.commands.ledgers import LEFT_OUT, chosen_ledgers, ledger_options
from onestart_conformance.commands.stores import show_axioms
from onestart_conformance.hunts import any_fault
from onestart_conformance.stories import Retold
from onestart_model.catalog import CATALOG, PROFILES
from onestart_model.chain import CHAIN
from onestart_model.flows import FLOWS
from onestart_model.rules import CAN_STILL, INVARIANT, REACHABLE, STEP
from onestart_proofs.commands.options import chosen_entry, chosen_options, model_of, proof_options
from onestart_proofs.evidence import Evidence, conclude, gather, removals
from onestart_proofs.memory import keep_freed_memory
from onestart_proofs.variants import Variant
from onestart_report.claims import ALL_SIZES, Claim, overall
from onestart_report.options import ModelCommand, json_option, save_option, save_traces
from onestart_report.pool import processes
from onestart_report.screen import Screen, colored
from onestart_report.verdict import Verdict

MOST_COLUMNS = 4  # of instances, in a table that people can read
DEFAULT = (CHAIN.name, FLOWS.name)
KNOWN = ", ".join(entry.model.name for entry in CATALOG)


@click.command(cls=ModelCommand)
@click.option("--model", "models", multiple=True, metavar="NAME", help=f"One of: {KNOWN}; repeatable. [chain, flows]")
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="standard",
    show_default=True,
    help="Which standard instances are searched.",
)
@ledger_options()
@proof_options
@save_option
@json_option
@click.pass_context
def check(
    ctx: click.Context,
    models: tuple[str, ...],
    profile: str,
    ledger: str,
    at: str,
    seed: int,
    resources: int,
    save: Path | None,
    as_json: bool,
) -> None:
    """Prove, enumerate, drive: say what holds of models and library, how far, and what each protection is for.

    On two cores a minute or two for quick, some minutes for standard, most of an hour for deep. Seeded faults are
    looked for from standard on.
    """
    entries = [chosen_entry(name) for name in dict.fromkeys(models or DEFAULT)]
    ledgers = chosen_ledgers(ledger, at)
    screen = Screen(quiet=as_json)
    keep_freed_memory()
    options = chosen_options(seed, resources)
    with processes() as pool:
        chain, flows = (any(entry.model is model for entry in entries) for model in (CHAIN, FLOWS))
        walking = walks(profile, pool) if chain else {}
        over = overs(profile, seed, pool, ledgers, at) if chain else {}
        flows_walking = flow_walks(profile, pool) if flows else {}
        storing = store_tests(profile, seed, pool, ledgers, at) if chain else {}
        pending = [removals(entry, options=options, pool=pool) for entry in entries]
        trying = damages(profile, seed, pool, ledgers, at) if chain else {}
        evidences = [gather(entry, profile=profile, options=options, phase=screen.phase) for entry in entries]
        driven: dict[str, Driven | FlowsDriven] = {}
        damaged = Damaged()
        if chain:
            driven[CHAIN.name] = drive(walking, over, profile=profile, seed=seed, phase=screen.phase)
            damaged = damage(trying, profile=profile, at=at, phase=screen.phase)
        if flows:
            driven[FLOWS.name] = drive_flows(flows_walking, profile=profile, seed=seed, phase=screen.phase)
        for evidence, variants in zip(evidences, pending, strict=True):
            conclude(evidence, variants, screen.phase)
            library = driven.get(evidence.entry.model.name)
            if isinstance(library, Driven):
                drive_without(library, evidence, profile=profile, seed=seed, phase=screen.phase, pool=pool)
                drive_faults_of_damage(damaged, profile=profile, seed=seed, phase=screen.phase, pool=pool)
                library.claims += damaged.claims
            elif isinstance(library, FlowsDriven):
                drive_faults_of_flows(library, profile=profile, seed=seed, phase=screen.phase, pool=pool)
        stored = collect(storing, profile=profile, seed=seed, at=at, phase=screen.phase)
    if chain:
        driven[CHAIN.name].claims += stored.claims
    claims = [claim for evidence in evidences for claim in evidence.claims]
    claims += [claim for one in driven.values() for claim in one.claims]
    stories = [v.story for evidence in evidences for v in evidence.variants if v.story is not None]
    traces = [trace for evidence in evidences for trace in evidence.traces]
    traces += [trace for one in driven.values() if isinstance(one, Driven) for trace in one.traces]
    written = save_traces(save, [*traces, *stories])
    for evidence in evidences:
        _show(screen, evidence, driven.get(evidence.entry.model.name))
    if chain:
        show_axioms(screen, tuple(storing), stored.table)
    show_damaged(screen, damaged)
    if chain:
        show_tried(screen, ledgers, driven.get(CHAIN.name), damaged, stored)
        if ledger == "all" and not at:
            screen.line(f"[dim]{LEFT_OUT}[/dim]")
    _close(screen, evidences, driven, written, seed)
    if as_json:
        documents = [_document(e, _claims(e, driven)) for e in evidences]
        whole = {"profile": profile, "seed": seed, "verdict": str(overall(claims)), "models": documents}
        screen.raw(json.dumps(whole, indent=1))
    ctx.exit(overall(claims).value)


def _claims(evidence: Evidence, driven: Mapping[str, Driven | FlowsDriven]) -> list[Claim]:
    """Of a model, and of the library that it is the model of."""
    library = driven.get(evidence.entry.model.name)
    return [*evidence.claims, *(library.claims if library is not None else ())]


def _show(screen: Screen, evidence: Evidence, library: Driven | FlowsDriven | None) -> None:
    driven = library if isinstance(library, Driven) else None
    screen.line()
    screen.line(f"[bold]{evidence.entry.model.name}[/bold]")
    _show_promises(screen, evidence, library)
    _show_possibilities(screen, evidence)
    _show_protections(screen, evidence, driven)
    _show_instances(screen, evidence)
    if driven is not None:
        show_driven(screen, driven)
    if isinstance(library, FlowsDriven):
        show_flows(screen, library)
    _show_vacuity(screen, evidence)
    for trace in evidence.traces[:1]:
        screen.story(trace)


def _close(
    screen: Screen,
    evidences: list[Evidence],
    driven: Mapping[str, Driven | FlowsDriven],
    written: list[Path],
    seed: int,
) -> None:
    screen.line()
    for evidence in evidences:
        verdict = overall(_claims(evidence, driven))
        screen.line(f"[bold]{evidence.entry.model.name}[/bold]: {colored(verdict)}, seed {seed}")
    screen.wrote(written)
    option = model_of(evidences[0].entry)
    screen.line(f"next:  onestart explain{option} NAME   or   onestart explore{option} --without PROTECTION")


def _claim(evidence: Evidence, subject: str, method: str, scope: str | None = None) -> Claim | None:
    found = (c for c in evidence.claims if c.subject == subject and c.method == method)
    return next((c for c in found if scope is None or c.scope == scope), None)


def _cell(claim: Claim | None, text: str | None = None) -> str:
    return "" if claim is None else colored(claim.verdict, text or f"{claim.verdict}, {claim.detail}")


def _show_promises(screen: Screen, evidence: Evidence, library: Driven | FlowsDriven | None) -> None:
    rows, lemmas = [], []
    names = tuple(e.standard.name for e in evidence.enumerated)
    instances = names if len(names) <= MOST_COLUMNS else (f"{len(names)} instances",)
    for prop in evidence.entry.model.of_kind(INVARIANT, STEP):
        proved = _claim(evidence, prop.name, "induction")
        enumerated = [_claim(evidence, prop.name, "enumeration", e.scope) for e in evidence.enumerated]
        if prop.supporting:
            lemmas += [c for c in (proved, *enumerated) if c is not None]
            continue
        cells = _enumerated_cells(enumerated)
        rows.append((prop.name, prop.layer, _cell(proved), *cells, *_driven_cell(library, prop.name)))
    verdict = overall(lemmas)
    count = len({c.subject for c in lemmas})
    rows.append(
        (
            f"{count} supporting invariant{'s' if count != 1 else ''}",
            "",
            colored(verdict),
            *([""] * len(instances)),
            *([""] if library else []),
        )
    )
    driven_column = ("the library",) if library else ()
    columns = ("promise", "layer", "all sizes", *instances, *driven_column)
    screen.table("What holds in every state, or of every step", columns, rows)


def _enumerated_cells(claims: list[Claim | None]) -> list[str]:
    """A cell for each instance, or one for all of them if there are many."""
    if len(claims) <= MOST_COLUMNS:
        return [_cell(c, str(c.verdict)) if c else "" for c in claims]
    verdict = overall([claim for claim in claims if claim is not None])
    agreeing = sum(claim is not None and claim.verdict is verdict for claim in claims)
    return [colored(verdict, str(verdict) if agreeing == len(claims) else f"{verdict} in {agreeing}")]


def _driven_cell(library: Driven | FlowsDriven | None, promise: str) -> tuple[str, ...]:
    """What drives say of a promise: how many runs kept it, and how many faults that put it at stake were found."""
    if library is None or library.random is None:
        return ()
    hunts = [hunt for hunt in library.hunts if any_fault(hunt.fault).promise == promise]
    kept = f"{library.random.tally.examples:,} runs"
    objection = library.random.objection
    if objection is not None:
        kept = colored(Verdict.REFUTED, f"{objection.oracle} objects")
    caught = f", {sum(h.caught for h in hunts)} of {len(hunts)} faults" if hunts else ""
    return (f"{kept}{caught}",)


def _show_possibilities(screen: Screen, evidence: Evidence) -> None:
    rows = []
    for prop in evidence.entry.model.of_kind(REACHABLE, CAN_STILL):
        for claim in (c for c in evidence.claims if c.subject == prop.name):
            rows.append((prop.name, colored(claim.verdict), claim.detail, claim.scope))
    screen.table("What can happen", ("property", "verdict", "by", "scope"), rows)


def _show_protections(screen: Screen, evidence: Evidence, driven: Driven | None) -> None:
    followed = driven.followed if driven else {}
    rows = [
        (v.protection, _broken(v), _failing(v), *([_on_library(followed[v.protection])] if followed else []))
        for v in evidence.variants
    ]
    library = ("the library without it",) if followed else ()
    screen.table(
        "What fails without a protection",
        ("protection", "proof fails for", "promises broken, and the steps it takes", *library),
        rows,
    )


def _on_library(retold: Retold) -> str:
    if retold.objection is None:
        return colored(Verdict.REFUTED, retold.instead or "nobody objects")
    starts = max(retold.starts.values())
    return f"breaks it at step {retold.at}" + (f", {starts} starts of one key" if starts > 1 else "")


def _broken(variant: Variant) -> str:
    if not variant.broken:
        return colored(Verdict.REFUTED, "nothing")
    first = variant.broken[0]
    more = f" and {len(variant.broken) - 1} more" if len(variant.broken) > 1 else ""
    return f"{first.property} over {first.action}{more}"


def _failing(variant: Variant) -> str:
    if not variant.failing:
        return colored(Verdict.REFUTED, "nothing")
    return "\n".join(f"{name}: {steps}" for name, steps in variant.failing.items())


def _show_instances(screen: Screen, evidence: Evidence) -> None:
    rows = [
        (e.standard.name, e.scope, f"{e.states:,}", f"{e.generated:,}", "all" if e.complete else "not all")
        for e in evidence.enumerated
    ]
    screen.table("Instances, up to symmetry", ("instance", "scope", "states", "steps", "searched"), rows)


def _show_vacuity(screen: Screen, evidence: Evidence) -> None:
    claims = [c for c in evidence.claims if c.method == "vacuity"]
    seen = [c for c in claims if c.scope != ALL_SIZES]
    occur = [c for c in seen if c.verdict is Verdict.PROVED]
    failed = [c for c in claims if c.verdict is not Verdict.PROVED]
    removed = [c for c in evidence.claims if c.method == "removal"]
    needed = [c for c in removed if c.verdict is Verdict.PROVED]
    screen.line(
        f"Not vacuous: {len(occur)} of {len(seen)} actions and antecedents occur, "
        f"{len(needed)} of {len(removed)} protections needed."
    )
    for claim in failed:
        screen.line(f"  {colored(claim.verdict)}: {claim.subject} {claim.detail}")


def _document(evidence: Evidence, claims: list[Claim]) -> dict[str, object]:
    return {
        "model": evidence.entry.model.name,
        "verdict": str(overall(claims)),
        "claims": [claim.to_json() for claim in claims],
        "instances": [
            {
                "name": e.standard.name,
                "scope": e.scope,
                "states": e.states,
                "generated": e.generated,
                "levels": e.levels,
            }
            for e in evidence.enumerated
        ],
        "protections": [
            {
                "name": v.protection,
                "obligations": [f"{o.property} over {o.action}" for o in v.broken],
                "promises": v.failing,
                "scope": v.scope,
            }
            for v in evidence.variants
        ],
    }
