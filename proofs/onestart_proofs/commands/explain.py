"""onestart explain: one rule in plain words, with what it rests on."""

from __future__ import annotations

import difflib

import click
from rich.markup import escape

from onestart_model.catalog import Entry
from onestart_model.chain import CHAIN
from onestart_model.chain.axioms import AXIOMS, Axiom, axiom_named
from onestart_model.expression import RuleError, show
from onestart_model.recording import Assign, Update
from onestart_model.rules import ASSUMPTION, INVARIANT, STEP, SYSTEM, Action, Property, Protection
from onestart_proofs.commands.options import chosen_entry, model_option
from onestart_proofs.induction import Options, prove, range_invariants
from onestart_proofs.variants import ladder, without
from onestart_report.options import ModelCommand
from onestart_report.screen import Screen, colored


@click.command(cls=ModelCommand)
@click.argument("name")
@model_option
def explain(name: str, model: str) -> None:
    """Say what an invariant, an action, a protection or an axiom about stores states, where it comes from, and what it
    rests on.
    """
    entry = chosen_entry(model)
    screen = Screen()
    every: list[Action | Property | Protection] = [
        *entry.model.actions,
        *entry.model.properties,
        *entry.model.assumptions,
    ]
    rules = {rule.name: rule for rule in [*every, *range_invariants(entry.model), *entry.model.protections]}
    axiom = axiom_named(name) if entry.model is CHAIN else None
    if axiom is not None:
        _axiom(screen, axiom)
        return
    match rules.get(name):
        case Action() as action:
            _action(screen, action)
        case Property() as prop:
            _property(screen, entry, prop)
        case Protection() as protection:
            _protection(screen, entry, protection)
        case None:
            known = [*rules, *(axiom.name for axiom in AXIOMS if entry.model is CHAIN)]
            close = difflib.get_close_matches(name, known, n=3)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            raise RuleError(f"{entry.model.name} has no invariant, action or protection {name!r}{hint}")


def _axiom(screen: Screen, axiom: Axiom) -> None:
    _head(screen, f"axiom about stores ({axiom.layer})", axiom.name, axiom.statement, "")
    screen.line(f"  taken for granted by: {escape(axiom.rests)}")
    screen.line("tested on each store:  onestart stores")


def _head(screen: Screen, what: str, name: str, statement: str, source: str) -> None:
    screen.line(f"{what} [bold]{escape(name)}[/bold]")
    screen.line(f"  {escape(statement)}")
    if source:
        screen.line(f"  source: {escape(source)}")


def _action(screen: Screen, action: Action) -> None:
    who = "action of the system" if action.cause == SYSTEM else f"action of the environment ({action.cause})"
    parameters = ", ".join(f"{p.name}: {p.type}" for p in action.parameters)
    _head(screen, who, f"{action.name}({parameters})", action.statement, action.source)
    screen.line("requires")
    for guard in action.guards:
        note = f"   [dim](protection {guard.protection})[/dim]" if guard.protection else ""
        screen.line(f"  {escape(show(guard.condition))}{note}")
    screen.line("changes")
    for update in action.updates:
        screen.line(f"  {escape(_show_update(update))}")


def _show_update(update: Update) -> str:
    if isinstance(update, Assign):
        return f"{update.function}[{', '.join(map(show, update.indices))}] := {show(update.value)}"
    return f"{update.function}[{', '.join(p.name for p in update.parameters)}] := {show(update.value)} for all"


def _property(screen: Screen, entry: Entry, prop: Property) -> None:
    role = (
        "supporting invariant"
        if prop.supporting
        else {"can_still": "possibility", "step": "step invariant"}.get(prop.kind, prop.kind)
    )
    _head(screen, role, prop.name, prop.statement, prop.source)
    if prop.layer:
        screen.line(f"  layer: {prop.layer}")
    if prop.without:
        verb = "does not speak of" if prop.kind == STEP else "may not use"
        screen.line(f"  {verb}: {', '.join(sorted(prop.without))}")
    screen.line(f"states  {escape(show(prop.condition))}")
    if prop.kind == ASSUMPTION:
        screen.line("taken for granted: no proof and no search looks at anything else")
        return
    if prop.kind not in (INVARIANT, STEP):
        screen.line("shown by search:  onestart explore")
        return
    with screen.phase(f"proving {prop.name}") as tell:
        proof = prove(entry.model, properties=[prop.name], report=lambda o, n, of: tell(f"{n} of {of}", n / of))
    rows = [
        (o.action, colored(o.verdict), ", ".join(u for u in o.used if not u.startswith("guard: ")), _guards(o.used))
        for o in proof.of(prop.name)
    ]
    screen.table("Proof for all sizes", ("over", "verdict", "invariants used", "guards used"), rows)
    basis = [name for name in proof.basis(prop.name) if name != prop.name]
    if basis:
        screen.line(f"rests, directly or not, on  {', '.join(basis)}")
    screen.line(f"with all that it rests on: {colored(proof.verdict_of(prop.name))}")


def _guards(used: tuple[str, ...]) -> str:
    return escape("\n".join(u.removeprefix("guard: ") for u in used if u.startswith("guard: ")))


def _protection(screen: Screen, entry: Entry, protection: Protection) -> None:
    _head(screen, "protection", protection.name, protection.statement, "")
    users = [a.name for a in entry.model.actions if protection.name in a.protections]
    screen.line(f"  in: {', '.join(users)}")
    with screen.phase(f"removing {protection.name}") as tell:
        variant = without(
            entry.model,
            protection.name,
            ladder(entry),
            options=Options(),
            report=lambda p: tell(f"{p.states:,} states", None),
        )
    rows = [(name, f"{steps} steps") for name, steps in variant.failing.items()]
    screen.table(f"Promises broken without it ({variant.scope})", ("promise", "shortest trace"), rows)
    screen.table(
        "Obligations that are not proved without it",
        ("property", "over", "verdict"),
        [(o.property, o.action, colored(o.verdict)) for o in variant.broken],
    )
    if variant.story is not None:
        screen.story(variant.story)
