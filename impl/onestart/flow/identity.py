"""Step ids: how a call of a flow is named, so that a resumed flow finds what it has done already.

Version 2 counts: `<kind>-<N>`, one counter for all kinds, in call order. Where branches run side by side, call order is
the order in which results arrive, and that is another one when recorded results are replayed at once.

Version 3 names a call by what it comes after: `<kind>-after-<hash of its causal predecessors>-<ordinal among the calls
declared after exactly those>`, so arrival order takes no part. Where causality cannot be known it counts, as version 2.

Source: serial ordinals, "Mechanism" and "Follow-up: fix 2".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from attrs import frozen

from onestart.command import digest

KINDS = ("run", "llm", "agent", "human", "dispatch", "helper", "mcp", "plugin", "hook", "memory", "on")
MARKER = "complete"
LEGACY, SERIAL, CAUSAL = 1, 2, 3
LATEST = CAUSAL
BETWEEN = "--"

_KIND = "|".join((*KINDS, MARKER))
_HASH = re.compile(r"after-([0-9a-f]{8})[0-9a-f]{56}-")
_ID = re.compile(rf"(?:(?P<scope>.+){BETWEEN})?(?P<kind>{_KIND})-(?:after-(?P<after>[0-9a-f]{{64}})-)?(?P<ordinal>\d+)")


@frozen
class StepId:
    """scope: the id of the dispatch that the step is under, empty for the root's own. after: empty if it counts."""

    scope: str
    kind: str
    ordinal: int
    after: str = ""

    def __str__(self) -> str:
        name = f"{self.kind}-after-{self.after}-{self.ordinal}" if self.after else f"{self.kind}-{self.ordinal}"
        return under(self.scope, name)

    @property
    def place(self) -> tuple[str, int]:
        """Where a causal id stands, whatever is called there."""
        return self.after, self.ordinal


def under(scope: str, name: str) -> str:
    """The full id of a step of a child flow."""
    return f"{scope}{BETWEEN}{name}" if scope else name


def parse(text: str) -> StepId | None:
    """The parts of an id, None if it is none."""
    match = _ID.fullmatch(text)
    if match is None:
        return None
    return StepId(match["scope"] or "", match["kind"], int(match["ordinal"]), match["after"] or "")


def short(text: str) -> str:
    """A text for people: of the hashes in step ids their first eight digits."""
    return _HASH.sub(r"after-\1-", text)


def frontier_hash(after: Iterable[str]) -> str:
    """Of a set of causal predecessors, in whatever order."""
    return hashlib.sha256("\n".join(sorted(after)).encode()).hexdigest()


def admission_key(root: str, step: str, again: int = 0) -> str:
    """The idempotency key under which a step is submitted. again: how often its executor was told to run it again."""
    return digest([root, step, again] if again else [root, step])
