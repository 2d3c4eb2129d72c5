"""Read health: what was found, and whether reading was healthy. Two answers, because one of them hides the other.

Source: receipts, section 6.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Generic, TypeVar

from attrs import frozen

R = TypeVar("R")


class Health(StrEnum):
    """How the newest record of a key (or task) in a store reads."""

    ABSENT = "absent"
    INTACT = "intact"
    CORRUPT = "corrupt"
    UNSUPPORTED_VERSION = "unsupported_version"
    UNAVAILABLE = "unavailable"

    @property
    def degraded(self) -> bool:
        """Whether something is there that cannot be read."""
        return self not in (Health.ABSENT, Health.INTACT)


@frozen
class Reading(Generic[R]):
    """All that a store shows of one key (or task).

    records: the legible ones, oldest first. count: how many there are, legible or not. health: of the newest.
    where: the place of the newest, such as "receipts.jsonl:17", empty if there is none.
    """

    records: tuple[R, ...]
    count: int
    health: Health
    where: str = ""

    @property
    def newest(self) -> R | None:
        """The newest record, if it is legible; a damaged one is not replaced by an older one."""
        return self.records[-1] if self.health is Health.INTACT else None

    @property
    def exists(self) -> bool:
        """Whether there is a record, legible or not."""
        return self.count > 0


@frozen
class Finding:
    """Damage that was met while reading: in which store, how, where, and whether it is known to be of this key.

    A finding that does not concern the key may hide a record of it all the same: nobody can tell whose the bytes were.
    """

    store: str
    health: Health
    where: str
    concerns: bool = True

    def __str__(self) -> str:
        doubt = "" if self.concerns else ", whose it was cannot be told"
        return f"{self.where or self.store}: {self.health.replace('_', ' ')}{doubt}"
