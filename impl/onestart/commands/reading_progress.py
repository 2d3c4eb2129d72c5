"""How far the reading of a ledger has got: a line on a terminal, after a second; nothing anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from onestart.verification import Progress, silent

_PATIENCE = 1.0
_EVERY = 0.1


@contextmanager
def shown() -> Iterator[Progress]:
    """What is told of the reading is shown on standard error, and wiped at the end."""
    if not sys.stderr.isatty():
        yield silent
        return
    line = _Line()
    try:
        yield line
    finally:
        line.wipe()


class _Line:
    def __init__(self) -> None:
        self._due = time.monotonic() + _PATIENCE
        self._width = 0

    def __call__(self, store: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _EVERY
            share = f", {done / total:.0%}" if total else ""
            self._write(f"reading {store}: {done:,} of {total:,}{share}")

    def wipe(self) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        if text or self._width:
            sys.stderr.write(f"\r{text.ljust(self._width)}" if text else f"\r{' ' * self._width}\r")
            sys.stderr.flush()
            self._width = len(text)
