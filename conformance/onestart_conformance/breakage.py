"""A ledger step that is broken off: the process dies in the middle of it, or an operation fails.

Whether the step took place is then for the records to tell: no event was emitted. If they show more than the model
knows, the strand took one step more, and that is looked for among the steps that the model allows.
"""

from __future__ import annotations

from onestart.ports import View
from onestart_conformance.disk import Fuse
from onestart_conformance.gates import Gate
from onestart_conformance.judgement import Objection
from onestart_conformance.world import World
from onestart_model.execution import Step

NOT_THE_LIBRARY = ("crash", "expire", "finish", "lose_attempt")


def break_in(world: World, gate: Gate, fuse: Fuse) -> bool:
    """Open a gate before a ledger step in which something goes wrong, and find out what took place."""
    node = world.nodes[gate.node]
    call = world.calls[gate.submission]
    strand = call.strand
    node.access.fuse = fuse
    done: list[bool] = []

    def find_out() -> None:
        if not done:
            done.append(True)
            catch_up(world, strand)

    world.before_dropping = find_out
    try:
        node.gates.open(gate)
    finally:
        world.before_dropping = None
        node.access.fuse = Fuse()
    if node.access.dead:
        find_out()
        world.kill(gate.node)
    else:
        find_out()
    world.settle()
    return True


def catch_up(world: World, strand: tuple[str, int] | None) -> None:
    """Let the model take the one step that the records show beyond it, if there is one."""
    if world.objection is None:
        world.read(lambda view: _catch_up(world, strand, view))


def _catch_up(world: World, strand: tuple[str, int] | None, view: View) -> None:
    monitor, rules = world.monitor, world.rules
    if not any(world.compare_with(monitor.state, view)):
        monitor.look_at_leases(view)
        return
    slot = None if strand is None else monitor.slot_of(strand)
    if slot is None:
        slot = next((i for i in range(len(monitor.slots)) if monitor.state.read("serving", i) is None), 0)
    for step in rules.machine.steps():
        if not _of_the_library(world, step, slot):
            continue
        after = rules.apply(monitor.state, step)
        if after is not None and not any(world.compare_with(after, view)):
            monitor.caught_up(step, after, view)
            return
    difference = next(iter(world.compare_with(monitor.state, view)))
    world.object_to(Objection(difference.oracle, f"after a step that was broken off, {difference.what}"))


def _of_the_library(world: World, step: Step, slot: int) -> bool:
    action = world.rules.instance.model.action_named(step.action)
    if step.action in NOT_THE_LIBRARY or step.action.startswith("damage_"):
        return False
    first = action.parameters[0]
    return str(first.type) != "Process" or step.arguments[0] == slot
