"""How a flow's steps are put for people."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

MOST = 100
_ONE = {"llm": "prompt", "agent": "task", "human": "question", "memory": "learn", "on": "event"}


def summary(kind: str, shown: str) -> str:
    """What a step was given, from what its record shows of it, which may be cut."""
    try:
        spec = json.loads(shown)
    except ValueError:
        return plain(shown)
    if not isinstance(spec, dict):
        return plain(shown)
    return plain(_words(kind, {name: value for name, value in spec.items() if value not in (None, {}, [])}))


def _words(kind: str, spec: Mapping[str, Any]) -> str:
    if kind == "run" and set(spec) == {"argv"}:
        return shlex.join(map(str, spec["argv"]))
    if set(spec) == {_ONE.get(kind)}:
        value = spec[_ONE[kind]]
        return value if isinstance(value, str) else as_json(value)
    if kind == "dispatch":
        return called(spec.get("flow"), spec.get("arguments", []))
    if kind in ("helper", "plugin"):
        return called(spec.get("name"), spec.get("arguments", {}))
    if kind == "mcp":
        return called(f"{spec.get('server')}.{spec.get('tool')}", spec.get("arguments", {}))
    if kind == "hook":
        return called(spec.get("hook"), [spec["input"]] if "input" in spec else [])
    return as_json(spec)


def called(name: object, arguments: object) -> str:
    """Name and arguments, as in a call."""
    if isinstance(arguments, dict):
        inner = ", ".join(f"{key}={as_json(value)}" for key, value in arguments.items())
    else:
        inner = ", ".join(map(as_json, arguments if isinstance(arguments, list) else []))
    return f"{name}({inner})"


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)


def plain(text: str, most: int = MOST) -> str:
    """In one line that can be printed, cut if it is long."""
    line = " ".join(text.split())
    line = line if line.isprintable() else ascii(line)[1:-1]
    return line if len(line) <= most else f"{line[:most]}..."


def counted(number: int, what: str) -> str:
    """With its plural: one question, two questions; one entry, two entries."""
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number} {what if number == 1 else many}"
