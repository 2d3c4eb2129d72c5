"""onestart stores: the axioms about stores, put to each ledger."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from typing import Any

import click
from rich.markup import escape

from onestart_conformance.commands.ledgers import chosen_ledgers, ledger_options
from onestart_conformance.standard import SEED
from onestart_conformance.storage import POSTGRES
from onestart_conformance.stores.killing import Kills, kill_all
from onestart_conformance.stores.suite import (
    HOLDS,
    LIMITS,
    NOT_APPLICABLE,
    PLANS,
    REFUTED,
    ROWS,
    Part,
    Table,
    parts,
    try_part,
)
from onestart_model.catalog import PROFILES
from onestart_report.options import ModelCommand, json_option
from onestart_report.pool import JOBS, processes
from onestart_report.screen import Screen, colored
from onestart_report.verdict import Verdict

MEMORY = "memory"
KILLS = {"quick": 0, "standard": 100, "deep": 2000}


@click.command(cls=ModelCommand)
@ledger_options(MEMORY)
@click.option("--profile", type=click.Choice(PROFILES), default="quick", show_default=True, help="How much is tried.")
@click.option("--kills", type=click.IntRange(0), help="How many processes are killed. [0, 100 or 2000 by profile]")
@click.option("--jobs", default=JOBS, show_default=True, type=click.IntRange(1, 64), help="Processes at work.")
@click.option("--seed", default=SEED, show_default=True, help="The same seed gives the same crashes.")
@json_option
@click.pass_context
def stores(
    ctx: click.Context, ledger: str, at: str, profile: str, kills: int | None, jobs: int, seed: int, as_json: bool
) -> None:
    """Put the axioms about stores to each ledger: one at a time, crashes at every operation, operations that fail,
    power failures that keep any part, and processes that are killed.

    Exit code 1 if an axiom does not hold.
    """
    screen = Screen(quiet=as_json)
    chosen = chosen_ledgers(ledger, at, MEMORY)
    start, table, killed = time.perf_counter(), Table(), dict[str, Kills]()
    wanted = KILLS[profile] if kills is None else kills
    with nullcontext() if jobs == 1 else processes(jobs) as pool:
        for name in chosen:
            with screen.phase(f"{name}, {profile}, seed {seed}") as tell:
                table.add(_tried(parts(name, PLANS[profile], seed=seed, at=at), pool, tell))
            if wanted and name != MEMORY:
                with screen.phase(f"{name}, {wanted:,} kills") as tell:
                    killed[name] = kill_all(name, wanted, seed=seed, report=tell, conninfo=at)
    show_axioms(screen, chosen, table)
    _show_crashes(screen, chosen, table)
    _show_kills(screen, killed)
    bad = bool(table.refuted) or any(kills.breaches for kills in killed.values())
    screen.line(f"{'an axiom does not hold' if bad else 'no axiom is refuted'}, seed {seed}, {_time(start)}")
    screen.line("next:  onestart explain AXIOM   or   onestart stores --profile standard")
    if as_json:
        screen.raw(json.dumps(_document(table, killed, seed), indent=1))
    ctx.exit(1 if bad else 0)


def _tried(every: list[Part], pool: Executor | None, tell: Callable[[str, float], None]) -> Table:
    table = Table()
    tables = map(try_part, every) if pool is None else pool.map(try_part, every)
    for number, (part, done) in enumerate(zip(every, tables, strict=True), 1):
        table.add(done)
        tell(part.name, number / len(every))
    return table


def _time(start: float) -> str:
    return f"{time.perf_counter() - start:.0f} s"


def show_axioms(screen: Screen, ledgers: Sequence[str], table: Table) -> None:
    """A row for each axiom, a column for each ledger."""
    rows = [(axiom, *(_cell(table, axiom, ledger) for ledger in ledgers)) for axiom in ROWS]
    screen.table("What is taken for granted of stores", ("axiom", *ledgers), rows)
    for one in table.tested.values():
        if one.verdict == REFUTED:
            screen.line(f"{colored(Verdict.REFUTED)}: {one.axiom} on {one.ledger}: {escape(one.breach)}")
        elif one.known:
            limit = LIMITS[one.ledger, one.axiom].statement
            screen.line(f"{one.verdict}: {one.axiom} on {one.ledger}: {escape(limit)}")


def _cell(table: Table, axiom: str, ledger: str) -> str:
    tested = table.tested.get((axiom, ledger))
    if tested is None or tested.verdict == NOT_APPLICABLE:
        return NOT_APPLICABLE
    text = f"{tested.verdict}, {tested.runs:,}"
    if tested.verdict == HOLDS:
        return colored(Verdict.PROVED, text)
    return colored(Verdict.REFUTED if tested.verdict == REFUTED else Verdict.UNDETERMINED, text)


def _show_crashes(screen: Screen, ledgers: Sequence[str], table: Table) -> None:
    rows = []
    for ledger in ledgers:
        done = [one for one in table.explored if one.machine == ledger]
        if done:
            points, images, failed = (sum(getattr(one, n) for one in done) for n in ("points", "images", "failed"))
            operations = sum(one.operations for one in done) // 2
            rows.append((ledger, f"{operations:,}", f"{points:,}", f"{failed:,}", f"{images:,}"))
    columns = ("ledger", "operations", "crashes and losses", "operations that failed", "images judged")
    screen.table("Crashes", columns, rows)


def _show_kills(screen: Screen, killed: dict[str, Kills]) -> None:
    rows = [
        (
            name,
            f"{k.kills:,}",
            f"{k.at_points:,}",
            f"{k.backends:,}" if name == POSTGRES else "",
            f"{k.commands:,}",
            f"{k.starts:,}",
            f"{k.ended:,}",
            f"{k.second:,}",
            f"{k.lost:,}",
            f"{k.seconds:.0f} s",
        )
        for name, k in killed.items()
    ]
    columns = (
        "ledger",
        "kills",
        "at named points",
        "backends ended",
        "commands accepted",
        "effects",
        "ended",
        "started twice",
        "lost",
        "time",
    )
    screen.table("Processes killed, eight at a time", columns, rows)
    for name, kills in killed.items():
        for breach in kills.breaches:
            screen.line(f"{colored(Verdict.REFUTED)}: {name}: {escape(breach)}")


def _document(table: Table, killed: dict[str, Kills], seed: int) -> dict[str, Any]:
    return {
        "seed": seed,
        "axioms": [
            {"axiom": t.axiom, "ledger": t.ledger, "verdict": t.verdict, "runs": t.runs, "breach": t.breach}
            for t in table.tested.values()
        ],
        "kills": {
            name: {"kills": k.kills, "backends": k.backends, "starts": k.starts, "breaches": k.breaches}
            for name, k in killed.items()
        },
    }
