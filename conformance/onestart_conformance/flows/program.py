"""Programs: a flow's body described as data, so that it can be drawn, shrunk, saved and read by a reference.

A program is a block of parts, one after the other. Every call has a position in the text, which no run changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from attrs import field, frozen

ROOT = "root"  # the id that programs are run under
EFFECTS = ("run", "llm", "agent", "helper", "mcp", "plugin", "memory", "on")
KINDS = (*EFFECTS, "human", "hook", "dispatch")
FANS = ("gather", "group", "within", "tasks", "later", "kept", "completed")
GROUPS = ("group", "within")
VERDICTS = ("pass", "fail", "noop")


@frozen
class Call:
    """A call of a kind. label: what it asks for. to: whom, if it is a question. fails: its effect does.

    body: of a hook or a child flow.
    """

    kind: str
    label: str
    to: str = "anybody"
    fails: bool = False
    body: Block = ()

    @property
    def text(self) -> str:
        """What is asked for, as the library sees it."""
        return f"{self.label}!" if self.fails else self.label

    @property
    def verdict(self) -> str:
        """What a hook comes to: its input says it."""
        return VERDICTS[sum(map(ord, self.label)) % len(VERDICTS)]


@frozen
class Fan:
    """Branches side by side.

    how: gather, TaskGroup (group), the same with the first one in its own body (within), tasks awaited in order;
    later: the first one is a task that is awaited when the others, run in place, have ended; kept: the same with a
    gathering of it; completed: in the order of their ends, with a call of the kind `each` after each.
    """

    how: str
    branches: tuple[Block, ...]
    each: str = "run"


@frozen
class Caught:
    """The author catches whatever the block raises, and goes on."""

    block: Block


@frozen
class Saved:
    """A call that is declared first and awaited after a block."""

    call: Call
    block: Block


Part: TypeAlias = Call | Fan | Caught | Saved
Block: TypeAlias = tuple[Part, ...]


@frozen
class Placed:
    """A call with its position. within: positions of the hooks and dispatches around it, outermost first."""

    position: str
    call: Call
    within: tuple[str, ...] = field(default=())

    @property
    def identity(self) -> str:
        """Which call of the program this is, whatever id it has."""
        return f"{self.call.kind} {self.call.text} at {self.position}"

    @property
    def likeness(self) -> str:
        """What it has in common with every call that nobody could tell from it by what it asks for."""
        return f"{self.call.kind} {self.call.text} to {self.call.to}"


@frozen
class Program:
    """The body of a flow."""

    block: Block

    def calls(self) -> Iterator[Placed]:
        """Every call, in the order of the text."""
        return _of_block(self.block, "", ())

    @property
    def ordered(self) -> bool:
        """Whether the order of its calls follows from the text alone."""
        return not any(isinstance(part, Fan) and part.how == "completed" for part in parts(self.block))


def branch(position: str, number: int) -> str:
    """The position of a branch of a fan."""
    return f"{position}{chr(ord('a') + number)}" if number < 26 else f"{position}z{number}."


def inside(position: str) -> str:
    """Where the body of a hook or of a child flow begins."""
    return f"{position}:"


def after_each(position: str, number: int) -> Placed:
    """The call that follows the end of a branch in a fan whose branches are taken as they end."""
    return Placed(f"{branch(position, number)}+", Call("run", f"after {branch('', number)}"))


def parts(block: Block) -> Iterator[Part]:
    """Every part, at any depth."""
    for part in block:
        yield part
        for _, inner in blocks_of(part, ""):
            yield from parts(inner)


def blocks_of(part: Part, position: str) -> Iterator[tuple[str, Block]]:
    """The blocks in a part, with the positions that they begin at."""
    match part:
        case Call(body=body):
            yield inside(position), body
        case Fan(branches=branches):
            yield from ((branch(position, number), block) for number, block in enumerate(branches))
        case Caught(block=block):
            yield f"{position}!", block
        case Saved(call=call, block=block):
            yield inside(position), call.body
            yield f"{position}-", block


def _of_block(block: Block, start: str, within: tuple[str, ...]) -> Iterator[Placed]:
    for number, part in enumerate(block):
        position = f"{start}{number}"
        call = part.call if isinstance(part, Saved) else part
        if isinstance(call, Call):
            yield Placed(position, call, within)
        for where, inner in blocks_of(part, position):
            yield from _of_block(inner, where, (*within, position) if where.endswith(":") else within)
        if isinstance(part, Fan) and part.how == "completed":
            for index in range(len(part.branches)):
                placed = after_each(position, index)
                yield Placed(placed.position, Call(part.each, placed.call.label), within)


def to_json(block: Block) -> list[Any]:
    """As a file holds it."""
    return [_part_to_json(part) for part in block]


def _part_to_json(part: Part) -> dict[str, Any]:
    match part:
        case Call():
            more: dict[str, Any] = {"to": part.to} if part.to != "anybody" else {}
            more |= {"fails": True} if part.fails else {}
            more |= {"body": to_json(part.body)} if part.body else {}
            return {"call": part.kind, "label": part.label, **more}
        case Fan():
            return {"fan": part.how, "branches": [to_json(b) for b in part.branches], "each": part.each}
        case Caught():
            return {"caught": to_json(part.block)}
        case Saved():
            return {"saved": _part_to_json(part.call), "block": to_json(part.block)}


def from_json(document: Any) -> Block:
    """Raises ValueError, KeyError or TypeError for what is none."""
    return tuple(_part_from_json(part) for part in document)


def _part_from_json(part: Any) -> Part:
    if "call" in part:
        return _call_from_json(part)
    if "fan" in part:
        if part["fan"] not in FANS or part["each"] not in EFFECTS:
            raise ValueError(f"no fan is called {part['fan']!r}")
        return Fan(part["fan"], tuple(from_json(block) for block in part["branches"]), part["each"])
    if "saved" in part:
        return Saved(_call_from_json(part["saved"]), from_json(part["block"]))
    return Caught(from_json(part["caught"]))


def _call_from_json(part: Any) -> Call:
    if part["call"] not in KINDS:
        raise ValueError(f"no kind is called {part['call']!r}")
    return Call(
        part["call"],
        str(part["label"]),
        str(part.get("to", "anybody")),
        bool(part.get("fails", False)),
        from_json(part.get("body", [])),
    )
