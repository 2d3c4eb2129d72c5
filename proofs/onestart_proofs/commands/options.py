"""Options that several commands take, and how their values become an instance."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from onestart_model.catalog import CATALOG, Entry
from onestart_model.catalog import entry as catalog_entry
from onestart_model.expression import RuleError
from onestart_model.instance import Instance
from onestart_proofs.induction import RESOURCES, Options

F = TypeVar("F", bound=Callable[..., Any])
Pairs = tuple[tuple[str, int], ...]


DEFAULT = "chain"


class Assignment(click.ParamType[tuple[str, int]]):
    """NAME=NUMBER"""

    name = "NAME=NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        name, equals, number = str(value).partition("=")
        if not equals or not name or not number.isascii() or not number.isdigit() or len(number) > 9:
            self.fail(f"{value!r} is not NAME=NUMBER, such as Key=2", param, ctx)
        return name, int(number)


def model_option(function: F) -> F:
    names = [e.model.name for e in CATALOG]
    return click.option("--model", "model", default=DEFAULT, show_default=True, help=f"One of: {', '.join(names)}.")(
        function
    )


def model_of(entry: Entry) -> str:
    """How a suggested command names the model: not at all if it is the default."""
    return "" if entry.model.name == DEFAULT else f" --model {entry.model.name}"


def without_option(function: F) -> F:
    return click.option(
        "--without", multiple=True, metavar="PROTECTION", help="Remove a protection and show what fails; repeatable."
    )(function)


def property_option(function: F) -> F:
    return click.option("--property", "properties", multiple=True, metavar="NAME", help="Only this one; repeatable.")(
        function
    )


def proof_options(function: F) -> F:
    seed = click.option("--seed", default=0, show_default=True, help="Seed of z3's choices.")
    limit = click.option(
        "--resources", default=RESOURCES, show_default=True, help="z3's resource units for each obligation."
    )
    return seed(limit(function))


def instance_options(function: F) -> F:
    options = (
        click.option("--instance", "name", metavar="NAME", help="A standard instance of the model."),
        click.option(
            "--size", "sizes", type=Assignment(), multiple=True, help="Elements of a sort: Key=2; repeatable."
        ),
        click.option(
            "--budget", "budgets", type=Assignment(), multiple=True, help="Most steps of a cause: crash=1; repeatable."
        ),
        click.option(
            "--limit", "limits", type=Assignment(), multiple=True, help="A limit of the model: expiries=1; repeatable."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def chosen_options(seed: int, resources: int) -> Options:
    if not -(2**31) <= seed < 2**31:
        raise RuleError(f"the seed {seed} does not fit 32 bits")
    return Options(seed=seed, resources=resources)


def chosen_entry(model: str, without: Iterable[str] = (), properties: Iterable[str] = ()) -> Entry:
    """The catalog's entry; checks the names of protections and properties."""
    entry = catalog_entry(model)
    for name in without:
        entry.model.protection_named(name)
    for name in properties:
        entry.model.property_named(name)
    return entry


def own_instance(
    entry: Entry, name: str | None, sizes: Pairs, budgets: Pairs, limits: Pairs, without: Iterable[str]
) -> Instance | None:
    """The instance that the options describe, None if they describe none."""
    for option, pairs in (("--size", sizes), ("--budget", budgets), ("--limit", limits)):
        for given in {pair[0] for pair in pairs}:
            if [pair[0] for pair in pairs].count(given) > 1:
                raise RuleError(f"{option} {given} is given twice")
    if name is not None:
        if sizes or budgets or limits:
            raise RuleError("--instance stands for sizes, budgets and limits; give either it or those")
        return entry.standard(name).instance(entry.model, without)
    if not (sizes or budgets or limits):
        return None
    if not sizes:
        known = " ".join(f"--size {sort.name}=2" for sort in entry.model.schema.sorts)
        raise RuleError(f"budgets and limits need sizes too: {known}")
    said = {name for name, _ in (*sizes, *limits)}
    for option, names in (("--size", [s.name for s in entry.model.schema.sorts]), ("--limit", entry.model.limits)):
        for missing in (n for n in names if n not in said):
            raise RuleError(f"the instance says nothing of {missing}: add {option} {missing}=1")
    return Instance.of(
        entry.model, sizes=dict(sizes), budgets=dict(budgets), limits=dict(limits), without=frozenset(without)
    )
