"""A flow's journal, as `onestart ledger show` prints it: an entry a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from onestart.commands.wording import as_json, plain, summary
from onestart.flow.identity import parse, short
from onestart.health import Reading
from onestart.records import Step

Body = Mapping[str, Any]


def rows(reading: Reading[Step]) -> Iterator[tuple[str, str, str]]:
    """What each entry is, which step it is about, and what it says."""
    for entry in reading.records:
        yield plain(entry.what), plain(short(entry.step)) or "-", _said(entry)
    illegible = reading.count - len(reading.records)
    if illegible:
        where = "the newest included" if reading.health.degraded else "the newest not included"
        yield "ILLEGIBLE", "-", f"{illegible} of {reading.count} entries, {where}"


def _said(entry: Step) -> str:
    """Entries are shown as they are, also those of another shape."""
    words = _WORDS.get(entry.what)
    try:
        return plain(words(entry.step, entry.body) if words else as_json(entry.body))
    except (KeyError, TypeError, AttributeError):
        return plain(as_json(entry.body))


def _index(step: str, body: Body) -> str:
    parsed = parse(step)
    return summary(parsed.kind if parsed else "", body.get("shown", ""))


def _done(_: str, body: Body) -> str:
    return f"failed: {body['failed']}" if "failed" in body else as_json(body.get("result"))


_WORDS: Mapping[str, Callable[[str, Body], str]] = {
    "root": lambda _, body: f"flow {body['flow']}, step ids of version {body.get('version', 1)}",
    "attempt": lambda _, body: f"number {body['number']}",
    "index": _index,
    "again": lambda _, body: f"number {body['number']}",
    "done": _done,
    "wait": lambda _, body: f"{body['to']}: {body['question']}",
    "answer": lambda _, body: f"{as_json(body['value'])} by {body.get('by', '')}",
    "verdict": lambda _, body: str(body["verdict"]),
    "complete": lambda _, body: as_json(body.get("result")),
    "ended": lambda _, body: " ".join(filter(None, (body["state"], body["reason"], short(body["message"])))),
}
