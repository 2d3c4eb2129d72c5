"""How a check shows what was driven on the library."""

from __future__ import annotations

from rich.markup import escape

from onestart_check.driven import Driven
from onestart_conformance.commands.faults import show_hunts
from onestart_conformance.coverage import Coverage
from onestart_report.screen import Screen, colored
from onestart_report.verdict import Verdict


def show_driven(screen: Screen, driven: Driven) -> None:
    """Published rows, drives with how much of the graph they have been through, and seeded faults."""
    equal, kept = sum(row.equal for row in driven.rows), sum(row.kept for row in driven.rows)
    rows = len(driven.rows)
    screen.line(
        f"Published rows: {equal} of {rows} equal to what was published, "
        f"{kept} of {rows} keep their promises as shipped."
    )
    for row in (r for r in driven.rows if not (r.equal and r.kept)):
        screen.line(f"  {colored(Verdict.REFUTED)}: {escape(row.name)}")
    screen.line()
    table = [_cells(bound.name, bound.statement, walked.coverage) for bound, walked in driven.walks]
    if driven.random is not None and driven.coverage is not None:
        table.append(_cells("random", driven.random.instance.scope, driven.coverage))
    columns = ("drive", "scope", "steps of the library", "states", "steps of the model driven", "left", "never driven")
    screen.table("What was driven on the library", columns, table)
    for bound, walked in driven.walks:
        if walked.objection is not None:
            screen.line(f"{colored(Verdict.REFUTED)}: {bound.name}: {escape(str(walked.objection))}")
    if driven.random is not None and driven.random.run is not None:
        screen.line(f"{colored(Verdict.REFUTED)}: random: {escape(str(driven.random.run.objection))}")
    if driven.hunts:
        show_hunts(screen, driven.hunts, systematic=any(hunt.moves for hunt in driven.hunts))
        screen.line()


def _cells(name: str, scope: str, coverage: Coverage) -> tuple[str, ...]:
    never = [action for action, told, steps, _, _ in coverage.rows() if not told and not steps]
    allowed = f" of {sum(coverage.allowed.values()):,}" if coverage.allowed else ""
    left = "nothing" if coverage.complete else f"{coverage.left:,} moves" if coverage.left else "unbounded"
    steps = f"{sum(coverage.driven.values()):,}{allowed}"
    return (
        name,
        scope,
        f"{coverage.gates:,}",
        f"{coverage.states:,}",
        steps,
        left,
        f"{len(never)} of {len(coverage.actions)} actions",
    )
