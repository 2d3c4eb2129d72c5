"""The `onestart` command. Its sub-commands are entry points, so that the library need not know who brings them."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points

import click

GROUP = "onestart.commands"


class Commands(click.Group):
    """Sub-commands by entry point, each imported only when it is used or described."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(point.name for point in entry_points(group=GROUP))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for point in entry_points(group=GROUP):
            if point.name == cmd_name:
                return _load(point)
        return None


def _load(point: EntryPoint) -> click.Command:
    try:
        command = point.load()
    except ModuleNotFoundError as error:
        missing = f"`onestart {point.name}` needs {error.name}: install it with  pip install 'onestart[check]'"
        return click.Command(point.name, callback=lambda: _refuse(missing), short_help="(not installed)")
    if not isinstance(command, click.Command):
        raise TypeError(f"entry point {point.name} is no click command")
    return command


def _refuse(message: str) -> None:
    raise click.UsageError(message)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="onestart", message="%(prog)s %(version)s")
def main() -> None:
    """One idempotency key, at most one start: the evidence."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
