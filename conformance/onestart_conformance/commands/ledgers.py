"""Which kinds of ledgers a command is about, and where PostgreSQL is; the same options everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from onestart.ports import LedgerUnavailableError
from onestart_conformance.storage import POSTGRES
from onestart_model.expression import RuleError

F = TypeVar("F", bound=Callable[..., Any])

HERE = ("jsonl", "sqlite")  # that need no server
LEDGERS = (*HERE, POSTGRES)
LEFT_OUT = "PostgreSQL is left out without --at"


def ledger_options(*more: str) -> Callable[[F], F]:
    """--ledger and --at. more: kinds that this command knows besides."""

    def decorate(function: F) -> F:
        kinds = click.Choice([*more, *LEDGERS, "all"])
        kind = click.option("--ledger", type=kinds, default="all", show_default=True, help="Which kind of ledger.")
        return kind(at_option(function))

    return decorate


def at_option(function: F) -> F:
    """--at alone."""
    where = "Where PostgreSQL is; schemas are made, and dropped."
    return click.option("--at", default="", metavar="ADDRESS", help=where)(function)


def reach(at: str) -> None:
    """Raises RuleError unless there is a server, without the password that the address may hold."""
    from onestart.sql.postgres.server import Server  # needs a driver that is an extra

    try:
        Server(at, "onestart").connect().close()
    except LedgerUnavailableError as error:
        raise RuleError(f"PostgreSQL: {error}") from None


def storage_at(ledger: str, at: str) -> str:
    """The kind of a ledger, or the address of the server that it is to be on; see `storage_of`. Raises RuleError."""
    return at if POSTGRES in chosen_ledgers(ledger, at) else ledger


def chosen_ledgers(ledger: str, at: str, *more: str) -> tuple[str, ...]:
    """Those that are meant. Raises RuleError if PostgreSQL is, and is not said to be anywhere, or not there."""
    if ledger == POSTGRES and not at:
        raise RuleError("PostgreSQL needs --at, such as --at postgresql://localhost/test")
    if at and ledger in (POSTGRES, "all"):
        reach(at)
    if ledger == "all":
        return (*more, *LEDGERS) if at else (*more, *HERE)
    return (ledger,)
