"""onestart drive: the real library beside its model, at random or systematically."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from onestart_conformance.campaign import Campaign, campaign
from onestart_conformance.commands.flows import drive_flows
from onestart_conformance.commands.ledgers import at_option, storage_at
from onestart_conformance.coverage import Coverage, of_tally
from onestart_conformance.faults import Fault, fault_named
from onestart_conformance.flows.systematic import BOUNDS as FLOW_BOUNDS
from onestart_conformance.moves import Move
from onestart_conformance.rules import Rules
from onestart_conformance.standard import BOUNDS, SEED, Bound, bound_named, chain
from onestart_conformance.storage import JSONL, STORAGES, kind_of
from onestart_conformance.stories import story
from onestart_conformance.systematic import Walk
from onestart_conformance.walks import Walked, walked
from onestart_conformance.wording import in_words
from onestart_model.counterexample import Counterexample
from onestart_report.options import ModelCommand, json_option, save_option, save_traces
from onestart_report.screen import Screen

KNOWN = ", ".join(bound.name for bound in BOUNDS)
KNOWN_FLOWS = ", ".join(bound.name for bound in FLOW_BOUNDS)


@click.command(cls=ModelCommand)
@click.option("--seed", default=SEED, show_default=True, help="The same seed gives the same runs.")
@click.option("--examples", default=500, show_default=True, type=click.IntRange(1), help="How many random runs.")
@click.option("--systematic", "bound", metavar="BOUND", help=f"Every move in every situation of: {KNOWN}.")
@click.option(
    "--moves",
    default=20_000,
    show_default=True,
    type=click.IntRange(1),
    help="Most moves, or runs of flows, if systematic.",
)
@click.option("--keys", default=2, show_default=True, type=click.IntRange(1, 4), help="Commands, all of one task.")
@click.option("--processes", default=3, show_default=True, type=click.IntRange(1, 4), help="Processes.")
@click.option("--fault", metavar="NAME", help="Seed this fault into the library.")
@click.option("--ledger", type=click.Choice(STORAGES), default=JSONL, show_default=True, help="Where records live.")
@at_option
@click.option("--flows", is_flag=True, help=f"Drive flows instead. Bounds then: {KNOWN_FLOWS}.")
@save_option
@json_option
@click.pass_context
def drive(
    ctx: click.Context,
    seed: int,
    examples: int,
    bound: str | None,
    moves: int,
    keys: int,
    processes: int,
    fault: str | None,
    ledger: str,
    at: str,
    flows: bool,
    save: Path | None,
    as_json: bool,
) -> None:
    """Drive the library through interleavings, crashes, damage and lost answers, with the model beside it.

    Flows are driven through orders of results in the first run and in resumes, and die anywhere in between.

    Exit code 1 if an oracle objects; the story is then shrunk, shown, and saved with --save.
    """
    if flows and ledger != JSONL:
        raise click.UsageError("flows are driven over a ledger in memory; --ledger is for the command chain")
    if flows:
        ctx.exit(
            drive_flows(seed=seed, examples=examples, bound=bound, most=moves, fault=fault, save=save, as_json=as_json)
        )
    chosen = fault_named(fault) if fault else None
    place = storage_at(ledger, at)
    screen = Screen(quiet=as_json)
    small = bound_named(bound) if bound else None
    rules = Rules(chain(keys=keys, processes=processes))
    start = time.perf_counter()
    if small:
        walk = _walk(screen, small, chosen, moves, place)
        coverage, trace = walk.coverage, walk.story
    else:
        done = _random(screen, rules, chosen, seed, examples, place)
        trace = story(done) if done.run else None
        coverage = of_tally(rules, done.tally)
    seconds = time.perf_counter() - start
    written = save_traces(save, [trace] if trace else [])
    _show(screen, coverage, seconds, seed)
    if trace is not None:
        _show_story(screen, trace)
    screen.wrote(written)
    if as_json:
        screen.raw(json.dumps(_document(coverage, seed, trace), indent=1))
    ctx.exit(0 if trace is None else 1)


def _random(screen: Screen, rules: Rules, fault: Fault | None, seed: int, examples: int, ledger: str) -> Campaign:
    with screen.phase(f"random drive over {kind_of(ledger)}, seed {seed}") as tell:

        def report(done: int, gates: int) -> None:
            tell(f"{done:,} of {examples:,} runs, {gates:,} steps of the implementation", done / examples)

        return campaign(rules, fault=fault, number=seed, examples=examples, ledger=ledger, report=report)


def _walk(screen: Screen, bound: Bound, fault: Fault | None, moves: int, ledger: str) -> Walked:
    with screen.phase(f"systematic drive over {kind_of(ledger)}, {bound.name}") as tell:

        def report(done: Walk) -> None:
            tell(f"{done.taken:,} moves, {len(done.places):,} situations, {done.left:,} moves left", done.taken / moves)

        return walked(bound.name, moves, fault=fault, ledger=ledger, report=report)


def _show(screen: Screen, coverage: Coverage, seconds: float, seed: int) -> None:
    rows = [
        (name, f"{told:,}", "" if allowed is None else f"{driven:,} of {allowed:,}", why)
        for name, told, driven, allowed, why in coverage.rows()
    ]
    screen.table("What was driven", ("action", "taken", "steps of the model driven", ""), rows)
    screen.line(coverage.summary())
    screen.line(f"{coverage.gates / max(seconds, 1e-9):,.0f} steps of the implementation a second, seed {seed}")


def _show_story(screen: Screen, trace: Counterexample) -> None:
    replay = trace.replay
    screen.line(f"[bold red]{escape(str(replay['oracle']))} objects[/]: {escape(str(replay['what']))}")
    moves = [Move(name, tuple(arguments)) for name, *arguments in replay["moves"]]
    rows = [(str(number), escape(in_words(move))) for number, move in enumerate(moves, 1)]
    screen.table("The shortest story that was found", ("#", "what happens"), rows)
    screen.line("next:  onestart drive ... --save FOLDER   and then   onestart replay FILE")


def _document(coverage: Coverage, seed: int, trace: Counterexample | None) -> dict[str, Any]:
    return {
        "seed": seed,
        "runs": coverage.runs,
        "implementation_steps": coverage.gates,
        "states": coverage.states,
        "actions": {name: told for name, told, _, _, _ in coverage.rows()},
        "objection": dict(trace.replay) if trace else None,
    }
