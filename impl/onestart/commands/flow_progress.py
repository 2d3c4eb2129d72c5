"""What a flow does, as it does it: on standard error, so that its value has the standard output for itself."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Any

import click

from onestart.commands.wording import plain, summary
from onestart.events import Event
from onestart.flow.identity import parse, short
from onestart.flow.journal import Journal

COLORS = {"done": "green", "failed": "red", "asks": "yellow", "verdict": "cyan", "again": "yellow"}


class Mode(Enum):
    TERMINAL = "terminal"
    LINES = "lines"
    QUIET = "quiet"


class Progress:
    """An observer of a flow: a line for each step that has come to something; on a terminal also what is under way.

    beginning: what is said once the flow has been taken up.
    """

    def __init__(self, mode: Mode) -> None:
        self.beginning = ""
        self._mode = mode
        self._shown: dict[str, str] = {}
        self._under_way: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        told = _TOLD.get(event.action)
        if told is not None:
            with suppress(OSError):
                told(self, event.details.get("step", ""), event.details.get("body", {}))

    def knows(self, journal: Journal) -> None:
        """What steps of earlier attempts were given."""
        for step, indexed in journal.index.items():
            self._shown[step] = summary(indexed.kind, indexed.shown)

    def say(self, text: str) -> None:
        """A line of its own."""
        if self._mode is Mode.QUIET:
            return
        self._clear()
        click.echo(text, err=True, color=self._mode is Mode.TERMINAL)
        self._draw()

    def close(self) -> None:
        """Nothing is under way any more."""
        self._under_way.clear()
        with suppress(OSError):
            self._clear()

    def _begin(self, _: str, __: Any) -> None:
        if self.beginning:
            self.say(self.beginning)

    def _index(self, step: str, details: Any) -> None:
        self._shown[step] = self._under_way[step] = summary(details["kind"], details["shown"])
        self._clear()
        self._draw()

    def _done(self, step: str, details: Any) -> None:
        self._under_way.pop(step, None)
        words = self._shown.get(step) or summary(_kind(step), details.get("shown", ""))
        failed = details.get("failed")
        if failed is None:
            self._line("done", step, words)
        else:
            self._line("failed", step, f"{words}: {plain(failed)}")

    def _verdict(self, step: str, details: Any) -> None:
        self._under_way.pop(step, None)
        self._line("verdict", step, f"{self._shown.get(step, '')}: {details['verdict']}")

    def _wait(self, step: str, details: Any) -> None:
        self._line("asks", step, f"{plain(details['to'])}: {plain(details['question'])}")

    def _again(self, step: str, _: Any) -> None:
        self._line("again", step, "it was under way when its driver died, and may run again")

    def _line(self, word: str, step: str, text: str) -> None:
        column = click.style(f"{word:7}", fg=COLORS[word]) if self._mode is Mode.TERMINAL else f"{word:7}"
        self.say(f"{column}  {short(step)}  {text}".rstrip())

    def _clear(self) -> None:
        if self._mode is Mode.TERMINAL:
            click.echo("\r\x1b[K", nl=False, err=True, color=True)

    def _draw(self) -> None:
        if self._mode is Mode.TERMINAL and self._under_way:
            text = f"under way: {'; '.join(self._under_way.values())}"
            click.secho(text[: shutil.get_terminal_size().columns - 1], nl=False, err=True, dim=True, color=True)


def mode() -> Mode:
    """As standard error is a terminal or not."""
    return Mode.TERMINAL if sys.stderr.isatty() else Mode.LINES


def _kind(step: str) -> str:
    parsed = parse(step)
    return parsed.kind if parsed else ""


_TOLD: dict[str, Callable[[Progress, str, Any], None]] = {
    "flow_begin": Progress._begin,
    "flow_index": Progress._index,
    "flow_done": Progress._done,
    "flow_verdict": Progress._verdict,
    "flow_wait": Progress._wait,
    "flow_again": Progress._again,
}
