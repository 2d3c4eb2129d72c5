"""Lines as another release, or somebody with a text editor, would have written them: other content, right checksums."""

from __future__ import annotations

import re
from hashlib import blake2b
from zlib import crc32

_VERSION = re.compile(rb'\["onestart",1,')
_CRC = re.compile(rb',"([0-9a-f]{8})",')
_FIELD = re.compile(rb'"state":"[a-z]+"|"token":\d+|"digest":"[^"]*"')
_SUM_LENGTH = 19


def of_version(line: bytes, version: int) -> bytes:
    """The line under another version, with checksums that fit; as it is if it is none."""
    head, crc = _VERSION.match(line), _CRC.search(line)
    if head is None or crc is None:
        return line
    before = b'["onestart",%d,' % version + line[head.end() : crc.start() + 1]
    return summed(before + b'"%08x",' % crc32(before) + line[crc.end() :])


def of_wrong_shape(line: bytes) -> bytes:
    """The line with a value of the wrong type in its body, with checksums that fit; as it is if it is none."""
    crc = _CRC.search(line)
    if crc is None:
        return line
    return summed(line[: crc.end()] + _FIELD.sub(_mistyped, line[crc.end() :], count=1))


def _mistyped(field: re.Match[bytes]) -> bytes:
    return field[0].split(b":")[0] + b":[7]"


def summed(line: bytes) -> bytes:
    """The line with the sum that fits what stands before it."""
    ending = b"\n" * line.endswith(b"\n")
    text = line[: len(line) - len(ending) - _SUM_LENGTH]
    return b'%b"%b"]%b' % (text, blake2b(text, digest_size=8).hexdigest().encode(), ending)
