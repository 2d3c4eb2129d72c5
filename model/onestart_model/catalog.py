"""The models of the project, each with its standard instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from onestart_model.chain import CHAIN
from onestart_model.expression import RuleError
from onestart_model.flows import FLOWS
from onestart_model.flows.programs import Program, program
from onestart_model.instance import Instance, Row
from onestart_model.rules import Model
from onestart_model.yardstick import YARDSTICK


@frozen
class Standard:
    """An instance with a name. profile: the first of quick, standard, deep that includes it in a check.

    variants: whether the effect of a removed protection is looked for in it. fixed: values of fixed functions; those
    left out take every value.
    """

    name: str
    statement: str
    sizes: Mapping[str, int]
    budgets: Mapping[str, int] = field(factory=dict)
    limits: Mapping[str, int] = field(factory=dict)
    profile: str = "quick"
    variants: bool = True
    fixed: Mapping[str, Row] = field(factory=dict)

    def instance(self, model: Model, without: Iterable[str] = ()) -> Instance:
        return Instance.of(
            model,
            sizes=self.sizes,
            budgets=self.budgets,
            limits=self.limits,
            without=without,
            fixed=self.fixed,
            label=self.name if self.fixed else "",
        )


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


def _of_program(
    name: str,
    statement: str,
    program: Program,
    crashes: int | None = None,
    profile: str = "quick",
    *,
    variants: bool = True,
) -> Standard:
    budgets = {} if crashes is None else {"crash": crashes}
    return Standard(name, statement, program.sizes, budgets, {}, profile, variants, program.fixed)


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
        FLOWS,
        (
            _of_program(
                "orders",
                "version 3, two commands that are alike, nothing limited",
                program(["run a", "llm a again"], ["run a"], last=["marker"]),
            ),
            _of_program(
                "guarded",
                "version 2, the same",
                program(["run a", "llm a"], ["run a"], last=["marker"], version=2),
                variants=False,
            ),
            _of_program(
                "drivers",
                "version 3, two drivers",
                program(["run a"], ["llm a"], drivers=2),
                crashes=0,
            ),
            _of_program(
                "slots",
                "version 2, two commands whose worker has one slot",
                program(["run a single"], ["run b single"], last=["marker"], version=2),
                crashes=2,
            ),
            _of_program(
                "serial",
                "version 2, branches of a command and a model call in either order",
                program(["run a", "llm a"], ["llm b", "run b"], version=2),
                crashes=1,
            ),
            _of_program(
                "waits",
                "version 2, two questions and a helper effect",
                program(["human a"], ["human b"], ["helper a"], last=["marker"], version=2),
                crashes=1,
            ),
            _of_program(
                "children",
                "version 2, a child flow, and a body that does not wait for all of its calls",
                program(["dispatch a"], ["helper a"], ["run a"], ["marker"], version=2),
                crashes=1,
            ),
            _of_program(
                "hooks",
                "version 2, two hooks, one of which makes a call",
                program(["hook a", ">run a"], ["hook b"], ["run b"], version=2, spare=1),
                crashes=2,
            ),
            _of_program(
                "raced",
                "version 3, two of four branches of which the causal order is unknown",
                program(["run a"], ["llm a"], ["run b raced", "llm b raced"], ["llm c raced"], last=["marker"]),
                crashes=2,
                profile="standard",
                variants=False,
            ),
            _of_program(
                "branches",
                "version 2, three branches of two calls, of all sorts",
                program(["run a", "llm a"], ["human a", "run b"], ["hook a", "dispatch a"], version=2),
                crashes=2,
                profile="deep",
                variants=False,
            ),
            _of_program(
                "stable",
                "version 3, the same",
                program(["run a", "llm a"], ["human a", "run b"], ["hook a", "dispatch a"]),
                crashes=2,
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
