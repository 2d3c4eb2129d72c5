"""The four verdicts. They are never rounded up."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Verdict(Enum):
    """What is known of a claim. The value is its exit code; 2 is left for input that is no claim at all."""

    PROVED = 0
    REFUTED = 1
    NOT_INDUCTIVE = 3
    UNDETERMINED = 4

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


_GRAVITY = (Verdict.PROVED, Verdict.UNDETERMINED, Verdict.NOT_INDUCTIVE, Verdict.REFUTED)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a whole: refuted if any part is, proved only if all are."""
    return max(verdicts, key=_GRAVITY.index, default=Verdict.PROVED)
