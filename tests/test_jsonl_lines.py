"""One line of a store: it comes back as it was written, or it says that it did not."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onestart.health import Health
from onestart.lines import decode, embedded, encode, outline, overrun, seal, unsealed
from onestart.records import KINDS, Approval, Attempt, Lease, Note, Receipt, Record, Session, Step, to_body

TEXT = st.text(max_size=12)
COUNTS = st.integers(1, 10**15 - 1)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
OBJECTS = st.none() | st.dictionaries(TEXT, JSON, max_size=3)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
RECORDS: st.SearchStrategy[Record] = st.one_of(
    st.builds(Receipt, TEXT, TEXT, st.sampled_from(["pending", "completed"]), TEXT, OBJECTS, OBJECTS),
    st.builds(Attempt, TEXT, TEXT, st.sampled_from(["offered", "intended", "closed", "ended"]), TEXT, COUNTS, TEXT),
    st.builds(Session, TEXT, TEXT, st.sampled_from(["live", "cancelled"]), TEXT, COUNTS, TEXT),
    st.builds(Lease, TEXT, COUNTS, st.none() | TEXT, FINITE, TEXT),
    st.builds(Note, TEXT, TEXT, COUNTS),
    st.builds(Approval, TEXT, TEXT, TEXT, TEXT),
    st.builds(Step, TEXT, TEXT, TEXT, TEXT, COUNTS, st.dictionaries(TEXT, JSON, max_size=3)),
)
OWNERS = st.none() | st.tuples(st.sampled_from(list(KINDS)), TEXT, TEXT)
REFS = st.dictionaries(st.sampled_from(list(KINDS)), COUNTS)

ATTEMPT = Attempt('k"1', "tä", "intended", "f00d", 3, "\n")
LINE = encode(ATTEMPT, 7, ("attempt", "k0", "t0"), {"receipt": 2, "lease": 4})


def forged(body: str | None = None, *, version: str = "1", head: str | None = None, refs: str = "{}") -> bytes:
    """A line whose checksums are right whatever it holds; a second writer, so that the format is pinned."""
    text = f'["onestart",{version},' + ('7,"attempt","k","t",null,' if head is None else head)
    text += f'"{zlib.crc32(text.encode()):08x}",{refs},'
    text += json.dumps(to_body(Attempt("k", "t", "closed", "f"))) if body is None else body
    text += ","
    return f'{text}"{hashlib.blake2b(text.encode("latin-1"), digest_size=8).hexdigest()}"]'.encode("latin-1")


def test_the_format_is_this() -> None:
    """Files that were written once are read by every later version, so a change here is a new version."""
    assert LINE == (
        b'["onestart",1,7,"attempt","k\\"1","t\\u00e4",["attempt","k0","t0"],"a548c8ea",{"receipt":2,"lease":4},'
        b'{"key":"k\\"1","task":"t\\u00e4","state":"intended","fingerprint":"f00d","token":3,"reason":"\\n","note":"",'
        b'"executor":""},"f629cbfac55bf3c9"]\n'
    )
    assert isinstance(json.loads(LINE), list)


@given(RECORDS, COUNTS, OWNERS, REFS)
def test_a_record_comes_back(record: Record, seq: int, prev: tuple[str, str, str] | None, refs: dict[str, int]) -> None:
    raw = encode(record, seq, prev, refs)
    assert raw.isascii()
    assert raw.count(b"\n") == 1
    assert raw.endswith(b"]\n")
    line = decode(raw[:-1])
    assert (line.health, line.record, line.seq, line.prev, line.refs) == (Health.INTACT, record, seq, prev, refs)
    assert line.owner == (record.kind, record.key, record.task)


def test_what_json_has_not_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode(Lease("t", 1, "k", float("nan")), 1, None, {})


def test_every_flipped_bit_shows() -> None:
    """A legible head is the head that was written."""
    raw, owner = LINE[:-1], ("attempt", 'k"1', "tä")
    legible = 0
    for position in range(len(raw) * 8):
        damaged = bytearray(raw)
        damaged[position // 8] ^= 1 << position % 8
        line = decode(bytes(damaged))
        assert line.health.degraded, position
        assert line.record is None
        assert line.seq == 0 or (line.seq, line.owner, line.prev) == (7, owner, ("attempt", "k0", "t0"))
        legible += line.seq == 7
    assert legible == (len(raw) - raw.index(b'{"receipt"')) * 8  # all bits behind the head


def test_every_cut_shows() -> None:
    for length in range(len(LINE) - 1):
        for damaged in (LINE[:length], LINE[:length] + bytes(len(LINE) - length), LINE[-1 - length : -1]):
            line = decode(damaged)
            assert line.health is Health.CORRUPT, damaged
            assert line.seq in (0, 7)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_line_with_a_health(raw: bytes) -> None:
    before = (b"", LINE[:40], LINE[:110], b"x" + LINE[:-1], b'["onestart",', b'["onestart",2,')
    for made in (start + raw for start in before):
        assert decode(made).health in (Health.CORRUPT, Health.UNSUPPORTED_VERSION)
        list(embedded(made))
        overrun(made)
        unsealed(made)


@given(JSON, JSON, st.integers())
def test_any_json_is_a_line_with_a_health(first: Any, second: Any, version: int) -> None:
    for value in (first, [first, second], ["onestart", first, second], ["onestart", version, 1, "attempt", first]):
        assert decode(json.dumps(value).encode()).health in (Health.CORRUPT, Health.UNSUPPORTED_VERSION)
    made = json.dumps(first)
    assert decode(forged(made)).health is Health.CORRUPT
    assert decode(forged(refs=made)).health is (Health.INTACT if first == {} else Health.CORRUPT)


NASTY = {
    "another key": '{"key":"other","task":"t","state":"closed","fingerprint":"f"}',
    "another task": '{"key":"k","task":"other","state":"closed","fingerprint":"f"}',
    "an unknown state": '{"key":"k","task":"t","state":"started","fingerprint":"f"}',
    "an unknown field": '{"key":"k","task":"t","state":"closed","fingerprint":"f","x":1}',
    "a missing field": '{"key":"k","task":"t","state":"closed"}',
    "a field twice": '{"key":"k","task":"t","state":"intended","fingerprint":"f","state":"closed"}',
    "a wrong type": '{"key":"k","task":"t","state":"closed","fingerprint":"f","token":"1"}',
    "a huge number": '{"key":"k","task":"t","state":"closed","fingerprint":"f","token":' + "9" * 5000 + "}",
    "no number": '{"key":"k","task":"t","state":"closed","fingerprint":"f","token":NaN}',
    "deep nesting": "[" * 100_000,
    "deep and closed": "[" * 100_000 + "]" * 100_000,
    "nothing": "",
    "two": '{"key":"k","task":"t","state":"closed","fingerprint":"f"},{}',
    "not ASCII": '{"key":"k","task":"t","state":"closed","fingerprint":"\xe4"}',
}


@pytest.mark.parametrize("body", NASTY.values(), ids=NASTY)
def test_a_body_that_is_not_of_its_head_is_corrupt(body: str) -> None:
    """The checksums are right, so the head is believed, and only the body is not."""
    line = decode(forged(body))
    assert (line.health, line.seq, line.owner, line.record) == (Health.CORRUPT, 7, ("attempt", "k", "t"), None)


@pytest.mark.parametrize("ends", ["NaN", "Infinity", "-Infinity", "1e999", "null"])
def test_a_lease_ends_at_a_number(ends: str) -> None:
    head = '7,"lease","k","t",null,'
    body = '{"task":"t","token":1,"holder":"k","ends":1e3}'
    assert decode(forged(body, head=head)).health is Health.INTACT
    assert decode(forged(body.replace("1e3", ends), head=head)).health is Health.CORRUPT


def test_the_second_writer_writes_intact_lines() -> None:
    assert decode(forged()).record == Attempt("k", "t", "closed", "f")


@pytest.mark.parametrize(
    "head",
    [
        "",
        '7,"attempt","k",null,',
        '0,"attempt","k","t",null,',
        '-7,"attempt","k","t",null,',
        '7.0,"attempt","k","t",null,',
        '7, "attempt","k","t",null,',
        '7,"attempt","k","t","x",',
        '7,"attempt","k","t",[],',
        '7,"attempt","\\x","t",null,',
        '7,"attempt","k\x00","t",null,',
        "9" * 5000 + ',"attempt","k","t",null,',
    ],
)
def test_a_head_of_another_shape_is_illegible(head: str) -> None:
    line = decode(forged(head=head))
    assert (line.health, line.seq, line.owner) == (Health.CORRUPT, 0, ("", "", ""))


@pytest.mark.parametrize(
    "refs", ['{"receipt":1,"receipt":2}', '{"nobody":1}', '{"receipt":0}', '{"receipt":"1"}', "[]"]
)
def test_references_of_another_shape_are_not_believed(refs: str) -> None:
    line = decode(forged(refs=refs))
    assert (line.health, line.seq, line.refs) == (Health.CORRUPT, 7, {})


def test_a_kind_that_is_not_known_is_corrupt() -> None:
    assert decode(forged(head='7,"novelty","k","t",null,')).health is Health.CORRUPT


@pytest.mark.parametrize("version", ["2", "0", "11", "999999999"])
def test_another_version_is_not_read_as_this_one(version: str) -> None:
    """Its head is believed if its checksum is right; what follows the head may mean anything."""
    line = decode(forged(version=version))
    assert (line.health, line.seq, line.owner) == (Health.UNSUPPORTED_VERSION, 7, ("attempt", "k", "t"))
    assert line.record is None
    assert not line.refs


@pytest.mark.parametrize("raw", [b'["onestart",2,{"seq":1}]', b'["onestart",2]', forged().replace(b",1,", b",3,")])
def test_another_version_with_another_head_is_told_from_damage(raw: bytes) -> None:
    line = decode(raw)
    assert (line.health, line.seq) == (Health.UNSUPPORTED_VERSION, 0)


@pytest.mark.parametrize(
    "raw", [b'["onestart",1,{"seq":1}]', b'["onestart",2,', b'["onestart",true]', b'["another",2]']
)
def test_what_is_no_line_of_any_version_is_corrupt(raw: bytes) -> None:
    assert decode(raw).health is Health.CORRUPT


def test_a_seal_counts_the_bytes_before_it() -> None:
    for torn in (b"", b"x", LINE[:50], LINE[:-1], b"x\x18torn:", b"x\x18torn:1\x18to"):
        raw = torn + seal(len(torn))[:-1]
        assert unsealed(raw) == b""
        assert unsealed(b"before" + raw) == b"before"
        assert decode(raw).health is Health.CORRUPT
    for raw in (
        b"",
        LINE[:-1],
        b"\x18torn:1",
        b"x\x18torn:",
        b"x\x18torn:-1",
        b"x\x18torn:1 ",
        b"x\x18torn:" + b"1" * 5000,
    ):
        assert unsealed(raw) is None


def test_a_line_that_begins_within_another_is_found() -> None:
    (found,) = embedded(LINE[:-1] + b"\x0b" + LINE[:-1])
    assert found == (len(LINE), outline(LINE[:-1]))
    assert not list(embedded(LINE[:-1]))


OVERRUNS: dict[str, tuple[Callable[[bytes], bytes], bool]] = {
    "torn before its newline": (lambda raw: raw, False),
    "torn anywhere": (lambda raw: raw[:-5], False),
    "another byte for the newline": (lambda raw: raw + b"\x0b", True),
    "and a torn write behind it": (lambda raw: raw + b"\x0b" + raw[:20], True),
    "an unfinished seal": (lambda raw: raw + b"\x18torn:", False),
}


@pytest.mark.parametrize(("make", "whole"), OVERRUNS.values(), ids=OVERRUNS)
def test_a_tail_is_torn_unless_it_is_more_than_a_line(make: Callable[[bytes], bytes], whole: bool) -> None:
    raw = LINE[:-1]
    assert overrun(make(raw)) == (len(raw) if whole else 0)


def test_a_payload_cannot_pass_for_a_line() -> None:
    """Even one that holds a line with its checksum: texts are escaped, and a list of JSON is within the object."""
    inner = json.loads(forged())
    for payload in (inner, forged().decode(), [inner, inner], summed()):
        raw = encode(Receipt("k", "t", "pending", "f", {"payload": payload}), 1, None, {})[:-1]
        assert decode(raw).health is Health.INTACT
        assert overrun(raw) == 0
        for length in range(len(raw)):
            assert decode(raw[:length]).health is Health.CORRUPT
            assert overrun(raw[:length]) == 0


def summed() -> list[str]:
    """A payload that has, at its place in the line, the sum of what is before it: one can know that beforehand."""
    raw = encode(Receipt("k", "t", "pending", "f", {"payload": ["0" * 16]}), 1, None, {})
    before = raw[: raw.index(b'"' + b"0" * 16)]
    return [hashlib.blake2b(before, digest_size=8).hexdigest()]
