"""onestart damage: what becomes of a ledger whose bytes are damaged, case by case."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from onestart_conformance.commands.ledgers import LEFT_OUT, chosen_ledgers, ledger_options
from onestart_conformance.damage.campaign import EVERY, Part, medium_of, parts, try_all
from onestart_conformance.damage.limits import Limit, Shown, limits_of
from onestart_conformance.damage.oracles import ORACLES
from onestart_conformance.damage.policy import page, policy
from onestart_conformance.damage.systematic import Count, Tally
from onestart_conformance.standard import SEED
from onestart_model.catalog import PROFILES
from onestart_model.expression import RuleError
from onestart_report.options import ModelCommand, json_option
from onestart_report.pool import processes
from onestart_report.screen import Screen

COLUMNS = ("store", "damage", "tried", "reported", "held", "proceeded", "no trace", "second starts")
LIMIT_COLUMNS = ("scenario", "damage", "starts in all", "noticed by", "shown")
LEGEND = "held, proceeded: the command whose record it was. no trace: nothing is left that could tell of it, see below"
NEXT = "next:  onestart faults --list   or   onestart ledger verify PATH"


@click.command(cls=ModelCommand)
@ledger_options()
@click.option(
    "--profile", type=click.Choice([*PROFILES, EVERY]), default="quick", show_default=True, help="How much of it."
)
@click.option("--seed", default=SEED, show_default=True, help="Of the pairs; the same seed gives the same ones.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1, 64), help="Processes at work.")
@click.option(
    "--policy",
    "table",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what each command does when a store cannot be read to this file, and do nothing else.",
)
@json_option
@click.pass_context
def damage(
    ctx: click.Context, ledger: str, at: str, profile: str, seed: int, jobs: int, table: Path | None, as_json: bool
) -> None:
    """Damage each record of each store in every way there is, and see what the library makes of it.

    Bits are flipped, stores cut off at every byte, records zeroed, swapped, repeated and rolled back; two damages are
    drawn together. Each time the key is submitted again, and so are another one of its task and an unrelated one.

    On two cores deep takes some minutes, and for PostgreSQL a quarter of an hour. Of a database it damages every
    eighth byte; every-byte, which takes hours, each.

    Exit code 1 if an oracle objects.
    """
    screen = Screen(quiet=as_json)
    if table is not None:
        _write(table)
        screen.line(f"wrote {escape(str(table))}")
        return
    chosen = chosen_ledgers(ledger, at)
    tallies = {name: _tried(screen, parts(name, profile, seed, at), jobs) for name in chosen}
    shown = {name: [(limit, limit.play(medium_of(name, at))) for limit in limits_of(name)] for name in chosen}
    fine = True
    for name, tally in tallies.items():
        show_damage(screen, name, tally)
        show_limits(screen, name, shown[name])
        fine &= not tally.oracles and all(limit.shown_by(one) for limit, one in shown[name])
    screen.line(f"seed {seed}, {profile}{'' if at or ledger != 'all' else f'; {LEFT_OUT}'}")
    screen.line(NEXT)
    if as_json:
        screen.raw(json.dumps({"fine": fine, "ledgers": {n: _document(t) for n, t in tallies.items()}}, indent=1))
    ctx.exit(0 if fine else 1)


def _write(path: Path) -> None:
    try:
        path.write_text("\n".join(page(policy())) + "\n", encoding="utf-8")
    except OSError as error:
        raise RuleError(f"{path} cannot be written: {error.strerror}") from None


def _tried(screen: Screen, every: list[Part], jobs: int) -> Tally:
    whole, start = Tally(), time.perf_counter()
    with (
        nullcontext(None) if jobs == 1 else processes(jobs) as pool,
        screen.phase(f"damage, {every[0].ledger}, {every[0].profile}") as tell,
    ):
        for number, tally in enumerate(try_all(every, pool), 1):
            whole.include(tally)
            rate = whole.tried / (time.perf_counter() - start)
            tell(f"{whole.tried:,} damages, {rate:.0f} a second", number / len(every))
    return whole


def show_damage(screen: Screen, ledger: str, tally: Tally) -> None:
    """A row for each store and damage, and who objects."""
    rows = [(store, name, *_cells(count)) for (store, name), count in sorted(tally.counts.items())]
    total = Count()
    for count in tally.counts.values():
        total.include(count)
    screen.table(f"Damage to {ledger}", COLUMNS, [*rows, ("all", "", *_cells(total))])
    screen.line(f"[dim]{LEGEND}[/dim]")
    for (damages, subject, how), objection in tally.objected:
        screen.line(f"[bold red]{escape(str(objection))}[/]")
        screen.line(f"  {escape(', then '.join(map(str, damages)))}; asked about {subject}, {escape(str(how))}")
    objected = ", ".join(f"{oracle} {tally.oracles[oracle]}" for oracle in ORACLES if tally.oracles[oracle])
    color = "bold red" if objected else "green"
    screen.line(f"[{color}]{ledger}: {tally.tried:,} damages, {objected or 'no oracle objects'}[/]")


def show_limits(screen: Screen, ledger: str, shown: list[tuple[Limit, Shown]]) -> None:
    """What nobody can notice, as it is."""
    rows = [
        (limit.name, limit.statement, str(one.starts), _noticed(one), _said(limit.shown_by(one)))
        for limit, one in shown
    ]
    screen.table(f"What cannot be noticed, {ledger}", LIMIT_COLUMNS, rows)


def _noticed(shown: Shown) -> str:
    return "an answer" if shown.told else "the ledger's check" if shown.verified else "nobody"


def _said(holds: bool) -> str:
    return "as said" if holds else "[bold red]not as said[/]"


def _cells(count: Count) -> tuple[str, ...]:
    starts = f"[bold red]{count.starts}[/]" if count.starts else "0"
    numbers = (count.tried, count.reported, count.held, count.proceeded, count.hidden)
    return (*(f"{number:,}" for number in numbers), starts)


def _document(tally: Tally) -> dict[str, Any]:
    return {
        "tried": tally.tried,
        "objections": dict(tally.oracles),
        "counts": [
            {
                "store": store,
                "damage": name,
                "tried": count.tried,
                "reported": count.reported,
                "held": count.held,
                "proceeded": count.proceeded,
                "no_trace": count.hidden,
                "second_starts": count.starts,
            }
            for (store, name), count in sorted(tally.counts.items())
        ],
    }
