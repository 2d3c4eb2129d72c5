"""What people see: progress while something takes long, tables at the end. Plain lines where there is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from onestart_model.counterexample import Counterexample
from onestart_model.execution import Machine
from onestart_report.verdict import Verdict

PLAIN_WIDTH = 132
_LEAST = 0.05  # seconds
COLORS = {
    Verdict.PROVED: "green",
    Verdict.REFUTED: "bold red",
    Verdict.NOT_INDUCTIVE: "yellow",
    Verdict.UNDETERMINED: "yellow",
}


class Screen:
    """Results go to standard output, progress to standard error. quiet: no results but what is asked for as JSON."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._out = _console(sys.stdout.isatty(), stderr=False)
        self._err = _console(sys.stderr.isatty(), stderr=True)
        self._quiet = quiet

    @contextmanager
    def phase(self, title: str) -> Iterator[Callable[[str, float | None], None]]:
        """A part of the work; yields a function that takes its progress: a text, and the share done if it is known.

        Its end is told with how long it took, unless that is nothing: its work was done beside other parts then.
        """
        start = time.perf_counter()
        text = ""
        with self._progress() as progress:
            task = progress.add_task(escape(title), total=None, note="")

            def tell(note: str, share: float | None) -> None:
                nonlocal text
                text = note
                progress.update(task, note=note, total=None if share is None else 1.0, completed=share or 0.0)

            yield tell
        seconds = time.perf_counter() - start
        told = [text] * bool(text) + [f"{seconds:.1f} s"] * (seconds >= _LEAST)
        self._err.print(escape(f"{title}: {', '.join(told) or 'done'}"), highlight=False, soft_wrap=True)

    def _progress(self) -> Progress:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
        )
        return Progress(*columns, console=self._err, transient=True, disable=not self._err.is_terminal)

    def line(self, text: str = "") -> None:
        """A line of result; markup is understood."""
        if not self._quiet:
            self._out.print(text, highlight=False, soft_wrap=True)

    def raw(self, text: str) -> None:
        """Text as it is, for machines."""
        self._out.out(text, highlight=False)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table; cells may hold markup."""
        if self._quiet or not rows:
            return
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold", pad_edge=False)
        for number, column in enumerate(columns):
            table.add_column(column, overflow="fold", no_wrap=number == 0)
        for row in rows:
            table.add_row(*row)
        self._out.print(table)

    def story(self, trace: Counterexample) -> None:
        """A trace as a table of steps, each with what it changes."""
        machine = Machine(trace.instance)
        rows = []
        for number, step in enumerate(trace.steps, 1):
            changes = "\n".join(trace.states[number - 1].diff(trace.states[number])) or "changes nothing"
            rows.append((str(number), escape(machine.show_step(step)), escape(changes)))
        self.table(
            f"{trace.property}: {len(trace.steps)} step{'s' if len(trace.steps) != 1 else ''}",
            ("#", "step", "what it changes"),
            rows,
        )

    def wrote(self, paths: Sequence[Path]) -> None:
        """Which trace files there are now, and what to do with them."""
        for path in paths:
            self.line(f"wrote {escape(str(path))}")
        if paths:
            self.line(f"read {'it' if len(paths) == 1 else 'one'} with  onestart show {escape(str(paths[0]))}")

    def state(self, title: str, lines: Sequence[str]) -> None:
        self.line(f"[bold]{escape(title)}[/bold]")
        for text in lines:
            self.line(f"  {escape(text)}")


def _console(terminal: bool, *, stderr: bool) -> Console:
    return Console(stderr=stderr) if terminal else Console(stderr=stderr, width=PLAIN_WIDTH, no_color=True)


def colored(verdict: Verdict, text: str | None = None) -> str:
    return f"[{COLORS[verdict]}]{escape(text or str(verdict))}[/]"
