"""Options that several commands have, and how what they are given is looked at."""

from __future__ import annotations

import click

from onestart.ledgers import Address, BadAddressError, Inspection, check_place, inspected
from onestart.ports import LedgerUnavailableError, NotALedgerError

DEFAULT = "sqlite:///.onestart/ledger.sqlite"

ledger_option = click.option(
    "--ledger",
    envvar="ONESTART_LEDGER",
    default=DEFAULT,
    metavar="ADDRESS",
    help=f"sqlite:///PATH, jsonl:///PATH, postgresql://..., or a path. [$ONESTART_LEDGER, {DEFAULT}]",
)


def address_of(text: str) -> Address:
    """Raises UsageError for what is no address."""
    try:
        return Address.parse(text)
    except BadAddressError as error:
        raise click.UsageError(f"--ledger: {error}") from None


def check_ledger(address: Address) -> None:
    """Raises UsageError unless the place is a ledger or may become one."""
    try:
        check_place(address)
    except NotALedgerError as error:
        raise click.UsageError(str(error)) from None
    except LedgerUnavailableError:
        pass  # which the answer will tell


def looked_into(text: str) -> Inspection:
    """What a ledger holds, until the command ends. Raises UsageError if it cannot be read."""
    try:
        return click.get_current_context().with_resource(inspected(address_of(text)))
    except LedgerUnavailableError as error:
        raise click.UsageError(str(error)) from None


def check_lease(seconds: float) -> None:
    """Raises UsageError for what is no time."""
    if not 0 < seconds < 1e9:
        raise click.UsageError(f"--lease {seconds} is no time that a task can be taken for")
