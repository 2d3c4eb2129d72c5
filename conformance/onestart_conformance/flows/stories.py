"""Counterexamples of flows as files, and told again: what happened in the first run, and in each resume beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from attrs import frozen

from onestart_conformance.faults.fault import Fault, seeded
from onestart_conformance.flows.faults.catalog import FLOW_FAULTS
from onestart_conformance.flows.plan import Plan, from_document
from onestart_conformance.flows.run import examined
from onestart_conformance.flows.world import World
from onestart_model.counterexample import CounterexampleError
from onestart_model.expression import RuleError

FORMAT = "onestart-flow-counterexample"
VERSION = 1

_HASH = re.compile(r"after-([0-9a-f]{8})[0-9a-f]{56}")


@frozen
class FlowStory:
    """A plan that a judge objected to. fault: the name of the one that was seeded, empty for none. lines: of the story.

    oracle and what: of the objection. source: who found it.
    """

    plan: Plan
    fault: str
    oracle: str
    what: str
    source: str
    lines: int = 0

    def to_json(self) -> dict[str, Any]:
        """The document that a file holds."""
        meta = {"format": FORMAT, "version": VERSION, "source": self.source}
        about = {"fault": self.fault, "oracle": self.oracle, "what": self.what}
        return {"#meta": meta, **about, "plan": self.plan.to_json()}


def flow_story(world: World, fault: Fault | None, source: str) -> FlowStory:
    """The story of a run that was objected to."""
    assert world.objection is not None
    name = fault.name if fault is not None else ""
    return FlowStory(world.plan, name, world.objection.oracle, str(world.objection), source, len(world.noted))


def is_flow_story(path: Path) -> bool:
    """Whether a file is a counterexample of flows; what cannot be read is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    meta = document.get("#meta") if isinstance(document, dict) else None
    return isinstance(meta, dict) and meta.get("format") == FORMAT


def load_flow_story(path: Path) -> FlowStory:
    """Raises CounterexampleError for a version that is not known, and for what is no plan."""
    document = json.loads(path.read_text(encoding="utf-8"))
    meta = document["#meta"]
    if meta.get("version") != VERSION:
        raise CounterexampleError(f"{path} has version {meta.get('version')!r}; this release reads version {VERSION}")
    try:
        plan = from_document(document["plan"])
        words = [str(document[name]) for name in ("fault", "oracle", "what")]
        return FlowStory(plan, words[0], words[1], words[2], str(meta["source"]))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise CounterexampleError(f"{path} holds no plan of a flow: {error}") from None


def save_flow_stories(folder: Path | None, stories: Iterable[FlowStory]) -> list[Path]:
    """Write each to a file. Raises RuleError if the folder cannot be written."""
    written: list[Path] = []
    if folder is None:
        return written
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, story in enumerate(stories, 1):
            path = folder / f"flow-{story.oracle}-{story.fault or number}.json"
            path.write_text(json.dumps(story.to_json(), indent=1) + "\n", encoding="utf-8")
            written.append(path)
    except OSError as error:
        raise RuleError(f"{folder} cannot be written: {error.strerror}") from None
    return written


def retell_flow(story: FlowStory, *, shipped: bool = False, fault: str | None = None) -> World:
    """Play it again, with the fault that it was found with, another one, or none. Raises RuleError for unknown ones."""
    name = "" if shipped else fault or story.fault
    if name and name not in FLOW_FAULTS:
        raise RuleError(f"no fault of flows is called {name!r}; `onestart faults --list` shows all")
    with seeded(FLOW_FAULTS[name] if name else None):
        return examined(story.plan, followed=True)


def columns(world: World) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """The story beside each other: a column for each attempt, and the lines of each in their order."""
    names = ["first run", *(f"resume {number}" if number > 1 else "resume" for number in range(1, len(world.told)))]
    told = [[short(note.what) for note in world.noted if note.attempt == number] for number in range(len(names))]
    return names, [tuple(cell or "" for cell in row) for row in zip_longest(*told)]


def program_lines(plan: Plan) -> list[str]:
    """The program, a part to a line, for people."""
    lines = [json.dumps(part) for part in plan.to_json()["program"]]
    if plan.changed is not None:
        lines += ["resumed as:", *(json.dumps(part) for part in plan.to_json()["changed"])]
    return lines


def short(text: str) -> str:
    """Causal ids with the beginning of their hash."""
    return _HASH.sub(r"after-\1", text)
