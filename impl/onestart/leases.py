"""Leases: taken under a token of its own for each acquisition, renewed while their holder works, given back."""

from __future__ import annotations

import asyncio
from functools import partial

from onestart import evidence
from onestart.outside import Decision, Outside, Strand
from onestart.ports import LedgerUnavailableError, View
from onestart.records import Lease


def acquire(view: View, *, strand: Strand, outside: Outside) -> Lease:
    """The record that takes the task's lease for the strand's key, under a fresh token."""
    token = evidence.next_token(view, strand.task)
    return _held(view, strand, outside, token)


def holds(view: View, *, strand: Strand, outside: Outside) -> bool:
    """Whether the strand passes the fence."""
    return evidence.holds_lease(view, strand.task, strand.key, strand.token, outside.now(view))


def given_back(view: View, strand: Strand) -> Lease:
    """The record that frees the lease under the token that it has."""
    lease = view.lease(strand.task).newest
    return Lease(strand.task, lease.token if lease else strand.token, None, 0.0)


def renew(view: View, *, strand: Strand, outside: Outside) -> Decision[bool]:
    """The holder's record anew, with a later end; whoever has lost the lease gets nothing."""
    if not holds(view, strand=strand, outside=outside):
        return Decision(False)
    record = _held(view, strand, outside, strand.token)
    return Decision(True, "renew", record, {"ends": record.ends})


def _held(view: View, strand: Strand, outside: Outside, token: int) -> Lease:
    lasts = outside.lease_seconds
    return Lease(strand.task, token, strand.key, outside.now(view) + lasts, outside.process, lasts)


class Renewal:
    """Keeps a lease while its strand waits for the executor. Started with the claim, stopped with the last fence."""

    def __init__(self, outside: Outside, strand: Strand) -> None:
        self._outside = outside
        self._strand = strand
        self._asleep = False
        self._stopped = False
        self._task = asyncio.ensure_future(self._renew())

    async def _renew(self) -> None:
        step = partial(renew, strand=self._strand, outside=self._outside)
        while not self._stopped:
            self._asleep = True
            await self._outside.clock.sleep(self._outside.lease_seconds / 3)
            self._asleep = False
            try:
                if not await self._outside.step(self._strand, step):
                    return
            except LedgerUnavailableError:
                return  # the lease runs out, and the strand finds out at its next fence

    async def stop(self) -> None:
        """End the renewals; one that is being written is waited for."""
        self._stopped = True
        if self._asleep:
            self._task.cancel()
        await asyncio.wait([self._task])
