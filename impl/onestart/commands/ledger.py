"""onestart ledger: what a ledger holds, and whether all of it can be read. Neither changes a byte of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from onestart.command import escaped
from onestart.commands import ledger_care
from onestart.commands.ledger_flows import rows
from onestart.commands.options import address_of, looked_into
from onestart.commands.reading_progress import shown
from onestart.flow.driver import lease_of
from onestart.health import Health, Reading
from onestart.ledgers import Inspection, verify_ledger
from onestart.ports import LedgerUnavailableError
from onestart.records import Approval, Attempt, Lease, Receipt, Session

_DAMAGED = 1


@click.group()
def ledger() -> None:
    """Look into a ledger, and after it."""


@ledger.command()
@click.argument("path", metavar="ADDRESS")
@click.option("--key", help="Show this key and its task only, or the flow of this id.")
def show(path: str, key: str | None) -> None:
    """Print what a ledger holds: for each task its lease and its keys, for each key its records; flows' journals."""
    stores = looked_into(path)
    try:
        blocks = list(_blocks(stores) if key is None else _blocks_of(stores, path, key))
        strays = [str(finding) for finding in stores.stray()]
    except LedgerUnavailableError as error:
        raise click.UsageError(str(error)) from None
    keys, flows = sum(stores.task_of(key) != lease_of(key) for key in stores.all_keys()), len(list(stores.roots()))
    counts = [_count(stores.order, "record"), _count(keys, "key"), *([_count(flows, "flow")] if flows else [])]
    click.echo(f"{_plain(path)}: {', '.join(counts)}")
    for block in blocks:
        click.echo()
        click.echo("\n".join(block))
    if strays:
        click.echo("\ndamage that may be anybody's")
        click.echo("\n".join(f"  {text}" for text in strays))


@ledger.command()
@click.argument("path", metavar="ADDRESS")
def verify(path: str) -> int:
    """Read every line of a ledger. The exit code is 0 if all is well, 1 if something is damaged or missing."""
    try:
        with shown() as progress:
            reports = verify_ledger(address_of(path), progress)
    except LedgerUnavailableError as error:
        raise click.UsageError(str(error)) from None
    names: tuple[str, ...] = ("store", "lines", "intact", "corrupt", "unsupported", "torn", "missing", "backward")
    names += ("lost",) * any(report.lost for report in reports)
    rows = [tuple(str(getattr(report, name)) for name in names) for report in reports]
    click.echo("\n".join(_aligned([names, *rows])))
    for report in reports:
        for text in report.findings:
            click.echo(text)
    damage = sum(report.damage for report in reports)
    click.echo("all is well" if not damage else "damaged: nothing was changed")
    return _DAMAGED if damage else 0


for _command in (ledger_care.doctor, ledger_care.repair, ledger_care.resolve, ledger_care.copy_command):
    ledger.add_command(_command)


def _blocks(stores: Inspection) -> Iterator[list[str]]:
    roots = list(stores.roots())
    leases = {lease_of(root) for root in roots}
    for task in stores.all_tasks():
        if task not in leases:
            yield _task(stores, task, stores.keys(task))
    for root in roots:
        yield _flow(stores, root)


def _blocks_of(stores: Inspection, path: str, key: str) -> Iterator[list[str]]:
    """Of a key, or of the flow of this id; there may be both."""
    task = stores.task_of(key)
    if task is not None and task != lease_of(key):
        yield _task(stores, task, [key])
    if key in stores.roots():
        yield _flow(stores, key)
    elif task is None:
        raise click.UsageError(f"{path} has no record of the key {escaped(key)}")


def _flow(stores: Inspection, root: str) -> list[str]:
    lease = _aligned([("lease", *_cells(stores.lease(lease_of(root))))])
    return [f"flow {_plain(root)}", *(f"  {text}" for text in (*lease, *_aligned(list(rows(stores.steps(root))))))]


def _task(stores: Inspection, task: str, keys: Iterable[str]) -> list[str]:
    lines = [f"task {_plain(task)}"]
    rows = [("lease", *_cells(stores.lease(task)))]
    lines += [f"  {text}" for text in _aligned(rows)]
    for key in keys:
        lines.append(f"  key {_plain(key)}")
        lines += [f"    {text}" for text in _aligned(list(_key(stores, key)))]
    return lines


def _key(stores: Inspection, key: str) -> Iterator[tuple[str, ...]]:
    readings: tuple[tuple[str, Reading[Any]], ...] = (
        ("receipt", stores.receipt(key)),
        ("attempt", stores.attempt(key)),
        ("session", stores.session(key)),
        ("approval", stores.approval(key)),
        ("note", stores.note(key)),
    )
    for name, reading in readings:
        if reading.exists or name in ("receipt", "attempt", "session"):
            yield (name, *_cells(reading))


def _cells(reading: Reading[Any]) -> tuple[str, str, str]:
    """What the newest record says, how it reads and where it is."""
    if not reading.exists:
        return ("-", "absent", "")
    health = "" if reading.health is Health.INTACT else reading.health.replace("_", " ").upper()
    last = reading.newest
    text = _summary(last) if last is not None else f"of {_count(reading.count, 'record')} the newest is illegible"
    return (text, health or "intact", reading.where)


def _summary(record: object) -> str:
    match record:
        case Receipt(state="completed", result={"outcome": outcome, "reason": reason}):
            return f"completed: {_plain(str(outcome))}, {_plain(str(reason))}"
        case Receipt():
            return record.state
        case Attempt() | Session():
            token = f", token {record.token}" if record.token else ""
            return f"{record.state}{token}{', ' + _plain(record.reason) if record.reason else ''}"
        case Lease():
            holder = f"held by {_plain(record.holder)} until {record.ends:g}" if record.holder else "free"
            return f"token {record.token}, {holder}{', for ' + _plain(record.by) if record.by else ''}"
        case Approval():
            return f"by {_plain(record.by)}"
    return f"token {getattr(record, 'token', 0)}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _plain(text: str) -> str:
    """The text if all of it can be printed, else with escapes."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
