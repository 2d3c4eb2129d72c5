"""A command: one intent, named by its idempotency key, and bound to a fingerprint of what must not change about it."""

from __future__ import annotations

import hashlib
import json
import math
from functools import cached_property
from typing import Any

from attrs import asdict, field, frozen

MOST_NAME = 512
MOST_PAYLOAD = 1 << 20
MOST_WORDS = 4096
MOST_DEPTH = 100


class BadCommandError(ValueError):
    """A command, key or name that cannot be accepted; the message says what to do."""


@frozen(kw_only=True)
class Command:
    """What is asked for.

    key: the idempotency key; submitted again, it is the same command. task: what it acts on; commands of one task are
    executed one at a time. function and payload: what the executor is to do; the payload is JSON. actor: who asks.
    round: of the task. revision: of the governance that the command expects to be in force, None for any.

    Raises BadCommandError for a name that is empty, longer than 512 characters or has control characters, and for a
    payload that is not JSON or is longer than a mebibyte.
    """

    key: str = field()
    task: str = field()
    function: str = field()
    payload: Any = None
    actor: str = "anybody"
    round: int = 0
    revision: str | None = None

    def __attrs_post_init__(self) -> None:
        for name in ("key", "task", "function", "actor"):
            check_name(name, getattr(self, name))
        if self.revision is not None:
            check_name("revision", self.revision)
        if type(self.round) is not int or not 0 <= self.round < 2**53:
            raise BadCommandError(f"round must be a whole number from 0 on, not {escaped(self.round)}")
        text = canonical(self.payload, "the payload")
        if len(text) > MOST_PAYLOAD:
            raise BadCommandError(
                f"the payload takes {len(text)} bytes; keep it below {MOST_PAYLOAD} and pass a reference"
            )
        object.__setattr__(self, "payload", json.loads(text))  # a copy: what the caller does to its own changes nothing

    @cached_property
    def fingerprint(self) -> str:
        """Of all that a key is bound to: who asks (actor) for what (function, payload) on what (task, round)."""
        return digest([self.actor, self.function, self.task, self.round, self.payload])

    def to_json(self) -> dict[str, Any]:
        return asdict(self, recurse=False)


@frozen
class Bound:
    """What is left of a command whose record cannot be read: its key, its task, and perhaps its fingerprint."""

    key: str
    task: str
    fingerprint: str


def check_name(what: str, text: object) -> None:
    """Raises BadCommandError unless the text may name something."""
    if not isinstance(text, str) or not text:
        raise BadCommandError(f"the {what} must be a text that is not empty, not {escaped(text)}")
    if len(text) > MOST_NAME:
        raise BadCommandError(f"the {what} has {len(text)} characters; {MOST_NAME} are allowed")
    if not text.isprintable():
        raise BadCommandError(f"the {what} {escaped(text)} has characters that cannot be printed")


def check_words(what: str, text: object) -> None:
    """Raises BadCommandError unless this is something that a person may have to say."""
    if not isinstance(text, str) or len(text) > MOST_WORDS:
        raise BadCommandError(f"the {what} must be a text of at most {MOST_WORDS} characters")


def canonical(value: object, what: str, depth: int = MOST_DEPTH) -> str:
    """The value as JSON with sorted keys, the same for equal values.

    Raises BadCommandError if it is not JSON, or nested deeper than depth.
    """
    try:
        text = json.dumps(
            _strict(value, depth, depth), sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise BadCommandError(f"{what} must be JSON: {error}") from None
    return text


def digest(value: object) -> str:
    """SHA-256 of the value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value, "what is digested").encode()).hexdigest()


def escaped(text: object, most: int = 80) -> str:
    """The text as it may stand in a message: quoted, escaped, and cut if it is long."""
    shown = ascii(text)
    return shown if len(shown) <= most else f"{shown[:most]}... ({len(shown)} characters)"


def _strict(value: object, left: int, depth: int) -> object:
    """The value if it comes back from JSON as it was: no tuples, no keys but texts, no numbers that JSON has not."""
    if left < 0:
        raise ValueError(f"it is nested more than {depth} deep")
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise TypeError("an object's names are texts")
        return {name: _strict(inner, left - 1, depth) for name, inner in value.items()}
    if isinstance(value, list):
        return [_strict(inner, left - 1, depth) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no number of JSON")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} is no JSON")
