"""Whether answers to concurrent submissions can be put in an order: against a search through all orders."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from onestart import Answer, Outcome, Reason
from onestart_conformance.linearizability import OPEN, Operation, linearizable

ANSWERS = (
    None,
    Answer("k", Outcome.STARTED, Reason.CREATED),
    Answer("k", Outcome.STARTED, Reason.ALREADY_DISPATCHED),
    Answer("k", Outcome.STARTED, Reason.REPLAY),
    Answer("k", Outcome.CLOSED, Reason.STALE_REVISION),
    Answer("k", Outcome.CLOSED, Reason.SETTLED),
    Answer("k", Outcome.HELD, Reason.LEASE_CONFLICT),
    Answer("k", Outcome.TURNED_AWAY, Reason.CONFLICT),
)


def possible(state: str, answer: Answer | None) -> list[str]:
    """What the key may be after an operation with this answer; nothing if it could not have given it."""
    if answer is None or answer.outcome is Outcome.HELD:
        return [state] if state != "new" else ["new", "started", "closed"]
    if answer.outcome is Outcome.TURNED_AWAY:
        return [state]
    if answer.reason is Reason.SETTLED:
        return ["started", "closed"] if state == "new" else [state]
    if answer.outcome is Outcome.CLOSED:
        return ["closed"] if state in ("new", "closed") else []
    if answer.reason is Reason.CREATED:
        return ["started"] if state == "new" else []
    return ["started"] if state == "started" else []


def by_search(operations: list[Operation]) -> bool:
    """Every order that respects real time, every outcome of what is open."""
    for order in permutations(operations):
        if any(b.answered < a.called for i, a in enumerate(order) for b in order[i + 1 :]):
            continue
        states = {"new"}
        for operation in order:
            states = {after for state in states for after in possible(state, operation.answer)}
        if states:
            return True
    return False


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Up to five operations with any overlap; those without an answer never end."""
    count = draw(st.integers(1, 5))
    times = draw(st.permutations(range(2 * count)))
    operations = []
    for number in range(count):
        called, answered = sorted(times[2 * number : 2 * number + 2])
        answer = draw(st.sampled_from(ANSWERS))
        operations.append(Operation("k", called, OPEN if answer is None else answered, answer))
    return operations


@given(histories())
def test_it_agrees_with_a_search_through_all_orders(operations: list[Operation]) -> None:
    """The shortcut decides exactly what the definition says."""
    assert linearizable(operations) == by_search(operations)


def test_two_creations_have_no_order() -> None:
    """The violation that matters most is one."""
    created = ANSWERS[1]
    assert linearizable([Operation("k", 0, 3, created)])
    assert not linearizable([Operation("k", 0, 3, created), Operation("k", 1, 2, created)])


def test_a_settled_start_may_come_to_light_again() -> None:
    """An operator settles what nobody can tell any more; a start that was made before is no second one."""
    unsure, seen, settled = (Answer("k", Outcome.HELD, Reason.IN_DOUBT), ANSWERS[2], ANSWERS[5])
    assert settled is not None
    assert settled.reason is Reason.SETTLED
    before = Operation("k", 0, 1, unsure)
    assert linearizable([before, Operation("k", 2, 3, settled), Operation("k", 4, 5, seen)])
    assert not linearizable([Operation("k", 2, 3, settled), Operation("k", 4, 5, ANSWERS[1])])


def test_nobody_sees_a_start_before_anybody_could_have_started() -> None:
    """An answer that precedes the call of the one that started the key cannot have seen it."""
    assert not linearizable([Operation("k", 0, 1, ANSWERS[2]), Operation("k", 2, 3, ANSWERS[1])])
    assert linearizable([Operation("k", 0, 2, ANSWERS[2]), Operation("k", 1, 3, ANSWERS[1])])
