"""Damage as the experiment made it: records that cannot be parsed, or of a version that nobody knows yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias
from unittest.mock import patch

from onestart import lines
from onestart_conformance.disk import Image
from onestart_conformance.disk_storage import PATH
from onestart_conformance.scenarios.bench import Bench

Harm: TypeAlias = Callable[[Bench, str], None]

MALFORMED = b'{"kind": "nobody\'s", \n'
ALL = 1 << 30


def path_of(store: str) -> str:
    return f"{PATH}/{store}.jsonl"


def nothing(bench: Bench, key: str) -> None:
    """No damage."""


def completion_unparseable(bench: Bench, key: str) -> None:
    """The newest record of the key's receipt is no JSON any more."""
    unparseable(bench, "receipts", key, newest=1)


def receipts_unparseable(bench: Bench, key: str) -> None:
    """No record of the key's receipt is JSON any more."""
    unparseable(bench, "receipts", key, newest=ALL)


def session_unparseable(bench: Bench, key: str) -> None:
    """The key's session record is no JSON any more."""
    unparseable(bench, "sessions", key, newest=1)


def approval_unparseable(bench: Bench, key: str) -> None:
    """The key's approval is no JSON any more."""
    unparseable(bench, "approvals", key, newest=1)


def unparseable(bench: Bench, store: str, key: str, *, newest: int) -> None:
    """Overwrite the body of the newest records of the key; or all of each line, if the bench says so."""
    image = bench.disk.files[path_of(store)]
    for start, raw in _newest(image, key, newest):
        kept = 0 if bench.wholly else lines.outline(raw).body
        image.data[start + kept : start + len(raw)] = b"#" * (len(raw) - kept)
    bench.damage(key)


def completion_of_later_version(bench: Bench, key: str) -> None:
    """The newest record of the key's receipt, as a release would have written it whose version is not known here."""
    image = bench.disk.files[path_of("receipts")]
    for start, raw in _newest(image, key, 1):
        line = lines.decode(raw)
        assert line.record is not None
        with patch.object(lines, "VERSION", lines.VERSION + 1):
            later = lines.encode(line.record, line.seq, line.prev, line.refs)
        image.data[start : start + len(raw) + 1] = later
    bench.damage(key)


def malformed_line(bench: Bench, key: str) -> None:
    """Among the receipts there is a line that cannot be parsed, and that was never a record of the key."""
    bench.disk.files[path_of("receipts")].data += MALFORMED
    bench.damage("")


def sessions_emptied(bench: Bench, key: str) -> None:
    """The file with the key's session is there, and empty."""
    bench.disk.files[path_of("sessions")].data.clear()
    bench.damage(key)


def receipts_refused(bench: Bench, key: str) -> None:
    """The system does not let the process read the receipts."""
    bench.process.files.refused.add(path_of("receipts"))
    bench.damage(key)


def _newest(image: Image, key: str, most: int) -> list[tuple[int, bytes]]:
    """Where the newest lines of the key are, and their bytes without the newline."""
    found = list(_of(image, key))
    assert found, f"there is no record of {key} to damage"
    return found[-most:]


def _of(image: Image, key: str) -> Iterator[tuple[int, bytes]]:
    start = 0
    for raw in bytes(image.data).splitlines(keepends=True):
        if lines.outline(raw.rstrip(b"\n")).key == key:
            yield start, raw.rstrip(b"\n")
        start += len(raw)
