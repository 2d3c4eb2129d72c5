"""One line of a store: one JSON array, in which the head can be trusted alone when what follows is damaged.

    ["onestart",1,<seq>,"<kind>","<key>","<task>",<prev>,"<crc>",<refs>,<body>,"<sum>"]

seq: counts the records of the file from 1. prev: kind, key and task of the record before it, or null, so that a record
that is destroyed wholly can still be attributed. crc: CRC-32 of the bytes before it. refs: the newest record of each
other kind, of the same key (leases: task), when this one was written. sum: BLAKE2b of all bytes before it.

A write that was cut off is sealed with `\\x18torn:<bytes>` when the next record is appended: it was never acknowledged,
so it is no record, and must not be read as one later. No JSON that is written here has that character.

A repair puts a line with `null` for its body in the place of a record that cannot be read: nobody knows what it said,
and everybody knows that it was there. It reads as damaged for good.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

from onestart.command import escaped
from onestart.health import Health
from onestart.records import KINDS, Record, Step, WrongShapeError, from_body, to_body

Owner: TypeAlias = tuple[str, str, str]  # kind, key, task
Place: TypeAlias = tuple[str, str]

VERSION = 1
CANCEL = b"\x18"
LONGEST = 1 << 23  # bytes of a line; one that is longer was written by nobody, and is not parsed

_PLAIN = rb'[^"\\\x00-\x1f\x7f-\xff]*+'
_TEXT = rb'"(' + _PLAIN + rb"(?:\\." + _PLAIN + rb')*+)"'
_OWNER = b",".join([_TEXT] * 3)
_HEAD = re.compile(
    rb'\["onestart",([0-9]{1,9}),([1-9][0-9]{0,14}),%b,(?:null|\[%b\]),"([0-9a-f]{8})",' % (_OWNER, _OWNER)
)
_REF = rb'"[a-z]+":[1-9][0-9]{0,14}'
_REFS = re.compile(rb"(\{(?:" + _REF + rb"(?:," + _REF + rb")*+)?\}),")
_OTHER_VERSION = re.compile(rb'\["onestart",(?!1,)[0-9]{1,9}[,\]]')
_SUM = re.compile(rb'"([0-9a-f]{16})"\]')
_SUM_LENGTH = 19
_SEAL = b"\x18torn:"
_CACHED_LENGTH = 1 << 14
_LONGEST_HEAD = 1 << 15
_AROUND = 1 << 15  # bytes of a line beside its body, at most


class TooLongError(ValueError):
    """No line can hold the record; nothing was recorded."""


class Line(NamedTuple):
    """What a line's bytes show. seq is 0, and kind, key and task are empty, if its head is illegible.

    body: where its body begins. record: the record of an intact line, if it was asked for. lost: it is what a repair
    has put in the place of a record.
    """

    health: Health
    seq: int = 0
    kind: str = ""
    key: str = ""
    task: str = ""
    prev: Owner | None = None
    refs: Mapping[str, int] = {}
    body: int = 0
    record: Record | None = None
    lost: bool = False

    @property
    def owner(self) -> Owner:
        return (self.kind, self.key, self.task)

    @property
    def place(self) -> Place:
        return place(self.kind, self.key, self.task)


def place(kind: str, key: str, task: str) -> Place:
    """Under what a record is looked up: its key, or for a lease its task."""
    return (kind, task if kind == "lease" else key)


CORRUPT = Line(Health.CORRUPT)
UNSUPPORTED = Line(Health.UNSUPPORTED_VERSION)

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode(record: Record, seq: int, prev: Owner | None, refs: Mapping[str, int]) -> bytes:
    """The line of a record, with the newline that ends it. Raises ValueError if the record has what JSON has not."""
    return _encoded((record.kind, record.key, record.task), seq, prev, refs, _encode(to_body(record)))


def check_length(record: Record) -> None:
    """Raises TooLongError, and ValueError if the record has what JSON has not.

    To be asked before anything is written. Commands and operators' words are short by themselves; a flow's are not.
    """
    if isinstance(record, Step) and (size := len(_encode(to_body(record)))) > LONGEST - _AROUND:
        raise TooLongError(
            f"{record.what} of {escaped(record.key)} takes {size} bytes; keep it below {LONGEST - _AROUND} and pass a "
            "reference"
        )


def encode_lost(owner: Owner, seq: int, prev: Owner | None) -> bytes:
    """The line that stands in the place of a record that cannot be read."""
    return _encoded(owner, seq, prev, {}, "null")


def _encoded(owner: Owner, seq: int, prev: Owner | None, refs: Mapping[str, int], body: str) -> bytes:
    kind, key, task = map(quoted, owner)
    before = "null" if prev is None else f"[{quoted(prev[0])},{quoted(prev[1])},{quoted(prev[2])}]"
    head = f'["onestart",{VERSION},{seq},{kind},{key},{task},{before},'
    known = ",".join([f'"{other}":{number}' for other, number in refs.items()])
    text = f'{head}"{crc32(head.encode()):08x}",{{{known}}},{body},'.encode()
    return b'%b"%b"]\n' % (text, _sum(text))


def outline(raw: bytes) -> Line:
    """What a line shows without its record: health says whether all of it is as it was written. Never raises."""
    return _outline_cached(raw) if len(raw) <= _CACHED_LENGTH else _outline(raw)


def decode(raw: bytes) -> Line:
    """What a line shows, with its record if it is intact. Never raises."""
    return _decode_cached(raw) if len(raw) <= _CACHED_LENGTH else _decode(raw)


def embedded(raw: bytes) -> Iterator[tuple[int, Line]]:
    """Lines that begin within these bytes, with where, if their heads are legible: a newline was overwritten."""
    if len(raw) > LONGEST:
        return
    for match in _HEAD.finditer(raw, 1):
        if _head_holds(match):
            yield match.start(), outline(raw[match.start() :])


def overrun(tail: bytes) -> int:
    """The length of the whole line that a tail without newline begins with, if more follows: then its newline is gone.

    0 if there is none. What was cut off before its newline is no record, so nothing more follows it but a seal.
    """
    hasher, done = blake2b(digest_size=8), 0
    for match in _SUM.finditer(tail):
        hasher.update(tail[done : match.start()])
        done, end = match.start(), match.end()
        if hasher.copy().hexdigest().encode() == match[1] and decode(tail[:end]).health is Health.INTACT:
            return end if len(tail) > end and tail[end : end + 1] != CANCEL else 0
    return 0


def seal(length: int) -> bytes:
    """What is put behind so many bytes of a write that was cut off."""
    return b"%b%d\n" % (_SEAL, length)


def unsealed(raw: bytes) -> bytes | None:
    """What is left of a line without the torn bytes that its seal counts; None if it has no seal."""
    at = raw.rfind(_SEAL)
    digits = raw[at + len(_SEAL) :]
    if at < 0 or len(digits) > 15 or not digits.isdigit() or int(digits) > at:
        return None
    return raw[: at - int(digits)]


def _outline(raw: bytes) -> Line:
    match = _HEAD.match(raw if len(raw) <= LONGEST else raw[:_LONGEST_HEAD])
    if match is None or not _head_holds(match):
        return _without_head(raw)
    try:
        return _headed(match)
    except ValueError:
        return CORRUPT


_outline_cached = lru_cache(maxsize=1024)(_outline)


def _sum(data: bytes) -> bytes:
    return blake2b(data, digest_size=8).hexdigest().encode()


def _head_holds(match: re.Match[bytes]) -> bool:
    return b"%08x" % crc32(match.string[match.start() : match.start(9) - 1]) == match[9]


def _headed(match: re.Match[bytes]) -> Line:
    """The line of a legible head. Raises ValueError if a text in it is none."""
    raw = match.string
    seq, kind, key, task = int(match[2]), _text(match[3]), _text(match[4]), _text(match[5])
    prev = None if match[6] is None else (_text(match[6]), _text(match[7]), _text(match[8]))
    if int(match[1]) != VERSION:
        return Line(Health.UNSUPPORTED_VERSION, seq, kind, key, task, prev)
    refs, end = _refs(raw, match.end())
    if refs is None or not _sum_holds(raw):
        return Line(Health.CORRUPT, seq, kind, key, task, prev)
    return Line(Health.INTACT, seq, kind, key, task, prev, refs, end)


def _refs(raw: bytes, start: int) -> tuple[Mapping[str, int] | None, int]:
    match = _REFS.match(raw, start)
    if match is None:
        return None, 0
    try:
        refs, _ = _parse(match[1].decode())
    except ValueError:  # a kind is there twice
        return None, 0
    return (refs if refs.keys() <= KINDS.keys() else None), match.end()


def _sum_holds(raw: bytes) -> bool:
    return raw[-_SUM_LENGTH:] == b'"%b"]' % _sum(raw[:-_SUM_LENGTH])


def _text(raw: bytes) -> str:
    if b"\\" not in raw:
        return raw.decode("ascii")
    text = json.loads(b'"%b"' % raw)
    assert isinstance(text, str)
    return text


def _without_head(raw: bytes) -> Line:
    if len(raw) > LONGEST or not _OTHER_VERSION.match(raw):
        return CORRUPT
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return CORRUPT
    return UNSUPPORTED


def _decode(raw: bytes) -> Line:
    line = outline(raw)
    if line.health is not Health.INTACT:
        return line
    body = raw[line.body : -_SUM_LENGTH - 1]
    record = _record(line.kind, body)
    if record is None or (record.kind, record.key, record.task) != line.owner:
        lost = body == b"null"
        return Line(Health.CORRUPT, line.seq, line.kind, line.key, line.task, line.prev, lost=lost)
    return Line(Health.INTACT, line.seq, line.kind, line.key, line.task, line.prev, line.refs, line.body, record)


_decode_cached = lru_cache(maxsize=2048)(_decode)


def _record(kind: str, body: bytes) -> Record | None:
    if kind not in KINDS:
        return None
    try:
        text = body.decode("ascii")
        value, end = _parse(text)
        return from_body(kind, value) if end == len(text) else None
    except (ValueError, RecursionError, WrongShapeError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field is there twice")
    return fields


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number")
    return number


_parse = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_finite).raw_decode
