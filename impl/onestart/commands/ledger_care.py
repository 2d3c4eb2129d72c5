"""onestart ledger doctor, repair, resolve and copy: what is wrong, what can be saved, and what an operator decides."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Iterator

import click

from onestart.chain import Chain
from onestart.command import BadCommandError
from onestart.commands.options import address_of
from onestart.commands.reading_progress import shown
from onestart.commands.wording import plain
from onestart.copying import CopyRefusedError, DifferentError, copy
from onestart.doctor import Complaint, complaints, unavailable
from onestart.ledgers import Address, inspected, opened, repair_ledger, verify_ledger
from onestart.ports import CannotTellError, LedgerUnavailableError, NotALedgerError, Order
from onestart.repair import RepairRefusedError
from onestart.sessions import NothingToDoError
from onestart.verification import StoreReport

WRONG = 1
_MOST = 20


@click.command()
@click.argument("address")
def doctor(address: str) -> int:
    """Say in plain words what is wrong with a ledger, and what would happen next. Changes nothing.

    The exit code is 0 if all is well, 1 if a record is damaged or missing, or a key or task needs somebody.
    """
    place = address_of(address)
    try:
        with shown() as progress:
            reports = verify_ledger(place, progress)
        with inspected(place) as view:
            found = list(complaints(view, iter(view.all_tasks()), time.time()))
    except NotALedgerError as error:
        if place.scheme == "sqlite" and os.path.isfile(place.place):
            raise click.UsageError(f"{error}\nif it has been a ledger: {_typed('repair', place)}") from None
        raise click.UsageError(str(error)) from None
    except LedgerUnavailableError as error:
        click.echo(f"{error}\n{unavailable(error.store)}")
        click.echo(f"if it stays so: {_typed('repair', place)}")
        return WRONG
    return _tell(place, reports, found)


def _tell(place: Address, reports: tuple[StoreReport, ...], found: list[Complaint]) -> int:
    damaged = [report for report in reports if report.damage]
    for report in damaged:
        click.echo(f"{report.store}: {', '.join(_counts(report))}")
        click.echo("".join(f"  {text}\n" for text in report.findings), nl=False)
    for complaint in found[:_MOST]:
        click.echo("\n".join(_paragraph(place, complaint)))
    if len(found) > _MOST:
        click.echo(f"and {len(found) - _MOST} more")
    if damaged:
        click.echo(f"the records that can be read are saved beside the others by: {_typed('repair', place)}")
    if not damaged and not found:
        click.echo("all is well: every record can be read, and nothing waits for anybody")
    return WRONG if damaged or found else 0


def _counts(report: StoreReport) -> Iterator[str]:
    for count, words in (
        (report.corrupt, "illegible"),
        (report.unsupported, "of a newer version, which nobody here can read"),
        (report.missing, "missing"),
        (report.backward, "out of order"),
    ):
        if count:
            yield f"{count} {words}"


def _paragraph(place: Address, complaint: Complaint) -> Iterator[str]:
    yield f"{complaint.about} {plain(complaint.name)}: {complaint.what}"
    yield f"  next: {complaint.then}"
    if complaint.todo:
        yield f"  to do: {complaint.todo}"
    if complaint.resolve:
        name = shlex.quote(complaint.name)
        what = name if complaint.about == "key" else f"--task {name}"
        yield f"    {_typed('resolve', place)} {what} --by NAME --why TEXT"


@click.command()
@click.argument("address")
def repair(address: str) -> int:
    """Publish a new generation of a ledger, with every record that can be read. The old one stays, byte for byte.

    A record that cannot be read gets a line that says so, so that its key is not taken for a new one. The exit code is
    0 if there is a new generation, 1 if there was no need or it was refused.
    """
    place = address_of(address)
    try:
        done = repair_ledger(place)
    except RepairRefusedError as error:
        click.echo(f"onestart: not repaired: {error}", err=True)
        return WRONG
    except LedgerUnavailableError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"{done.place} is in force, with {done.kept} records as they were")
    for title, texts in (("lost, and marked as such", done.lost), ("left out", done.left_out)):
        if texts:
            click.echo(f"{title}: {len(texts)}")
            click.echo("".join(f"  {plain(text, 200)}\n" for text in texts[:_MOST]), nl=False)
            if len(texts) > _MOST:
                click.echo(f"  and {len(texts) - _MOST} more; all of them are in the report beside it")
    click.echo(f"what that means for its keys: {_typed('doctor', place)}")
    return 0


@click.command()
@click.argument("address")
@click.argument("key", required=False)
@click.option("--task", help="Put a new lease record beside one of this task that cannot be read.")
@click.option("--by", required=True, help="Who decides.")
@click.option("--why", required=True, help="On what grounds.")
def resolve(address: str, key: str | None, task: str | None, by: str, why: str) -> int:
    """Settle a KEY of which nobody knows whether it was started: it never starts again, and its task is free.

    Make sure first that nothing of it runs or is about to start. Who decided and why is recorded with it. The exit code
    is 0 if it was settled, 1 if there is nothing to settle.
    """
    if (key is None) == (task is None):
        raise click.UsageError("either a KEY or --task TASK is to be resolved")
    place = address_of(address)
    try:
        with inspected(place):
            pass
        asyncio.run(_resolve(place, key, task, by, why))
    except NothingToDoError as error:
        click.echo(f"onestart: nothing to resolve: {error}", err=True)
        return WRONG
    except (BadCommandError, LedgerUnavailableError) as error:
        raise click.UsageError(str(error)) from None
    what = f"the key {plain(key)} never starts again" if key is not None else f"the task {plain(task or '')} is free"
    click.echo(f"{what}; recorded: {plain(by)}: {plain(why, 200)}")
    return 0


async def _resolve(place: Address, key: str | None, task: str | None, by: str, why: str) -> None:
    with opened(place) as ledger:
        chain = Chain(ledger=ledger, executor=_Nobody())
        if key is not None:
            await chain.settle(key, by=by, why=why)
        elif task is not None:
            await chain.repair_lease(task, by=by, why=why)


class _Nobody:
    """An executor that starts nothing and knows nothing."""

    async def start(self, order: Order) -> None:
        raise CannotTellError("an operator starts nothing")

    async def look_up(self, key: str, task: str, token: int) -> bool:
        raise CannotTellError("nobody is asked")

    async def running(self, key: str) -> bool:
        raise CannotTellError("nobody is asked")

    async def stop(self, key: str) -> None:
        """Nothing of it is here."""


@click.command(name="copy")
@click.argument("source")
@click.argument("target")
def copy_command(source: str, target: str) -> int:
    """Copy a ledger with its history to a new place, of whatever kind, and read both again to see that they are equal.

    Nobody should use the source meanwhile, and only one of the two afterward: each would start what the other does not
    know of. The exit code is 0 if they are equal, 1 if nothing was copied or they are not.
    """
    try:
        count = copy(address_of(source), address_of(target))
    except (CopyRefusedError, DifferentError) as error:
        click.echo(f"onestart: {error}", err=True)
        return WRONG
    except LedgerUnavailableError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"{address_of(target)} holds the same {count} records; from now on use it alone")
    return 0


def _typed(command: str, place: Address) -> str:
    return f"onestart ledger {command} {shlex.quote(str(place))}"
