"""The file of an index, byte by byte.

    onestart index 1\\n  buckets, texts and directories  head  <length of the head> <BLAKE2b of the head>

head: JSON, see `Head`. A *table* is a number of buckets, a power of two. A row is in the bucket that the first bytes of
the identifier of its name say, and has a fixed size. A table's directory has the place, length and checksum of every
bucket; the head has the checksum of each directory. So whatever is read of the file is checked, down from its end, and
that a name is not there is as certain as that it is. Texts are JSON arrays, each with its length and its CRC-32.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from struct import Struct
from typing import Any
from zlib import crc32

from attrs import asdict, field, frozen
from attrs.validators import ge

from onestart.health import Health
from onestart.jsonl.places import Entry
from onestart.jsonl.position import Position
from onestart.lines import Place
from onestart.records import KINDS

MAGIC = b"onestart index 1\n"
FORMAT, VERSION = "onestart-index", 1

TRAILER = Struct("<Q16s")
BUCKET = Struct("<QQ8s")  # where it begins, its length, its checksum
TEXT = Struct("<II")  # its length, its checksum
ENTRY = Struct("<8sBBQQQQ")  # name, kind, health, then as in `Entry`
LINK = Struct("<8sBQ")  # name, what it is the name of, where the text is that says so
OF_KEY, OF_TASK = 0, 1

_CRC_START = 1  # else zeros would be a text of no length, with the right checksum
_HEALTHS = (Health.INTACT, Health.CORRUPT, Health.UNSUPPORTED_VERSION)
_HEALTH_CODES = {health: code for code, health in enumerate(_HEALTHS)}
_KIND_CODES = {kind: code for code, kind in enumerate(KINDS)}


class UnusableIndexError(Exception):
    """The index is not there, or is not what it was when it was written; the files have to be read."""


@frozen
class Extent:
    """Where the directory of a table is. rows: how many there are in the table. digest: of the directory."""

    offset: int = field(validator=ge(0))
    buckets: int = field(validator=ge(1))
    rows: int
    digest: str


@frozen
class Head:
    """salt: what identifiers of names depend on. stores: how far each file is covered.

    unmet, furthest: see `onestart.jsonl.references`. texts: where they begin, and how many bytes they are.
    """

    salt: str
    stores: dict[str, Position]
    unmet: dict[Place, set[int]]
    furthest: dict[str, int]
    entries: Extent
    links: Extent
    texts: tuple[int, int]

    @property
    def lines(self) -> int:
        """How many lines are covered."""
        return sum(position.count for position in self.stores.values())

    def encoded(self) -> bytes:
        """The end of the file."""
        said = {
            **asdict(self, recurse=False),
            "format": FORMAT,
            "version": VERSION,
            "kinds": list(KINDS),
            "stores": {store: position.to_json() for store, position in self.stores.items()},
            "unmet": [[*where, sorted(seqs)] for where, seqs in self.unmet.items()],
            "entries": asdict(self.entries),
            "links": asdict(self.links),
        }
        data = json.dumps(said, separators=(",", ":")).encode()
        return data + TRAILER.pack(len(data), blake2b(data, digest_size=16).digest())

    @classmethod
    def decoded(cls, data: bytes) -> Head:
        """Raises UnusableIndexError if this program does not know what it says."""
        try:
            said = json.loads(data)
            if (said.pop("format"), said.pop("version"), said.pop("kinds")) != (FORMAT, VERSION, list(KINDS)):
                raise UnusableIndexError("it is of another version")
            read: dict[str, Any] = {
                "stores": {store: Position.from_json(found) for store, found in said["stores"].items()},
                "unmet": {(kind, name): set(seqs) for kind, name, seqs in said["unmet"]},
                "entries": Extent(**said["entries"]),
                "links": Extent(**said["links"]),
                "texts": tuple(said["texts"]),
            }
            return cls(**{**said, **read})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UnusableIndexError(f"its head cannot be read: {error}") from error


def identifier(name: str, salt: bytes) -> bytes:
    """What stands for a name in the tables. The salt is nobody's choice, so nobody can choose names that collide."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, key=salt).digest()


def checksum(data: bytes | bytearray) -> bytes:
    """Of a bucket."""
    return blake2b(data, digest_size=8).digest()


def bucket_of(row: bytes, buckets: int) -> int:
    """The bucket of a row, or of an identifier."""
    return int.from_bytes(row[:4], "little") & (buckets - 1)


def entry_key(where: Place, salt: bytes) -> bytes:
    """What the rows of a place begin with."""
    kind, name = where
    return identifier(name, salt) + bytes((_KIND_CODES[kind],))


def entry_row(key: bytes, entry: Entry) -> bytes:
    """key: what `entry_key` gives."""
    seq, offset, length, number, health = entry
    return ENTRY.pack(key[:8], key[8], _HEALTH_CODES[health], seq, offset, length, number)


def entry_of(data: bytes, at: int) -> Entry:
    """The entry of a row. Raises UnusableIndexError."""
    _, _, health, seq, offset, length, number = ENTRY.unpack_from(data, at)
    if health >= len(_HEALTHS):
        raise UnusableIndexError("an entry reads in a way that is not known")
    return Entry(seq, offset, length, number, _HEALTHS[health])


def text_of(*said: str) -> bytes:
    """A text with its length and checksum."""
    data = json.dumps(said, separators=(",", ":")).encode()
    return TEXT.pack(len(data), crc32(data, _CRC_START)) + data


def said_in(data: bytes, crc: int) -> list[str]:
    """What a text says. Raises UnusableIndexError."""
    if crc32(data, _CRC_START) != crc:
        raise UnusableIndexError("a text is damaged")
    said: list[str] = json.loads(data)
    return said
