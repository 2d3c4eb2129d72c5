"""The command chain of one process: submit, cancel, recover, and what an operator can do."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from attrs import frozen

from onestart import evidence
from onestart.answers import Answer, Outcome, Reason, Result
from onestart.clocks import SystemClock
from onestart.command import BadCommandError, Bound, Command, check_name, check_words
from onestart.dispatcher import Dispatcher
from onestart.events import Observer, nobody
from onestart.health import Finding
from onestart.kernel import Callback, Kernel
from onestart.outside import Outside, Strand
from onestart.ports import Clock, Executor, Governance, Ledger, Ruling, View
from onestart.sessions import Sessions, command_on_record

T = TypeVar("T")


class Permissive:
    """A governance that agrees to everything: whatever revision a command expects is in force."""

    async def rule(self, command: Command) -> Ruling:
        return Ruling(command.revision)


@frozen
class Status:
    """What the records show of a key. attempt: absent, offered, intended, closed, ended or damaged."""

    key: str
    task: str
    attempt: str
    started: bool
    in_doubt: bool
    result: Result | None
    findings: tuple[Finding, ...]


class Chain:
    """One idempotency key, at most one start, whatever crashes and whatever is submitted again.

    ledger: where records live; several processes may share one. executor: what starts commands. governance: who decides
    whether they may go on, everybody by default. observer: is told of every durable or external step. process: a name
    that no other process has or had, made up by default. lease_seconds: how long a task stays occupied by a process
    that has died. callback: is given the dispatcher and makes the execution callback, for kernels that wrap it or
    dispatch in another way.

    Raises ValueError for a lease that is not longer than nothing, or endless.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        executor: Executor,
        governance: Governance | None = None,
        clock: Clock | None = None,
        observer: Observer = nobody,
        process: str | None = None,
        lease_seconds: float = 30.0,
        callback: Callable[[Dispatcher], Callback] | None = None,
    ) -> None:
        if not 0 < lease_seconds < math.inf:
            raise ValueError(f"lease_seconds must be above 0 and finite, not {lease_seconds!r}")
        name = process or f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
        check_name("process", name)
        self._outside = Outside(
            ledger, executor, governance or Permissive(), clock or SystemClock(), observer, name, float(lease_seconds)
        )
        self._sessions = Sessions(self._outside)
        dispatcher = Dispatcher(self._outside, self._sessions.tidy)
        self._kernel = Kernel(self._outside, callback(dispatcher) if callback else dispatcher.dispatch)
        self._strands: Iterator[int] = itertools.count(1)
        self._going: set[asyncio.Task[Any]] = set()

    @property
    def process(self) -> str:
        """This process's name, as leases and events show it."""
        return self._outside.process

    async def submit(self, command: Command) -> Answer:
        """Submit a command; submitted again, with the same key, it is the same command.

        The executor has started it when the answer's outcome is `started`, and never will when it is `closed`. Whoever
        waits for the answer may be cancelled; the submission goes on. Raises BadCommandError, with nothing recorded,
        for what the executor could never start.
        """
        check = getattr(self._outside.executor, "check", None)
        if check is not None:
            check(command)
        strand = Strand(next(self._strands), command.key, command.task, command.fingerprint)
        return await self._finish(self._kernel.submit(strand, command))

    async def cancel(self, key: str) -> Answer:
        """Close a command that nobody meant to start yet, or ask the executor to stop it."""
        command, strand = await self._on_record(key)
        if strand is None:
            return Answer(key, Outcome.TURNED_AWAY, Reason.UNKNOWN_KEY)
        bound = command or Bound(key, strand.task, strand.fingerprint)
        return await self._finish(self._sessions.cancel(strand, bound))

    async def reconcile(self, key: str) -> bool:
        """End the attempt of a started key that no longer runs, and free its task. Returns whether it is over.

        To be called when an execution ends; whoever is next in line for the task does it otherwise.
        """
        _, strand = await self._on_record(key)
        return strand is not None and await self._finish(self._sessions.reconcile(strand))

    async def recover(self) -> tuple[Answer, ...]:
        """After a restart: take up every command that was accepted and has no result, and reconcile what has ended.

        Work of processes that live is left to them: their leases stand in the way, and the answer says so.
        """
        answers = []
        for key, unfinished in await self._outside.ledger.step(lambda view: (None, _unfinished(view))):
            command, strand = await self._of_record(key)
            if unfinished and command is not None:
                answers.append(await self._taken_up(command))
            elif unfinished:
                answers.append(Answer(key, Outcome.HELD, Reason.COMMAND_DAMAGED))
            if strand is not None:
                await self._finish(self._sessions.reconcile(strand))
        return tuple(answers)

    async def _taken_up(self, command: Command) -> Answer:
        """A ledger may hold commands of other executors, a flow's steps for instance; they are left to those."""
        try:
            return await self.submit(command)
        except BadCommandError as error:
            return Answer(command.key, Outcome.HELD, Reason.NOT_EXECUTABLE, detail=str(error))

    async def approve(self, command: Command, *, by: str) -> None:
        """File an approval of this very command: of who asks for what on which task."""
        await self._finish(
            self._sessions.approve(
                Strand(next(self._strands), command.key, command.task, command.fingerprint), command.fingerprint, by
            )
        )

    async def settle(self, key: str, *, by: str, why: str) -> None:
        """An operator closes a key in doubt, having made sure that nothing of it runs or is about to start.

        Raises NothingToDoError if the key is not in doubt, BadCommandError if it is unknown.
        """
        check_name("operator", by)
        check_words("reason", why)
        _, strand = await self._on_record(key)
        if strand is None:
            raise BadCommandError("no record has this key")
        await self._finish(self._sessions.settle(strand, by, why))

    async def repair_lease(self, task: str, *, by: str = "operator", why: str = "") -> None:
        """An operator puts a new lease record beside one that cannot be read, with a token above all issued ones.

        Raises NothingToDoError if the record can be read.
        """
        check_name("task", task)
        check_name("operator", by)
        check_words("reason", why)
        await self._finish(self._sessions.repair_lease(Strand(0, "", task), f"{by}: {why}" if why else by))

    async def status(self, key: str) -> Status | None:
        """What the records show of a key, None if there are none."""
        return await self._outside.ledger.step(lambda view: (None, _status(view, key)))

    async def aclose(self) -> None:
        """Wait for the submissions that are under way."""
        while self._going:
            await asyncio.wait(self._going)

    async def _on_record(self, key: str) -> tuple[Command | None, Strand | None]:
        check_name("key", key)
        return await self._of_record(key)

    async def _of_record(self, key: str) -> tuple[Command | None, Strand | None]:
        """The same for a key that a ledger shows, which damage may have made into what nobody could submit."""

        def look(view: View) -> tuple[None, tuple[Command | None, str | None, str]]:
            bound = sorted(evidence.binding(view, key))
            return None, (command_on_record(view, key=key).value, view.task_of(key), bound[0] if bound else "")

        command, task, fingerprint = await self._outside.ledger.step(look)
        return command, None if task is None else Strand(next(self._strands), key, task, fingerprint)

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end even if whoever waits is cancelled: a step once begun must be told of, and its lease kept."""
        task = asyncio.ensure_future(work)
        self._going.add(task)
        task.add_done_callback(self._going.discard)
        return await asyncio.shield(task)


def _unfinished(view: View) -> list[tuple[str, bool]]:
    return [(key, view.receipt(key).exists and not evidence.completed(view, key)) for key in view.all_keys()]


def _status(view: View, key: str) -> Status | None:
    task = view.task_of(key)
    if task is None:
        return None
    return Status(
        key,
        task,
        evidence.attempt_state(view, key),
        evidence.started(view, key),
        view.receipt(key).exists and evidence.in_doubt(view, key, task),
        evidence.recorded_result(view, key),
        evidence.findings(view, key, task),
    )
