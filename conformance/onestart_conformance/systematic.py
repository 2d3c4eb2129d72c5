"""The systematic drive: every move in every situation of a small world, on the real library.

A situation is the model's state together with where each call of the library stands. The drive walks: it takes a move
that was not taken here yet, or else goes the shortest known way to a situation that has one, or begins anew. So it
needs no copies of a running library, and almost every step that it takes is a new one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping

from attrs import define, field

from onestart_conformance.choices import Allowed, moves
from onestart_conformance.collector import seldom_collecting
from onestart_conformance.judgement import Objection
from onestart_conformance.moves import Move
from onestart_conformance.rules import Rules
from onestart_conformance.runs import finish, step
from onestart_conformance.storage import JSONL, kind_of
from onestart_conformance.world import World
from onestart_model.execution import State, Step

KINDS = (
    *("go", "submit", "foreign", "stale", "approval", "lost", "wake", "cancel", "reconcile", "settle", "repair_lease"),
    *("die", "pass_time", "finish", "damage", "lose_attempt"),
)
LONGEST_WALK = 120
LONGEST_WAY = 60


@define
class Place:
    """What is known of a situation: the moves that are left to take, and where those that were taken led."""

    left: list[Move]
    led: dict[Move, int] = field(factory=dict)


@define
class Walk:
    """places: by number; numbers: of situations, which are a state of the model and where each call stands.

    gates: how many steps of the implementation. driven: states of the model with the steps that were taken in them;
    edges: how many of them by action. complete: whether no move is left in any situation.
    """

    rules: Rules
    allowed: Allowed
    ledger: str = field(default=JSONL, repr=kind_of)
    places: list[Place] = field(factory=list)
    numbers: dict[Hashable, int] = field(factory=dict)
    states: set[State] = field(factory=set)
    edges: Counter[str] = field(factory=Counter)
    driven: set[tuple[State, Step]] = field(factory=set)
    gates: int = 0
    taken: int = 0
    worlds: int = 0
    complete: bool = False
    found: tuple[Move, ...] = ()
    objection: Objection | None = None

    @property
    def left(self) -> int:
        """How many moves are left to take, in the situations that were seen."""
        return sum(len(place.left) for place in self.places)


Report = Callable[[Walk], None]


def walk(
    rules: Rules,
    *,
    most: int,
    kinds: tuple[str, ...] = KINDS,
    careless: bool = False,
    ledger: str = JSONL,
    wanted: Callable[[Objection], bool] = lambda objection: True,
    report: Report = lambda walk: None,
) -> Walk:
    """Walk until an objection that is wanted, or until every move was taken in every situation, or most moves were.

    After another objection nothing more is expected of a world; it is left, and another one begun.
    """
    done = Walk(rules, Allowed(frozenset(kinds), calls=1, careless=careless), ledger)
    with seldom_collecting():
        while done.taken < most and not done.complete:
            _one_world(done, most)
            report(done)
            if done.objection is not None:
                if wanted(done.objection):
                    break
                done.objection = None
    return done


def _one_world(done: Walk, most: int) -> None:
    world = World(done.rules, done.ledger)
    done.worlds += 1
    taken: list[Move] = []
    way: deque[tuple[Move, int]] = deque()
    try:
        here = _arrive(done, world)
        while len(taken) < LONGEST_WALK and done.taken < most:
            if not way:
                way = _way(done, here)
            if not way:
                done.complete = done.complete or not taken
                break
            move, expected = way.popleft()
            here = _take(done, world, here, move)
            if here != expected:
                way.clear()
            taken.append(move)
            if world.objection is not None:
                break
        finish(world)
        if world.objection is not None:
            done.found, done.objection = tuple(taken), world.objection
    finally:
        world.end()


def _way(done: Walk, here: int) -> deque[tuple[Move, int]]:
    """The shortest known way to a move that is left, and that move; each with where it leads, -1 if nobody knows."""
    places = done.places
    came: dict[int, tuple[int, Move] | None] = {here: None}
    queue = deque([(here, 0)])
    while queue:
        there, far = queue.popleft()
        if places[there].left:
            return _back(came, there, places[there].left[-1])
        if far < LONGEST_WAY:
            for move, further in places[there].led.items():
                if further not in came:
                    came[further] = (there, move)
                    queue.append((further, far + 1))
    return deque()


def _back(came: Mapping[int, tuple[int, Move] | None], there: int, last: Move) -> deque[tuple[Move, int]]:
    way = deque([(last, -1)])
    step_before = came[there]
    while step_before is not None:
        place, move = step_before
        way.appendleft((move, there))
        there = place
        step_before = came[there]
    return way


def _take(done: Walk, world: World, here: int, move: Move) -> int:
    before, steps = world.monitor.state, len(world.monitor.steps)
    step(world, move)
    done.taken += 1
    done.gates += move.name == "open"
    for told in world.monitor.steps[steps:]:
        if (before, told) not in done.driven:
            done.driven.add((before, told))
            done.edges[told.action] += 1
        before = done.rules.apply(before, told) or before
    place = done.places[here]
    if place.left and place.left[-1] == move:
        place.left.pop()
    there = _arrive(done, world)
    place.led[move] = there
    return there


def _arrive(done: Walk, world: World) -> int:
    situation = (world.monitor.state, _standing(world))
    number = done.numbers.setdefault(situation, len(done.places))
    if number == len(done.places):
        kinds = [kind for kind in KINDS if kind in done.allowed.kinds or kind in ("go", "submit")]
        done.places.append(Place([move for kind in reversed(kinds) for move in moves(world, kind, done.allowed)]))
        done.states.add(world.monitor.state)
    return number


def _standing(world: World) -> Hashable:
    """Where each call stands: what it is about, what it was told of last, and at which gates it waits."""
    waiting: dict[int, list[str]] = {}
    for gate in world.gates():
        waiting.setdefault(gate.submission, []).append(gate.kind)
    return tuple(
        (
            call.node,
            call.name,
            call.key,
            call.foreign,
            call.last,
            call.rounds,
            call.since,
            tuple(waiting.get(call.number, ())),
        )
        for node in world.nodes
        for call in node.calls
    )
