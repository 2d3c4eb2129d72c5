"""A seeded fault: the library with one thing wrong, patched from outside, and who has to notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from attrs import frozen

from onestart_conformance.judgement import Objection

Patch = tuple[Any, str, Any]

# Promises that several faults put at stake.
ONE_START = "one_key_at_most_one_start"
NO_START = "no_start_after_refusal_or_cancellation"
BYTES_STAY = "bytes_are_never_destroyed"


@frozen
class Fault:
    """promise: of the model, that is at stake. oracle: which one must object.

    protection: the one that the oracle must miss, if it can tell. patches: what is put in place of what, made anew for
    each run. uses: kinds of moves without which it cannot show. careless: an operator does not look first. A fault that
    removes a protection of the model bears its name.
    """

    name: str
    statement: str
    promise: str
    oracle: str
    patches: Callable[[], list[Patch]]
    protection: str = ""
    uses: tuple[str, ...] = ()
    careless: bool = False

    def caught_by(self, objection: Objection | None) -> bool:
        """Whether this is the objection that the fault must draw."""
        if objection is None or objection.oracle != self.oracle:
            return False
        return self.protection in objection.protections if self.protection else not objection.protections

    @contextmanager
    def seeded(self) -> Iterator[None]:
        """The library with the fault in it, for a while."""
        with ExitStack() as stack:
            for target, name, value in self.patches():
                stack.enter_context(_put(target, name, value))
            yield


@contextmanager
def _put(target: Any, name: str, value: Any) -> Iterator[None]:
    before = target.__dict__[name]
    setattr(target, name, value)
    try:
        yield
    finally:
        setattr(target, name, before)


@contextmanager
def seeded(fault: Fault | None) -> Iterator[None]:
    """With a fault, or without any."""
    if fault is None:
        yield
        return
    with fault.seeded():
        yield
