"""Plans at random: a seed's bits become a program, orders of results, and places where drivers die."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Literal

from attrs import define, evolve, field

from onestart_conformance.flows.plan import Order, Plan, Stop
from onestart_conformance.flows.program import FANS, KINDS, Block, Call, Caught, Fan, Part, Program, Saved

LONGEST_ORDER = 10
MOST_OPEN = 6
DEEPEST = 2
ATTEMPTS = 3


@define
class Draw:
    """kinds: those that the program may use; some programs of few kinds find more than all of many. left: calls."""

    chance: random.Random
    kinds: Sequence[str]
    fans: Sequence[str]
    left: int
    alike: float = 0.0
    fail: float = 0.0
    nest: float = 0.08
    labels: Iterator[int] = field(factory=count)
    used: list[str] = field(factory=list)

    def label(self) -> str:
        if self.used and self.chance.random() < self.alike:
            return self.chance.choice(self.used)
        number = next(self.labels)
        self.used.append(chr(ord("a") + number) if number < 26 else f"l{number}")
        return self.used[-1]

    def call(self, deep: int) -> Call:
        self.left -= 1
        kind = self.chance.choice(self.kinds)
        if kind in ("hook", "dispatch"):
            name = f"{kind}{next(self.labels)}"
            body = self.block(deep + 1, self.chance.randint(1, 2)) if self.left > 0 else ()
            return Call(kind, name, body=body)
        fails = kind != "human" and self.chance.random() < self.fail
        to = "bob" if kind == "human" and self.chance.random() < 0.3 else "anybody"
        return Call(kind, self.label(), to, fails)

    def part(self, deep: int) -> Part:
        what = self.chance.random()
        if what < 0.3 and deep < DEEPEST and self.left > 1:
            return self.fan(deep)
        if what < 0.3 + self.nest:
            call, block = self.call(deep), self.block(deep + 1, 1)
            return Saved(call, (Caught(block),) if self.chance.random() < 0.5 else block)
        if what < 0.3 + 2 * self.nest:
            return Caught(self.block(deep + 1, self.chance.randint(1, 2)))
        return self.call(deep)

    def fan(self, deep: int) -> Fan:
        branches = self.chance.choice((2, 2, 2, 3))
        blocks = tuple(self.block(deep + 1, self.chance.randint(1, 3)) for _ in range(branches))
        return Fan(self.chance.choice(self.fans), blocks)

    def block(self, deep: int, most: int) -> Block:
        parts: list[Part] = []
        for _ in range(most):
            if self.left > 0:
                parts.append(self.part(deep))
        return tuple(parts)


COUNTED, CAUSAL, CHANGED, SLOTS, STALLS, NESTED, FAILS, SAVED = (
    "counted",
    "causal",
    "changed",
    "slots",
    "stalls",
    "nested",
    "fails",
    "saved",
)


def draw(chance: random.Random, uses: frozenset[str] = frozenset()) -> Plan:
    """A plan. uses: kinds, fans and more without which what is looked for cannot show."""
    wanted = [kind for kind in KINDS if kind in uses]
    others = [kind for kind in KINDS if kind not in uses]
    kinds = wanted + chance.sample(others, chance.randint(1, 2) if wanted else chance.randint(2, 4))
    usual = [fan for fan in FANS if fan != "completed"] if chance.random() < 0.9 else list(FANS)
    how = Draw(
        chance,
        kinds,
        [fan for fan in FANS if fan in uses] or usual,
        left=chance.randint(3, 7),
        alike=chance.choice((0.0, 0.0, 0.4)),
        fail=0.3 if FAILS in uses else chance.choice((0.0, 0.0, 0.2)),
        nest=0.25 if NESTED in uses else 0.08,
    )
    program = _saving(how) if SAVED in uses else _fanning(how)
    in_flight: Literal["again", "ask", "hold"] = chance.choice(("again", "again", "ask", "hold"))
    changes = chance.random() < (0.8 if CHANGED in uses else 0.15)
    version = 2 if COUNTED in uses else 3 if CAUSAL in uses else chance.choice((2, 3))
    stalls = 0.6 if STALLS in uses else 0.1
    return Plan(
        program,
        tuple(_order(chance) for _ in range(ATTEMPTS)),
        (_stop(chance, program, 0.85, stalls, late=FAILS in uses), _stop(chance, program, 0.25, stalls)),
        version,
        in_flight,
        1 if SLOTS in uses else chance.choice((0, 0, 0, 1)),
        edited(chance, program) if changes else None,
        chance.random() < 0.4,
    )


def _fanning(how: Draw) -> Program:
    """Where calls may fail, an author who catches it: else nothing would follow."""
    before = how.block(0, how.chance.choice((0, 0, 1)))
    fan: Part = how.fan(0)
    if how.fail and how.chance.random() < 0.7:
        fan = Caught((fan,))
        how.left += 1
        return Program((*before, fan, *how.block(DEEPEST, 1)))
    return Program((*before, fan, *how.block(0, how.chance.choice((0, 1)))))


def _saving(how: Draw) -> Program:
    return Program((Saved(how.call(DEEPEST), (Caught(how.block(0, 2)),)), *how.block(0, 2)))


def _order(chance: random.Random) -> Order:
    """At random, or always the last one, or always the first: those two turn an order round."""
    how = chance.random()
    if how < 0.2:
        return ()
    if how < 0.4:
        return (MOST_OPEN * 10 - 1,) * LONGEST_ORDER
    return tuple(chance.randrange(MOST_OPEN) for _ in range(LONGEST_ORDER))


WHATS = ("index", "start", "end", "done")


def _stop(chance: random.Random, program: Program, share: float, stalling: float, *, late: bool = False) -> Stop | None:
    """late: rather at the last call, when what fails has failed."""
    calls = list(program.calls())
    chosen, what = chance.choice(calls).call, chance.choice(WHATS)
    if late and chance.random() < 0.5:
        chosen = calls[-1].call
    more, stalls = chance.choice((0, 0, 0, 1, 2, 3, 5)), chance.random() < stalling
    if chance.random() >= share:
        return None
    what = {"human": "wait", "hook": chance.choice(("index", "verdict")), "dispatch": "done"}.get(chosen.kind, what)
    return Stop(f"{what} {chosen.label}", more, stalls)


def edited(chance: random.Random, program: Program) -> Program:
    """What the program may have become by the time that it is resumed: one thing in it is another."""
    candidates = list(edits(program.block))
    return Program(chance.choice(candidates)) if candidates else program


NEW = Call("llm", "new")


def edits(block: Block) -> Iterator[Block]:
    """Every small change."""
    for index, part in enumerate(block):
        yield (*block[:index], *block[index + 1 :])
        yield (*block[: index + 1], NEW, *block[index + 1 :])
        for other in _edits_of(part):
            yield (*block[:index], other, *block[index + 1 :])
        if index:
            yield (*block[: index - 1], part, block[index - 1], *block[index + 1 :])


def _edits_of(part: Part) -> Iterator[Part]:
    match part:
        case Call():
            yield evolve(part, label=f"{part.label}2")
            if part.kind == "human":
                yield evolve(part, to="carol")
            else:
                yield evolve(part, kind="llm" if part.kind != "llm" else "run", body=())
            yield from (evolve(part, body=body) for body in edits(part.body))
        case Fan():
            yield evolve(part, branches=(*part.branches, (NEW,)))
            if len(part.branches) > 1:
                yield evolve(part, branches=part.branches[::-1])
                yield evolve(part, branches=part.branches[:-1])
            for index, block in enumerate(part.branches):
                yield from (
                    evolve(part, branches=(*part.branches[:index], other, *part.branches[index + 1 :]))
                    for other in edits(block)
                )
        case Caught():
            yield from (Caught(block) for block in edits(part.block))
        case Saved():
            yield from (Saved(part.call, block) for block in edits(part.block))
            yield from (Saved(call, part.block) for call in _edits_of(part.call) if isinstance(call, Call))


def smaller(block: Block) -> Iterator[Block]:
    """The block with one thing less in it."""
    for index, part in enumerate(block):
        before, after = block[:index], block[index + 1 :]
        yield (*before, *after)
        yield from ((*before, *inner, *after) for inner in _instead(part))
        yield from ((*before, other, *after) for other in _smaller_part(part))


def _instead(part: Part) -> Iterator[Block]:
    match part:
        case Fan():
            yield from part.branches
            yield tuple(chain.from_iterable(part.branches))
        case Caught():
            yield part.block
        case Saved():
            yield (part.call, *part.block)
            yield (part.call,)
        case Call():
            if part.body:
                yield part.body


def _smaller_part(part: Part) -> Iterator[Part]:
    match part:
        case Call():
            if part.fails:
                yield evolve(part, fails=False)
            yield from (evolve(part, body=body) for body in smaller(part.body))
        case Fan():
            if part.how != "gather":
                yield evolve(part, how="gather")
            for index, block in enumerate(part.branches):
                before, after = part.branches[:index], part.branches[index + 1 :]
                yield evolve(part, branches=(*before, *after))
                yield from (evolve(part, branches=(*before, other, *after)) for other in smaller(block))
        case Caught():
            yield from (Caught(block) for block in smaller(part.block))
        case Saved():
            yield from (Saved(part.call, block) for block in smaller(part.block))
