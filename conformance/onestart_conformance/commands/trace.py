"""onestart trace: do the event logs of a ledger fit the model?"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from attrs import asdict
from rich.markup import escape

from onestart import Event
from onestart.eventlog import EventLogError
from onestart_conformance.collector import seldom_collecting
from onestart_conformance.trace_book import BookError
from onestart_conformance.trace_log import Misfit, Progress, Report, check
from onestart_conformance.trace_scene import ASSUMED, INFERRED
from onestart_conformance.trace_story import NoCounterexampleError, Story, counterexample, tell
from onestart_model.instance import plural
from onestart_report.options import json_option
from onestart_report.screen import Screen

ASSUMPTIONS = "what was assumed, because an event fits only then"
LAYERS = ("bytes", "read", "callback", "attempt", "start", "effect")


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option("--save", metavar="FILE", help="Write the way to an event that does not fit as an ITF file.")
@json_option
@click.pass_context
def trace(ctx: click.Context, logs: tuple[str, ...], save: str | None, as_json: bool) -> None:
    """Check event logs against the model: all logs of one ledger, from its beginning.

    Exit code 0: they fit. 1: they do not, and the event that stops them is shown. 2: something is no event log.
    """
    _check_paths(logs)
    screen = Screen(quiet=as_json)
    try:
        with seldom_collecting():
            report, story = _followed(screen, logs)
    except (EventLogError, BookError) as error:
        raise click.UsageError(str(error)) from None
    saved = _save(report.misfit, story, save)
    if as_json:
        screen.raw(json.dumps(_document(report, story, saved), indent=1))
    else:
        _show(screen, report, story, saved)
    ctx.exit(1 if report.misfit else 0)


def _check_paths(logs: tuple[str, ...]) -> None:
    real = [os.path.realpath(path) for path in logs]
    for path in real:
        if real.count(path) > 1:
            raise click.UsageError(f"{path!a} is given twice")


def _followed(screen: Screen, logs: tuple[str, ...]) -> tuple[Report, Story]:
    with screen.phase("following the events") as told:
        progress = _progress(told)
        report = check(logs, progress=progress)
        progress(report.total, 1.0)
    if not report.total and report.misfit is None:
        raise EventLogError("there is no event in " + ", ".join(ascii(path) for path in logs))
    if report.misfit is None:
        return report, Story()
    with screen.phase("looking for the story") as told:
        return report, tell(logs, report.misfit, _progress(told))


def _progress(told: Callable[[str, float | None], None]) -> Progress:
    return lambda events, share: told(f"{events:,} events", share)


def _save(misfit: Misfit | None, story: Story, path: str | None) -> str:
    """What became of the wish to save, in a line."""
    if path is None or misfit is None:
        return ""
    try:
        counterexample(story, misfit).save(Path(path))
    except NoCounterexampleError as error:
        return f"nothing was written: {error}"
    except OSError as error:
        raise click.UsageError(f"{path!a} cannot be written: {error.strerror}") from None
    shown = path if path.isprintable() else ascii(path)
    return f"wrote {shown}; read it with  onestart show {shown}"


def _show(screen: Screen, report: Report, story: Story, saved: str) -> None:
    screen.line()
    rows = [(layer, f"{report.events[layer]:,}") for layer in LAYERS]
    screen.table("events", ("layer", "events"), [*rows, ("all", f"{report.total:,}")])
    counts = (("key", report.keys), ("task", report.tasks), ("process", report.processes))
    screen.line(", ".join(f"{count:,} {plural(name, count)}" for name, count in counts))
    for title, kinds in (("what no event tells, and the log shows", INFERRED), (ASSUMPTIONS, ASSUMED)):
        noted = [(kind, f"{report.notes[kind]:,}", _examples(report, kind)) for kind in kinds if report.notes[kind]]
        screen.table(title, ("", "times", "such as"), noted)
    for where in report.torn:
        screen.line(f"{escape(where)}: a line that was cut off is left out")
    if report.misfit is None:
        assumed = " with what was assumed" if any(report.notes[kind] for kind in ASSUMED) else ""
        screen.line(f"[green]the log fits the model{assumed}[/]")
        return
    _show_misfit(screen, report.misfit)
    _show_story(screen, report.misfit, story)
    if saved:
        screen.line(escape(saved))


def _examples(report: Report, kind: str) -> str:
    return escape("\n".join(report.examples.get(kind, [])))


def _show_misfit(screen: Screen, misfit: Misfit) -> None:
    objection = misfit.objection
    screen.line(f"[bold red]does not fit: {escape(misfit.where)}[/]")
    if misfit.event is not None:
        screen.line(f"  the event: {escape(describe(misfit.event))}")
    screen.line(f"  {objection.oracle}: {escape(objection.what)}")
    if misfit.guard:
        screen.line(f"  what stands in the way: {escape(misfit.guard)}")
    if objection.protections:
        screen.line(f"  allowed only without: {escape(' or '.join(objection.protections))}")
    if objection.promise:
        screen.line(f"  breaks: {escape(objection.promise)}")
    for line in misfit.known:
        screen.line(f"  known of {escape(line)}")


def _show_story(screen: Screen, misfit: Misfit, story: Story) -> None:
    rows = []
    for chapter in story.last:
        notes = "\n".join(f"{note.kind}: {note.what}" for note in chapter.notes)
        rows.append((escape(chapter.where), escape(describe(chapter.event)), escape(notes)))
    screen.line()
    screen.table(f"the last events of task {escape(ascii(misfit.task))}", ("where", "event", "taken in with it"), rows)


def describe(event: Event) -> str:
    """An event in a line: what, by whom, and where it stands."""
    strand = f"{event.process!a} strand {event.strand}" if event.strand else ascii(event.process)
    token = f", token {event.token}" if event.token else ""
    more = {name: event.details[name] for name in ("started", "reason", "outcome", "ends") if name in event.details}
    details = "".join(f", {name} {value!a}" for name, value in more.items())
    return f"{event.action} {event.key!a} by {strand}, record {event.order}, at {event.at}{token}{details}"


def _document(report: Report, story: Story, saved: str) -> dict[str, Any]:
    return {
        "verdict": "does not fit" if report.misfit else "fits",
        "events": report.total,
        "layers": {layer: report.events[layer] for layer in LAYERS},
        "keys": report.keys,
        "tasks": report.tasks,
        "processes": report.processes,
        "inferred": {kind: report.notes[kind] for kind in INFERRED},
        "assumed": {kind: report.notes[kind] for kind in ASSUMED},
        "examples": report.examples,
        "torn": report.torn,
        "misfit": _misfit(report.misfit, story, saved) if report.misfit else None,
    }


def _misfit(misfit: Misfit, story: Story, saved: str) -> dict[str, Any]:
    return {
        "where": misfit.where,
        "event": misfit.event.to_json() if misfit.event else None,
        "task": misfit.task,
        **asdict(misfit.objection),
        "guard": misfit.guard,
        "known": misfit.known,
        "story": [
            {"where": c.where, "event": c.event.to_json(), "notes": [f"{n.kind}: {n.what}" for n in c.notes]}
            for c in story.last
        ],
        "saved": saved,
    }
