"""What the lock's file tells of the stores: the number of the last record that each of them has had, at least.

Without it, records at the end of a file that no other store has seen could be cut off, and nobody would notice. The
numbers are written when a step is durable, and need not be durable themselves: after a power failure they may be older
ones and notice less, and are never too large.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from onestart.jsonl.files import Files
from onestart.records import STORES

_DIGITS = 15
_LENGTH = len(STORES) * (_DIGITS + 1) + 8


class Reached:
    """Of the stores of one generation; those of an older one say nothing of it. lock: the path of the lock's file.

    Both methods raise OSError.
    """

    def __init__(self, files: Files, lock: str, generation: str) -> None:
        self._files, self._lock, self._generation = files, lock, generation
        self._data = b""
        self._numbers: Mapping[str, int] = {}

    def read(self) -> Mapping[str, int]:
        """The numbers by store; empty if they are not known."""
        data = self._files.note(self._lock, _LENGTH)
        if data != self._data:
            self._data, self._numbers = data, _parsed(data, self._generation)
        return self._numbers

    def write(self, numbers: Mapping[str, int]) -> None:
        """For who holds the lock. numbers: all that is durable now."""
        text = " ".join(f"{numbers[store]:0{_DIGITS}d}" for store in STORES)
        self._files.leave_note(self._lock, f"{text} {_sum(text, self._generation):08x}\n".encode())


def _parsed(data: bytes, generation: str) -> Mapping[str, int]:
    text, _, known = data.decode("ascii", "replace").rpartition(" ")
    numbers = text.split(" ")
    if known != f"{_sum(text, generation):08x}" or len(numbers) != len(STORES) or not all(map(str.isdecimal, numbers)):
        return {}
    return dict(zip(STORES, map(int, numbers), strict=True))


def _sum(text: str, generation: str) -> int:
    return crc32(f"{generation}\n{text}".encode("utf-8", "replace"))
