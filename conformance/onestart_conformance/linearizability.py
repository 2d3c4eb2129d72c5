"""Histories of concurrent submissions: is there an order in which one after the other they explain their answers?

The specification is an object for each key, one submission at a time. The one that starts the key is told that it
created the start, all later ones that it is started; once closed, everybody is told so. Whoever is turned away fits
anywhere; one that is held, or has no answer, may have started or closed the key without being able to say so. An
operator may settle a key that was started, and if the settlement is lost, the start may come to light again.

For this object the search of Wing and Gong (1993) is not needed: there is at most one place where the key is started,
and an order exists if somebody can have been there before everybody who saw it started. A test compares the two.
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


def linearizable(operations: Iterable[Operation]) -> bool:
    """Whether some order that respects who had an answer before whom was called explains every answer."""
    every = list(operations)
    told = [(o, o.answer) for o in every if o.answer is not None]
    started = [o for o, answer in told if answer.outcome is Outcome.STARTED]
    created = [o for o, answer in told if answer.reason is Reason.CREATED]
    settled = [o for o, answer in told if Reason.SETTLED in (answer.reason, answer.result and answer.result.reason)]
    closed = any(answer.outcome is Outcome.CLOSED for o, answer in told if o not in settled)
    if not started:
        return True  # whoever was told that it is closed can have closed it
    if closed or len(created) > 1:
        return False
    silent = [o for o in every if o.answer is None or o.answer.outcome is Outcome.HELD]
    starters = created or silent + settled  # whoever started it may be told of the settlement instead
    saw = [o.answered for o in (*started, *settled) if o not in created]
    return bool(starters) and all(min(o.called for o in starters) < answered for answered in saw)


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
