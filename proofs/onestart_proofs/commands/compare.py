"""onestart compare: what each design of a flow's identity keeps, and the shortest story where it does not."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.markup import escape

from onestart_proofs.comparison import DESIGNS, PARTS, PROMISES, SCENARIOS, Cell
from onestart_proofs.comparison import compare as search_all
from onestart_proofs.memory import keep_freed_memory
from onestart_report.options import ModelCommand, json_option, save_option, save_traces
from onestart_report.screen import Screen, colored
from onestart_report.verdict import Verdict


@click.command(cls=ModelCommand)
@save_option
@json_option
def compare(save: Path | None, as_json: bool) -> None:
    """Compare designs of a flow's identity: promises by version of the ids, guard, and when steps are indexed.

    A cell is proved for the scenarios below, or names the length of the shortest story in which the promise fails. That
    some design fails is the result, not a failure of the command.
    """
    screen = Screen(quiet=as_json)
    keep_freed_memory()
    designs = (*DESIGNS, *PARTS)
    with screen.phase(f"searching {len(designs)} designs in {len(SCENARIOS)} scenarios") as tell:
        cells = search_all(designs, SCENARIOS, report=tell)
    written = save_traces(save, [cell.story for cell in cells if cell.story is not None])
    _show(screen, cells)
    screen.wrote(written)
    if as_json:
        screen.raw(json.dumps(_document(cells, written), indent=1))


def _show(screen: Screen, cells: list[Cell]) -> None:
    found = {(cell.promise, cell.design.name): cell for cell in cells}
    rows = [
        (escape(text), *(_text(found[promise, design.name]) for design in DESIGNS))
        for promise, text in PROMISES.items()
    ]
    screen.line()
    screen.table(
        "Designs of identity: proved, or the steps of the shortest story where it fails, and its scenario",
        ("promise", *(design.name for design in DESIGNS)),
        rows,
    )
    screen.table("Version 2 without one part of the guard", ("without", "what fails first, and where"), _parts(cells))
    screen.table(
        "Designs", ("design", "ids", "what it is"), [(d.name, f"version {d.version}", d.statement) for d in DESIGNS]
    )
    screen.table(
        "Scenarios",
        ("scenario", "branches", "resumes", "what is side by side"),
        [
            (s.name, escape(" | ".join(", ".join(b) for b in s.branches)), str(s.resumes), s.statement)
            for s in SCENARIOS
        ],
    )


def _parts(cells: list[Cell]) -> list[tuple[str, str]]:
    """For each part of the guard, the promises that the whole guard keeps and that fail without it."""
    kept = {c.promise for c in cells if c.design.name == "2G-a" and c.verdict is Verdict.PROVED}
    rows = []
    for design in PARTS:
        failing = [c for c in cells if c.design is design and c.verdict is Verdict.REFUTED and c.promise in kept]
        texts = [f"{PROMISES[c.promise]}: {c.steps} {c.scenario}" for c in sorted(failing, key=lambda c: c.steps)]
        rows.append(
            (", ".join(design.without), "\n".join(texts) or colored(Verdict.PROVED, "nothing in these scenarios"))
        )
    return rows


def _text(cell: Cell) -> str:
    if cell.verdict is Verdict.REFUTED:
        return colored(cell.verdict, f"{cell.steps} {cell.scenario}")
    return colored(cell.verdict)


def _document(cells: list[Cell], written: list[Path]) -> dict[str, object]:
    return {
        "designs": [
            {"name": d.name, "statement": d.statement, "version": d.version, "without": sorted(d.without)}
            for d in (*DESIGNS, *PARTS)
        ],
        "scenarios": [
            {"name": s.name, "branches": [list(b) for b in s.branches], "resumes": s.resumes} for s in SCENARIOS
        ],
        "cells": [
            {
                "design": cell.design.name,
                "steps": cell.steps,
                "scenario": cell.scenario,
                **cell.claim().to_json(),
            }
            for cell in cells
        ],
        "files": [str(path) for path in written],
    }
