"""Event logs: an observer that appends each event to a file as a line of JSON, and a reader of such files.

An opening of a log begins with a header line. Lines are appended whole, in one write each, so several processes may
share a file. What a full or failing disk cuts off is followed by a header, which says how many events are missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import isfinite
from types import TracebackType
from typing import Any, BinaryIO

from attrs import define, field, frozen

from onestart.command import escaped
from onestart.events import LAYERS, Event

FORMAT = "onestart-events"
VERSION = 1
LONGEST = 1 << 20
NOT_JSON = "it is not JSON"
_decode = json.JSONDecoder().raw_decode
_OPENING = f'{{"format":"{FORMAT}"'.encode()


class EventLogError(Exception):
    """A file is no event log, or cannot be read as one; the message says where and why."""


@frozen
class Header:
    """The first line of an opening. lost: how many events before it could not be written."""

    process: str
    lost: int = 0


class EventLog:
    """An observer that appends to a file. A failure is kept in `failure` to be told of, and stops nothing.

    process: written to the header at once; if it is not given, the header waits for the first event. durable: whether
    each event is synced, which costs as much as a step of the ledger. Raises OSError if the file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, process: str = "", durable: bool = False) -> None:
        self.failure = ""
        self._durable = durable
        self._lost = 0
        self._torn = _ends_torn(path)
        self._begun = False
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        if process:
            self._begun = self._append(self._header(process))

    def __call__(self, event: Event) -> None:
        """Append the event."""
        line = json.dumps(event.to_json(), separators=(",", ":")).encode() + b"\n"
        if not self._begun:
            line = self._header(event.process) + line
        self._begun = self._append(line)
        self._lost = 0 if self._begun else self._lost + 1

    def close(self) -> None:
        """Events after this are not written."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _header(self, process: str) -> bytes:
        lost = {"lost": self._lost} if self._lost else {}
        header = {"format": FORMAT, "version": VERSION, "process": process, **lost}
        return b"\n" * self._torn + json.dumps(header, separators=(",", ":")).encode() + b"\n"

    def _append(self, data: bytes) -> bool:
        """Whether all of it was written."""
        try:
            written = os.write(self._descriptor, data)
            if self._durable:
                os.fsync(self._descriptor)
        except OSError as error:
            self.failure = self.failure or error.strerror or str(error)
            return False
        self._torn = written < len(data)
        if self._torn:
            self.failure = self.failure or "a line was written in part"
        return not self._torn


def _ends_torn(path: str | os.PathLike[str]) -> bool:
    """Whether the file ends in a line that whoever wrote it did not finish."""
    with suppress(OSError), open(path, "rb") as file:
        if file.seekable() and file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    return False


def read_events(path: str | os.PathLike[str]) -> EventReader:
    """The headers and events of a log, one after the other. Raises EventLogError, here or while it is read."""
    return EventReader(os.fspath(path))


@define
class EventReader(Iterator["Event | Header"]):
    """Reads a log line by line. line: the number of the one that was read last. offset: how far the file is read.

    torn: the numbers of lines that were cut off, as far as it has been read: at the end, or before a new opening.
    """

    path: str
    line: int = 0
    offset: int = 0
    torn: list[int] = field(factory=list)
    _file: BinaryIO | None = None
    _next: Header | None = None

    def __next__(self) -> Event | Header:
        try:
            return self._item()
        except EventLogError:
            self.close()
            raise

    def __del__(self) -> None:
        self.close()

    def _item(self) -> Event | Header:
        if self._next is not None:
            header, self._next = self._next, None
            self.line += 1
            return header
        raw = self._read()
        if not raw:
            self.close()
            raise StopIteration
        self.line += 1
        item = parse(raw)
        if self.line == 1 and not isinstance(item, Header):
            return self._first(raw, item)
        return self._passed_over(raw, item) if isinstance(item, str) else item

    def close(self) -> None:
        """Close the file; reading goes on where it stopped if more is asked for."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _read(self) -> bytes:
        try:
            if self._file is None:
                self._file = open(self.path, "rb")  # noqa: SIM115  (it is read on and on)
                if self.offset:
                    self._file.seek(self.offset)
            raw = self._file.readline(LONGEST + 1)
        except OSError as error:
            self.close()
            raise EventLogError(f"{escaped(self.path)} cannot be read: {error.strerror or error}") from None
        if len(raw) > LONGEST:
            raise self._bad(f"it is longer than {LONGEST} bytes", raw, 1)
        self.offset += len(raw)
        return raw

    def _first(self, raw: bytes, item: Event | str) -> Event | Header:
        if isinstance(item, str) and (raw.startswith(_OPENING) or _OPENING.startswith(raw)):
            return self._passed_over(raw, item)
        self.close()
        raise EventLogError(f"{escaped(self.path)} is no event log: it begins with {_excerpt(raw)}")

    def _passed_over(self, raw: bytes, problem: str) -> Event | Header:
        """A line that is no JSON was cut off if nothing follows it, or a new opening does."""
        following = self._read()
        header = parse(following) if following else None
        cut = isinstance(header, Header) or not (following or raw.endswith(b"\n"))
        if not cut or problem != NOT_JSON:
            raise self._bad(problem, raw)
        self.torn.append(self.line)
        if not isinstance(header, Header):
            self.close()
            raise StopIteration
        self.line += 1
        return header

    def _bad(self, problem: str, raw: bytes, ahead: int = 0) -> EventLogError:
        self.close()
        return EventLogError(f"{escaped(self.path)}:{self.line + ahead}: {problem}: {_excerpt(raw)}")


def _excerpt(raw: bytes) -> str:
    shown = ascii(raw[:60].rstrip(b"\r\n"))[2:-1]
    return shown + "..." if len(raw) > 60 else shown or "an empty line"


def parse(raw: bytes) -> Event | Header | str:
    """What a line holds, or what is wrong with it."""
    try:
        text = raw.decode()
        fields, end = _decode(text)
        if text[end:].strip():
            return NOT_JSON
    except (ValueError, RecursionError):
        return NOT_JSON
    if type(fields) is not dict:
        return "it is no object"
    if "format" in fields:
        return _header(fields)
    return _event(fields, b"\\ud" in raw or b"\\uD" in raw)


def _header(fields: dict[str, Any]) -> Header | str:
    if fields["format"] != FORMAT:
        return f"its format is not {FORMAT}"
    version, process, lost = fields.get("version"), fields.get("process"), fields.get("lost", 0)
    if type(version) is not int or version != VERSION:
        return f"version {ascii(version)[:20]} of the format is not known; this release reads version {VERSION}"
    if type(process) is not str or type(lost) is not int or lost < 0:
        return "it is no header"
    return Header(process, lost)


_KINDS = (str, str, int, str, str, int, float, int, str, dict)
_NAMES = ("action", "process", "strand", "key", "task", "order", "at", "token", "fingerprint", "details")


def _event(fields: dict[str, Any], odd: bool) -> Event | str:
    """odd: whether there may be text that is not Unicode."""
    try:
        values = tuple([fields[name] for name in _NAMES])
    except KeyError as error:
        return f"it has no {error.args[0]}"
    kinds = tuple(map(type, values))
    if kinds != _KINDS and kinds != (*_KINDS[:6], int, *_KINDS[7:]):
        return f"its {_odd_one(kinds)} is not what it should be"
    action, _, strand, key, _, order, at, token, _, details = values
    if action not in LAYERS:
        return f"its action {ascii(action)[:40]} is not known"
    if not key and action != "repair_lease":
        return "it is about no key"
    if strand < 0 or order < 0 or token < 0 or not _is_time(at):
        return "a number is out of its range"
    if odd and not _is_text(values):
        return "its text is no Unicode"
    needed = DETAILS.get(action)
    if needed is not None and not needed(details):
        return f"its details are not those of {action}"
    return Event(*values)


def _is_time(at: float) -> bool:
    try:
        return isfinite(at)
    except OverflowError:  # a whole number that no float can hold
        return False


def _odd_one(kinds: tuple[type, ...]) -> str:
    return next(name for name, kind, right in zip(_NAMES, kinds, _KINDS, strict=True) if kind is not right)


def _is_text(values: tuple[Any, ...]) -> bool:
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


Check = Callable[[Mapping[str, Any]], bool]


def _has(**kinds: tuple[type, ...]) -> Check:
    """Whether details have these names, each of one of these types."""
    wanted = tuple(kinds.items())

    def check(details: Mapping[str, Any]) -> bool:
        return all(type(details.get(name, ...)) in types for name, types in wanted)

    return check


_TEXT, _MAYBE, _NUMBER = (str,), (str, type(None)), (int, float)
_ENTRIES = ("begin", "index", "again", "done", "wait", "answer", "verdict", "complete", "ended")
_ENDS = _has(ends=_NUMBER)
_ANSWER = _has(reason=_TEXT, outcome=_TEXT, result=(dict, type(None)), damage=(list,))

DETAILS: Mapping[str, Check] = {
    "ruled": _has(revision=_MAYBE, expected=_MAYBE),
    "enter": _has(required=(bool,), approved=_TEXT, digest=_TEXT),
    "claim": lambda details: _ENDS(details) and _is_time(details["ends"]),
    "renew": lambda details: _ENDS(details) and _is_time(details["ends"]),
    "look_up": _has(started=(bool,)),
    **dict.fromkeys(("replay", "conflict", "report", "report_closed", "report_dispatched"), _ANSWER),
    **dict.fromkeys(("flow_lease", "flow_release"), _has(root=_TEXT)),
    **dict.fromkeys((f"flow_{what}" for what in _ENTRIES), _has(root=_TEXT, what=_TEXT, step=_TEXT, body=(dict,))),
}
"""What the details of an event must hold, by action, for whoever checks it."""
