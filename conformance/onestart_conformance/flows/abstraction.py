"""A program of a drive as an instance of the model of flows: its calls, their causal order, kinds, specs and ids.

A child flow with one step is what the model calls a dispatch: its step stands for the child. The calls of a larger
child are calls of the model as well, each with an id of its own; the dispatch is executed when the first is admitted.

What the author catches is not said to come before what follows: after a failure or a refusal it need not be done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from attrs import define, evolve, field, frozen

from onestart_conformance.flows.plan import Plan
from onestart_conformance.flows.program import (
    EFFECTS,
    Block,
    Call,
    Caught,
    Fan,
    Part,
    Placed,
    Saved,
    after_each,
    branch,
    inside,
    parts,
)
from onestart_model.flows import FLOWS
from onestart_model.instance import Instance, Row

END = "end"
MARKER = Placed(END, Call("marker", ""))
MOST_CALLS = 24

CHANGED = "the flow is another one when it is resumed"
COUNTED_CHILD = "branches in a child flow whose steps are counted"
RACING_CHILD = "a child flow that takes its branches as they end"
NESTED_HOOKS = "a hook in a hook, with counted steps"
LEFT_BEHIND = "a hook that may come to its verdict while calls of its own are under way"
RACE_FAILS = "branches that are taken as they end, and a call that fails"
TOO_LARGE = f"more than {MOST_CALLS} calls"


@frozen
class Made:
    """A call of the model. after: positions that are done before it is made. part_of: the hook that makes it.

    counted: it takes an ordinal. around: dispatches that it is a step of, outermost first.
    """

    placed: Placed
    after: frozenset[str]
    part_of: str = ""
    counted: bool = False
    around: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return self.placed.call.kind.upper()

    @property
    def asks(self) -> tuple[str, str, str]:
        call = self.placed.call
        return call.kind, call.text, call.to


@frozen
class Where:
    """Where a block stands. after: what is done before it. unknown: whether the causal order is not known any more.

    counted: whether ids are in the order of the text, because a child flow counts for itself.
    """

    after: frozenset[str] = frozenset()
    unknown: bool = False
    part_of: str = ""
    around: tuple[str, ...] = ()
    counted: bool = False


@define
class Reading:
    """Goes through a program. made: its calls. only: calls that their dispatch stands for. reasons: what it cannot."""

    version: int
    made: list[Made] = field(factory=list)
    only: dict[str, str] = field(factory=dict)
    reasons: list[str] = field(factory=list)

    def block(self, block: Block, start: str, where: Where) -> tuple[frozenset[str], bool]:
        """What is done when the block is, and whether the order is unknown from there on."""
        done = frozenset[str]()
        for number, part in enumerate(block):
            joined, unknown = self._part(part, f"{start}{number}", where)
            where = evolve(where, after=where.after | joined, unknown=unknown)
            done |= joined
        return done, where.unknown

    def _part(self, part: Part, position: str, where: Where) -> tuple[frozenset[str], bool]:
        match part:
            case Call():
                return self._call(Placed(position, part), where), where.unknown
            case Saved():
                done = self._call(Placed(position, part.call), where)
                joined, unknown = self.block(part.block, f"{position}-", where)
                return done | joined, unknown
            case Caught():
                return frozenset(), self.block(part.block, f"{position}!", where)[1]
            case Fan():
                return self._fan(part, position, where)

    def _fan(self, fan: Fan, position: str, where: Where) -> tuple[frozenset[str], bool]:
        if where.counted:
            self.reasons.append(COUNTED_CHILD)
        if fan.how == "completed":
            return self._race(fan, position, where)
        blocks = [(block, branch(position, number)) for number, block in enumerate(fan.branches)]
        if fan.how in ("later", "kept"):
            return self._beside(blocks, where)
        ends = [self.block(block, start, where) for block, start in blocks]
        return frozenset().union(*(done for done, _ in ends)), where.unknown or any(unknown for _, unknown in ends)

    def _beside(self, blocks: list[tuple[Block, str]], where: Where) -> tuple[frozenset[str], bool]:
        """The first block is a task, the others run in place, one after the other."""
        done, unknown = self.block(*blocks[0], where)
        place = where
        for block, start in blocks[1:]:
            joined, lost = self.block(block, start, place)
            place = evolve(place, after=place.after | joined, unknown=lost)
            done |= joined
        return done, unknown or place.unknown

    def _race(self, fan: Fan, position: str, where: Where) -> tuple[frozenset[str], bool]:
        if where.around:
            self.reasons.append(RACING_CHILD)
        raced, every = evolve(where, unknown=True), frozenset[str]()
        for number, block in enumerate(fan.branches):
            done, _ = self.block(block, branch(position, number), raced)
            follow = after_each(position, number)
            placed = Placed(follow.position, Call(fan.each, follow.call.label))
            every |= done | self._call(placed, evolve(raced, after=where.after | done))
        return every, True

    def _call(self, placed: Placed, where: Where) -> frozenset[str]:
        counted = (self.version < 3 or where.unknown) and not where.counted
        self.made.append(Made(placed, where.after, where.part_of, counted, where.around))
        if placed.call.kind == "hook":
            self._hook(placed, evolve(where, part_of=placed.position), counted)
        elif placed.call.kind == "dispatch":
            self._child(placed, where, counted or where.counted)
        return frozenset((placed.position,))

    def _hook(self, hook: Placed, where: Where, counted: bool) -> None:
        inner = list(parts(hook.call.body))
        if counted and any(call.kind == "hook" for call in _calls(hook.call.body)):
            self.reasons.append(NESTED_HOOKS)
        if any(isinstance(part, Fan | Saved) for part in inner) and any(c.fails for c in _calls(hook.call.body)):
            self.reasons.append(LEFT_BEHIND)
        self.block(hook.call.body, inside(hook.position), where)

    def _child(self, dispatch: Placed, where: Where, counted: bool) -> None:
        body, start = dispatch.call.body, inside(dispatch.position)
        if len(body) == 1 and isinstance(body[0], Call) and body[0].kind in EFFECTS:
            self.only[f"{start}0"] = dispatch.position
            return
        around = (*where.around, dispatch.position)
        self.block(body, start, evolve(where, part_of="", around=around, counted=counted, unknown=False))


def _calls(block: Block) -> Iterator[Call]:
    for part in parts(block):
        call = part.call if isinstance(part, Saved) else part
        if isinstance(call, Call):
            yield call


@frozen
class Abstraction:
    """What a plan is to the model. made: the calls. only: calls of children that their dispatch stands for.

    uncovered: why the model does not say what may happen in it, empty if it does.
    """

    plan: Plan
    made: tuple[Made, ...]
    only: Mapping[str, str]
    uncovered: str = ""

    @classmethod
    def of(cls, plan: Plan) -> Abstraction:
        """Of a plan."""
        reading = Reading(plan.version)
        done, unknown = reading.block(plan.program.block, "", Where())
        reading.made.append(Made(MARKER, done, counted=plan.version < 3 or unknown))
        reasons = [CHANGED] if plan.changed is not None else reading.reasons
        if plan.version >= 3 and not plan.program.ordered and any(p.call.fails for p in plan.program.calls()):
            reasons = [*reasons, RACE_FAILS]
        if len(reading.made) > MOST_CALLS:
            reasons = [*reasons, TOO_LARGE]
        return cls(plan, tuple(reading.made), reading.only, reasons[0] if reasons else "")

    @cached_property
    def calls(self) -> Mapping[str, int]:
        """Calls by their position."""
        return {made.placed.position: number for number, made in enumerate(self.made)}

    @cached_property
    def own(self) -> tuple[int | None, ...]:
        """Ids of their own; the first ones."""
        taken = iter(range(len(self.made)))
        return tuple(None if made.counted else next(taken) for made in self.made)

    @cached_property
    def ordinals(self) -> range:
        """The ids that the counter gives: one for each counted call, twice as many if watermarks may move it on."""
        owned, counted = sum(own is not None for own in self.own), sum(made.counted for made in self.made)
        hooks = any(made.counted and made.kind == "HOOK" for made in self.made)
        return range(owned, owned + counted * (2 if hooks else 1))

    @property
    def stray(self) -> int:
        """An id that no call ever has."""
        return self.ordinals.stop

    @property
    def sizes(self) -> Mapping[str, int]:
        drivers = 1 + sum(stop is not None and stop.stalls for stop in self.plan.stops)
        return {"Call": len(self.made), "Id": self.stray + 1, "Spec": len(self.specs), "Driver": drivers}

    @property
    def fixed(self) -> Mapping[str, Row]:
        """The values of the model's fixed functions."""
        ids = range(self.stray + 1)
        again = self.plan.in_flight == "again"
        return {
            "kind": tuple(made.kind for made in self.made),
            "asks": tuple(self.specs[made.asks] for made in self.made),
            "before": tuple(a.placed.position in self._before[b.placed.position] for a in self.made for b in self.made),
            "part_of": tuple(self.calls.get(made.part_of) for made in self.made),
            "unlike": tuple(map(self._is_unlike, self.made)),
            "again": tuple(again for _ in self.made),
            "single": tuple(self.plan.slots == 1 and made.placed.call.kind in EFFECTS for made in self.made),
            "own": self.own,
            "ordinal": tuple(x in self.ordinals for x in ids),
            "below": tuple(x < y for x in ids for y in ids),
        }

    @property
    def instance(self) -> Instance:
        return Instance.of(FLOWS, sizes=self.sizes, fixed=self.fixed, label="of the drive")

    @cached_property
    def specs(self) -> Mapping[tuple[str, str, str], int]:
        """The specs of the model, by what calls ask for."""
        return {asks: number for number, asks in enumerate(dict.fromkeys(made.asks for made in self.made))}

    @cached_property
    def _before(self) -> Mapping[str, frozenset[str]]:
        """All that comes before a call, directly or not."""
        every: dict[str, frozenset[str]] = {}
        for made in self.made:
            every[made.placed.position] = made.after.union(*(every[position] for position in made.after))
        return every

    def _is_unlike(self, made: Made) -> bool:
        same = sum(other.asks == made.asks for other in self.made)
        if same != 1 or not made.part_of:
            return same == 1
        hook = self.made[self.calls[made.part_of]]
        return not hook.counted or self._is_unlike(hook)
