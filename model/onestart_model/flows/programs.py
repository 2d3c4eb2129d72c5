"""Programs written down: the fixed functions of an instance from branches of calls."""

from __future__ import annotations

from attrs import frozen


@frozen
class Step:
    """A call of a branch: a kind, what it asks for, whether it may run again, and whether a hook before it makes it."""

    kind: str
    spec: int = 0
    again: bool = False
    in_hook: bool = False


def calls(*names: str) -> tuple[Step, ...]:
    """A branch from words such as "run", "run b" (asking for something else), "hook>run" or "llm again"."""
    return tuple(_step(name) for name in names)


def _step(name: str) -> Step:
    kind, *rest = name.removeprefix(">").upper().split()
    specs = [word for word in rest if word != "AGAIN"]
    return Step(kind, ord(specs[0]) - ord("A") if specs else 0, "AGAIN" in rest, name.startswith(">"))
