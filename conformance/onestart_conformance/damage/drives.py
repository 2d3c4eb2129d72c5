"""Damage to records of a simulated world, such that whose record it was can still be told; and lost attempts."""

from __future__ import annotations

from collections.abc import Iterator

from onestart_conformance.world import World
from onestart_model.execution import Step

ACTIONS = {
    "receipt": "damage_receipt",
    "attempt": "damage_attempt",
    "session": "damage_session",
    "lease": "damage_lease",
}


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
    if not world.storage.damage(kind, key, world.commands[key, False].task, how):
        return False
    if kind == "session":
        world.monitor.world("damage_session", world.keys[key])
    else:
        argument = world.tasks[world.commands[key, False].task] if kind == "lease" else world.keys[key]
        world.monitor.world(ACTIONS[kind], argument)
        if kind == "lease":
            world.monitor.ends.pop(world.commands[key, False].task, None)
    world.sealed = dict(world.storage.snapshot())
    return True


def lose_attempt(world: World, key: str) -> bool:
    """The store of attempts is replaced by an older copy, from before the key had one."""
    lost = world.storage.lose_attempts(key)
    for name in sorted(lost):
        world.monitor.world("lose_attempt", world.keys[name])
    world.sealed = dict(world.storage.snapshot())
    return bool(lost)


def _first_of(world: World, task: str) -> str:
    return next(key for key in world.keys if world.commands[key, False].task == task)
