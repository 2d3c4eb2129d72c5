"""Induction: every invariant, over every action, for any number of elements.

One query for each action and property: assume all invariants of the state before and the guards of the action, and ask
for a state in which the property fails afterwards. None: the obligation is proved, and the unsat core tells which
assumptions it needed. Some: a counterexample to induction, which need not be reachable and is no bug by itself.

Where quantifiers go round in circles (a call has an id, an id is of a call), z3 finds most proofs at once and hardly
any counterexample. What it cannot decide quickly is looked for among few elements: what is found there is found.

Runs are deterministic: a seed, a resource limit in place of a clock, a fresh solver for each query.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

import z3
from attrs import evolve, field, frozen

from onestart_model.counterexample import Counterexample
from onestart_model.execution import Machine, State, Step
from onestart_model.expression import (
    BOOL,
    Apply,
    Literal,
    Node,
    NumberType,
    Quantified,
    Read,
    RuleError,
    StampType,
    Variable,
    conjunction,
    show,
    walk,
)
from onestart_model.rules import INVARIANT, STEP, Action, Model, Property
from onestart_model.state import FIXED, Function
from onestart_proofs.countermodel import Countermodel
from onestart_proofs.smt import Term, Vocabulary
from onestart_proofs.vacuity import is_fault
from onestart_report.verdict import Verdict, worst

RESOURCES = 20_000_000
QUICK = 200_000  # resource units after which a counterexample is looked for among few elements
FEW = (2, 3)
INITIALLY = "initially"


@frozen
class Options:
    """seed: of z3's choices. resources: z3's resource units for each query, which do not depend on the machine."""

    seed: int = 0
    resources: int = RESOURCES

    def __attrs_post_init__(self) -> None:
        if not 0 < self.resources < 2**32:
            raise RuleError(f"a resource limit of {self.resources} leaves nothing to prove with; give 1 to {2**32 - 1}")


def resources_of(solver: Any) -> int:
    """The resource units that a solver's context has spent."""
    return sum(int(value) for key, value in solver.statistics() if key == "rlimit count")


@frozen
class _Attempt:
    """A way to put a query. some: with the invariants alone that it should rest on. few: in so small a world."""

    resources: int
    some: bool = False
    few: int = 0


def _attempts(most: int, *, doubtful: bool) -> tuple[_Attempt, ...]:
    """Cheap ones first, and each again with more: a proof that was missed is mostly found sooner by starting anew.

    doubtful: a counterexample is to be expected, and no great effort made where neither it nor a proof is found.
    """
    quick, longer = min(QUICK, most), min(5 * QUICK, most)
    small = [_Attempt(longer, few=n) for n in FEW]
    proofs = [_Attempt(resources, some=some) for resources in (quick, longer, most) for some in (True, False)]
    return (*proofs[:1], *small, proofs[3]) if doubtful else (*proofs[:2], *small, *proofs[2:])


@frozen
class Obligation:
    """One query and its outcome.

    action: the action's name, or "initially". used: names of the invariants, and the text of the guards, that the
    proof needed. resources: what z3 spent.
    """

    property: str
    action: str
    verdict: Verdict
    used: tuple[str, ...] = ()
    resources: int = 0
    counterexample: Counterexample | None = field(default=None, repr=False)
    reason: str = ""


@frozen
class Proof:
    """All obligations of a model without some protections.

    possible: for each action, whether some state that satisfies all invariants allows it. An obligation over an action
    that nothing allows would say nothing. Empty if only some properties were asked for.
    """

    model: Model
    without: frozenset[str]
    obligations: tuple[Obligation, ...]
    possible: dict[str, Verdict] = field(factory=dict)

    @property
    def verdict(self) -> Verdict:
        return worst(o.verdict for o in self.obligations)

    def of(self, prop: str) -> tuple[Obligation, ...]:
        return tuple(o for o in self.obligations if o.property == prop)

    def verdict_of(self, prop: str) -> Verdict:
        """Of a property with all that it rests on: it is proved only if every invariant that its proof used is."""
        own = worst(o.verdict for o in self.of(prop))
        if own is not Verdict.PROVED:
            return own
        return Verdict.PROVED if not self.unproved_basis(prop) else Verdict.NOT_INDUCTIVE

    def basis(self, prop: str) -> tuple[str, ...]:
        """The invariants that a proof used, those that their proofs used, and so on."""
        found: dict[str, None] = {}
        todo = [prop]
        while todo:
            used = {name for o in self.of(todo.pop()) for name in o.used if not name.startswith("guard: ")}
            todo += sorted(used - found.keys())
            found.update(dict.fromkeys(sorted(used)))
        return tuple(found)

    def unproved_basis(self, prop: str) -> tuple[str, ...]:
        """Those of the basis that are not proved themselves."""
        return tuple(
            name
            for name in self.basis(prop)
            if any(o.verdict is not Verdict.PROVED for o in self.of(name)) or not self.of(name)
        )


Report = Callable[[Obligation, int, int], None]


def prove(
    model: Model,
    *,
    without: Iterable[str] = (),
    properties: Iterable[str] | None = None,
    options: Options | None = None,
    report: Report | None = None,
) -> Proof:
    """Prove the invariants and step invariants of a model for all sizes.

    properties: names of those to prove, and with them every invariant that their proofs turn out to use. report: called
    after each obligation with how many are done and how many there are.
    """
    prover = Prover(model, frozenset(model.protection_named(name).name for name in without), options or Options())
    ranges = {p.name: p for p in range_invariants(model)}
    wanted = None if properties is None else [ranges.get(n) or _provable(model.property_named(n)) for n in properties]
    done: list[Obligation] = []
    todo = list(prover.tasks(wanted))
    total = len(todo)
    while todo:
        for prop, action in todo:
            done.append(prover.initially(prop) if action is None else prover.step(prop, action))
            if report is not None:
                report(done[-1], len(done), total)
        todo = list(prover.tasks(_still_to_prove(prover, done)))
        total += len(todo)
    actions = [] if properties is not None else [action for action in model.actions if not is_fault(action)]
    return Proof(model, prover.without, tuple(done), {action.name: prover.can_fire(action) for action in actions})


def _provable(prop: Property) -> Property:
    if prop.kind not in (INVARIANT, STEP):
        raise RuleError(f"{prop.name} says what can happen, which induction cannot show; use onestart explore")
    return prop


def _still_to_prove(prover: Prover, done: list[Obligation]) -> list[Property]:
    """Invariants that some proof has used and that have no obligations of their own yet."""
    used = {name for o in done for name in o.used}
    proved = {o.property for o in done}
    return [p for p in prover.invariants if p.name in used - proved]


def range_invariants(model: Model) -> tuple[Property, ...]:
    """That every number stays within its declared bounds: stated for the proof, because z3's integers have none."""
    return tuple(
        _range(model, function)
        for function in model.schema.functions
        if isinstance(function.type, NumberType | StampType) and function.home != FIXED
    )


def _range(model: Model, function: Function) -> Property:
    variables = tuple(Variable(f"x{i}", sort, "range") for i, sort in enumerate(function.arguments))
    value = Read(function.name, variables, function.type)
    body: Node = Apply("le", (Literal(0, function.type), value), BOOL)
    if function.upto is not None:
        body = conjunction((body, Apply("le", (value, function.upto), BOOL)))
    for variable in reversed(variables):
        body = Quantified("all", variable, body)
    statement = f"{function.name} stays within its declared bounds."
    return Property(f"range_of_{function.name}", statement, "", INVARIANT, body, "", True, frozenset(), model.schema)


class Prover:
    """The queries of a model, in one z3 context. doubtful: most of them are expected to fail."""

    def __init__(self, model: Model, without: frozenset[str], options: Options, *, doubtful: bool = False) -> None:
        self.model, self.without, self._options = model, without, options
        self._attempts = _attempts(options.resources, doubtful=doubtful)
        self._words = Vocabulary(model, without)
        self.invariants = (*range_invariants(model), *model.of_kind(INVARIANT))
        self._assumed = {p.name: self._words.term(p.condition, {}) for p in self.invariants}
        self._counted = 0
        self._context = [self._words.limit(name) >= 0 for name in model.limits]
        self._context += [self._words.term(p.condition, {}) for p in model.assumptions]

    def tasks(self, wanted: list[Property] | None) -> Iterable[tuple[Property, Action | None]]:
        """Every obligation that is not trivially true because the action changes nothing that the property reads."""
        properties = (*self.invariants, *self.model.of_kind(STEP)) if wanted is None else tuple(wanted)
        for prop in properties:
            if prop.kind == INVARIANT:
                yield prop, None
            trivial = prop.kind == INVARIANT or self._holds_of_stuttering(prop)
            for action in self.model.actions:
                if prop.concerns(action) and not (trivial and not self._touches(prop, action)):
                    yield prop, action

    def _touches(self, prop: Property, action: Action) -> bool:
        reads = (node for node in walk(prop.condition) if isinstance(node, Read))
        return bool({n.function for n in reads if n.after or prop.kind != STEP} & set(action.written))

    def _holds_of_stuttering(self, prop: Property) -> bool:
        """Whether a step invariant holds of every step that changes nothing it reads of the state after."""
        solver = self._solver()
        solver.add(z3.Not(self._words.term(prop.condition, {}, self._words.before)))
        return bool(solver.check() == z3.unsat)

    def _decided(self, ask: Callable[[Any, Container[str]], Any], first: Iterable[str]) -> tuple[Any, Any, Any]:
        """A query's result, the solver that has it, and what `ask`, which puts the query to a solver, has returned.

        first: the invariants to try with before all; without the rest, only a proof counts.
        """
        every, some = {p.name for p in self.invariants}, set(first)
        for attempt in self._attempts:
            if attempt.some and not some:
                continue
            solver = self._solver(attempt.resources)
            asked = ask(solver, some if attempt.some else every)
            if attempt.few:
                solver.add(*self._few_elements(attempt.few))
            result = solver.check()
            if (result == z3.sat and not attempt.some) or (result == z3.unsat and not attempt.few):
                break
        return result, solver, asked

    def _few_elements(self, most: int) -> list[Any]:
        """That no sort has more than so many elements."""
        closed = []
        for kind in self.model.schema.sorts:
            sort = self._words.sort(kind)
            any_ = z3.Const(f"any!{kind}", sort)
            every = [z3.Const(f"one!{kind}{number}", sort) for number in range(most)]
            closed.append(z3.ForAll([any_], z3.Or([any_ == one for one in every])))
        return closed

    def _solver(self, resources: int | None = None) -> Any:
        solver = z3.SimpleSolver(self._words.context)
        solver.set("random_seed", self._options.seed)
        solver.set("rlimit", self._options.resources if resources is None else resources)
        solver.set("core.minimize", True)
        solver.add(*self._context)
        return solver

    def initially(self, prop: Property) -> Obligation:
        """The property holds in every initial state."""
        solver = self._solver()
        solver.add(z3.Not(self._words.term(after_the_step(prop.condition), {}, self._initial)))
        result = solver.check()
        if result == z3.unsat:
            return Obligation(prop.name, INITIALLY, Verdict.PROVED, (), self._spent(solver))
        reason = solver.reason_unknown() if result == z3.unknown else "an initial state breaks it"
        verdict = Verdict.UNDETERMINED if result == z3.unknown else Verdict.REFUTED
        return Obligation(prop.name, INITIALLY, verdict, (), self._spent(solver), None, reason)

    def _initial(self, name: str, arguments: tuple[Term, ...]) -> Term:
        function = self.model.schema[name]
        if function.home == FIXED:
            return self._words.before(name, arguments)
        return self._words.term(Literal(function.initial, function.type), {})

    def step(self, prop: Property, action: Action) -> Obligation:
        """The property holds after (or of) every step of the action from a state where all invariants hold."""
        bindings = {p: self._words.constant(f"the.{p.name}", p.type) for p in action.parameters}
        after = self._words.after(action, bindings)
        goal = prop.condition if prop.kind == STEP else after_the_step(prop.condition)
        broken = z3.Not(self._words.term(goal, bindings, after))

        def ask(solver: Any, names: Container[str]) -> dict[str, str]:
            solver.add(broken)
            return self._assume(solver, action, bindings, names)

        result, solver, tracked = self._decided(ask, (prop.name, *prop.rests_on) if prop.rests_on else ())
        if result == z3.unsat:
            used = tuple(tracked[str(literal)] for literal in solver.unsat_core())
            return Obligation(prop.name, action.name, Verdict.PROVED, tuple(sorted(used)), self._spent(solver))
        if result == z3.unknown:
            reason = solver.reason_unknown()
            return Obligation(prop.name, action.name, Verdict.UNDETERMINED, (), self._spent(solver), None, reason)
        return self._not_inductive(prop, action, bindings, solver)

    def _after(self, machine: Machine, state: State, step: Step) -> State | None:
        """The successor; None if a number leaves its bounds, which is what the counterexample then shows."""
        try:
            return machine.successor(state, step)
        except RuleError:
            return None

    def can_fire(self, action: Action) -> Verdict:
        """Whether some state that satisfies all invariants enables the action; proved if so."""
        bindings = {p: self._words.constant(f"the.{p.name}", p.type) for p in action.parameters}
        result, _, _ = self._decided(lambda solver, names: self._assume(solver, action, bindings, names), ())
        if result == z3.unknown:
            return Verdict.UNDETERMINED
        return Verdict.PROVED if result == z3.sat else Verdict.REFUTED

    def _spent(self, solver: Any) -> int:
        """Resource units since the last call: z3 counts them for the whole context."""
        before, self._counted = self._counted, resources_of(solver)
        return self._counted - before

    def _assume(
        self, solver: Any, action: Action, bindings: dict[Variable, Term], names: Container[str]
    ) -> dict[str, str]:
        tracked = {}
        for prop in (p for p in self.invariants if p.name in names):
            tracked[f"i.{prop.name}"] = prop.name
            solver.assert_and_track(self._assumed[prop.name], f"i.{prop.name}")
        for number, guard in enumerate(action.guards):
            tracked[f"g.{number}"] = f"guard: {show(guard.condition)}"
            solver.assert_and_track(self._words.term(guard.condition, bindings), f"g.{number}")
        return tracked

    def _not_inductive(self, prop: Property, action: Action, bindings: dict[Variable, Term], solver: Any) -> Obligation:
        found = Countermodel(self._words, solver.model())
        state, step = found.state(self.without), Step(action.name, found.arguments(action, bindings))
        machine = Machine(state.instance)
        if any(not machine.holds(p, state) for p in self.model.of_kind(INVARIANT)) or machine.why_not(state, step):
            reason = "z3's model is not a state that satisfies the assumptions"
            return Obligation(prop.name, action.name, Verdict.UNDETERMINED, (), self._spent(solver), None, reason)
        trace, after = None, self._after(machine, state, step)
        if prop in self.model.properties and after is not None:
            trace = Counterexample.of(
                state.instance, [state, after], [step], broken=prop.name, source="proof", inductive=True
            )
        return Obligation(prop.name, action.name, Verdict.NOT_INDUCTIVE, (), self._spent(solver), trace)


def after_the_step(condition: Node) -> Node:
    """A state property, read of the state after the step."""
    match condition:
        case Read(indices=indices):
            return evolve(condition, indices=tuple(map(after_the_step, indices)), after=True)
        case Apply(operands=operands):
            return evolve(condition, operands=tuple(map(after_the_step, operands)))
        case Quantified(body=body):
            return evolve(condition, body=after_the_step(body))
        case _:
            return condition
