"""The worker of `f.run`: programs of the operating system, with what they print as their result."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from onestart.flow.definition import Call, Worker

MOST_OUTPUT = 1 << 18
_TAIL = 400


class ProgramFailedError(Exception):
    """A program has ended with another status than 0."""


async def run(call: Call) -> dict[str, Any]:
    """Run a program to its end. Its output is kept up to 256 KiB, the end of it if there is more."""
    spec = call.spec
    process = await asyncio.create_subprocess_exec(
        *spec["argv"],
        cwd=spec["cwd"],
        env=None if spec["env"] is None else {**os.environ, **spec["env"]},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode:
        said = _text(err).strip()[-_TAIL:]
        raise ProgramFailedError(
            f"{spec['argv'][0]} ended with status {process.returncode}{': ' if said else ''}{said}"
        )
    return {"status": 0, "stdout": _text(out), "stderr": _text(err)}


def _text(output: bytes) -> str:
    return output[-MOST_OUTPUT:].decode("utf-8", "replace")


RUN = Worker(run)
