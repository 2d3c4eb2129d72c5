"""Hooks: a verdict, the calls that a hook makes itself, and the watermark with which a verdict is replayed."""

from __future__ import annotations

from onestart_model import NONE, Bool, action, forall, implies, ite, protected, require
from onestart_model.flows.effects import deliver
from onestart_model.flows.guard import has_got, passes_over, skips
from onestart_model.flows.identity import counted
from onestart_model.flows.state import Call, Driver, Entry, Id, Kind, Stage, State


@action(source="serial ordinals, the fix: hook watermarks")
def decide(s: State, d: Driver, c: Call, x: Id) -> None:
    """A hook gives its verdict, which is recorded with the ordinals that are passed by then.

    Only those on record count: one that is declared and never admitted may be another call's in a resume. And only a
    hook that is itself counted moves the counter: one with an id of its own, as in a child flow, has no place in it.
    """
    calls_done = forall(Call, lambda o: implies(s.part_of[o] == c, s.stage[d, o].one_of(Stage.IDLE, Stage.DONE)))
    require(has_got(s, d, c, x, Stage.ENTERED), s.kind[c] == Kind.HOOK, s.entry[x] == Entry.ADMITTED, calls_done)
    require(s.leads[d], protection="driver-lease")

    def past(y: Id) -> Bool:
        on_record = (s.entry[y] != Entry.ABSENT) | ~protected("watermark-of-admitted")
        return counted(s, x) & counted(s, y) & (s.claimed[d, y] != NONE) & on_record

    s.passed.update(lambda h, y: ite(h == x, past(y), s.passed[h, y]))
    s.entry[x] = Entry.COMPLETED
    s.stage[d, c] = Stage.DONE


@action(source="serial ordinals, the fix: a replayed verdict restores the counter")
def replay(s: State, d: Driver, c: Call, x: Id) -> None:
    """A recorded verdict is given again, and the counter moves past all that was passed when it was recorded."""
    require(has_got(s, d, c, x, Stage.QUEUED), s.kind[c] == Kind.HOOK, s.entry[x] == Entry.COMPLETED, ~s.latched[d])
    require(~skips(s, d, x), protection="watermark")
    deliver(s, c, x)
    s.claimed.update(lambda e, y: ite((e == d) & s.passed[x, y] & (s.claimed[e, y] == NONE), c, s.claimed[e, y]))
    s.stage[d, c] = Stage.DONE


@action(source="serial ordinals, the fix: naming the hook, the ordinal and the journaled step")
def refuse_skip(s: State, d: Driver, c: Call, x: Id) -> None:
    """A verdict whose watermark would skip a held ordinal that nobody has claimed is refused."""
    require(has_got(s, d, c, x, Stage.QUEUED), s.kind[c] == Kind.HOOK, s.entry[x] == Entry.COMPLETED)
    require(skips(s, d, x))
    s.latched[d] = True
    s.moved[d] = s.moved[d] | passes_over(s, d, x)
