"""onestart replay: a counterexample of any source, made to happen on the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from attrs import asdict
from rich.markup import escape

from onestart_conformance.commands.flows import replay_flow
from onestart_conformance.commands.ledgers import at_option, reach
from onestart_conformance.flows.follow import follow_flow
from onestart_conformance.flows.stories import is_flow_story
from onestart_conformance.judgement import Objection
from onestart_conformance.stories import Retold, retell
from onestart_model.catalog import CATALOG
from onestart_model.counterexample import Counterexample, load
from onestart_report.options import ModelCommand, json_option
from onestart_report.screen import Screen


@click.command(cls=ModelCommand)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--shipped", is_flag=True, help="The library as it is, without the fault that the file names.")
@click.option("--fault", metavar="NAME", help="With this seeded fault instead.")
@at_option
@json_option
@click.pass_context
def replay(ctx: click.Context, file: Path, shipped: bool, fault: str | None, at: str, as_json: bool) -> None:
    """Show a counterexample on the implementation; exit code 1 while it still fails, 0 once it does not.

    A file from a drive says which moves make it happen. A trace that was found by proof or enumeration is followed: for
    each step the moves are looked for that make the library take it. If the model lacked a protection, the library
    does too: the fault of the same name is seeded. A file of a flow is played again, attempt beside attempt.
    """
    if shipped and fault:
        raise click.UsageError("--shipped means no fault; give either it or --fault")
    if is_flow_story(file):
        ctx.exit(replay_flow(file, shipped=shipped, fault=fault, as_json=as_json))
    trace = load(file, [entry.model for entry in CATALOG])
    retold = _retold(trace, shipped=shipped, fault=fault, at=at)
    screen = Screen(quiet=as_json)
    _show(screen, trace, retold, _library(trace, shipped, fault))
    if as_json:
        screen.raw(json.dumps(_document(retold), indent=1))
    ctx.exit(1 if retold.fails else 0)


def _retold(trace: Counterexample, *, shipped: bool, fault: str | None, at: str) -> Retold:
    if trace.instance.model.name == "flows":
        return follow_flow(trace, shipped=shipped, fault=fault)
    if trace.instance.model.name != "chain":
        raise click.UsageError(f"it is of the model {trace.instance.model.name}, which no library implements")
    if at:
        reach(at)
    return retell(trace, shipped=shipped, fault=fault, at=at)


def _library(trace: Counterexample, shipped: bool, fault: str | None) -> str:
    named = fault or str(trace.replay.get("fault", "")) or ", ".join(sorted(trace.instance.without))
    return "as shipped" if shipped or not named else f"with the fault {named}"


def _show(screen: Screen, trace: Counterexample, retold: Retold, library: str) -> None:
    screen.line(f"{escape(trace.instance.scope)}; found by {escape(trace.source)}; the library {escape(library)}")
    rows = [
        (str(number), escape(told.move), "\n".join(map(escape, told.steps)), "\n".join(map(escape, told.changes)))
        for number, told in enumerate(retold.told, 1)
    ]
    screen.table("What happens", ("#", "what happens", "step of the model", "what it changes"), rows)
    if retold.noticed is not None:
        _objection(screen, f"[yellow]step {retold.noticed_at}[/]", retold.noticed)
    if retold.objection is not None:
        _objection(screen, f"[bold red]step {retold.at}[/]", retold.objection)
    if retold.instead:
        screen.line(f"[green]not followed beyond step {len(retold.told)}[/]: {escape(retold.instead)}")
    starts = ", ".join(f"{key} {count}" for key, count in retold.starts.items())
    screen.line(f"started by the executor: {starts}")
    screen.line("[bold red]it still fails[/]" if retold.fails else "[green]it does not fail[/]")


def _objection(screen: Screen, where: str, objection: Objection) -> None:
    first, *more = str(objection).split("; ")
    screen.line(f"{where}: {escape(first)}")
    for text in more:
        screen.line(f"        {escape(text)}")


def _document(retold: Retold) -> dict[str, Any]:
    return {**asdict(retold), "fails": retold.fails}
