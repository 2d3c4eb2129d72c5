"""Ledgers by address: where records live, as it is typed.

sqlite:///PATH        a SQLite file; sqlite:////PATH with an absolute path
jsonl:///PATH         a folder of JSON lines
postgresql://...      a PostgreSQL database, as libpq reads it
PATH                  a folder of JSON lines if there is one at this path, else a SQLite file
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from onestart.command import escaped
from onestart.ports import Ledger, View
from onestart.repair import Repair
from onestart.verification import Progress, StoreReport, silent

if TYPE_CHECKING:  # a database's driver is imported when it is used, because the command is to start quickly
    from onestart.sql.statements import Statements

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)
_PASSWORD = re.compile(r"(?<=:)[^:@/]+(?=@)|(?<=password=)[^&\s]*")


class BadAddressError(ValueError):
    """No ledger can be where this says; the message says what can be typed."""


@frozen
class Address:
    """scheme: jsonl, sqlite or postgresql. place: a path, or what libpq takes.

    schema: of a PostgreSQL database. prepared: whether its sessions keep statements, see `PostgresLedger`.
    """

    scheme: str
    place: str
    schema: str = "onestart"
    prepared: bool = False

    @classmethod
    def parse(cls, text: str) -> Address:
        """Raises BadAddressError."""
        found = _SCHEME.match(text)
        if found is None:
            return cls._of_path(text)
        scheme, rest = found[1], found[2]
        if scheme in ("postgresql", "postgres"):
            return cls._of_server(text)
        if scheme not in ("sqlite", "jsonl"):
            raise BadAddressError(
                f"{escaped(scheme)} is no ledger: sqlite:///PATH, jsonl:///PATH and postgresql:// are"
            )
        if not rest.startswith("/"):
            raise BadAddressError(f"{scheme}:// takes a path behind three slashes, such as {scheme}:///./{rest}")
        return cls(scheme, _path(rest[1:]))

    @classmethod
    def _of_server(cls, text: str) -> Address:
        """Takes out what libpq does not know."""
        before, mark, options = text.partition("?")
        every = [option.partition("=") for option in options.split("&")]
        ours = {name: value for name, _, value in every if name in ("schema", "prepared")}
        rest = "&".join("".join(option) for option in every if option[0] not in ours)
        prepared = ours.get("prepared", "no")
        if prepared not in ("yes", "no"):
            raise BadAddressError(f"prepared={escaped(prepared)}: say yes, or no if a pooler is in between")
        place = f"{before}{mark if rest else ''}{rest}"
        return cls("postgresql", place, ours.get("schema", "onestart"), prepared == "yes")

    @classmethod
    def _of_path(cls, text: str) -> Address:
        path = _path(text)
        return cls("jsonl" if os.path.isdir(path) else "sqlite", path)

    @property
    def launches(self) -> str | None:
        """The folder in which executors of this machine remember their launches; None if the address names none."""
        if self.scheme == "postgresql":
            return None
        return f"{self.place}/launches" if self.scheme == "jsonl" else f"{self.place}-launches"

    def __str__(self) -> str:
        """The address, without a password."""
        if self.scheme == "postgresql":
            more = [] if self.schema == "onestart" else [f"schema={self.schema}"]
            more += ["prepared=yes"] if self.prepared else []
            mark = "&" if "?" in self.place else "?"
            return _PASSWORD.sub("***", self.place) + (mark if more else "") + "&".join(more)
        return f"{self.scheme}:///{self.place}"


def _path(text: str) -> str:
    if not text or "\0" in text:
        raise BadAddressError("a ledger needs a path")
    return text


class Inspection(View, Protocol):
    """What a ledger holds at one moment, for a person who looks at it."""

    def all_tasks(self) -> Iterable[str]:
        """Every task with a record."""

    def roots(self) -> Iterable[str]:
        """Every flow with a record."""


def open_ledger(address: str | Address) -> Ledger:
    """The ledger at an address, which is made at its first step if there is none.

    Raises BadAddressError, or ModuleNotFoundError if PostgreSQL's driver is not installed.
    """
    address = _parsed(address)
    if address.scheme == "jsonl":
        from onestart.jsonl.ledger import JsonlLedger

        return JsonlLedger(address.place)
    if address.scheme == "sqlite":
        from onestart.sql.sqlite import SqliteLedger

        return SqliteLedger(address.place)
    from onestart.sql.postgres import PostgresLedger

    return PostgresLedger(address.place, schema=address.schema, prepared=address.prepared)


@contextmanager
def opened(address: str | Address) -> Iterator[Ledger]:
    """The ledger at an address, closed at the end. Raises what `open_ledger` raises."""
    ledger = open_ledger(address)
    try:
        yield ledger
    finally:
        close = getattr(ledger, "close", None)
        if close is not None:
            close()


def check_place(address: Address) -> None:
    """Raises NotALedgerError unless there is a ledger, or may be one. Changes nothing.

    Raises LedgerUnavailableError if that cannot be seen.
    """
    if address.scheme == "jsonl":
        from onestart.jsonl.files import LocalFiles
        from onestart.jsonl.ledger import inspect

        inspect(LocalFiles(), address.place)
    elif address.scheme == "sqlite":
        from onestart.sql.sqlite_file import check

        check(address.place)


@contextmanager
def inspected(address: str | Address) -> Iterator[Inspection]:
    """What a ledger holds now. Writes nothing, and waits for nobody.

    Raises BadAddressError, NotALedgerError if there is none, LedgerUnavailableError if it cannot be read.
    """
    address = _parsed(address)
    if address.scheme == "jsonl":
        from onestart.jsonl.ledger import open_for_reading

        yield open_for_reading(address.place)
        return
    from onestart.sql.view import RowsView

    with rows_of(address) as rows:
        yield RowsView(rows)


def verify_ledger(address: str | Address, progress: Progress = silent) -> tuple[StoreReport, ...]:
    """Read every record of a ledger and report on each store. Changes nothing.

    Raises what `inspected` raises.
    """
    address = _parsed(address)
    if address.scheme == "jsonl":
        from onestart.jsonl.verify import verify as verify_files

        return verify_files(address.place, progress=progress)
    from onestart.sql.verify import verify as verify_rows

    with rows_of(address) as rows:
        return verify_rows(rows, also=rows.integrity(), progress=progress)


def repair_ledger(address: str | Address) -> Repair:
    """Publish a new generation of a ledger, with all that can be read; the old one stays as it is.

    Raises RepairRefusedError, NotALedgerError or LedgerUnavailableError; then nothing has changed.
    """
    address = _parsed(address)
    if address.scheme == "jsonl":
        from onestart.jsonl.repair import repair as repair_files

        return repair_files(address.place)
    if address.scheme == "sqlite":
        from onestart.sql.sqlite_repair import repair as repair_file

        return repair_file(address.place)
    from onestart.sql.postgres.generations import repair as repair_schema

    return repair_schema(address.place, schema=address.schema)


def _parsed(address: str | Address) -> Address:
    return Address.parse(address) if isinstance(address, str) else address


@contextmanager
def rows_of(address: Address) -> Iterator[Statements]:
    """The rows of a ledger in a database, as they are at one moment. Raises what `inspected` raises."""
    if address.scheme == "sqlite":
        from onestart.sql.sqlite_file import reading

        with reading(address.place) as rows:
            yield rows
        return
    from onestart.sql.postgres import reading as reading_server

    with reading_server(address.place, schema=address.schema) as rows:
        yield rows
