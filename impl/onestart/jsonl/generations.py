"""Generations: a repair puts a new set of files beside the old ones, which stay as they are.

The newest whose marker is whole is in force. The marker is written last, so a repair that breaks off changes nothing.
"""

from __future__ import annotations

import re

from onestart.jsonl.files import Files

MARKER = "ledger.json"
_NAME = re.compile(r"generation-([1-9][0-9]{0,8})")


def names(found: list[str]) -> list[str]:
    """The generations among the names in a ledger's folder, the newest first, finished or not."""
    numbers = sorted((int(match[1]) for name in found if (match := _NAME.fullmatch(name))), reverse=True)
    return [f"generation-{number}" for number in numbers]


def in_force(files: Files, base: str, found: list[str], mark: bytes) -> str:
    """The folder whose files count. found: the names in the ledger's folder."""
    for name in names(found):
        marker = f"{base}/{name}/{MARKER}"
        if files.status(marker) is not None and files.read(marker, 0, len(mark) + 1) == mark:
            return f"{base}/{name}"
    return base


def following(found: list[str]) -> str:
    """The name of the next generation: one that a repair has not finished keeps its own."""
    there = names(found)
    return f"generation-{int(there[0].partition('-')[2]) + 1 if there else 2}"
