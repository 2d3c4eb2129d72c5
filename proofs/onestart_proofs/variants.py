"""The model without one of its protections: what fails then, by proof and by the shortest trace."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from onestart_model.catalog import Entry, Standard, entry
from onestart_model.counterexample import Counterexample
from onestart_model.rules import INVARIANT, STEP, Model, Property
from onestart_proofs.induction import Obligation, Options, Prover
from onestart_proofs.memory import keep_freed_memory
from onestart_proofs.search import MOST_MEMORY, Exploration, Limits, Report, explore
from onestart_proofs.traces import trace
from onestart_report.verdict import Verdict


@frozen
class Variant:
    """What removing a protection does.

    broken: the obligations that are no longer proved. failing: the promises seen broken in the enumeration, with the
    number of steps that it takes. story: the shortest trace. scope: of the enumeration. complete: whether it could have
    found more.
    """

    protection: str
    broken: tuple[Obligation, ...]
    failing: dict[str, int]
    scope: str
    complete: bool
    story: Counterexample | None = field(repr=False)

    @property
    def needed(self) -> Verdict:
        """Whether something fails without the protection: proved by both ways, refuted by both, else undetermined."""
        if self.broken and self.story is not None:
            return Verdict.PROVED
        return Verdict.REFUTED if self.complete and not self.broken and self.story is None else Verdict.UNDETERMINED


def promises(model: Model) -> tuple[Property, ...]:
    """The invariants and step invariants that are promised, without the lemmas."""
    return tuple(p for p in model.of_kind(INVARIANT, STEP) if not p.supporting)


def without(
    model: Model,
    protection: str,
    instances: Iterable[Standard],
    *,
    options: Options | None = None,
    report: Report | None = None,
) -> Variant:
    """Prove and enumerate the model without a protection.

    instances: searched one after the other until a promise is broken; those that are small are searched to the end, so
    that every promise that fails in them is seen.
    """
    broken = _broken_obligations(model, protection, options or Options())
    for standard in instances:
        exploration = _search(model, protection, standard, report)
        failing = {name: sighting.steps() for name, sighting in exploration.sightings.items()}
        if failing:
            first = min(failing, key=lambda name: failing[name])
            story = trace(exploration, exploration.sightings[first])
            ordered = dict(sorted(failing.items(), key=lambda item: item[1]))
            return Variant(protection, broken, ordered, exploration.instance.scope, exploration.complete, story)
    return Variant(protection, broken, {}, exploration.instance.scope, exploration.complete, None)


def without_by_name(model: str, protection: str, options: Options) -> Variant:
    """The same for a model of the catalog, in its own instances: what another process can be asked for."""
    keep_freed_memory()
    chosen = entry(model)
    return without(chosen.model, protection, ladder(chosen), options=options)


def ladder(entry: Entry) -> list[Standard]:
    """The instances in which the effect of a removed protection is looked for, smallest first."""
    return [standard for standard in entry.instances if standard.variants]


def _search(model: Model, protection: str, standard: Standard, report: Report | None) -> Exploration:
    instance = standard.instance(model, [protection])
    names = [p.name for p in promises(model)]
    whole = standard.profile == "quick"
    return explore(instance, properties=names, stop=not whole, limits=Limits(memory=MOST_MEMORY), report=report)


def _broken_obligations(model: Model, protection: str, options: Options) -> tuple[Obligation, ...]:
    """Obligations that are proved of the whole model and not without the protection.

    Only those over actions that mention the protection can have another outcome.
    """
    whole = Prover(model, frozenset(), options)
    reduced = Prover(model, frozenset({protection}), options, doubtful=True)
    broken = []
    for prop, action in reduced.tasks(None):
        if action is not None and protection in action.protections:
            outcome = reduced.step(prop, action)
            if outcome.verdict is not Verdict.PROVED and whole.step(prop, action).verdict is Verdict.PROVED:
                broken.append(outcome)
    return tuple(broken)
