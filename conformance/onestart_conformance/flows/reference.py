"""The sequential reference: what every call of a program must give, and the program as a whole, in no order at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onestart_conformance.flows.body import CAUGHT
from onestart_conformance.flows.program import Block, Call, Caught, Fan, Part, Placed, Saved, after_each, branch, inside

Name = Callable[[Placed], str]


class FailsError(Exception):
    """A call of which the effect fails, and nobody catches it."""


def answer_to(name: str) -> str:
    """The answer that is given to a question."""
    return f"answer to {name}"


def value_of_block(block: Block, start: str, name: Name) -> list[Any]:
    """Raises FailsError."""
    return [_value_of_part(part, f"{start}{number}", name) for number, part in enumerate(block)]


def value_of_call(placed: Placed, name: Name) -> Any:
    """Raises FailsError."""
    call = placed.call
    match call.kind:
        case "human":
            return answer_to(name(placed))
        case "hook":
            try:
                value_of_block(call.body, inside(placed.position), name)
            except FailsError:
                return "fail"
            return call.verdict
        case "dispatch":
            return value_of_block(call.body, inside(placed.position), name)
        case _:
            if call.fails:
                raise FailsError(name(placed))
            return name(placed)


def fails(block: Block, start: str, name: Name) -> bool:
    """Whether a call in it fails that nobody in it catches."""
    try:
        value_of_block(block, start, name)
    except FailsError:
        return True
    return False


def _value_of_part(part: Part, position: str, name: Name) -> Any:
    match part:
        case Call():
            return value_of_call(Placed(position, part), name)
        case Fan():
            return _value_of_fan(part, position, name)
        case Caught():
            try:
                return value_of_block(part.block, f"{position}!", name)
            except FailsError:
                return CAUGHT
        case Saved():
            between = value_of_block(part.block, f"{position}-", name)
            return [between, value_of_call(Placed(position, part.call), name)]


def _value_of_fan(fan: Fan, position: str, name: Name) -> list[Any]:
    values = [value_of_block(block, branch(position, number), name) for number, block in enumerate(fan.branches)]
    if fan.how != "completed":
        return values
    follows = (after_each(position, number) for number in range(len(fan.branches)))
    each = [Placed(follow.position, Call(fan.each, follow.call.label)) for follow in follows]
    return [[value, value_of_call(placed, name)] for value, placed in zip(values, each, strict=True)]
