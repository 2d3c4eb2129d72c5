"""Options that several commands have, and how what they are given is looked at."""

from __future__ import annotations

import click

from onestart.jsonl.files import LocalFiles
from onestart.jsonl.ledger import inspect
from onestart.ports import LedgerUnavailableError, NotALedgerError

ledger_option = click.option(
    "--ledger", envvar="ONESTART_LEDGER", default="./.onestart", help="Folder. [$ONESTART_LEDGER, ./.onestart]"
)


def check_ledger(path: str) -> None:
    """Raises UsageError unless the folder is a ledger or may become one."""
    if not path:
        raise click.UsageError("--ledger needs the path of a folder")
    try:
        inspect(LocalFiles(), path)
    except NotALedgerError as error:
        raise click.UsageError(str(error)) from None
    except LedgerUnavailableError:
        pass  # which the answer will tell


def check_lease(seconds: float) -> None:
    """Raises UsageError for what is no time."""
    if not 0 < seconds < 1e9:
        raise click.UsageError(f"--lease {seconds} is no time that a task can be taken for")
