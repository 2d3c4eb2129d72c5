"""onestart scenarios: the published observations, played on this library as they were made, and as it is shipped."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import click
from rich.markup import escape

from onestart_conformance.commands.flows import play_flows, scenarios_document, show_flows
from onestart_conformance.scenarios.bench import Layers
from onestart_conformance.scenarios.catalog import SCENARIOS
from onestart_conformance.scenarios.row import Row, run, shown
from onestart_conformance.scenarios.words import LAYERS
from onestart_report.options import json_option
from onestart_report.screen import Screen

COLUMNS = ("row", "read", "as published", "counts", "equal", "as shipped", "counts", "damage told", "kept")
LEGEND = "counts: callbacks/attempts/starts/effects, those that were not published too"


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@json_option
def scenarios(names: tuple[str, ...], as_json: bool) -> int:
    """Play the published observations on this library: all of them, or in detail those that are named, such as R2.

    Each is played twice: as published, with the reader and the callback that the experiment had, when everything that
    was observed has to come out the same; and as shipped, when one key has at most one start, no byte is changed by
    reading, and damage is told of. Those of flows are played without one protection each, and as shipped; shapes of
    public reports with both kinds of step ids. The exit code is 0 if all of this holds, 1 if not.
    """
    chosen = list(dict.fromkeys(_named(name) for name in names)) or list(SCENARIOS)
    screen = Screen(quiet=as_json)
    with screen.phase("scenarios") as tell:
        rows = []
        for number, name in enumerate(chosen, 1):
            rows.append(run(SCENARIOS[name]))
            tell(f"{number} of {len(chosen)}", number / len(chosen))
    played, shapes = ([], []) if names else play_flows(screen)
    fine = all(row.equal and row.kept for row in rows) and all(p.holds for p in played) and all(s.holds for s in shapes)
    if as_json:
        more = {} if names else scenarios_document(played, shapes)
        screen.raw(json.dumps({"fine": fine, "rows": [row.to_json() for row in rows], **more}, indent=2))
    elif names:
        _detail(screen, rows)
    else:
        screen.table("Published observations, played on this library", COLUMNS, [_cells(row) for row in rows])
        screen.line(f"[dim]{LEGEND}[/dim]")
        _close(screen, rows)
        show_flows(screen, played, shapes)
    return 0 if fine else 1


def _named(name: str) -> str:
    """The row that is meant, by its name or by what stands before the first hyphen."""
    short = {full.split("-", 1)[0].lower(): full for full in SCENARIOS}
    known = {full.lower(): full for full in SCENARIOS} | short
    if name.lower() in known:
        return known[name.lower()]
    close = difflib.get_close_matches(name.lower(), known, n=3)
    hint = (
        f"did you mean {' or '.join(known[found] for found in close)}?" if close else f"known: {', '.join(SCENARIOS)}"
    )
    raise click.UsageError(f"no published row is called {name!r}; {hint}")


def _detail(screen: Screen, rows: Sequence[Row]) -> None:
    for row in rows:
        screen.line(f"[bold]{row.name}[/bold]  {escape(row.scenario.statement)}")
        fields = [
            (name, LAYERS.get(name, "-"), escape(shown(row.published, name)), escape(shown(row.as_published, name)))
            for name in row.published
        ]
        screen.table("As published", ("field", "layer", "published", "here"), fields)
        shipped = row.as_shipped
        screen.table(
            "As shipped",
            ("answers", "callbacks", "attempts", "starts", "effects", "damage told"),
            [
                (
                    escape("\n".join(shipped.reasons)),
                    str(shipped.layers.callback),
                    str(shipped.layers.attempt),
                    escape("\n".join(f"{key}: {number}" for key, number in shipped.starts.items()) or "none"),
                    escape("\n".join(f"{key}: {number}" for key, number in shipped.effects.items()) or "none"),
                    escape(", ".join(shipped.health) or "none"),
                )
            ],
        )
    _close(screen, rows)


def _close(screen: Screen, rows: Sequence[Row]) -> None:
    for row in rows:
        for text in row.differences:
            screen.line(f"[bold red]{row.name}[/] as published, {escape(text)}")
        for text in row.as_shipped.broken:
            screen.line(f"[bold red]{row.name}[/] as shipped, {escape(text)}")
    equal, kept = sum(row.equal for row in rows), sum(row.kept for row in rows)
    screen.line(f"as published: {_of(equal, rows)} with every field as it was observed, in both formal runs")
    screen.line(f"as shipped:   {_of(kept, rows)} with at most one start of a key, all bytes kept, all damage told")


def _of(number: int, rows: Sequence[Row]) -> str:
    color = "green" if number == len(rows) else "bold red"
    return f"[{color}]{number} of {len(rows)}[/]"


def _cells(row: Row) -> tuple[str, ...]:
    shipped = row.as_shipped
    later = shipped.reasons[1:] or shipped.reasons
    return (
        f"{row.name} [dim]{escape(row.scenario.short)}[/dim]" if row.scenario.short else row.name,
        escape(row.layers.read),
        escape(", ".join(_gist(row.as_published, row.scenario.gist))),
        _counts(row.layers),
        _mark(row.equal),
        escape(", ".join(_together(later))),
        _counts(shipped.layers),
        escape(", ".join(shipped.health) or "none"),
        _mark(row.kept),
    )


def _counts(layers: Layers) -> str:
    return f"{layers.callback}/{layers.attempt}/{layers.start}/{layers.effect}"


def _mark(holds: bool) -> str:
    return "[green]yes[/]" if holds else "[bold red]no[/]"


def _gist(fields: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """What these fields say, in words."""
    for name in names:
        match fields.get(name):
            case True:
                yield _words(name)
            case False:
                yield f"not {_words(name)}"
            case None:
                yield f"no {_words(name)}"
            case list() as several:
                yield from _together(several)
            case value:
                yield _words(str(value))


def _together(reasons: Iterable[str]) -> Iterator[str]:
    for reason, group in groupby(reasons):
        number = len(list(group))
        yield f"{number} x {_words(reason)}" if number > 1 else _words(reason)


def _words(text: str) -> str:
    """Published names can be long; in words they fit a column."""
    return re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", text)
