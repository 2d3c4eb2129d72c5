"""What damage makes of one line, such that whose record it was can still be told."""

from __future__ import annotations

import re
from zlib import crc32

BODY = "body"  # a bit of the body is flipped
VERSION = "version"  # the record is of a version that is not known here
SHAPE = "shape"  # valid JSON, and not of this kind
WHOLE = "whole"  # nothing of the line is legible; something beside it tells whose it was
DAMAGES = (BODY, VERSION, SHAPE, WHOLE)


def damaged(raw: bytes, how: str) -> bytes:
    """The line after the damage, as long as before."""
    if how == BODY:
        middle = raw.rindex(b"}") - 2
        return raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :]
    if how == WHOLE:
        return b"#" * len(raw)
    head = re.match(rb'\["onestart",1,', raw)
    assert head is not None
    if how == VERSION:
        return _resealed(raw, b'["onestart",2,' + raw[head.end() :])
    body = raw.index(b'",{', head.end())
    return raw[:body] + re.sub(rb'"state":"[a-z]+"|"token":\d+', b'"state":7', raw[body:], count=1)


def _resealed(raw: bytes, changed: bytes) -> bytes:
    """The changed line with a right checksum of its head, as a later release would have written it."""
    old = re.search(rb',"([0-9a-f]{8})",', raw)
    assert old is not None
    crc = b"%08x" % crc32(changed[: old.start() + 1])
    return changed[: old.start()] + b',"' + crc + b'",' + changed[old.end() :]
