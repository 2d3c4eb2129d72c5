"""The worlds that drives run in by default: instances of the command chain."""

from __future__ import annotations

from attrs import frozen

from onestart_model.chain import CHAIN
from onestart_model.expression import RuleError
from onestart_model.instance import Instance

SEED = 0


@frozen
class Bound:
    """A small world for the systematic drive. kinds: of moves, besides submitting and going on.

    profile: the first of quick, standard, deep that walks it in a check.
    """

    name: str
    statement: str
    keys: int
    processes: int
    kinds: tuple[str, ...]
    profile: str = "standard"

    def instance(self) -> Instance:
        return chain(keys=self.keys, processes=self.processes)


TROUBLE = ("die", "pass_time", "finish", "lost", "stale")

BOUNDS = (
    Bound("pair", "one command, two processes, no trouble", 1, 2, (), "quick"),
    Bound("alone", "one command, one process; crashes, time, lost answers, stale revisions", 1, 1, TROUBLE),
    Bound(
        "beside",
        "one command, one process; cancellation, other commands, approvals, an operator",
        1,
        1,
        ("cancel", "foreign", "approval", "finish", "reconcile"),
        "standard",
    ),
    Bound("pair-in-trouble", "one command, two processes; crashes and time", 1, 2, ("die", "pass_time"), "deep"),
    Bound(
        "two-commands",
        "two commands of one task, one process; crashes, time and ends",
        2,
        1,
        ("die", "pass_time", "finish"),
        "deep",
    ),
    Bound(
        "everything",
        "one command, one process, every kind of move",
        1,
        1,
        (
            "stale",
            "approval",
            "foreign",
            "lost",
            "wake",
            "cancel",
            "reconcile",
            "settle",
            "repair_lease",
            "die",
            "pass_time",
            "finish",
            "damage",
            "lose_attempt",
        ),
        "deep",
    ),
)


def bound_named(name: str) -> Bound:
    """Raises RuleError if there is no such bound."""
    for bound in BOUNDS:
        if bound.name == name:
            return bound
    raise RuleError(f"no bound is called {name!r}; known: {', '.join(b.name for b in BOUNDS)}")


def chain(*, keys: int = 2, processes: int = 3, tasks: tuple[int, ...] | None = None) -> Instance:
    """An instance of the command chain. tasks: of each key, by number; all of one task by default."""
    of = (0,) * keys if tasks is None else tasks
    return Instance.of(CHAIN, sizes={"Key": keys, "Process": processes, "Task": max(of) + 1}, fixed={"task": of})
