"""Histories of concurrent submissions: is there an order in which one after the other they explain their answers?

The specification is an object for each key, one submission at a time: whichever starts the key is the first and only
one to have created the start; from the first recorded result on, everybody gets it. Answers that bind nobody (turned
away, held) fit anywhere. Searched as by Wing and Gong (1993), with the visited configurations remembered (Lowe, 2017).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from onestart import Answer, Outcome, Reason
from onestart_conformance.judgement import ORDER, Objection

if TYPE_CHECKING:
    from onestart_conformance.world import World

OPEN = 1 << 60


@frozen
class Operation:
    """called and answered: places in the history; an operation without an answer may have happened at any time, or not.

    answer: None if there is none.
    """

    key: str
    called: int
    answered: int
    answer: Answer | None


@frozen
class KeyState:
    """What the sequential object remembers of a key."""

    started: bool = False
    closed: bool = False


def after(state: KeyState, answer: Answer) -> KeyState | None:
    """The object's state after an operation with this answer, None if it could not have given it."""
    if answer.outcome is Outcome.TURNED_AWAY:
        return state
    if answer.outcome is Outcome.CLOSED:
        return None if state.started else KeyState(closed=True)
    if state.closed:
        return None
    if answer.reason is Reason.CREATED:
        return None if state.started else KeyState(started=True)
    return KeyState(started=True) if state.started else None


def unanswered(state: KeyState) -> Iterable[KeyState]:
    """What an operation may have come to that has no answer, or one that leaves it open."""
    yield state
    if not state.closed and not state.started:
        yield KeyState(started=True)
        yield KeyState(closed=True)


def linearizable(operations: Iterable[Operation]) -> bool:
    """Whether some order that respects who had an answer before whom was called explains every answer."""
    every = tuple(sorted(operations, key=lambda o: o.called))
    stack: list[tuple[frozenset[int], KeyState]] = [(frozenset(range(len(every))), KeyState())]
    visited = set(stack)
    while stack:
        left, state = stack.pop()
        if all(every[i].answer is None for i in left):
            return True
        first_answer = min(every[i].answered for i in left)
        for i in (i for i in left if every[i].called < first_answer):
            for following in _following(state, every[i].answer):
                configuration = (left - {i}, following)
                if configuration not in visited:
                    visited.add(configuration)
                    stack.append(configuration)
    return False


def _following(state: KeyState, answer: Answer | None) -> Iterable[KeyState]:
    if answer is None or answer.outcome is Outcome.HELD:
        return unanswered(state)
    following = after(state, answer)
    return () if following is None else (following,)


def check_histories(world: World) -> Objection | None:
    """An objection if the answers of some key cannot be put in an order."""
    for key, operations in _operations(world).items():
        if not linearizable(operations):
            answers = ", ".join(str(o.answer.reason) for o in operations if o.answer is not None)
            return Objection(ORDER, f"no order explains the answers for {key}: {answers}")
    return None


def _operations(world: World) -> Mapping[str, list[Operation]]:
    answers = {number: (at, answer) for at, (what, number, answer) in enumerate(world.history) if what == "answer"}
    by_key: dict[str, list[Operation]] = {}
    for at, (what, number, _) in enumerate(world.history):
        call = world.calls[number]
        if what != "call" or call.name not in ("submit", "cancel", "recover"):
            continue
        done, answer = answers.get(number, (OPEN, None))
        if call.name == "recover":
            for key in world.keys:  # it may have submitted any of them
                by_key.setdefault(key, []).append(Operation(key, at, OPEN, None))
        elif isinstance(answer, Answer | None):
            by_key.setdefault(call.key, []).append(Operation(call.key, at, done, answer))
    return by_key
