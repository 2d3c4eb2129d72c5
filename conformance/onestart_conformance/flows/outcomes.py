"""Judges of whole attempts: what they came to, and whether a resume in order was refused or wrote anything else."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from onestart.command import canonical
from onestart.flow import Outcome
from onestart.flow.identity import parse
from onestart.records import Step as Entry
from onestart_conformance.flows.program import GROUPS, Block, Call, Fan, Placed, Program, Saved, blocks_of, parts
from onestart_conformance.flows.reference import FailsError, Name, fails, value_of_block
from onestart_conformance.flows.world import Told, World
from onestart_conformance.judgement import CRASH, Objection

DELIVERY = "delivery"
ORDER = "order"  # a resume that fits is refused, or writes something else
VALUE = "value"  # an attempt comes to something else than the reference
FIT = "fit"  # an attempt completes although it does not fit the journal

REFUSALS = ("serial_replay_order_mismatch", "run_admission_conflict")


def judge_outcome(world: World, told: Told) -> None:
    """What an attempt that was not cut short has come to."""
    outcome = told.outcome
    if outcome is None:
        return
    world.note(told.number, f"{outcome.state}{f': {outcome.message}' if outcome.message else ''}")
    match outcome.state:
        case "completed" | "failed":
            world.object_to(_judge_value(world, told, outcome))
        case "refused":
            world.object_to(_judge_refusal(world, told, outcome))
        case "held":
            world.object_to(_judge_held(world, outcome))
        case "parked":
            world.object_to(_judge_questions(world, told, outcome))
        case "lost":
            world.object_to(Objection(VALUE, f"attempt {told.number + 1} is lost, and no other driver was there"))


def _judge_value(world: World, told: Told, outcome: Outcome) -> Objection | None:
    plan = world.plan
    came = next((t.number for t in world.told if any(e.what == "complete" for e in t.wrote)), told.number)
    program = plan.program_of(came)
    if plan.changed is not None and any(p.call.kind in ("hook", "dispatch") for p in plan.program.calls()):
        return None  # what a hook or a child came to before the change is what it came to
    try:
        expected: Any = value_of_block(program.block, "", world.name)
    except FailsError as fails:
        return None if outcome.state == "failed" else Objection(VALUE, f"it completes, and {fails} fails")
    if outcome.state == "failed":
        return Objection(VALUE, f"it fails: {outcome.message}")
    if outcome.value != expected:
        return Objection(VALUE, f"its value is {outcome.value!r}, and should be {expected!r}")
    if not told.wrote:
        return None  # it was completed before
    for step in unreached(world, told):
        return Objection(FIT, f"it completes, and {step} is journaled and was not reached", ("journal-reached",))
    return None


def unreached(world: World, told: Told) -> Iterator[str]:
    """Steps of earlier attempts that this one has not asked for, and no hook or child that it replayed contains.

    A task group that fails breaks its branches off, so those in one need not be reached where ids show whose they are.
    """
    journal, broken = world.journal(), set(failing_groups(world.plan.program_of(told.number).block, "", world.name))
    settled = {entry.step for entry in journal if entry.what in ("done", "verdict")}
    bodies = {entry.step: entry.body for entry in journal if entry.what in ("index", "wait") or "kind" in entry.body}
    for earlier in world.told[: told.number]:
        for entry in earlier.wrote:
            if entry.what not in ("index", "wait", "done") or entry.step in told.placed:
                continue
            placed = earlier.placed.get(entry.step)
            parsed = parse(entry.step)
            if placed is not None and parsed is not None and parsed.after and _is_within(placed.position, broken):
                continue
            around = _around(bodies, entry.step)
            if placed is not None and not any(step in told.placed and step in settled for step in around):
                yield entry.step


def failing_groups(block: Block, start: str, name: Name) -> Iterator[str]:
    """The positions of the task groups in which something fails that nobody in them catches."""
    for number, part in enumerate(block):
        position = f"{start}{number}"
        for where, inner in blocks_of(part, position):
            yield from failing_groups(inner, where, name)
        if (
            isinstance(part, Fan)
            and part.how in GROUPS
            and any(fails(b, w, name) for w, b in blocks_of(part, position))
        ):
            yield position


def _is_within(position: str, groups: Collection[str]) -> bool:
    return any(position.startswith(group) and position[len(group)].isalpha() for group in groups if group != position)


def _around(bodies: Mapping[str, Mapping[str, Any]], step: str) -> Iterator[str]:
    """The hooks and dispatches that a step is part of."""
    while step:
        if "within" in bodies.get(step, {}):
            hook = str(bodies[step]["within"])
            yield hook
            yield from _around(bodies, hook)
        parsed = parse(step)
        step = parsed.scope if parsed else ""
        if step:
            yield step


def _judge_refusal(world: World, told: Told, outcome: Outcome) -> Objection | None:
    plan = world.plan
    if outcome.reason not in REFUSALS:
        return Objection(CRASH, f"it is refused for {outcome.reason}: {outcome.message}")
    if told.number == 0:
        return Objection(ORDER, f"a first attempt is refused: {outcome.message}")
    if plan.changed is not None:
        return None
    if plan.version >= 3 and plan.program.ordered:
        return Objection(ORDER, f"a resume of the same flow is refused: {outcome.message}", ("stable-ids",))
    if in_order(world, told) and not hooks_beside(plan.program):
        return Objection(ORDER, f"a resume in the same order is refused: {outcome.message}")
    return None


def _judge_held(world: World, outcome: Outcome) -> Objection | None:
    done = {entry.step for entry in world.journal() if entry.what == "done"}
    indexed = {entry.step for entry in world.journal() if entry.what == "index"}
    for step, why in outcome.held.items():
        if step in done or world.plan.in_flight == "again" or step not in indexed:
            return Objection(VALUE, f"{step} is held, and was not under way: {why}")
    return None


def _judge_questions(world: World, told: Told, outcome: Outcome) -> Objection | None:
    asked = {entry.step: entry.body for entry in world.journal() if entry.what == "wait"}
    for wait in outcome.waits:
        body = asked.get(wait.wait)
        if body is None or (body["question"], body["to"]) != (wait.question, wait.to):
            what = "nothing" if body is None else f"{body['question']!r} to {body['to']!r}"
            return Objection(
                DELIVERY,
                f"it is parked on {wait.question!r} to {wait.to!r} as {wait.wait}, which asks {what} in the journal",
                ("question-bound",),
            )
    return None


def in_order(world: World, told: Told) -> bool:
    """Whether an attempt has asked for the same calls as those before it, in the same order, as far as both got."""
    history: list[Placed] = []
    for earlier in world.told[: told.number + 1]:
        settled = _settled(world, earlier.number)
        known = [p.position for p in history if not any(p.position.startswith(f"{around}:") for around in settled)]
        now = [p.position for p in earlier.asked]
        both = min(len(known), len(now))
        if known[:both] != now[:both]:
            return False
        if len(now) >= len(known):
            history = earlier.asked
    return True


def comparable(world: World) -> bool:
    """Whether a run without a stop, with results in the same order, has to leave the same journal."""
    plan, last = world.plan, world.told[-1]
    completed = last.outcome is not None and last.outcome.state == "completed" and bool(last.wrote)
    cut = any(told.outcome is None for told in world.told)
    stalls = any(stop is not None and stop.stalls for stop in plan.stops)
    if (
        not (completed and cut)
        or stalls
        or plan.slots
        or plan.changed is not None
        or any(p.call.fails or p.call.kind == "human" for p in plan.program.calls())
    ):
        return False
    return all(in_order(world, told) for told in world.told) and not hooks_beside(plan.program)


def done_order(world: World) -> list[Placed]:
    """Calls in the order in which their results were recorded."""
    return [
        told.placed[entry.step]
        for told in world.told
        for entry in told.wrote
        if entry.what == "done" and entry.step in told.placed
    ]


def judge_journals(world: World, through: World) -> Objection | None:
    """Whether a resume in order has written byte for byte what a run without a stop writes."""
    if through.objection is not None:
        return through.objection
    here, there = (list(map(_bytes, filter(_kept, w.journal()))) for w in (world, through))
    for number, (one, other) in enumerate(zip_longest(here, there)):
        if one != other:
            return Objection(ORDER, f"entry {number + 1} of the resumed journal is {one}, without a stop it is {other}")
    return None


def _kept(entry: Entry) -> bool:
    return entry.what not in ("attempt", "ended", "again")


def _bytes(entry: Entry) -> str:
    return f"{entry.what} {entry.step} {canonical(entry.body, 'an entry')}"


def _settled(world: World, number: int) -> list[str]:
    """Positions of hooks and children that were over when an attempt began."""
    return [
        earlier.placed[entry.step].position
        for earlier in world.told[:number]
        for entry in earlier.wrote
        if entry.what in ("done", "verdict") and entry.step in earlier.placed
    ]


def hooks_beside(program: Program) -> bool:
    """Whether a hook runs beside others: its verdict counts their steps, so a counted resume need not get past it."""
    fans = (part for part in parts(program.block) if isinstance(part, Fan))
    inner = (part for fan in fans for _, block in blocks_of(fan, "") for part in parts(block))
    calls = (part.call if isinstance(part, Saved) else part for part in inner)
    return any(isinstance(call, Call) and call.kind == "hook" for call in calls)
