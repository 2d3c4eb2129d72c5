"""What a repair comes to, whatever keeps the records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from attrs import frozen

from onestart.health import Health
from onestart.history import History, Kept, Writer
from onestart.records import STORES


class RepairRefusedError(Exception):
    """Nothing was repaired, and nothing was changed; the message says why."""


@frozen
class Repair:
    """A new generation of a ledger. place: where it is. kept: how many records are in it as they were.

    lost: the records that cannot be read, each with a line in its place that says so. left_out: what is not in it,
    because nobody can tell whose record it was.
    """

    place: str
    kept: int
    lost: tuple[str, ...]
    left_out: tuple[str, ...]

    def to_json(self, **more: Any) -> str:
        found = {"place": self.place, "kept": self.kept, "lost": self.lost, "left_out": self.left_out}
        return json.dumps(found | more, indent=1) + "\n"


@frozen
class Salvage:
    """What can be saved of a ledger, and what not. hidden: the stores that cannot be read at all."""

    lost: tuple[str, ...]
    left_out: tuple[str, ...]
    hidden: tuple[str, ...] = ()

    @property
    def needed(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.lost or self.left_out or self.hidden)


def survey(history: History, hidden: Iterable[str] = ()) -> Salvage:
    """Look through a history. Raises RepairRefusedError if a newer program has written to it.

    What that program's records mean, and so what may be made of the others without them, this one cannot know.
    """
    lost: list[str] = []
    left_out: list[str] = []
    for store in STORES:
        for kept in history.records(store):
            _refuse_newer(kept.health, kept.where)
            if not kept.sound:
                lost.append(_said(kept.where, kept.health, kept))
        for health, where in history.strays(store):
            _refuse_newer(health, where)
            left_out.append(_said(where, health, None))
    return Salvage(tuple(lost), tuple(left_out), tuple(hidden))


def save(history: History, writer: Writer) -> int:
    """Write what can be read, and of what cannot that it was there. Returns how many were kept as they were."""
    count = 0
    for store in STORES:
        for kept in history.records(store):
            writer.add(store, kept)
            count += kept.record is not None
    return count


def _refuse_newer(health: Health, where: str) -> None:
    if health is Health.UNSUPPORTED_VERSION:
        raise RepairRefusedError(
            f"{where} was written by a newer program, and what it says is unknown here; repair with that program"
        )


def _said(where: str, health: Health, kept: Kept | None) -> str:
    said = f"{where}: {health.replace('_', ' ')}"
    if kept is None:
        return f"{said}, whose it was cannot be told"
    whose = f"{kept.owner[0]} of {kept.place[1]}"
    return said if kept.place[1] in where else f"{said}, {whose}"
