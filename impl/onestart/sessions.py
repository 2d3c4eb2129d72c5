"""Beside submissions: cancellation, reconciliation, leases of keys that are over, and what an operator can do."""

from __future__ import annotations

from functools import partial

from attrs import frozen

from onestart import evidence, leases
from onestart.answers import Answer, Outcome, Reason
from onestart.command import BadCommandError, Bound, Command, check_name
from onestart.kernel import answered, close_and_tell, report
from onestart.outside import Decision, Outside, Strand
from onestart.ports import View
from onestart.records import Approval, Attempt, Lease, Session


class NothingToDoError(ValueError):
    """An operator asked for something that the records do not call for; the message says why."""


@frozen
class Sessions:
    """What happens to keys outside of their submissions."""

    outside: Outside

    async def cancel(self, strand: Strand, command: Command | Bound) -> Answer:
        """Close a command that was not started, or ask the executor to stop it."""
        if not command.fingerprint:
            return await self.outside.step(strand, partial(unreadable, command=command))
        if await self.outside.step(strand, partial(cancel_session, strand=strand)):
            await self.outside.executor.stop(strand.key)
            self.outside.tell("stopped", strand)
        return await close_and_tell(self.outside, strand, command, "cancel", Reason.CANCELLED)

    async def reconcile(self, strand: Strand) -> bool:
        """End the attempt of a key that has started and no longer runs, and give its lease back.

        Returns whether the key is over.
        """
        try:
            executor = await self.outside.identify()
        except Exception:
            return False
        if await self.outside.step(strand, partial(to_be_asked, key=strand.key, executor=executor)):
            try:
                if await self.outside.executor.running(strand.key):
                    return False
            except Exception:  # CannotTellError, or whatever else keeps it from answering: then nothing is ended
                return False
            await self.outside.step(strand, partial(end, strand=strand))
        return await self.outside.step(strand, partial(release, strand=strand, outside=self.outside))

    async def tidy(self, strand: Strand) -> None:
        """Look after the other keys of the strand's task that stand in its way and may be over by now."""
        others = await self.outside.step(strand, partial(in_the_way, strand=strand, outside=self.outside))
        for key, fingerprint in others:
            await self.reconcile(Strand(strand.number, key, strand.task, fingerprint, seen=strand.seen))

    async def approve(self, strand: Strand, digest: str, by: str) -> None:
        """File an approval of the digest under the key."""
        check_name("approver", by)
        await self.outside.step(strand, lambda _: Decision(None, "", Approval(strand.key, strand.task, digest, by)))

    async def settle(self, strand: Strand, by: str, why: str) -> None:
        """An operator closes a key in doubt. Raises NothingToDoError if it is not in doubt."""
        await self.outside.step(strand, partial(settle, strand=strand, by=by, why=why))

    async def repair_lease(self, strand: Strand, by: str) -> None:
        """An operator puts a new lease record beside a damaged one. Raises NothingToDoError if it is legible."""
        await self.outside.step(strand, partial(repair_lease, strand=strand, by=by))


def command_on_record(view: View, *, key: str) -> Decision[Command | None]:
    """The command that a key is bound to, as far as its receipts can be read and hold a command that is this key's."""
    for record in view.receipt(key).records:
        try:
            command = Command(**record.command) if record.command is not None else None
        except (TypeError, BadCommandError):
            continue
        if command is not None and (command.key, command.fingerprint) == (key, record.fingerprint):
            return Decision(command)
    return Decision(None)


def unreadable(view: View, *, command: Command | Bound) -> Decision[Answer]:
    """No record shows what the key is bound to: because it cannot be read, or because there never was a command."""
    if view.receipt(command.key).exists:
        return report(view, command=command, reason=Reason.COMMAND_DAMAGED)
    return answered(view, command, "report", Reason.UNKNOWN_KEY, Outcome.TURNED_AWAY)


def cancel_session(view: View, *, strand: Strand) -> Decision[bool]:
    """Record that a live session was cancelled. Returns whether the executor is to be asked, now or once more."""
    reading = view.session(strand.key)
    if not reading.exists:
        return Decision(False)
    if reading.newest is not None and reading.newest.state == "cancelled":
        return Decision(not evidence.over(view, strand.key))
    token, executor = (reading.records[-1].token, reading.records[-1].executor) if reading.records else (0, "")
    record = Session(strand.key, strand.task, "cancelled", strand.fingerprint, token, executor=executor)
    return Decision(True, "cancel_session", record)


def may_be_over(view: View, *, key: str) -> Decision[bool]:
    """Whether there is a session whose attempt has not ended."""
    return Decision(view.session(key).exists and not evidence.over(view, key))


def to_be_asked(view: View, *, key: str, executor: str) -> Decision[bool]:
    """Whether it may be over, and this executor can tell."""
    return Decision(may_be_over(view, key=key).value and not evidence.elsewhere(view, key, executor))


def end(view: View, *, strand: Strand) -> Decision[None]:
    """The attempt of a started key becomes terminal; a damaged or lost record gets its successor beside it."""
    if not may_be_over(view, key=strand.key).value:
        return Decision(None)
    record = Attempt(strand.key, strand.task, "ended", strand.fingerprint)
    return Decision(None, "reconcile", record)


def release(view: View, *, strand: Strand, outside: Outside) -> Decision[bool]:
    """Give back the lease of a key that is over."""
    over = evidence.over(view, strand.key)
    if over and evidence.lease_holder(view, strand.task, outside.now(view)) == strand.key:
        return Decision(True, "release", leases.given_back(view, strand))
    return Decision(over)


def in_the_way(view: View, *, strand: Strand, outside: Outside) -> Decision[list[tuple[str, str]]]:
    """The other keys of the task that have a session, or the lease, and may be over; with their fingerprints."""
    holder = evidence.lease_holder(view, strand.task, outside.now(view))
    others = (key for key in view.keys(strand.task) if key != strand.key)
    found = [key for key in others if key == holder or may_be_over(view, key=key).value]
    return Decision([(key, "".join(sorted(evidence.binding(view, key))[:1])) for key in found])


def settle(view: View, *, strand: Strand, by: str, why: str) -> Decision[None]:
    """Close a key in doubt on an operator's word."""
    key, task = strand.key, strand.task
    if not view.receipt(key).exists or not evidence.in_doubt(view, key, task):
        raise NothingToDoError(f"the key is not in doubt: its attempt is {evidence.attempt_state(view, key)}")
    reason, note = str(Reason.SETTLED), f"{by}: {why}"
    record = Attempt(key, task, "closed", strand.fingerprint, reason=reason, note=note)
    return Decision(None, "settle", record, {"by": by, "why": why})


def repair_lease(view: View, *, strand: Strand, by: str) -> Decision[None]:
    """A new record of a lease beside an illegible one; its token is above every one that was issued."""
    if not evidence.lease_damaged(view, strand.task):
        raise NothingToDoError("the lease can be read")
    strand.token = evidence.next_token(view, strand.task)
    return Decision(None, "repair_lease", Lease(strand.task, strand.token, None, 0.0, by))


__all__ = ["NothingToDoError", "Sessions", "command_on_record"]
