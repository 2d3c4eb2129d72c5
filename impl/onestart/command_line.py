"""The `onestart` command. Its sub-commands are entry points, so that the library need not know who brings them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "onestart.commands"
OWN = ("flow", "ledger", "run")  # of the library itself: found without asking what is installed, which takes a while
INTERNAL = 70  # a mistake of ours; none of the verdicts' codes


class Commands(click.Group):
    """Sub-commands by entry point, each imported only when it is used or described."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(point.name for point in _installed())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in OWN:
            return _own(cmd_name)
        for point in _installed():
            if point.name == cmd_name:
                return _load(point)
        return None


def _installed() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def _own(name: str) -> click.Command:
    command = getattr(import_module(f"onestart.commands.{name}"), name)
    assert isinstance(command, click.Command)
    return command


def _load(point: EntryPoint) -> click.Command:
    try:
        command = point.load()
    except ModuleNotFoundError as error:
        reason = f"`{point.name}` needs {error.name}: install it with  pip install 'onestart[check]'"
        return _unusable(point.name, reason, "(not installed)")
    except Exception as error:  # most likely a mistake in a rule, which is read when its module is imported
        return _unusable(point.name, f"`{point.name}` cannot be loaded: {_where(error)}{error}", "(cannot be loaded)")
    if not isinstance(command, click.Command):
        raise TypeError(f"entry point {point.name} is no click command")
    return command


def _unusable(name: str, reason: str, note: str) -> click.Command:
    def refuse() -> None:
        raise click.UsageError(reason)

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, short_help=note, context_settings=settings)


def _where(error: BaseException) -> str:
    """File and line of the innermost code that is not of an installed package."""
    import traceback

    frames = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename]
    rules = [f for f in frames if not f.filename.endswith(("terms.py", "recording.py", "rules.py", "state.py"))]
    chosen = (rules or frames)[-1:]
    return "".join(f"{frame.filename}:{frame.lineno}: " for frame in chosen)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="onestart", message="%(prog)s %(version)s")
def onestart() -> None:
    """One idempotency key, at most one start: the library, and the evidence for it."""


def main() -> None:
    """Run the command. What a user can get wrong ends in one line and exit code 2, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except OSError as error:
        code = _complain(f"the output cannot be written: {error.strerror}")
    except Exception:
        import traceback

        traceback.print_exc()
        code = INTERNAL
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)  # taking the interpreter apart takes longer than a small command; all that matters is durable


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; returns its exit code."""
    try:
        result = onestart.main(arguments, prog_name="onestart", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        return _complain(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        click.echo("onestart: interrupted", err=True)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as error:
        return _complain(f"the output cannot be written: {error.strerror}")
    except MemoryError:
        return _complain("out of memory: choose a smaller instance, or a limit such as --max-memory")


def _complain(message: str) -> int:
    click.echo(f"onestart: {' '.join(message.split())}", err=True)
    return 2
