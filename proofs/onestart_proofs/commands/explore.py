"""onestart explore: all reachable states of an instance."""

from __future__ import annotations

import json
from pathlib import Path

import click
import networkx as nx
from attrs import define, field

from onestart_model.catalog import Entry
from onestart_model.counterexample import Counterexample
from onestart_model.expression import RuleError
from onestart_model.instance import Instance
from onestart_model.rules import CAN_STILL, REACHABLE, Property
from onestart_proofs.claims import exploration_claims
from onestart_proofs.commands.options import (
    Pairs,
    chosen_entry,
    instance_options,
    model_of,
    model_option,
    own_instance,
    property_option,
    without_option,
)
from onestart_proofs.evidence import describe, possibilities
from onestart_proofs.graph import to_networkx
from onestart_proofs.memory import keep_freed_memory
from onestart_proofs.search import Exploration, Limits
from onestart_proofs.search import explore as search
from onestart_proofs.traces import trace
from onestart_proofs.variants import ladder
from onestart_report.claims import Claim, overall
from onestart_report.options import ModelCommand, json_option, save_option, save_traces
from onestart_report.screen import Screen, colored
from onestart_report.verdict import Verdict


@define
class _Result:
    exploration: Exploration
    claims: list[Claim] = field(factory=list)
    traces: list[Counterexample] = field(factory=list)
    witnesses: list[Counterexample] = field(factory=list)


@click.command(cls=ModelCommand)
@model_option
@instance_options
@without_option
@property_option
@click.option("--no-symmetry", is_flag=True, help="Keep states that differ only by a renaming of elements.")
@click.option("--max-states", type=int, help="End undetermined beyond this many states.")
@click.option(
    "--max-memory", type=int, default=4000, show_default=True, metavar="MB", help="End undetermined beyond this much."
)
@click.option("--graph", type=click.Path(dir_okay=False, path_type=Path), help="Write the graph as GraphML.")
@save_option
@json_option
@click.pass_context
def explore(
    ctx: click.Context,
    model: str,
    name: str | None,
    sizes: Pairs,
    budgets: Pairs,
    limits: Pairs,
    without: tuple[str, ...],
    properties: tuple[str, ...],
    no_symmetry: bool,
    max_states: int | None,
    max_memory: int,
    graph: Path | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Search every reachable state, and check what is promised in each.

    Without sizes, standard instances are searched: if a protection is removed, one after the other until something
    fails; else the largest that has no budgets.
    """
    entry = chosen_entry(model, without, properties)
    screen = Screen(quiet=as_json)
    keep_freed_memory()
    if max_memory <= 0:
        raise RuleError(f"a limit of {max_memory} MB leaves nothing to search; give a positive number")
    bounds = Limits(max_states, max_memory * 1_000_000)
    own = own_instance(entry, name, sizes, budgets, limits, without)
    chosen = tuple(p for p in entry.model.properties if _is_asked_for(p, properties, bool(without)))
    for instance in [own] if own is not None else _instances(entry, without):
        result = _explore(screen, instance, chosen, bounds, symmetry=not no_symmetry)
        if result.traces:
            break
    result.witnesses = _witnesses(result.exploration, properties)
    if graph is not None:
        _write_graph(result.exploration, graph)
    written = save_traces(save, [*result.traces, *result.witnesses])
    _show(screen, entry, result, written, bool(without))
    if as_json:
        screen.raw(json.dumps(_document(result, written), indent=1))
    ctx.exit(overall(result.claims).value)


def _is_asked_for(prop: Property, names: tuple[str, ...], variant: bool) -> bool:
    """All of them; but without a protection no lemma, which would fail before the promise that people ask about."""
    return prop.name in names if names else not (variant and prop.supporting)


def _instances(entry: Entry, without: tuple[str, ...]) -> list[Instance]:
    if without:
        return [standard.instance(entry.model, without) for standard in ladder(entry)]
    unlimited = [s for s in ladder(entry) if not s.budgets]
    return [unlimited[-1].instance(entry.model)]


def _explore(
    screen: Screen, instance: Instance, properties: tuple[Property, ...], limits: Limits, *, symmetry: bool
) -> _Result:
    names = [p.name for p in properties]
    with screen.phase(f"searching {instance.scope}") as tell:
        exploration = search(
            instance,
            symmetry=symmetry,
            limits=limits,
            properties=names,
            report=lambda p: tell(describe(p), None),
        )
    result = _Result(exploration, exploration_claims(exploration, properties))
    violated = [s for s in exploration.sightings.values() if _kind(instance, s.property) != REACHABLE]
    result.traces += [trace(exploration, sighting) for sighting in violated]
    claims, traces = possibilities(exploration, (p for p in properties if p.kind == CAN_STILL), screen.phase)
    result.claims += claims
    result.traces += traces
    return result


def _witnesses(exploration: Exploration, names: tuple[str, ...]) -> list[Counterexample]:
    """Traces to what must be possible, only where it was asked for by name: each costs a part of the search again."""
    asked = [s for s in exploration.sightings.values() if s.property in names]
    return [trace(exploration, s) for s in asked if _kind(exploration.instance, s.property) == REACHABLE]


def _kind(instance: Instance, name: str) -> str:
    return instance.model.property_named(name).kind


def _write_graph(exploration: Exploration, path: Path) -> None:
    try:
        nx.write_graphml(to_networkx(exploration), path)
    except OSError as error:
        raise RuleError(f"{path} cannot be written: {error.strerror}") from None


def _show(screen: Screen, entry: Entry, result: _Result, written: list[Path], variant: bool) -> None:
    exploration = result.exploration
    shown = [c for c in result.claims if _is_shown(entry, c, result)]
    known = [c for c in shown if c.verdict is not Verdict.UNDETERMINED or not result.traces]
    rows = [(c.subject, colored(c.verdict), c.detail) for c in known]
    if len(known) < len(shown):
        rest = f"{len(shown) - len(known)} other properties"
        rows.append((rest, colored(Verdict.UNDETERMINED), f"the search ended with {exploration.reason}"))
    screen.line()
    screen.table(f"{entry.model.name}: {exploration.instance.scope}", ("property", "verdict", "by"), rows)
    kept = " up to symmetry" if any(c.canonical.order > 1 for c in exploration.components) else ""
    screen.line(
        f"{exploration.states:,} states{kept}, {exploration.generated:,} steps (the initial state included), "
        f"{exploration.levels} levels, {exploration.deadlocks:,} states without a step"
        + ("" if exploration.complete else f"; ended by {exploration.reason}")
    )
    for found in [*result.traces, *result.witnesses][:1]:
        screen.line()
        screen.story(found)
    screen.wrote(written)
    if result.traces and not written:
        screen.line("to keep the trace:  add --save DIR")
    idle = [name for name, count in exploration.fired.items() if not count]
    if exploration.complete and not variant and idle:
        screen.line(f"never happens here: {', '.join(idle)}")
    if not variant and not result.traces:
        screen.line(
            f"next:  onestart explore{model_of(entry)} --without PROTECTION  shows what one of them is for; "
            f"names: onestart check{model_of(entry)}"
        )


def _is_shown(entry: Entry, claim: Claim, result: _Result) -> bool:
    prop = entry.model.property_named(claim.subject)
    return not prop.supporting or any(t.property == claim.subject for t in result.traces)


def _document(result: _Result, written: list[Path]) -> dict[str, object]:
    exploration = result.exploration
    return {
        "model": exploration.instance.model.name,
        "scope": exploration.instance.scope,
        "without": sorted(exploration.instance.without),
        "states": exploration.states,
        "generated": exploration.generated,
        "never": [name for name, count in exploration.fired.items() if not count],
        "symmetry": any(c.canonical.order > 1 for c in exploration.components),
        "levels": exploration.levels,
        "deadlocks": exploration.deadlocks,
        "complete": exploration.complete,
        "reason": exploration.reason,
        "verdict": str(overall(result.claims)),
        "claims": [claim.to_json() for claim in result.claims],
        "traces": [found.to_json() for found in result.traces],
        "files": [str(path) for path in written],
    }
