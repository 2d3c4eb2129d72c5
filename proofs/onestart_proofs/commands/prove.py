"""onestart prove: every invariant, for any number of elements."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import click
from rich.markup import escape

from onestart_model.catalog import Entry
from onestart_model.counterexample import Counterexample
from onestart_model.expression import RuleError
from onestart_model.instance import Instance
from onestart_model.rules import INVARIANT, REACHABLE, STEP, Property
from onestart_proofs.bmc import Outcome, bounded_check
from onestart_proofs.claims import proof_claims
from onestart_proofs.commands.options import (
    Pairs,
    chosen_entry,
    chosen_options,
    instance_options,
    model_of,
    model_option,
    own_instance,
    proof_options,
    property_option,
    without_option,
)
from onestart_proofs.induction import Obligation, Options, Proof
from onestart_proofs.induction import prove as run_proof
from onestart_report.claims import ALL_SIZES, Claim, overall
from onestart_report.options import ModelCommand, json_option, save_option, save_traces
from onestart_report.screen import Screen, colored
from onestart_report.verdict import Verdict


@click.command(cls=ModelCommand)
@model_option
@without_option
@property_option
@proof_options
@click.option("--depth", type=int, help="Look for a trace of at most this many steps instead, in one instance.")
@instance_options
@save_option
@json_option
@click.pass_context
def prove(
    ctx: click.Context,
    model: str,
    without: tuple[str, ...],
    properties: tuple[str, ...],
    seed: int,
    resources: int,
    depth: int | None,
    name: str | None,
    sizes: Pairs,
    budgets: Pairs,
    limits: Pairs,
    save: Path | None,
    as_json: bool,
) -> None:
    """Prove the invariants by induction, for all sizes; or with --depth look for a short trace in one instance.

    A counterexample to induction is a step from a state that satisfies every invariant to one that does not; whether
    the first can be reached, only a search tells.
    """
    entry = chosen_entry(model, without, properties)
    options = chosen_options(seed, resources)
    screen = Screen(quiet=as_json)
    own = own_instance(entry, name, sizes, budgets, limits, without)
    if depth is None:
        if own is not None:
            raise RuleError("a proof is for all sizes; sizes belong to --depth, or to onestart explore")
        claims, traces, document = _by_induction(screen, entry, without, properties, options)
    else:
        instance = own or entry.instances[0].instance(entry.model, without)
        claims, traces, document = _bounded(screen, instance, properties, depth, options)
    written = save_traces(save, traces)
    screen.wrote(written)
    if as_json:
        screen.raw(json.dumps({**document, "files": [str(path) for path in written]}, indent=1))
    ctx.exit(overall(claims).value)


Result = tuple[list[Claim], list[Counterexample], dict[str, object]]


def _by_induction(
    screen: Screen, entry: Entry, without: tuple[str, ...], properties: tuple[str, ...], options: Options
) -> Result:
    with screen.phase(f"proving {entry.model.name} for all sizes, seed {options.seed}") as tell:
        proof = run_proof(
            entry.model,
            without=without,
            properties=properties or None,
            options=options,
            report=lambda o, n, of: tell(f"{n} of {of} obligations", n / of),
        )
    claims = proof_claims(proof)
    traces = [o.counterexample for o in proof.obligations if o.counterexample is not None]
    _show_proof(screen, entry, proof, claims)
    if traces:
        _show_induction(screen, traces[0])
    return claims, traces, _proof_document(entry, proof, claims, options)


def _show_proof(screen: Screen, entry: Entry, proof: Proof, claims: list[Claim]) -> None:
    names = {p.name: p for p in entry.model.properties}
    rows = []
    for claim in (c for c in claims if c.method == "induction"):
        rests = Counter(u for o in proof.of(claim.subject) for u in o.used if u in names and u != claim.subject)
        on = ", ".join(name for name, _ in rests.most_common(3)) + (", ..." if len(rests) > 3 else "")
        rows.append((claim.subject, _role(names.get(claim.subject)), colored(claim.verdict), escape(claim.detail), on))
    without = f" without {', '.join(sorted(proof.without))}" if proof.without else ""
    screen.line()
    screen.table(
        f"{entry.model.name}{without}, {ALL_SIZES}", ("property", "role", "verdict", "by", "rests mostly on"), rows
    )
    spent = sum(o.resources for o in proof.obligations)
    screen.line(f"{len(proof.obligations)} obligations, {spent:,} resource units: {colored(proof.verdict)}")
    if proof.possible:
        possible = [name for name, verdict in proof.possible.items() if verdict is Verdict.PROVED]
        missing = sorted(proof.possible.keys() - set(possible))
        note = f"; not {', '.join(missing)}" if missing else ""
        screen.line(f"not vacuous: {len(possible)} of {len(proof.possible)} actions are possible in such states{note}")
    option = model_of(entry)
    screen.line(
        f"next:  onestart explain{option} NAME  says what a property rests on;  "
        f"onestart explore{option}  searches for traces"
    )


def _role(prop: Property | None) -> str:
    """What a property is there for; None for the bounds of a number, which nobody wrote down as a property."""
    if prop is None:
        return "bounds"
    if prop.supporting:
        return "lemma"
    return f"promise ({prop.layer})" if prop.layer else "promise"


def _show_induction(screen: Screen, trace: Counterexample) -> None:
    screen.line()
    screen.line("[bold]First counterexample to induction[/bold] (its first state need not be reachable)")
    screen.state("before", trace.states[0].show())
    screen.story(trace)


def _proof_document(entry: Entry, proof: Proof, claims: list[Claim], options: Options) -> dict[str, object]:
    return {
        "model": entry.model.name,
        "without": sorted(proof.without),
        "seed": options.seed,
        "verdict": str(overall(claims)),
        "claims": [claim.to_json() for claim in claims],
        "obligations": [_obligation(o) for o in proof.obligations],
    }


def _obligation(obligation: Obligation) -> dict[str, object]:
    return {
        "property": obligation.property,
        "action": obligation.action,
        "verdict": str(obligation.verdict),
        "used": list(obligation.used),
        "resources": obligation.resources,
        "reason": obligation.reason,
    }


def _bounded(screen: Screen, instance: Instance, properties: tuple[str, ...], depth: int, options: Options) -> Result:
    model = instance.model
    everything = [p for p in model.of_kind(INVARIANT, STEP, REACHABLE) if not p.supporting]
    outcomes: list[Outcome] = []
    for prop in [model.property_named(name) for name in properties] or everything:
        with screen.phase(f"traces to {prop.name}, {instance.scope}") as tell:
            outcome = bounded_check(
                instance,
                prop,
                depth=depth,
                options=options,
                report=lambda d, spent: tell(f"depth {d}, {spent:,} resource units", None),
            )
        outcomes.append(outcome)
    claims = [_bounded_claim(instance, o) for o in outcomes]
    screen.line()
    rows = [(c.subject, colored(c.verdict), escape(c.detail)) for c in claims]
    screen.table(
        f"{model.name}: {instance.scope}, traces of at most {depth} steps", ("property", "verdict", "by"), rows
    )
    traces = [o.trace for o in outcomes if o.trace is not None]
    if traces:
        screen.story(min(traces, key=lambda t: len(t.steps)))
    document: dict[str, object] = {
        "model": model.name,
        "scope": instance.scope,
        "depth": depth,
        "seed": options.seed,
        "verdict": str(overall(claims)),
        "claims": [claim.to_json() for claim in claims],
    }
    return claims, traces, document


def _bounded_claim(instance: Instance, outcome: Outcome) -> Claim:
    detail = f"a trace of {outcome.depth} steps" if outcome.trace else outcome.reason
    return Claim(outcome.property, "bounded", instance.scope, outcome.verdict, detail)
