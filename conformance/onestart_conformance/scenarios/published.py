"""The published observations: six files, byte for byte, two formal runs of each of three sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

FILES = tuple(f"observations-{number}.json" for number in range(1, 7))
NOT_OBSERVED = frozenset({"id", "source_sha256", "limitation", "limit", "limits"})


def content(name: str) -> bytes:
    """A file as it was published."""
    return files(__package__).joinpath("observations", name).read_bytes()


@cache
def rows() -> Mapping[str, tuple[Mapping[str, Any], ...]]:
    """What was observed in each formal run, by the published name of the row, in published order."""
    found: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for name in FILES:
        for row in json.loads(content(name))["rows"]:
            observed = {field: value for field, value in row.items() if field not in NOT_OBSERVED}
            found[row["id"]] = (*found.get(row["id"], ()), observed)
    return found
