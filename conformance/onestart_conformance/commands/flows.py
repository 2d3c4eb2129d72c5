"""What commands show of flows: drives, stories, and the two tables of scenarios."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rich.markup import escape

from onestart_conformance.faults.fault import Fault
from onestart_conformance.flows.campaign import FlowCampaign, flow_campaign
from onestart_conformance.flows.faults import FLOW_FAULTS
from onestart_conformance.flows.rows import CONFLICT, MISMATCH, ROWS, Played, play_row
from onestart_conformance.flows.shapes import SHAPES, Shaped, play_shape
from onestart_conformance.flows.stories import (
    FlowStory,
    columns,
    flow_story,
    load_flow_story,
    program_lines,
    retell_flow,
    save_flow_stories,
    short,
)
from onestart_conformance.flows.systematic import FlowWalk, flow_bound, walk_flow
from onestart_conformance.flows.world import World
from onestart_model.expression import RuleError
from onestart_report.screen import Screen

BOTH = (2, 3)


def drive_flows(
    *, seed: int, examples: int, bound: str | None, most: int, fault: str | None, save: Path | None, as_json: bool
) -> int:
    """Drive flows at random, or a bounded program to the end, with both kinds of step ids. Returns the exit code."""
    screen = Screen(quiet=as_json)
    seed_fault = _fault(fault)
    start = time.perf_counter()
    if bound is None:
        done = _random(screen, seed_fault, seed, examples)
        world, document = done.world, _random_document(done)
        _show_random(screen, done)
    else:
        walks = {version: _walk(screen, bound, version, seed_fault, most) for version in BOTH}
        world = next((walk.world for walk in walks.values() if walk.world is not None), None)
        document = {f"version {version}": _walk_document(walk) for version, walk in walks.items()}
        _show_walks(screen, bound, walks)
    screen.line(f"{time.perf_counter() - start:.1f} s, seed {seed}")
    stories = [flow_story(world, seed_fault, _source(bound, seed))] if world is not None else []
    if world is not None:
        show_story(screen, world, stories[0])
    for path in save_flow_stories(save, stories):
        screen.line(f"wrote {escape(str(path))}; see it happen with  onestart replay {escape(str(path))}")
    if as_json:
        screen.raw(json.dumps({**document, "objection": stories[0].to_json() if stories else None}, indent=1))
    return 1 if stories else 0


def replay_flow(file: Path, *, shipped: bool, fault: str | None, as_json: bool) -> int:
    """Play the story in a file again. Returns the exit code: 1 while a judge objects."""
    story = load_flow_story(file)
    world = retell_flow(story, shipped=shipped, fault=fault)
    named = "" if shipped else fault or story.fault
    screen = Screen(quiet=as_json)
    screen.line(f"found by {escape(story.source)}; the library {f'with the fault {named}' if named else 'as shipped'}")
    show_story(screen, world, story)
    fails = world.objection is not None
    screen.line("[bold red]it still fails[/]" if fails else "[green]it does not fail[/]")
    if as_json:
        names, rows = columns(world)
        told = {name: [row[number] for row in rows if row[number]] for number, name in enumerate(names)}
        screen.raw(json.dumps({"fails": fails, "objection": str(world.objection or ""), "told": told}, indent=1))
    return 1 if fails else 0


def show_story(screen: Screen, world: World, story: FlowStory) -> None:
    """The program, every attempt in a column, and who objects."""
    plan = story.plan
    screen.state("The flow", program_lines(plan))
    workers = f"workers declare {plan.in_flight}{f', {plan.slots} slot each' if plan.slots else ''}"
    screen.line(f"step ids of version {plan.version}; {workers}")
    names, rows = columns(world)
    screen.table("What happens", names, [tuple(map(escape, row)) for row in rows])
    if world.objection is not None:
        screen.line(f"[bold red]{world.objection.oracle} objects[/]: {escape(short(str(world.objection)))}")


def play_flows(screen: Screen) -> tuple[list[Played], list[Shaped]]:
    """The published table of the guard, and the shapes of public reports."""
    with screen.phase("scenarios of flows") as tell:
        rows = [play_row(row) for row in ROWS.values()]
        shapes = [play_shape(shape) for shape in SHAPES.values()]
        tell(f"{len(rows)} rows, {len(shapes)} shapes", 1.0)
    return rows, shapes


def show_flows(screen: Screen, rows: list[Played], shapes: list[Shaped]) -> None:
    """Both tables."""
    table = [
        (p.row.name, p.row.statement, _without(p), _words(p.bare), _words(p.guarded), _mark(p.holds)) for p in rows
    ]
    screen.table(
        "Flows with counted ids, without one protection and as shipped",
        ("row", "what happens", "without", "shows", "as shipped", "equal"),
        table,
    )
    screen.table(
        "Flows of public reports, resumed in another order",
        ("shape", "what happens", "counted ids", "causal ids", "run again", "as said"),
        [(s.shape.name, s.shape.statement, s.counted, s.causal, str(s.rerun), _mark(s.holds)) for s in shapes],
    )
    named = [(p.row.name, p.objection) for p in rows] + [(s.shape.name, s.objection) for s in shapes]
    for name, objection in named:
        if objection:
            screen.line(f"[bold red]{name}[/]: {escape(objection)}")
    held = sum(p.holds for p in rows) + sum(s.holds for s in shapes)
    screen.line(f"flows: {held} of {len(rows) + len(shapes)} as published, or as said")


def scenarios_document(rows: list[Played], shapes: list[Shaped]) -> dict[str, Any]:
    """The same for machines."""
    return {
        "flows": [
            {
                "name": p.row.name,
                "removed": list(p.row.removed),
                "without": p.bare,
                "shipped": p.guarded,
                "holds": p.holds,
            }
            for p in rows
        ],
        "shapes": [{"name": s.shape.name, "counted": s.counted, "causal": s.causal, "holds": s.holds} for s in shapes],
    }


def _words(seen: str) -> str:
    return escape(seen.replace(MISMATCH, "refused").replace(CONFLICT, "refused as a conflict"))


def _without(played: Played) -> str:
    return ", ".join(played.row.removed) or "(holds either way)"


def _mark(holds: bool) -> str:
    return "[green]yes[/]" if holds else "[bold red]no[/]"


def _fault(name: str | None) -> Fault | None:
    if name is None:
        return None
    if name not in FLOW_FAULTS:
        raise RuleError(f"no fault of flows is called {name!r}; `onestart faults --list` shows all")
    return FLOW_FAULTS[name]


def _source(bound: str | None, seed: int) -> str:
    return f"random drive of flows, seed {seed}" if bound is None else f"systematic drive of {bound}"


def _random(screen: Screen, fault: Fault | None, seed: int, examples: int) -> FlowCampaign:
    with screen.phase(f"random drive of flows, seed {seed}") as tell:
        return flow_campaign(
            fault=fault,
            number=seed,
            examples=examples,
            report=lambda done: tell(f"{done:,} of {examples:,} runs", done / examples),
        )


def _walk(screen: Screen, name: str, version: int, fault: Fault | None, most: int) -> FlowWalk:
    bound = flow_bound(name)
    with screen.phase(f"systematic drive of {name}, version {version}") as tell:
        return walk_flow(bound, version, fault=fault, most=most, report=lambda walk: tell(f"{walk.runs:,} runs", None))


def _show_random(screen: Screen, done: FlowCampaign) -> None:
    tally = done.tally
    screen.table("How flows ended", ("", "runs"), [(name, f"{n:,}") for name, n in tally.outcomes.most_common()])
    screen.table("Calls that were made", ("kind", "calls"), [(kind, f"{n:,}") for kind, n in tally.kinds.most_common()])
    _show_followed(screen, tally.followed)
    screen.line(f"{tally.examples:,} runs, {tally.attempts:,} attempts, {tally.effects:,} effects")


def _show_walks(screen: Screen, name: str, walks: dict[int, FlowWalk]) -> None:
    rows = [
        (
            str(version),
            f"{walk.orders:,}",
            f"{walk.places:,}",
            f"{walk.runs:,}",
            f"{walk.completed:,}",
            f"{walk.refused:,}",
            "nothing" if walk.complete else "not known",
        )
        for version, walk in walks.items()
    ]
    titles = ("version", "first orders", "places to die", "runs", "completed", "refused", "left")
    screen.table(flow_bound(name).statement, titles, rows)
    _show_followed(screen, sum((walk.followed for walk in walks.values()), Counter[str]()))


def _show_followed(screen: Screen, followed: Counter[str]) -> None:
    """How many runs the model was beside, step by step, and why it was not beside the others."""
    if followed:
        rows = [(how, f"{runs:,}") for how, runs in followed.most_common()]
        screen.table("On the model of flows", ("how far a run was followed", "runs"), rows)


def _random_document(done: FlowCampaign) -> dict[str, Any]:
    tally = done.tally
    return {
        "seed": done.seed,
        "runs": tally.examples,
        "attempts": tally.attempts,
        "effects": tally.effects,
        "outcomes": dict(tally.outcomes),
        "followed": dict(tally.followed),
    }


def _walk_document(walk: FlowWalk) -> dict[str, Any]:
    counts = {"orders": walk.orders, "places": walk.places, "runs": walk.runs}
    ends = {"completed": walk.completed, "refused": walk.refused, "complete": walk.complete}
    return {**counts, **ends, "followed": dict(walk.followed)}
