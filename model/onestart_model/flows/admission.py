"""From the call in the body to its record in the journal: declared, admitted, or refused."""

from __future__ import annotations

from onestart_model import NONE, Bool, action, exists, ite, protected, require
from onestart_model.flows.guard import conflict, free_to_go, has_got, mismatch, reorders
from onestart_model.flows.identity import has_turn, takes
from onestart_model.flows.state import Call, Driver, Entry, Id, Kind, Stage, State


def made_by(s: State, d: Driver, c: Call, h: Id) -> Bool:
    """The call is one that the hook under this id makes."""
    return (s.part_of[c] != NONE) & (s.claimed[d, h] == s.part_of[c])


def resumed(s: State) -> Bool:
    """The root was begun before: its lease names a driver."""
    return exists(Driver, lambda o: s.leads[o])


@action(source="serial ordinals, the fix: what is checked; first attempts read nothing extra")
def begin(s: State, d: Driver) -> None:
    """A driver takes the root under its lease, and reads the journal if there was an attempt before."""
    require(~s.active[d])
    reads = resumed(s) | ~protected("reads-on-resume-only")
    s.needless[d] = s.needless[d] | (reads & ~resumed(s))
    s.leads.update(lambda o: o == d)
    s.active[d] = True
    s.moved[d] = False


@action(source="serial ordinals, mechanism; follow-up: an id of the causal frontier")
def declare(s: State, d: Driver, c: Call, x: Id) -> None:
    """The body makes a call: it takes its id at once, whatever else is under way."""
    require(free_to_go(s, d, c), takes(s, d, c, x))
    require(~mismatch(s, c, x))
    require(~s.latched[d], protection="latch-at-declaration")
    s.stage[d, c] = Stage.DECLARED
    s.taken[d, c] = x
    s.claimed[d, x] = c
    s.late[d] = s.late[d] | s.latched[d]
    s.moved[d] = s.moved[d] | reorders(s, c, x)


@action(source="serial ordinals, the fix: refusal, typed refusal")
def refuse(s: State, d: Driver, c: Call, x: Id) -> None:
    """A call whose id is held by another kind, or by another question, is refused before anything is admitted."""
    require(free_to_go(s, d, c), takes(s, d, c, x), mismatch(s, c, x), ~s.latched[d])
    s.latched[d] = True
    s.moved[d] = s.moved[d] | reorders(s, c, x)


@action(source="serial ordinals, mechanism: the admission key is bound to the spec; follow-up: index at admission")
def admit(s: State, d: Driver, c: Call, x: Id) -> None:
    """A declared call gets its record, or finds the one that it has.

    Ordinals are admitted in their order. Without that a call may take effect although a lower ordinal is about to be
    refused, and a crash may leave a hole in the journal that another call falls into.
    """
    require(has_got(s, d, c, x, Stage.DECLARED), ~conflict(s, c, x))
    require(s.leads[d], protection="driver-lease")
    require(~s.latched[d], protection="latch-at-start")
    require(has_turn(s, d, x), protection="admitted-in-order")
    new = (s.entry[x] == Entry.ABSENT) | (s.filed[x] != s.kind[c])
    marker = s.kind[c] == Kind.MARKER
    in_flight = ~new & (s.entry[x] == Entry.ADMITTED) & ~s.kind[c].one_of(Kind.HUMAN, Kind.HOOK)
    s.late[d] = s.late[d] | s.latched[d]
    s.stage[d, c] = ite(marker, Stage.DONE, ite(in_flight, Stage.DOUBT, Stage.QUEUED))
    s.filed_for[x] = ite(new, c, s.filed_for[x])
    s.home[c] = ite(new, x, s.home[c])
    s.asked[x] = ite(new, s.asks[c], s.asked[x])
    s.within.update(lambda y, h: ite((y == x) & new, made_by(s, d, c, h), s.within[y, h]))
    s.entry[x] = ite(new, ite(marker, Entry.COMPLETED, Entry.ADMITTED), s.entry[x])
    s.filed[x] = s.kind[c]


@action(source="serial ordinals, mechanism: run_admission_conflict; the fix: one latch")
def turn_away(s: State, d: Driver, c: Call, x: Id) -> None:
    """A call whose id was admitted with another spec is refused; an author's catch gets it no further."""
    require(has_got(s, d, c, x, Stage.DECLARED), conflict(s, c, x), ~s.latched[d])
    require(s.leads[d], has_turn(s, d, x))
    s.stage[d, c] = Stage.DONE
    s.latched[d] = protected("latch-on-conflict")
    s.moved[d] = s.moved[d] | reorders(s, c, x)


@action(source="serial ordinals, the fix: f.on and f.memory before they act")
def act(s: State, d: Driver) -> None:
    """The body subscribes to something or commits a finding to memory: that has no id, and is done at once."""
    require(s.active[d])
    require(~s.latched[d], protection="latch-on-activities")
    s.late[d] = s.late[d] | s.latched[d]
