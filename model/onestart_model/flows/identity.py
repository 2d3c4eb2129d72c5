"""Identity: which id a call takes.

Version 2 has one counter: a call takes the next ordinal when it is made, so arrival order decides. Version 3 derives
the id from the call's causal predecessors, so arrival order takes no part; where they cannot be known, a call takes an
ordinal after all. A root of version 2 is one in which they are known of no call.
"""

from __future__ import annotations

from onestart_model import NONE, Bool, forall, protected
from onestart_model.flows.state import Call, Driver, Id, Stage, State


def known(s: State, c: Call) -> Bool:
    """The call's causal predecessors are known, and make its id."""
    return (s.own[c] != NONE) & protected("stable-ids")


def counted(s: State, x: Id) -> Bool:
    """The id is an ordinal of the counter; all are, if no call has an id of its own."""
    return s.ordinal[x] | ~protected("stable-ids")


def lower(s: State, x: Id, y: Id) -> Bool:
    """The counter gets to the first id before the second."""
    return s.below[x, y]


def next_ordinal(s: State, d: Driver, x: Id) -> Bool:
    """The lowest ordinal that the attempt's counter has not passed."""

    def further(y: Id) -> Bool:
        return (y == x) | ~counted(s, y) | (s.claimed[d, y] != NONE) | lower(s, x, y)

    return counted(s, x) & (s.claimed[d, x] == NONE) & forall(Id, further)


def takes(s: State, d: Driver, c: Call, x: Id) -> Bool:
    """The call would take this id if it were made now."""
    return (known(s, c) & (s.own[c] == x)) | (~known(s, c) & next_ordinal(s, d, x))


def has_turn(s: State, d: Driver, x: Id) -> Bool:
    """No lower ordinal is claimed by a call that was not admitted yet."""

    def waits(o: Call, y: Id) -> Bool:
        return (s.taken[d, o] == y) & (s.stage[d, o] == Stage.DECLARED) & counted(s, y) & lower(s, y, x)

    return ~counted(s, x) | forall(Call, Id, lambda o, y: ~waits(o, y))
