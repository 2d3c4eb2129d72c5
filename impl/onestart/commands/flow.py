"""`onestart flow`: run or resume a durable flow, answer its questions, see how it stands, and whether that is sound."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Sequence
from typing import Any

import click

from onestart.clocks import SystemClock
from onestart.commands.flow_drive import NOT_NOW, Drive, Typed, names_of, tell
from onestart.commands.flow_status import Status, page, row, status_of, typed_for
from onestart.commands.options import address_of, check_lease, check_ledger, ledger_option, looked_into
from onestart.commands.wording import as_json, counted, plain
from onestart.flow.definition import AGAIN, Again, Known
from onestart.flow.errors import BadFlowError, DriverBusyError, FlowError, JournalError, WaitError
from onestart.flow.flows import Flows, check_root
from onestart.flow.identity import short
from onestart.flow.journal import Journal, intact
from onestart.flow.loading import load
from onestart.flow.verify import verify as verify_journal
from onestart.ledgers import Inspection, opened
from onestart.ports import LedgerUnavailableError

DASHES = {"ignore_unknown_options": True}  # -1 is JSON
lease_option = click.option(
    "--lease", type=float, default=30.0, help="Seconds that a flow stays taken when its driver dies. [30]"
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Say nothing while it runs.")
json_option = click.option("--json", "whole", is_flag=True, help="Print one JSON document.")


@click.group()
def flow() -> None:
    """Durable flows: run or resume one, answer its questions, see how it stands."""


@flow.command(context_settings=DASHES)
@ledger_option
@lease_option
@quiet_option
@json_option
@click.argument("place", metavar="MODULE_OR_FILE:FLOW")
@click.argument("root", metavar="ID")
@click.argument("arguments", metavar="[JSON_ARGUMENT]...", nargs=-1)
def run(ledger: str, lease: float, quiet: bool, whole: bool, place: str, root: str, arguments: tuple[str, ...]) -> int:
    """Begin a flow under this ID, or resume it; print its value as JSON.

    Each argument is JSON: '"a text"', 7, '{"a": 1}'. The exit code is 0 if the flow is completed, 1 if it has failed or
    does not fit its record, 3 if it is parked on questions, 4 if nobody knows how far a step got, 75 if another driver
    is at it, 2 for what cannot be used.
    """
    given = [_json(text, number) for number, text in enumerate(arguments, 1)]
    return _drive(_typed(ledger, place, root), given, lease=lease, quiet=quiet, whole=whole)


@flow.command()
@ledger_option
@lease_option
@quiet_option
@json_option
@click.argument("place", metavar="MODULE_OR_FILE:FLOW")
@click.argument("root", metavar="ID")
def resume(ledger: str, lease: float, quiet: bool, whole: bool, place: str, root: str) -> int:
    """Go on with a flow, with the arguments that are on record.

    Where the flow's code is, is said again: a record outlives the place of a file. Exit codes are those of `run`.
    """
    return _drive(_typed(ledger, place, root), None, lease=lease, quiet=quiet, whole=whole)


@flow.command(context_settings=DASHES)
@ledger_option
@click.option("--by", default="anybody", help="Who answers. [anybody]")
@click.option("--text", is_flag=True, help="VALUE is a text, whatever it looks like.")
@click.argument("root", metavar="ID")
@click.argument("wait", metavar="WAIT")
@click.argument("value", metavar="VALUE")
def answer(ledger: str, by: str, text: bool, root: str, wait: str, value: str) -> int:
    """Answer a question that a flow is parked on; the flow goes on when it is resumed.

    VALUE is taken as JSON if it is JSON (true, 7, '{"a": 1}'), else as a text (yes). What begins with a quote, a
    bracket or a brace has to be JSON.
    """
    given = value if text else _value(value)
    looked_into(ledger)
    try:
        question = asyncio.run(_answer(ledger, root, wait, given, by))
    except (FlowError, LedgerUnavailableError) as error:
        raise _unusable(error) from None
    click.echo(f"answered {question} with {as_json(given)}")
    return 0


@flow.command(context_settings=DASHES)
@ledger_option
@click.option("--again", is_flag=True, help="It may be carried out again.")
@click.option("--result", metavar="VALUE", help="What it came to; JSON or a text, as for `answer`.")
@click.option("--failed", metavar="WHY", help="How it failed.")
@click.option("--by", required=True, help="Who says so.")
@click.option("--why", required=True, help="What makes you sure.")
@click.argument("root", metavar="ID")
@click.argument("step", metavar="STEP")
def resolve(
    ledger: str, again: bool, result: str | None, failed: str | None, by: str, why: str, root: str, step: str
) -> int:
    """Say what became of a step that was under way when its driver died.

    Exactly one of --again, --result and --failed. It is kept on record, with who said so and why.
    """
    if again + (result is not None) + (failed is not None) != 1:
        raise click.UsageError("say one thing: --again, --result VALUE or --failed WHY")
    known = Known(None if result is None else _value(result), failed)
    looked_into(ledger)
    try:
        found = asyncio.run(_resolve(ledger, root, step, AGAIN if again else known, by, why))
    except (FlowError, LedgerUnavailableError) as error:
        raise _unusable(error) from None
    click.echo(f"{short(found)} of {plain(root)} is resolved; go on with  onestart flow resume")
    return 0


@flow.command()
@ledger_option
@json_option
@click.argument("root", metavar="[ID]", required=False)
@click.pass_context
def status(context: click.Context, ledger: str, whole: bool, root: str | None) -> int:
    """How the flows of a ledger stand; of one, its steps, its open questions, and what to type next."""
    stores = looked_into(ledger)
    try:
        if root is None:
            return _list(stores, whole)
        found = _status(stores, root)
    except (FlowError, LedgerUnavailableError) as error:
        raise _unusable(error) from None
    if whole:
        click.echo(as_json(found.to_json()))
    else:
        click.echo("\n".join(page(found, typed_for(found, _option(context, ledger)))))
    return 0


@flow.command()
@ledger_option
@json_option
@click.argument("root", metavar="ID")
def verify(ledger: str, whole: bool, root: str) -> int:
    """Whether a flow's record is sound: all that is there fits together. The exit code is 0 if so, else 1."""
    stores = looked_into(ledger)
    try:
        check_root(root)
        found = verify_journal(intact(root, stores.steps(root)))
    except (FlowError, LedgerUnavailableError) as error:
        raise _unusable(error) from None
    if not found.entries:
        raise click.UsageError(f"nothing is on record of the flow {plain(root)}")
    if whole:
        problems = [{"check": p.check, "entry": p.entry, "text": p.text} for p in found.problems]
        click.echo(as_json({"root": root, "entries": found.entries, "sound": found.sound, "problems": problems}))
    else:
        for problem in found.problems:
            click.echo(plain(str(problem), 1000))
        verdict = "sound" if found.sound else counted(len(found.problems), "problem")
        click.echo(f"{plain(root)}: {counted(found.entries, 'entry')}, {verdict}")
    return 0 if found.sound else 1


def _typed(ledger: str, place: str, root: str) -> Typed:
    return Typed(place, root, ledger, _option(click.get_current_context(), ledger))


def _drive(typed: Typed, arguments: Sequence[Any] | None, *, lease: float, quiet: bool, whole: bool) -> int:
    check_lease(lease)
    check_ledger(address_of(typed.ledger))
    try:
        check_root(typed.root)
        drive = Drive(load(typed.place), typed, arguments, lease, SystemClock(), quiet)
        return tell(asyncio.run(drive.run()), typed, whole=whole)
    except DriverBusyError as error:
        click.echo(f"onestart: {error}", err=True)
        return NOT_NOW
    except (FlowError, LedgerUnavailableError) as error:
        raise _unusable(error) from None


async def _answer(ledger: str, root: str, wait: str, value: Any, by: str) -> str:
    with opened(ledger) as there:
        flows = Flows(ledger=there)
        journal = await flows.status(root)
        if journal is None:
            raise WaitError(f"nothing is on record of the flow {plain(root)}")
        step = _whole(journal, wait)
        await flows.answer(root, step, value, by=by)
    return as_json(journal.waits[step].question)


async def _resolve(ledger: str, root: str, step: str, resolution: Again | Known, by: str, why: str) -> str:
    with opened(ledger) as there:
        return await _resolved(Flows(ledger=there), root, step, resolution, by, why)


async def _resolved(flows: Flows, root: str, step: str, resolution: Again | Known, by: str, why: str) -> str:
    journal = await flows.status(root)
    if journal is None:
        raise WaitError(f"nothing is on record of the flow {plain(root)}")
    found = [one for one in journal.index if step in (one, short(one))]
    if len(found) > 1:
        raise WaitError(f"{plain(step)} stands for {len(found)} steps; type the whole id: {', '.join(found)}")
    whole = found[0] if found else step
    await flows.resolve(root, whole, resolution, by=by, why=why)
    return whole


def _whole(journal: Journal, wait: str) -> str:
    """The id of a question that may be typed shortened."""
    found = [step for step in journal.waits if wait in (step, short(step))]
    if len(found) == 1:
        return found[0]
    if found:
        raise WaitError(f"{plain(wait)} stands for {len(found)} questions; type the whole id: {', '.join(found)}")
    opened = [step for step, known in journal.waits.items() if not known.answered]
    there = f"open: {', '.join(names_of(opened).values())}" if opened else "none is open"
    raise WaitError(f"{plain(journal.root)} has no question {plain(wait)}; {there}")


def _status(stores: Inspection, root: str) -> Status:
    check_root(root)
    found = status_of(stores, root)
    if found is None:
        raise JournalError(f"nothing is on record of the flow {plain(root)}")
    return found


def _list(stores: Inspection, whole: bool) -> int:
    """All flows; the exit code is 2 if one of them cannot be read."""
    found, problems = list[Status](), list[FlowError]()
    for root in stores.roots():
        try:
            found.append(_status(stores, root))
        except FlowError as error:
            problems.append(error)
    if whole:
        click.echo(as_json([status.to_json() for status in found]))
    elif found:
        rows = [row(status) for status in found]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for cells in rows:
            click.echo("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
    elif not problems:
        click.echo("no flow is on record", err=True)
    for problem in problems:
        click.echo(f"onestart: {problem}", err=True)
    return 2 if problems else 0


def _json(text: str, number: int) -> Any:
    try:
        return _strict(text)
    except ValueError:
        raise click.UsageError(
            f"argument {number}, {plain(text)}, is no JSON; a text is written '\"like this\"'"
        ) from None


def _value(text: str) -> Any:
    try:
        return _strict(text)
    except ValueError:
        if text.lstrip().startswith(("{", "[", '"')):
            raise click.UsageError(f"{plain(text)} is no JSON; take it as a text with --text") from None
        return text


def _strict(text: str) -> Any:
    """Raises ValueError for what is no JSON, NaN included."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _option(context: click.Context, ledger: str) -> str:
    """The option with the ledger, if it was typed."""
    source = context.get_parameter_source("ledger")
    shown = shlex.quote(str(address_of(ledger)) if "://" in ledger else ledger)
    return f" --ledger {shown}" if source is click.core.ParameterSource.COMMANDLINE else ""


def _unusable(error: Exception) -> click.UsageError:
    hint = ""
    if isinstance(error, BadFlowError | JournalError) and "begun with the arguments" in str(error):
        hint = "; `onestart flow resume` takes them from the record"
    return click.UsageError(f"{short(str(error))}{hint}")
