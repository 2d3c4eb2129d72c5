"""Processes of this machine, told apart also when numbers are used again: after a reboot, or in another name space."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from typing import Any

from attrs import frozen

GONE = ("Z", "X", "x")  # ended, and perhaps not yet taken note of by its parent


@frozen
class Identity:
    """A process. started: when, in ticks since the machine was booted. among: the boot and the name space of numbers.

    Both are empty where the system does not tell; then a later process with the same number passes for this one.
    """

    pid: int
    started: str
    among: str

    @classmethod
    def of(cls, pid: int) -> Identity:
        """The process that has this number now."""
        state = _state(pid)
        return cls(pid, state[1] if state else "", _surroundings())

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Identity:
        return cls(int(body["pid"]), str(body["started"]), str(body["among"]))

    def to_json(self) -> dict[str, Any]:
        return {"pid": self.pid, "started": self.started, "among": self.among}

    @property
    def in_sight(self) -> bool:
        """Whether this process can find out about that one: same boot, same name space."""
        return self.among == _surroundings()

    @property
    def alive(self) -> bool:
        """Whether it still runs; to be asked only of a process in sight."""
        state = _state(self.pid)
        if state is None:
            return _has_number(self.pid)
        return state[0] not in GONE and self.started in ("", state[1])

    def signal_group(self, number: int) -> None:
        """Send a signal to the group that the process leads, if it still runs."""
        if self.alive:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


def _state(pid: int) -> tuple[str, str] | None:
    """Its state as a letter and when it was started, None if it is gone or cannot be looked at."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before may hold anything
    return fields[0], fields[19]


@cache
def _surroundings() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _has_number(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
