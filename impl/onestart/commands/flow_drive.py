"""One drive of a flow from the command line: begun or resumed, watched, and told of at its end."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

import click
from attrs import frozen

from onestart.commands.flow_progress import Mode, Progress, mode
from onestart.commands.wording import as_json, counted, plain
from onestart.flow.definition import Flow
from onestart.flow.errors import DriverBusyError
from onestart.flow.flows import Flows
from onestart.flow.identity import short
from onestart.flow.journal import Journal
from onestart.flow.outcome import Outcome
from onestart.ledgers import opened
from onestart.ports import Clock

NOT_NOW = 75  # EX_TEMPFAIL, as of `onestart run`


@frozen
class Typed:
    """What the user has typed. ledger: with the option, if it was typed, so that commands that are shown say it too."""

    place: str
    root: str
    ledger: str
    option: str = ""

    def answer(self, wait: str) -> str:
        """The command that answers a question."""
        return f"onestart flow answer{self.option} {shlex.quote(self.root)} {wait} VALUE"

    def resolve(self, step: str) -> str:
        """The command that says what became of a step."""
        said = "--again | --result VALUE | --failed WHY"
        return f"onestart flow resolve{self.option} {shlex.quote(self.root)} {step} --by NAME --why TEXT ({said})"

    def resume(self) -> str:
        """The command that goes on with the flow."""
        return f"onestart flow resume{self.option} {shlex.quote(self.place)} {shlex.quote(self.root)}"


@frozen
class Drive:
    """arguments: of the flow's body; None to take those that are on record."""

    flow: Flow
    typed: Typed
    arguments: Sequence[Any] | None
    lease: float
    clock: Clock
    quiet: bool = False

    async def run(self) -> Outcome:
        """Bring the flow as far as it gets. Raises what `Flows.run` raises; UsageError for an id without a record."""
        progress = Progress(Mode.QUIET if self.quiet else mode())
        with opened(self.typed.ledger) as ledger:
            flows = Flows(ledger=ledger, observer=progress, clock=self.clock, lease_seconds=self.lease)
            try:
                return await Patience(flows, self.clock, progress).run(self.flow, self.typed.root, self._arguments)
            finally:
                progress.close()
                await flows.aclose()

    def _arguments(self, journal: Journal | None) -> Sequence[Any]:
        if self.arguments is not None:
            return self.arguments
        if journal is None:
            raise click.UsageError(f"nothing is on record of the flow {plain(self.typed.root)}; begin it with run")
        return list(journal.arguments or [])


@frozen
class Patience:
    """Waits for the lease of a driver that has died; one that lives renews its lease, and is not waited for."""

    flows: Flows
    clock: Clock
    progress: Progress

    async def run(self, flow: Flow, root: str, arguments: Callable[[Journal | None], Sequence[Any]]) -> Outcome:
        journal = await self.flows.status(root)
        given = arguments(journal)
        if journal is not None and journal.complete is None:
            known = len(journal.ended) + len(journal.verdicts) + sum(w.answered for w in journal.waits.values())
            self.progress.knows(journal)
            self.progress.beginning = f"resuming {plain(root)}: {counted(known, 'step')} on record"
        while True:
            try:
                return await self.flows.run(flow, root, *given)
            except DriverBusyError:
                await self._until_free(root)

    async def _until_free(self, root: str) -> None:
        """Raises DriverBusyError if a driver turns out to be alive."""
        held = await self.flows.holder(root)
        if held is None:
            return
        left = max(1, ceil(held.ends - self.clock.now()))
        self.progress.say(f"another driver has the lease of {plain(root)}; if it has died, it is free in {left} s")
        while (now := await self.flows.holder(root)) is not None:
            if (now.token, now.ends) != (held.token, held.ends):
                raise DriverBusyError(f"another driver is at {plain(root)}: {plain(now.by)} has renewed its lease")
            await self.clock.sleep(max(0.01, min(held.ends - self.clock.now(), 0.5)))


def tell(outcome: Outcome, typed: Typed, *, whole: bool) -> int:
    """Say what the flow has come to; returns the exit code. whole: the outcome as JSON, instead of the value alone."""
    if outcome.findings:
        click.echo(f"onestart: the ledger is not healthy: {plain('; '.join(outcome.findings), 1000)}", err=True)
    if whole:
        click.echo(as_json(outcome.to_json()))
    elif outcome.state == "completed":
        click.echo(as_json(outcome.value))
    if outcome.state == "parked":
        _tell_parked(outcome, typed)
    elif outcome.state == "held":
        _tell_held(outcome, typed)
    elif outcome.state != "completed":
        said = "has failed" if outcome.state == "failed" else f"is {outcome.state}"
        message = " ".join(f"{outcome.reason}: {short(outcome.message)}".split())
        click.echo(f"onestart: {plain(outcome.root)} {said}: {message}", err=True)
    return outcome.exit_code


def _tell_parked(outcome: Outcome, typed: Typed) -> None:
    click.echo(f"{plain(outcome.root)} is parked on {counted(len(outcome.waits), 'question')}", err=True)
    names = names_of([question.wait for question in outcome.waits])
    for question in outcome.waits:
        click.echo(f"  to {plain(question.to)}: {plain(question.question, 1000)}", err=True)
        click.echo(f"    {typed.answer(names[question.wait])}", err=True)
    click.echo(f"  and then\n    {typed.resume()}", err=True)


def _tell_held(outcome: Outcome, typed: Typed) -> None:
    click.echo(
        f"{plain(outcome.root)} is held: nobody knows how far {counted(len(outcome.held), 'step')} got", err=True
    )
    names = names_of(list(outcome.held))
    for step, why in outcome.held.items():
        click.echo(f"  {short(step)}: {plain(why, 1000)}", err=True)
        click.echo(f"    {typed.resolve(names[step])}", err=True)
    click.echo(f"  and then\n    {typed.resume()}", err=True)


def names_of(steps: Sequence[str]) -> dict[str, str]:
    """What to type for each: shortened, unless two of them are the same then."""
    shortened = [short(step) for step in steps]
    return {step: name if shortened.count(name) == 1 else step for step, name in zip(steps, shortened, strict=True)}
