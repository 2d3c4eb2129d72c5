"""Damage to records on the simulated disk, such that whose record it was can still be told; and lost attempts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from zlib import crc32

from onestart.health import Health
from onestart.lines import decode
from onestart.records import store_of
from onestart_conformance.node import PATH
from onestart_conformance.world import World
from onestart_model.execution import Step

BODY = "body"  # a bit of the body is flipped
VERSION = "version"  # the record is of a version that is not known here
SHAPE = "shape"  # valid JSON, and not of this kind
WHOLE = "whole"  # nothing of the line is legible; its successor tells whose it was
DAMAGES = (BODY, VERSION, SHAPE, WHOLE)

ACTIONS = {
    "receipt": "damage_receipt",
    "attempt": "damage_attempt",
    "session": "damage_session",
    "lease": "damage_lease",
}


def path_of(kind: str) -> str:
    return f"{PATH}/{store_of(kind)}.jsonl"


def targets(world: World) -> Iterator[tuple[str, str]]:
    """The kinds and keys whose newest record is legible, and would not be after a damage."""
    state = world.monitor.state
    for kind, action in ACTIONS.items():
        for key, index in world.keys.items():
            task = world.commands[key, False].task
            if kind == "lease" and key != _first_of(world, task):
                continue
            argument = world.tasks[task] if kind == "lease" else index
            # The model takes an illegible session as a live one, so damage to a live one is no step of it.
            live = kind == "session" and state.read("session", index) == "LIVE"
            if live or world.rules.enabled(state, Step(action, (argument,))):
                yield kind, key


def damage(world: World, kind: str, key: str, how: str) -> bool:
    """Damage the newest record of this kind of the key (or of its task's lease). False if there is none to damage."""
    if (kind, key) not in set(targets(world)):
        return False
    image = world.disk.files.get(path_of(kind))
    if image is None:
        return False
    found = _newest(bytes(image.data), kind, key, world.commands[key, False].task)
    if found is None:
        return False
    start, end, last = found
    if how == WHOLE and last:
        return False
    raw = bytes(image.data[start:end])
    image.data[start:end] = _damaged(raw, how)
    if kind == "session":
        world.monitor.world("damage_session", world.keys[key])
    else:
        argument = world.tasks[world.commands[key, False].task] if kind == "lease" else world.keys[key]
        world.monitor.world(ACTIONS[kind], argument)
        if kind == "lease":
            world.monitor.ends.pop(world.commands[key, False].task, None)
    world.sealed = world.disk.snapshot()
    return True


def lose_attempt(world: World, key: str) -> bool:
    """The store of attempts is replaced by an older copy, from before the key had one.

    Not if an older copy would show an older record of another key: a store that lost everything is what is modeled.
    """
    path = path_of("attempt")
    image = world.disk.files.get(path)
    if image is None:
        return False
    lines = bytes(image.data).splitlines(keepends=True)
    owners = [decode(line.rstrip(b"\n")).key for line in lines]
    if key not in owners:
        return False
    cut = owners.index(key)
    lost = set(owners[cut:])
    if lost & set(owners[:cut]) or "" in owners:
        return False
    entered = image.entered
    image = world.disk.new(path)
    image.data += b"".join(lines[:cut])
    image.entered = entered
    for name in sorted(lost):
        world.monitor.world("lose_attempt", world.keys[name])
    world.sealed = world.disk.snapshot()
    return True


def _first_of(world: World, task: str) -> str:
    return next(key for key in world.keys if world.commands[key, False].task == task)


def _newest(data: bytes, kind: str, key: str, task: str) -> tuple[int, int, bool] | None:
    """Where the newest intact record begins and ends, and whether no other one comes after it in its file."""
    found: tuple[int, int, bool] | None = None
    start = 0
    for raw in data.splitlines(keepends=True):
        line = decode(raw.rstrip(b"\n"))
        mine = line.task == task if kind == "lease" else line.key == key
        if line.health is Health.INTACT and raw.endswith(b"\n"):
            if line.kind == kind and mine:
                found = (start, start + len(raw) - 1, True)
            elif found is not None:
                found = (*found[:2], False)
        start += len(raw)
    return found


def _damaged(raw: bytes, how: str) -> bytes:
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
