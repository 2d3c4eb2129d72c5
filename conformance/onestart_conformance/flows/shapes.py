"""Shapes of public reports of workflows that lost their way on resume, each with counted and with causal ids."""

from __future__ import annotations

from attrs import evolve, frozen

from onestart_conformance.flows.plan import Plan, Stop
from onestart_conformance.flows.program import Block, Call, Fan, Program
from onestart_conformance.flows.run import play
from onestart_conformance.flows.world import World

REVERSED = (-1,) * 200


@frozen
class Shape:
    """plan: of causal ids. counted and causal: what a resume comes to. rerun: effects that a causal resume has anew."""

    name: str
    statement: str
    plan: Plan
    counted: str
    causal: str
    rerun: int = 0


@frozen
class Shaped:
    """A shape as it came out."""

    shape: Shape
    counted: str
    causal: str
    rerun: int
    objection: str = ""

    @property
    def holds(self) -> bool:
        shape = self.shape
        as_said = (self.counted, self.causal, self.rerun) == (shape.counted, shape.causal, shape.rerun)
        return as_said and not self.objection


def play_shape(shape: Shape) -> Shaped:
    """With both kinds of ids, in the same orders."""
    counted, causal = play(evolve(shape.plan, version=2), followed=True), play(shape.plan, followed=True)
    objection = counted.objection or causal.objection
    rerun = sum(effect.attempt > 0 for effect in causal.effects)
    return Shaped(shape, _state(counted), _state(causal), rerun, "" if objection is None else str(objection))


def _state(world: World) -> str:
    outcome = world.told[:2][-1].outcome
    return "cut" if outcome is None else outcome.state


def _branches(number: int, *, same: bool = False) -> tuple[Block, ...]:
    return tuple((Call("llm", f"ask {n}"), Call("run", "use" if same else f"use {n}")) for n in range(number))


def _reversed(block: Block, stop: str, changed: Block | None = None) -> Plan:
    """Results arrive last branch first; after the crash they are replayed in the order of the text."""
    return Plan(Program(block), (REVERSED, ()), (Stop(stop),), changed=None if changed is None else Program(changed))


PAIR = (Fan("gather", ((Call("llm", "left"), Call("run", "x")), (Call("llm", "right"), Call("agent", "y")))),)
MANY = (Fan("gather", _branches(70)), Call("llm", "sum up"))
CACHED = (Fan("group", (*_branches(3), (Call("llm", "ask"), Call("helper", "h")))), Call("run", "end"))
RACE = (Fan("completed", _branches(3)),)
SIZED = (Call("llm", "how many"), Fan("gather", _branches(4)), Call("run", "end"))
END = Call("run", "end")
ORDERED = (Fan("gather", _branches(3)),)

SHAPES = {
    shape.name: shape
    for shape in (
        Shape(
            "anothers-result",
            "a branch is delivered another branch's result",
            _reversed(PAIR, "done left"),
            "refused",
            "completed",
            1,
        ),
        Shape(
            "seventy-finished",
            "a fan-out of 70 finished calls, of which nearly all ran again",
            _reversed(MANY, "done use 0"),
            "refused",
            "completed",
            1,
        ),
        Shape(
            "position-keyed-cache",
            "results kept by position, and branches that get there in another order",
            _reversed(CACHED, "start end"),
            "refused",
            "completed",
            1,
        ),
        Shape(
            "as-completed",
            "results paired in the order in which they come: nobody can know it, so it is counted and refused",
            Plan(Program(RACE), (REVERSED, ()), (Stop("done after a"),)),
            "refused",
            "refused",
        ),
        Shape(
            "size-from-a-result",
            "a fan-out whose size an earlier result says; it is replayed, so the size is the same",
            _reversed(SIZED, "done use 0"),
            "refused",
            "completed",
            1,
        ),
        Shape(
            "another-size",
            "a fan-out that has become larger by the time that it is resumed",
            _reversed((*ORDERED, END), "index end", (Fan("gather", _branches(4)), END)),
            "refused",
            "refused",
        ),
        Shape(
            "set-order",
            "a fan-out over a set or a dictionary, which has another order in another process",
            _reversed(ORDERED, "done use 0", (Fan("gather", _branches(3)[::-1]),)),
            "refused",
            "refused",
        ),
    )
}
