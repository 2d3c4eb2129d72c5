"""onestart faults: what the suite finds, and how soon."""

from __future__ import annotations

import json
import statistics
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from onestart_conformance.campaign import EXAMPLES
from onestart_conformance.faults import FAULTS
from onestart_conformance.faults.damage import DAMAGE_FAULTS
from onestart_conformance.flows.faults import FLOW_FAULTS
from onestart_conformance.flows.stories import save_flow_stories
from onestart_conformance.hunts import Hunt, any_fault, hunt_all
from onestart_conformance.standard import SEED
from onestart_report.options import ModelCommand, json_option, save_option, save_traces
from onestart_report.pool import processes
from onestart_report.screen import Screen


@click.command(cls=ModelCommand)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "only_list", is_flag=True, help="Only say which there are.")
@click.option("--seed", default=SEED, show_default=True, help="The same seed gives the same runs.")
@click.option("--examples", default=EXAMPLES, show_default=True, type=click.IntRange(1), help="Most random runs each.")
@click.option("--systematic", default=0, metavar="MOVES", help="Look for each systematically too, this many moves.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1, 64), help="Processes at work.")
@save_option
@json_option
@click.pass_context
def faults(
    ctx: click.Context,
    names: tuple[str, ...],
    only_list: bool,
    seed: int,
    examples: int,
    systematic: int,
    jobs: int,
    save: Path | None,
    as_json: bool,
) -> None:
    """Seed each fault into the library and see whether the oracle that is named with it objects: faults of the command
    chain, of flows, and of what is made of damage.

    Exit code 1 if one is not found.
    """
    every = [*FAULTS.values(), *FLOW_FAULTS.values(), *DAMAGE_FAULTS.values()]
    chosen = [any_fault(name) for name in dict.fromkeys(names)] or every
    screen = Screen(quiet=as_json)
    if only_list:
        screen.table(
            "Seeded faults", ("fault", "what is wrong", "promise"), [(f.name, f.statement, f.promise) for f in chosen]
        )
        return
    hunts: list[Hunt] = []
    start = time.perf_counter()
    names_of = [fault.name for fault in chosen]
    workers = nullcontext(None) if min(jobs, len(chosen)) == 1 else processes(min(jobs, len(chosen)))
    with workers as pool, screen.phase(f"seeded faults, seed {seed}") as tell:
        for hunt in hunt_all(names_of, seed=seed, examples=examples, moves=systematic, pool=pool):
            hunts.append(hunt)
            tell(f"{len(hunts)} of {len(chosen)}: {hunt.fault}", len(hunts) / len(chosen))
    written = save_traces(save, [hunt.story for hunt in hunts if hunt.story is not None])
    written += save_flow_stories(save, [hunt.flow for hunt in hunts if hunt.flow is not None])
    show_hunts(screen, hunts, systematic=bool(systematic))
    screen.line(f"seed {seed}, {time.perf_counter() - start:.0f} s, median {_median(hunts):.1f} s a fault")
    screen.wrote(written)
    if as_json:
        screen.raw(json.dumps({"seed": seed, "faults": [_document(hunt) for hunt in hunts]}, indent=1))
    ctx.exit(0 if all(hunt.caught for hunt in hunts) else 1)


def show_hunts(screen: Screen, hunts: list[Hunt], *, systematic: bool) -> None:
    """A row for each fault: what is at stake, who caught it, and how soon."""
    rows = []
    for hunt in hunts:
        fault = any_fault(hunt.fault)
        missed = f", missing {fault.protection}" if fault.protection not in ("", fault.name) else ""
        oracle = fault.oracle + missed
        caught = f"run {hunt.examples}" if hunt.caught else "[bold red]not found[/]"
        others = ", ".join(f"{name} {count}" for name, count in hunt.others.items())
        systematically = ([f"{hunt.moves:,} moves" if hunt.moves else "not within the bound"]) if systematic else []
        rows.append((hunt.fault, fault.promise, oracle, caught, str(hunt.steps or ""), escape(others), *systematically))
    columns = ("fault", "promise at stake", "must object", "caught in", "steps", "others before")
    screen.table("Seeded faults", (*columns, *(("systematically",) if systematic else ())), rows)
    total = sum(hunt.caught for hunt in hunts)
    screen.line(f"{total} of {len(hunts)} faults caught by the oracle that must catch them")


def _median(hunts: list[Hunt]) -> float:
    return statistics.median(hunt.seconds for hunt in hunts) if hunts else 0.0


def _document(hunt: Hunt) -> dict[str, Any]:
    fault = any_fault(hunt.fault)
    return {
        "fault": hunt.fault,
        "promise": fault.promise,
        "oracle": fault.oracle,
        "caught": hunt.caught,
        "examples": hunt.examples,
        "steps": hunt.steps,
        "others": dict(hunt.others),
        "systematic_moves": hunt.moves,
    }
