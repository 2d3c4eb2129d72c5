"""onestart show: a counterexample file, step by step."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape

from onestart_model.catalog import CATALOG
from onestart_model.counterexample import load
from onestart_model.rules import CAN_STILL
from onestart_report.options import ModelCommand
from onestart_report.screen import Screen


@click.command(cls=ModelCommand)
@click.argument("file", type=click.Path(path_type=Path))
def show(file: Path) -> None:
    """Print a counterexample file as a story; every step is taken again on the reference machine."""
    trace = load(file, [entry.model for entry in CATALOG])
    screen = Screen()
    removed = ", ".join(sorted(trace.instance.without)) or "nothing"
    screen.line(f"model {trace.instance.model.name}, {escape(trace.instance.scope)}; removed: {escape(removed)}")
    screen.line(
        f"found by {escape(trace.source)}{'; the first state need not be reachable' if trace.inductive else ''}"
    )
    if trace.inductive:
        screen.state("before", trace.states[0].show())
    screen.story(trace)
    prop = trace.instance.model.property_named(trace.property)
    screen.line(f"the rules say: {escape(prop.statement)}")
    if prop.kind == CAN_STILL:
        screen.line("that nothing leads on from the last state, only a search can show")
    else:
        screen.line("[bold red]broken at the last step[/]" if trace.broken() else "[green]not broken by these steps[/]")
