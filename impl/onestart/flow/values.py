"""What a flow is given, what it hands on, and what its steps come to: JSON, and short enough to be recorded."""

from __future__ import annotations

import json
from typing import Any

from onestart.command import MOST_DEPTH, MOST_PAYLOAD, canonical
from onestart.flow.errors import BadFlowError, bad_flow

MOST_SPEC = MOST_PAYLOAD // 2  # a step is submitted with its spec and its id as one payload
MOST_VALUE = 1 << 22
MOST_DIAGNOSTIC = 1 << 14
_DEPTH_OF_SPEC = MOST_DEPTH - 8


def spec_of(value: object, what: str) -> str:
    """What a step is given, as canonical JSON. Raises BadFlowError if it is none, too long or nested too deep."""
    return _short(value, what, MOST_SPEC, _DEPTH_OF_SPEC)


def check_value(value: object, what: str) -> None:
    """Raises BadFlowError unless this can be recorded: JSON of at most 4 mebibytes."""
    _short(value, what, MOST_VALUE, MOST_DEPTH)


def plain(value: object, what: str) -> Any:
    """What JSON makes of a value, now and when it is replayed. Raises BadFlowError if it cannot be recorded."""
    return json.loads(_short(value, what, MOST_VALUE, MOST_DEPTH))


def diagnostic(error: BaseException) -> str:
    """What is recorded of a failure, cut if it is long."""
    return cut(f"{type(error).__name__}: {error}")


def cut(text: str) -> str:
    """The text as a diagnostic: its beginning, and how long it was."""
    return text if len(text) <= MOST_DIAGNOSTIC else f"{text[:MOST_DIAGNOSTIC]}... ({len(text)} characters)"


def _short(value: object, what: str, most: int, depth: int) -> str:
    with bad_flow():
        text = canonical(value, what, depth)
    if len(text) > most:
        raise BadFlowError(f"{what} takes {len(text)} bytes; keep it below {most} and pass a reference")
    return text
