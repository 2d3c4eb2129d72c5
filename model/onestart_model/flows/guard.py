"""The guard: which calls are refused, and when. Every rule that admits or refuses decides on these statements."""

from __future__ import annotations

from onestart_model import NONE, Bool, forall, protected
from onestart_model.flows.state import EFFECTS, ON_THEIR_OWN, Call, Driver, Entry, Id, Kind, Stage, State


def holds(s: State, x: Id) -> Bool:
    """The journal shows that the id is taken: by an indexed call, a parked wait or an unfinished child flow."""
    apart = s.filed[x].one_of(*ON_THEIR_OWN)
    ended = (s.entry[x] == Entry.COMPLETED) & (~apart | protected("effects-indexed"))
    indexed = s.filed[x].one_of(*EFFECTS, Kind.HOOK) & (~apart | protected("effects-indexed"))
    shown = (
        (indexed & protected("index-at-admission"))
        | ((s.filed[x] == Kind.HUMAN) & protected("waits-hold"))
        | ((s.filed[x] == Kind.DISPATCH) & protected("dispatches-hold"))
    )
    return ended | ((s.entry[x] == Entry.ADMITTED) & shown)


def differs(s: State, c: Call, x: Id) -> Bool:
    """What is filed under the id asked for something else than the call does."""
    return (s.entry[x] != Entry.ABSENT) & (s.asked[x] != s.asks[c])


def mismatch(s: State, c: Call, x: Id) -> Bool:
    """serial_replay_order_mismatch: the id is held by another kind, or by a wait with another question or recipient."""
    marker = s.kind[c] == Kind.MARKER
    checked = (marker & protected("marker-checked")) | (~marker & protected("ordinal-kind"))
    question = (s.kind[c] == Kind.HUMAN) & (s.filed[x] == Kind.HUMAN) & differs(s, c, x)
    return (holds(s, x) & (s.filed[x] != s.kind[c]) & checked) | (question & protected("question-bound"))


def conflict(s: State, c: Call, x: Id) -> Bool:
    """run_admission_conflict: the same kind was admitted under the id with another spec, a hook with another input."""
    hook = s.kind[c] == Kind.HOOK
    other = ~s.kind[c].one_of(Kind.HOOK, Kind.HUMAN)
    bound = (hook & protected("hook-input-bound")) | (other & protected("spec-bound"))
    return (s.filed[x] == s.kind[c]) & differs(s, c, x) & bound


def skips(s: State, d: Driver, x: Id) -> Bool:
    """The verdict's watermark would move the counter past an ordinal that is held and that nobody has claimed.

    The calls that the hook made itself are not made again, so theirs are passed over.
    """

    def unclaimed(y: Id) -> Bool:
        own = s.within[y, x] & protected("hook-calls-pass")
        return s.passed[x, y] & (s.claimed[d, y] == NONE) & holds(s, y) & ~own

    return ~forall(Id, lambda y: ~unclaimed(y))


def passes_over(s: State, d: Driver, x: Id) -> Bool:
    """The verdict comes before a call that came before it when it was recorded, and that the hook did not make."""

    def missed(y: Id) -> Bool:
        return s.passed[x, y] & (s.claimed[d, y] == NONE) & (s.entry[y] != Entry.ABSENT) & ~s.within[y, x]

    return ~forall(Id, lambda y: ~missed(y))


def free_to_go(s: State, d: Driver, c: Call) -> Bool:
    """All that comes before the call is done, the hook that makes it is under way, and the body is not over."""
    after_all = forall(Call, lambda b: ~s.before[b, c] | (s.stage[d, b] == Stage.DONE))
    in_hook = forall(Call, lambda h: (s.part_of[c] != h) | (s.stage[d, h] == Stage.ENTERED))
    open_ = forall(Call, lambda m: (s.kind[m] != Kind.MARKER) | (s.stage[d, m] == Stage.IDLE))
    return s.active[d] & (s.stage[d, c] == Stage.IDLE) & after_all & in_hook & open_


def has_got(s: State, d: Driver, c: Call, x: Id, *stages: Stage) -> Bool:
    """The call is filed under the id in this attempt, and has got exactly this far."""
    return (s.taken[d, c] == x) & s.stage[d, c].one_of(*stages)


def reorders(s: State, c: Call, x: Id) -> Bool:
    """The id is not the one under which the call is on record, or is on record for another call."""

    def elsewhere(y: Id) -> Bool:
        return (s.filed_for[y] == c) & (y != x)

    others = forall(Call, lambda o: (s.filed_for[x] != o) | (o == c))
    return ~others | ~forall(Id, lambda y: ~elsewhere(y))
