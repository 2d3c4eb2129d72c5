"""The model's rules as a judge asks them: may this step be taken, which protection forbids it, what would it break?

Everything is read from the rules; nothing is decided here.
"""

from __future__ import annotations

from functools import lru_cache

from onestart_model.execution import Machine, State, Step, renumber_stamps
from onestart_model.expression import RuleError
from onestart_model.instance import Instance
from onestart_model.rules import INVARIANT, STEP

CACHED = 200_000


class Rules:
    """An instance of the model with memory of the steps that were asked for before. cached: of how many."""

    def __init__(self, instance: Instance, cached: int = CACHED) -> None:
        self.instance = instance
        self.machine = Machine(instance)
        self._promises = [p for p in instance.model.of_kind(INVARIANT, STEP) if not p.supporting]
        self.apply = lru_cache(cached)(self._apply)
        self._variants: dict[str, Machine] = {}

    def initial(self) -> State:
        """The initial state; the instance fixes all that is fixed."""
        return next(self.machine.initial_states())

    def _apply(self, state: State, step: Step) -> State | None:
        """The state after the step with its stamps renumbered, so that equal states are equal; None if not enabled."""
        if self.machine.why_not(state, step) is not None:
            return None
        return renumber_stamps(self.machine.successor(state, step))

    def enabled(self, state: State, step: Step) -> bool:
        return self.apply(state, step) is not None

    def why_not(self, state: State, step: Step) -> str:
        return self.machine.why_not(state, step) or "it is enabled"

    def forbidden_by(self, state: State, step: Step) -> tuple[str, ...]:
        """The protections without which, one by one, the step would be allowed."""
        names = (protection.name for protection in self.instance.model.protections)
        return tuple(name for name in names if self.without(name).why_not(state, step) is None)

    def forbidden_only_by(self, protection: str, state: State, step: Step) -> bool:
        """Whether nothing but this protection stands in the way of the step."""
        return not self.enabled(state, step) and self.without(protection).why_not(state, step) is None

    def forced(self, state: State, step: Step, protection: str = "") -> State:
        """The state after a step that is not allowed, as far as that has a meaning."""
        machine = self.without(protection) if protection else self.machine
        try:
            return machine.successor(state, step)
        except RuleError:
            return state

    def broken(self, state: State, after: State) -> str:
        """The first promise that the step from one state to the other breaks, empty if none."""
        for promise in self._promises:
            before = state if promise.kind == STEP else after
            if not self.machine.holds(promise, before, after):
                return promise.name
        return ""

    def without(self, protection: str) -> Machine:
        """The machine of the model without a protection."""
        if protection not in self._variants:
            i = self.instance
            variant = Instance(i.model, i.sizes, i.limits, i.budgets, i.without | {protection}, i.fixed)
            self._variants[protection] = Machine(variant)
        return self._variants[protection]
