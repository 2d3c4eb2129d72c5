"""Claims: what has been found out, of what, how, and with which scope."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import asdict, frozen

from onestart_report.verdict import Verdict, worst

ALL_SIZES = "all sizes"


@frozen
class Claim:
    """subject: the name of a property, protection or action. method: induction, enumeration, bounded, vacuity, removal.

    scope: "all sizes", or the instance in words. detail: what the verdict rests on, for people.
    """

    subject: str
    method: str
    scope: str
    verdict: Verdict
    detail: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": str(self.verdict)}


def shown(subject: str, method: str, scope: str, detail: str, holds: bool) -> Claim:
    """Proved if it holds, refuted if not."""
    return Claim(subject, method, scope, Verdict.PROVED if holds else Verdict.REFUTED, detail)


def overall(claims: Iterable[Claim]) -> Verdict:
    """The verdict of all claims together; of none, nothing is known."""
    verdicts = [claim.verdict for claim in claims]
    return worst(verdicts) if verdicts else Verdict.UNDETERMINED
