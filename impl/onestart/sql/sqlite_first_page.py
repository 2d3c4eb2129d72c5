"""Reading a SQLite ledger whose first page is damaged, by the first page of a new one.

That page says where each table begins, and nothing of what is in it. Tables are made in one order and none is ever
dropped, so they begin at the same pages in every ledger. What is read this way still has to prove itself: the ledger's
own table tells its version, and each line has its checksum.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from onestart.ports import LedgerUnavailableError
from onestart.sql.sqlite_file import created, reading
from onestart.sql.sqlite_rows import SqliteRows

FIRST_PAGE = "the first page, which says where the tables are"
_PAGE_SIZE = slice(16, 18)  # where SQLite's file format has them
_PAGES = slice(28, 32)


@contextmanager
def lent(path: str, why: LedgerUnavailableError) -> Iterator[SqliteRows]:
    """The rows of a copy that has been lent a first page, gone afterwards. Raises why if there are none."""
    with _made(f"{path}.lent") as folder:
        copied = os.path.join(folder, "ledger")
        for name in ("", "-wal"):
            if os.path.exists(path + name):
                shutil.copyfile(path + name, copied + name)
        _lend(copied, _first_page(os.path.join(folder, "new")), why)
        with ExitStack() as stack:
            try:
                rows = stack.enter_context(reading(copied))
            except LedgerUnavailableError:
                raise why from None
            yield rows


@contextmanager
def _made(folder: str) -> Iterator[str]:
    """A folder for a while; what a repair that broke off has left there goes first."""
    if os.path.lexists(folder):
        shutil.rmtree(folder)
    os.mkdir(folder, 0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _first_page(path: str) -> bytes:
    connection = created(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close(True)
    with open(path, "rb") as file:
        head = file.read(_PAGE_SIZE.stop)
        return head + file.read(int.from_bytes(head[_PAGE_SIZE], "big") - len(head))


def _lend(path: str, page: bytes, why: LedgerUnavailableError) -> None:
    pages = os.path.getsize(path) // len(page)
    if not pages:
        raise why
    with open(path, "r+b") as file:
        file.write(page)
        file.seek(_PAGES.start)
        file.write(pages.to_bytes(_PAGES.stop - _PAGES.start, "big"))
