"""What a program is: the assumptions on its calls, their causal order, and their ids.

A program is the same in every attempt: the same calls in the same causal order, each asking for the same. A question
that is built from the time of day makes another program.
"""

from __future__ import annotations

from onestart_model import NONE, Bool, assumption, forall, implies
from onestart_model.flows.state import Call, Id, Kind, State


@assumption(source="serial ordinals, follow-up: the causal frontier")
def the_causal_order_is_partial(s: State) -> Bool:
    """What comes before a call does not come after it."""
    transitive = forall(
        Call, lambda a: forall(Call, Call, lambda b, c: implies(s.before[a, b] & s.before[b, c], s.before[a, c]))
    )
    return transitive & forall(Call, lambda c: ~s.before[c, c])


@assumption(source="serial ordinals, mechanism: one ordinal counter")
def ordinals_have_an_order(s: State) -> Bool:
    """The counter gets to one of two ordinals first."""
    total = forall(Id, Id, lambda x, y: implies(s.ordinal[x] & s.ordinal[y], (x == y) | s.below[x, y] | s.below[y, x]))
    one_way = forall(Id, Id, lambda x, y: ~(s.below[x, y] & s.below[y, x]))
    return total & one_way


@assumption(source="serial ordinals, follow-up: sorted causal predecessors and the ordinal in that frontier")
def an_id_of_its_own_belongs_to_one_call(s: State) -> Bool:
    """Ids that follow from causal predecessors are no ordinals, and two calls never get the same."""
    apart = forall(Id, lambda x: forall(Call, Call, lambda c, o: implies((s.own[c] == x) & (s.own[o] == x), c == o)))
    return apart & forall(Call, Id, lambda c, x: implies(s.own[c] == x, ~s.ordinal[x]))


@assumption(source="serial ordinals, gaps: identical specs")
def what_is_unlike_any_other_can_be_told(s: State) -> Bool:
    """A call is unlike any other only if none of its kind asks for the same, and the hook that makes it can be told."""

    def told(c: Call, o: Call) -> Bool:
        differ = (s.kind[o] != s.kind[c]) | (s.asks[o] != s.asks[c])
        return implies(o != c, differ) & implies(s.part_of[c] == o, s.unlike[o] | (s.own[o] != NONE))

    return forall(Call, Call, lambda c, o: implies(s.unlike[c], told(c, o)))


@assumption(source="serial ordinals, mechanism: hooks")
def hooks_make_calls(s: State) -> Bool:
    """A call that is part of another is part of a hook; and every call is of some kind."""
    by_hooks = forall(Call, Call, lambda c, h: implies(s.part_of[c] == h, s.kind[h] == Kind.HOOK))
    return by_hooks & forall(Call, lambda c: s.kind[c] != Kind.NOTHING)
