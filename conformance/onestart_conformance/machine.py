"""The state machine that Hypothesis drives: its rules are the kinds of moves that the model's actions ask for.

Each step draws a kind among those that the run may use (which ones is drawn first: swarm testing, Groce et al., 2012),
then a move of that kind; the monitor watches every event. It is a loop of its own rather than a RuleBasedStateMachine:
that class asks every rule's precondition before every step, which costs more than the step.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

from attrs import define, field
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from onestart_conformance.choices import SWARMED, Allowed, moves
from onestart_conformance.judgement import Objection
from onestart_conformance.moves import Move
from onestart_conformance.rules import Rules
from onestart_conformance.runs import finish, step
from onestart_conformance.storage import JSONL
from onestart_conformance.world import World
from onestart_model.execution import State, Step

MOST_STEPS = 60
TRIES = 4
SHARE = 0.25  # of the kinds of moves, in a run


class ObjectedError(AssertionError):
    """A judge has objected; ends an example."""

    def __init__(self, objection: Objection) -> None:
        super().__init__(str(objection))
        self.objection = objection


@define
class Tally:
    """What a campaign has been through.

    gates: how many steps of the implementation. taken: how often each action of the model. edges: states of the model
    with the steps that were taken in them.
    """

    examples: int = 0
    gates: int = 0
    taken: Counter[str] = field(factory=Counter)
    edges: set[tuple[State, Step]] = field(factory=set)
    found: tuple[Move, ...] = ()
    objection: Objection | None = None


BITS = 48


def chances() -> st.SearchStrategy[random.Random]:
    """What a run is drawn from.

    Bits, because Hypothesis mixes constants of the modules that happen to be loaded into the numbers that it draws, and
    the same seed would give other runs in another process.
    """
    bits = st.lists(st.booleans(), min_size=BITS, max_size=BITS)
    return bits.map(lambda drawn: random.Random(sum(1 << n for n, bit in enumerate(drawn) if bit)))  # noqa: S311


def random_runs(number: int, examples: int) -> Callable[[Callable[[random.Random], None]], Callable[[], None]]:
    """Run a function with so many chances, drawn from the seed, up to the first that raises; nothing is shrunk."""

    def decorate(run: Callable[[random.Random], None]) -> Callable[[], None]:
        chosen = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        drawn: Callable[[], None] = seed(number)(chosen(given(chances())(run)))
        return drawn

    return decorate


def swarm(chance: random.Random, uses: frozenset[str]) -> Allowed:
    """What a run may use: a few kinds of moves besides going on and submitting, and those that it has to use."""
    kinds = {kind for kind in SWARMED if chance.random() < SHARE}
    if uses and chance.random() < SHARE:
        kinds = set()
    return Allowed(frozenset(kinds | uses), calls=chance.choice((1, 2)), favor=chance.getrandbits(64))


def draws(chance: random.Random, most: int = MOST_STEPS) -> list[int]:
    """A number for each step: which kind, and which of its moves."""
    return [chance.getrandbits(24) for _ in range(most)]


def drive(rules: Rules, steps: Sequence[int], allowed: Allowed, tally: Tally, ledger: str = JSONL) -> None:
    """One example. Raises ObjectedError if a judge objects."""
    world = World(rules, ledger)
    taken: list[Move] = []
    tally.examples += 1
    choices = allowed.choices()
    try:
        for number, drawn in enumerate(steps):
            move = _choose(world, drawn, allowed, choices, allowed.ahead(number, len(world.nodes)))
            if move is not None and step(world, move):
                taken.append(move)
                tally.gates += move.name in ("open", "break")
            if world.objection is not None:
                break
        finish(world)
        _count(world, tally)
        if world.objection is not None:
            tally.found, tally.objection = tuple(taken), world.objection
            raise ObjectedError(world.objection)
    finally:
        world.end()


def _choose(world: World, drawn: int, allowed: Allowed, choices: Sequence[str], ahead: int) -> Move | None:
    """The move that a draw stands for; a kind that has none now gives way to the next one.

    Three times out of four it is a move of the process that is ahead, if there is one: what needs one process to stand
    still for long while another gets on would hardly ever come about otherwise (cf. Burckhardt et al., 2010).
    """
    kind, which = drawn % 256, drawn // 256
    for turn in range(TRIES):
        candidates = moves(world, choices[(kind + turn * len(choices) // TRIES) % len(choices)], allowed)
        if which & 3:
            candidates = [move for move in candidates if move.arguments[:1] == (ahead,)] or candidates
        if candidates:
            move = candidates[(which >> 2) % len(candidates)]
            if move.name == "break":
                rest = (which >> 2) // len(candidates)
                return Move("break", (*move.arguments, rest % 4, rest // 4 % 256))
            return move
    return None


def _count(world: World, tally: Tally) -> None:
    tally.taken.update(step.action for step in world.monitor.steps)
    tally.edges |= world.monitor.edges
