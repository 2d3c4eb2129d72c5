"""What z3 gives as a counterexample, read as a state and a step of the model."""

from __future__ import annotations

from typing import Any

import z3

from onestart_model.execution import State
from onestart_model.expression import (
    NUMBER,
    EnumType,
    MaybeType,
    SortType,
    StampType,
    Type,
    Value,
    Variable,
)
from onestart_model.instance import Instance
from onestart_model.rules import Action
from onestart_proofs.smt import Optional, Term, Vocabulary


class Countermodel:
    """Reads a state out of a z3 model, whose universes are finite."""

    def __init__(self, words: Vocabulary, model: Any) -> None:
        self._words, self._model = words, model
        self._universe = {sort: self._elements(sort) for sort in words.model.schema.sorts}

    def _elements(self, sort: SortType) -> list[Any]:
        declared = self._words.sort(sort)
        found = self._model.get_universe(declared) if self._model.num_sorts() else None
        return list(found) if found else [z3.Const(f"only.{sort}", declared)]

    def _value(self, kind: Type, term: Term) -> Value:
        if isinstance(kind, MaybeType):
            assert isinstance(term, Optional)
            present = z3.is_true(self._model.eval(term.present, model_completion=True))
            return self._index(kind.of, term.element) if present else None
        if isinstance(kind, SortType):
            return self._index(kind, term)
        value = self._model.eval(term, model_completion=True)
        if isinstance(kind, EnumType):
            return str(value).rpartition(".")[2]
        number = kind == NUMBER or isinstance(kind, StampType)
        return int(value.as_long()) if number else bool(z3.is_true(value))

    def _index(self, sort: SortType, term: Any) -> int:
        elements = self._universe[sort]
        value = self._model.eval(term, model_completion=True)
        return next((i for i, e in enumerate(elements) if e.eq(value)), 0)

    def state(self, without: frozenset[str]) -> State:
        words = self._words
        sizes = {sort.name: len(elements) for sort, elements in self._universe.items()}
        limits = {
            name: self._model.eval(words.limit(name), model_completion=True).as_long() for name in words.model.limits
        }
        instance = Instance.of(words.model, sizes=sizes, limits=limits, without=without)
        rows = []
        for function in words.model.schema.functions:
            row = []
            for arguments in instance.arguments(function):
                places = tuple(self._universe[s][i] for s, i in zip(function.arguments, arguments, strict=True))
                row.append(self._value(function.type, words.before(function.name, places)))
            rows.append(tuple(row))
        return State(instance, tuple(rows))

    def arguments(self, action: Action, bindings: dict[Variable, Term]) -> tuple[Value, ...]:
        return tuple(self._value(p.type, bindings[p]) for p in action.parameters)
