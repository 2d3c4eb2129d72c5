"""The models of the project, each with its standard instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from onestart_model.chain import CHAIN
from onestart_model.expression import RuleError
from onestart_model.instance import Instance
from onestart_model.rules import Model
from onestart_model.yardstick import YARDSTICK


@frozen
class Standard:
    """An instance with a name. profile: the first of quick, standard, deep that includes it in a check.

    variants: whether the effect of a removed protection is looked for in it.
    """

    name: str
    statement: str
    sizes: Mapping[str, int]
    budgets: Mapping[str, int] = field(factory=dict)
    limits: Mapping[str, int] = field(factory=dict)
    profile: str = "quick"
    variants: bool = True

    def instance(self, model: Model, without: Iterable[str] = ()) -> Instance:
        return Instance.of(model, sizes=self.sizes, budgets=self.budgets, limits=self.limits, without=without)


@frozen
class Entry:
    """A model with its instances, smallest first. A removed protection is looked for in them one after the other."""

    model: Model
    instances: tuple[Standard, ...]

    def standard(self, name: str) -> Standard:
        for standard in self.instances:
            if standard.name == name:
                return standard
        known = ", ".join(s.name for s in self.instances)
        raise RuleError(f"{self.model.name} has no instance {name!r}; known: {known}, or give its sizes with --size")


PROFILES = ("quick", "standard", "deep")

CATALOG = (
    Entry(
        CHAIN,
        (
            Standard(
                "single",
                "one command, nothing limited",
                {"Key": 1, "Process": 2, "Task": 1},
            ),
            Standard(
                "unlimited",
                "two commands of one task, nothing limited",
                {"Key": 2, "Process": 2, "Task": 1},
                profile="deep",
            ),
            Standard(
                "budgeted",
                "three commands, two tasks, one trouble and one decision from outside",
                {"Key": 3, "Process": 2, "Task": 2},
                {"crash+damage+clock": 1, "caller+governance": 1, "rollback": 0, "operator": 0},
                profile="standard",
            ),
            Standard(
                "troubled",
                "the same with rollbacks and an operator",
                {"Key": 3, "Process": 2, "Task": 2},
                {"crash+damage+clock+rollback": 1, "caller+governance": 1, "operator": 1},
                profile="deep",
                variants=False,
            ),
        ),
    ),
    Entry(
        YARDSTICK,
        (
            Standard("small", "for a first look", {"Key": 1, "Worker": 2}, limits={"expiries": 1}),
            Standard(
                "2-3-2",
                "204,309 states without symmetry, as published",
                {"Key": 2, "Worker": 3},
                limits={"expiries": 2},
            ),
            Standard(
                "3-2-1",
                "985,919 states without symmetry, as published",
                {"Key": 3, "Worker": 2},
                limits={"expiries": 1},
            ),
            Standard("3-2-2", "", {"Key": 3, "Worker": 2}, limits={"expiries": 2}, profile="deep", variants=False),
        ),
    ),
)


def entry(name: str) -> Entry:
    """The catalog's entry of a model. Raises RuleError for an unknown name."""
    for candidate in CATALOG:
        if candidate.model.name == name:
            return candidate
    raise RuleError(f"no model is called {name!r}; known: {', '.join(e.model.name for e in CATALOG)}")
