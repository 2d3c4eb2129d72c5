"""How far a file was read, and what was found that concerns no place: what a journal needs to go on from there."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

from attrs import asdict, frozen

from onestart.health import Health
from onestart.jsonl.places import Entry
from onestart.lines import Owner

Identity: TypeAlias = tuple[int, int]


@frozen
class Position:
    """identity: device and inode, None if the file is not there. offset: behind the last line that was read.

    lines: newlines before it. last_offset, last_length, last_digest: where the last line with a record is, damaged or
    not, how long it is without its newline, and its BLAKE2b. pending, unowned, gaps: see `onestart.jsonl.journal`.
    """

    identity: Identity | None
    offset: int
    lines: int
    count: int
    torn: int
    backward: int
    last_seq: int
    prev: Owner | None
    last_offset: int
    last_length: int
    last_digest: str
    pending: tuple[Entry, ...]
    unowned: tuple[Entry, ...]
    gaps: tuple[tuple[int, int], ...]

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self, recurse=False)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Position:
        """The same from JSON values. Raises ValueError or TypeError."""
        entries = {name: tuple(map(_entry, found[name])) for name in ("pending", "unowned")}
        gaps = tuple((int(first), int(last)) for first, last in found["gaps"])
        pairs = {name: None if found[name] is None else tuple(found[name]) for name in ("identity", "prev")}
        return cls(**{**found, **entries, **pairs, "gaps": gaps})


def digest(line: bytes) -> str:
    """By what a line is known again."""
    return blake2b(line, digest_size=16).hexdigest()


def _entry(values: Sequence[Any]) -> Entry:
    seq, offset, length, number, health = values
    return Entry(seq, offset, length, number, Health(health))
