"""What commands have in common: complaints in one line, JSON, and files of traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from onestart_model.counterexample import Counterexample, CounterexampleError
from onestart_model.expression import RuleError

F = TypeVar("F", bound=Callable[..., Any])


class ModelCommand(click.Command):
    """A command whose complaints about models, instances and files are the user's to mend: one line, exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (RuleError, CounterexampleError) as error:
            raise click.UsageError(str(error)) from None


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")(function)


def save_option(function: F) -> F:
    return click.option(
        "--save",
        type=click.Path(file_okay=False, path_type=Path),
        help="Write every trace to this folder as an ITF file.",
    )(function)


def save_traces(folder: Path | None, traces: Iterable[Counterexample]) -> list[Path]:
    """Write the traces as ITF files named after what they break. Raises RuleError if the folder cannot be written."""
    written: list[Path] = []
    if folder is None:
        return written
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for trace in traces:
            parts = [trace.instance.model.name, trace.property, *sorted(trace.instance.without)]
            stem = "-without-".join(["-".join(parts[:2]), *parts[2:]])
            path = folder / f"{stem}.itf.json"
            number = 2
            while path in written:
                path = folder / f"{stem}-{number}.itf.json"
                number += 1
            trace.save(path)
            written.append(path)
    except OSError as error:
        raise RuleError(f"{folder} cannot be written: {error.strerror}") from None
    return written
