"""`onestart run`: a program that is started once for each key, whatever crashes and however often it is asked for."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from attrs import define, field, frozen

from onestart.answers import Answer, Outcome, Reason
from onestart.chain import Chain
from onestart.command import BadCommandError, Command, escaped
from onestart.commands.options import address_of, check_lease, check_ledger, ledger_option
from onestart.events import nobody
from onestart.executors import CommandExecutor
from onestart.health import Finding
from onestart.ledgers import Address, inspected, opened
from onestart.ports import CannotTellError, LedgerUnavailableError, Order
from onestart.sessions import command_on_record

if TYPE_CHECKING:  # imported when it is used, because the command is to start quickly
    from onestart.eventlog import EventLog

NOT_NOW = 75  # EX_TEMPFAIL
NEVER = 2
PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

WORDS = {
    Reason.LEASE_CONFLICT: "another process holds its task, or died less than a lease ago",
    Reason.LEASE_LOST: "another process took its task over",
    Reason.TASK_BUSY: "another command of its task is running",
    Reason.IN_DOUBT: "whether it was started cannot be told",
    Reason.START_FAILED: "whether it was started is not known yet",
    Reason.LEASE_DAMAGED: "the lease of its task cannot be read, and has to be repaired",
    Reason.RESULT_DAMAGED: "what it came to cannot be read",
    Reason.RECEIPTS_UNAVAILABLE: "the ledger cannot be used",
    Reason.STORE_UNAVAILABLE: "the ledger cannot be used",
}


@click.command(name="run")
@ledger_option
@click.option("--task", help="What the command acts on, one command at a time. [the key]")
@click.option("--actor", default="anybody", help="Who asks.")
@click.option("--lease", type=float, default=30.0, help="Seconds that a task stays taken when its process dies. [30]")
@click.option("--log", metavar="FILE", help="Append events to this file, one JSON object a line.")
@click.option("--launches", metavar="FOLDER", help="Where this machine keeps what it started. [beside the ledger]")
@click.option("--wait/--no-wait", default=True, help="Wait for the command's end. [wait]")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON, after the command's own output.")
@click.argument("key")
@click.argument("argv", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    ledger: str,
    task: str | None,
    actor: str,
    lease: float,
    log: str | None,
    launches: str | None,
    wait: bool,
    as_json: bool,
    key: str,
    argv: tuple[str, ...],
) -> int:
    """Run a command, unless it was started under this KEY before.

    The first time the command's exit code is passed on; signals are passed to the command. Later, nothing is started
    and the recorded exit code is returned: 75 if the command still runs, its end is not known, or it cannot be started
    just now. 2: the key belongs to another command, or will never start.
    """
    check_lease(lease)
    command = _command(key, task or key, actor, argv)
    address = address_of(ledger)
    check_ledger(address)
    _check_program(address, command, argv[0])
    observer = _event_log(log) if log else None
    job = Job(address, command, wait, _launches(address, launches))
    report = asyncio.run(job.run(lease, observer))
    if observer is not None and observer.failure:
        report.notes.append(f"{log} is incomplete: {observer.failure}")
    return _say(report, as_json)


@define
class Report:
    """What `onestart run` says at the end. notes: lines for standard error. status: the exit code of the command."""

    answer: Answer
    code: int
    started: bool = False
    status: int | None = None
    notes: list[str] = field(factory=list)


class Starter(CommandExecutor):
    """Knows whether it was this process that started the command, and keeps signals until then."""

    def __init__(self, folder: str, key: str) -> None:
        super().__init__(folder)
        self.started = False
        self.problem = ""
        self._key = key
        self._signals: list[int] = []

    async def start(self, order: Order) -> None:
        await super().start(order)
        self.started = True
        for number in self._signals:
            await self.signal(self._key, number)

    def take_signals(self) -> None:
        """From now on signals are for the command, except those that this process was told to ignore."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._hear)
        for number in PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._pass_on, number)

    def _pass_on(self, number: int) -> None:
        if self.started:
            self._keep(self.signal(self._key, number))
        elif self._signals:
            os._exit(128 + number)  # asked twice, and nothing to pass it to: as good a moment as any for a crash
        else:
            self._signals.append(number)

    def _hear(self, _: object, context: dict[str, Any]) -> None:
        message, error = str(context["message"]), str(context.get("exception", ""))
        self.problem = message if error in message else f"{message}: {error}"


@frozen
class Job:
    """One run of one command."""

    ledger: Address
    command: Command
    wait: bool
    launches: str

    async def run(self, lease: float, observer: EventLog | None) -> Report:
        executor = Starter(self.launches, self.command.key)
        executor.take_signals()
        with opened(self.ledger) as ledger:
            chain = Chain(ledger=ledger, executor=executor, lease_seconds=lease, observer=observer or nobody)
            answer = await chain.submit(self.command)
            report = await (self._first if executor.started else self._again)(chain, executor, answer)
        if executor.problem:
            report.notes.append(executor.problem)
        return report

    async def _first(self, chain: Chain, executor: Starter, answer: Answer) -> Report:
        """It was started here, whatever the answer is."""
        report = Report(answer, 0, started=True)
        if answer.outcome is not Outcome.STARTED:
            report.notes.append(f"it was started, and that could not be recorded: {_why(answer)}")
        if self.wait:
            report.status = _exit_code(await executor.wait(self.command.key))
            report.code = report.status
            await self._reconcile(chain, report)
        return report

    async def _again(self, chain: Chain, executor: Starter, answer: Answer) -> Report:
        """Nothing was started here."""
        key = escaped(self.command.key)
        if answer.reason is Reason.CONFLICT:
            return Report(answer, NEVER, notes=[f"{key} belongs to another command{_difference(self)}"])
        if answer.outcome is Outcome.CLOSED:
            reason = answer.result.reason if answer.result else answer.reason
            return Report(answer, NEVER, notes=[f"{key} will never start: {reason}"])
        if answer.outcome is not Outcome.STARTED:
            return Report(answer, NOT_NOW, notes=[f"{key} is not started now: {_why(answer)}"])
        report = Report(answer, NOT_NOW)
        try:
            status = await executor.outcome(self.command.key)
            running = status is None and await executor.running(self.command.key)
        except CannotTellError as error:
            report.notes.append(f"{key} was started before; how it ended cannot be told: {error}")
            return report
        if status is not None:
            report.code = report.status = _exit_code(status)
        end = "still running" if running else "how it ended is not on record"
        report.notes.append(f"{key} was started before ({end if status is None else f'exit code {report.code}'})")
        if not running:
            await self._reconcile(chain, report)
        return report

    async def _reconcile(self, chain: Chain, report: Report) -> None:
        """Free the task; whoever is next in line for it does so if this fails."""
        try:
            if not await chain.reconcile(self.command.key):
                report.notes.append(f"the task {escaped(self.command.task)} is not freed yet")
        except LedgerUnavailableError as error:
            report.notes.append(f"the task {escaped(self.command.task)} is not freed yet: {error}")


def _command(key: str, task: str, actor: str, argv: Sequence[str]) -> Command:
    try:
        where = os.getcwd()
        return Command(key=key, task=task, function="run", actor=actor, payload={"argv": list(argv), "cwd": where})
    except BadCommandError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"the current folder cannot be used: {error.strerror}") from None


def _launches(address: Address, folder: str | None) -> str:
    """A ledger that many machines share has no place beside it."""
    found = folder or address.launches
    if not found:
        raise click.UsageError("--launches FOLDER is needed: where this machine keeps what it started")
    return found


def _event_log(path: str) -> EventLog:
    from onestart.eventlog import EventLog

    try:
        return EventLog(path)
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}") from None


def _check_program(ledger: Address, command: Command, program: str) -> None:
    """A program that is not there is refused before anything is recorded; a key on record needs none any more."""
    if not _executable(program) and _on_record(ledger, command.key) is None:
        raise click.UsageError(f"there is no program {escaped(program)} that can be executed")


def _executable(program: str) -> bool:
    """Whether `execvp` finds the program. `shutil.which` would do, and takes longer to import than to answer."""
    folders = [""] if os.sep in program else os.get_exec_path()
    paths = (os.path.join(folder, program) for folder in folders)
    return any(os.path.isfile(path) and os.access(path, os.X_OK) for path in paths)


def _on_record(ledger: Address, key: str) -> Command | None:
    with suppress(LedgerUnavailableError, BadCommandError), inspected(ledger) as view:
        return command_on_record(view, key=key).value
    return None


def _difference(job: Job) -> str:
    """In what the command differs from the one that the key belongs to."""
    known = _on_record(job.ledger, job.command.key)
    if known is None:
        return ""
    here, there = _shown(job.command), _shown(known)
    names = [name for name in here if here[name] != there.get(name)]
    return f": {names[0]} was {escaped(there.get(names[0]))}" if names else ""


def _shown(command: Command) -> dict[str, Any]:
    payload = command.payload if isinstance(command.payload, dict) else {}
    parts = {"the command": payload.get("argv"), "the folder": payload.get("cwd")}
    return parts | {"the task": command.task, "the actor": command.actor}


def _exit_code(status: int) -> int:
    return status if status >= 0 else 128 - status


def _why(answer: Answer) -> str:
    words = WORDS.get(answer.reason, answer.reason.replace("_", " "))
    return f"{words} ({answer.detail})" if answer.detail else words


def _damage(findings: Sequence[Finding]) -> list[str]:
    shown = "; ".join(map(str, findings[:3]))
    more = f"; and {len(findings) - 3} more" if len(findings) > 3 else ""
    return [f"the ledger is not healthy: {shown}{more}"] if findings else []


def _say(report: Report, as_json: bool) -> int:
    for note in [*report.notes, *_damage(report.answer.findings)]:
        click.echo(f"onestart: {' '.join(note.split())}", err=True)
    if as_json:
        known = {"started_now": report.started, "exit_code": report.status}
        click.echo(json.dumps(report.answer.to_json() | known, ensure_ascii=True))
    return report.code
