"""How a check shows what was driven on the library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.markup import escape

from onestart_check.damage import Damaged
from onestart_check.driven import Driven
from onestart_check.stores import Stored
from onestart_conformance.commands.faults import show_hunts
from onestart_conformance.coverage import Coverage
from onestart_conformance.damage.systematic import Tally
from onestart_conformance.storage import JSONL
from onestart_conformance.stores.killing import Kills
from onestart_report.screen import Screen, colored
from onestart_report.verdict import Verdict

TRIED = {
    "steps": "steps followed on the model",
    "points": "crashes and losses",
    "failed": "operations that failed",
    "images": "images judged",
    "kills": "processes killed",
    "backends": "backends ended",
    "starts": "effects of those processes",
    "lost": "acknowledged and lost",
    "tried": "damages",
    "second": "second starts",
}


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


def show_tried(screen: Screen, ledgers: Sequence[str], driven: object, damaged: Damaged, stored: Stored) -> None:
    """A column for each kind of ledger: what was done to it, and how often a key was started twice."""
    steps = _steps(driven) if isinstance(driven, Driven) else {}
    followed = (TRIED["steps"], *(_sum([steps.get(name, 0)]) for name in ledgers))
    screen.table("Faults and damage tried", ("", *ledgers), [followed, *_tried(ledgers, damaged, stored)])


def _steps(driven: Driven) -> dict[str, int]:
    """Steps of the library that were followed on the model, by kind of ledger."""
    coverages = [*(walked.coverage for _, walked in driven.walks), *([driven.coverage] if driven.coverage else [])]
    return {JSONL: sum(coverage.gates for coverage in coverages)} | {n: over.steps for n, over in driven.over.items()}


def _tried(ledgers: Sequence[str], damaged: Damaged, stored: Stored) -> Iterator[tuple[str, ...]]:
    explored = {name: [one for one in stored.table.explored if one.machine == name] for name in ledgers}
    for what in ("points", "failed", "images"):
        yield TRIED[what], *(_sum(getattr(one, what) for one in explored[name]) for name in ledgers)
    for what in ("kills", "backends", "starts", "lost"):
        yield TRIED[what], *(_count(stored.killed.get(name), what) for name in ledgers)
    tallies = [damaged.tallies.get(name) for name in ledgers]
    yield TRIED["tried"], *(_sum([tally.tried]) if tally else "" for tally in tallies)
    yield TRIED["second"], *(_seconds(damaged.tallies.get(name), stored.killed.get(name)) for name in ledgers)


def _sum(numbers: Iterable[int]) -> str:
    total = sum(numbers)
    return f"{total:,}" if total else ""


def _count(kills: Kills | None, what: str) -> str:
    """What was counted where processes were killed; nothing may be lost, so that is said also where it is none."""
    number = getattr(kills, what, 0)
    if what != "lost" or kills is None:
        return _sum([number])
    return colored(Verdict.REFUTED, f"{number:,}") if number else "0"


def _seconds(tally: Tally | None, kills: Kills | None) -> str:
    """Second starts of a key, where starts were counted."""
    if tally is None and kills is None:
        return ""
    second = sum(count.starts for count in tally.counts.values()) if tally is not None else 0
    second += kills.second if kills is not None else 0
    return colored(Verdict.REFUTED, f"{second:,}") if second else "0"


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
