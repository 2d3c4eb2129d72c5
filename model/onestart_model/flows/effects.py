"""Effects: from a worker slot to a recorded result, and from doubt to certainty."""

from __future__ import annotations

from onestart_model import Bool, action, forall, ite, require
from onestart_model.flows.guard import has_got
from onestart_model.flows.state import EFFECTS, Call, Driver, Entry, Id, Kind, Stage, State


def deliver(s: State, c: Call, x: Id) -> None:
    """The call gets what is recorded under the id."""
    for_it = forall(Call, lambda o: (s.filed_for[x] != o) | (o == c))
    s.crossed[c] = s.crossed[c] | (s.filed[x] != s.kind[c]) | (s.asked[x] != s.asks[c])
    s.exchanged[c] = s.exchanged[c] | ~for_it


def execute(s: State, d: Driver, c: Call, x: Id) -> None:
    """The executor starts the call's effect."""
    s.late[d] = s.late[d] | s.latched[d]
    s.repeated[c] = s.repeated[c] | s.completed[c]
    s.executions[c] = ite(s.executions[c] < 2, s.executions[c] + 1, 2)
    s.launched[x] = s.kind[c]
    s.stage[d, c] = Stage.RUNNING


def has_slot(s: State, d: Driver, c: Call) -> Bool:
    """Its worker has a slot for the call: it has any number, or none of its kind is under way in this attempt."""

    def takes_it(o: Call) -> Bool:
        return (o != c) & (s.kind[o] == s.kind[c]) & s.single[o] & (s.stage[d, o] == Stage.RUNNING)

    return ~s.single[c] | forall(Call, lambda o: ~takes_it(o))


@action(source="serial ordinals, gaps: queued worker slot")
def start(s: State, d: Driver, c: Call, x: Id) -> None:
    """A worker slot is free for an admitted call, and its effect starts.

    The executor takes starts of the driver that leads the root and of no other.
    """
    require(has_got(s, d, c, x, Stage.QUEUED), s.kind[c].one_of(*EFFECTS), s.entry[x] == Entry.ADMITTED)
    require(s.leads[d], protection="driver-lease")
    require(~s.latched[d], protection="latch-at-slot")
    require(has_slot(s, d, c), protection="slots-limited")
    execute(s, d, c, x)


@action(source="serial ordinals, the fix: one latch; mechanism: hooks")
def enter(s: State, d: Driver, c: Call, x: Id) -> None:
    """A hook or a child flow begins; neither has done anything yet."""
    require(has_got(s, d, c, x, Stage.QUEUED), s.kind[c].one_of(Kind.HOOK, Kind.DISPATCH), s.entry[x] == Entry.ADMITTED)
    require(~s.latched[d], protection="latch-at-slot")
    s.late[d] = s.late[d] | s.latched[d]
    s.stage[d, c] = Stage.ENTERED


@action(source="serial ordinals, tests: a running dispatched child stops when its parent refuses")
def step_of_child(s: State, d: Driver, c: Call, x: Id) -> None:
    """A child flow that is under way starts its step, unless the root has refused a call in the meantime."""
    require(has_got(s, d, c, x, Stage.ENTERED), s.kind[c] == Kind.DISPATCH, s.entry[x] == Entry.ADMITTED)
    require(s.leads[d], protection="driver-lease")
    require(~s.latched[d], protection="latch-in-children")
    execute(s, d, c, x)


@action(source="design: an executor that can be asked resolves it")
def ask(s: State, d: Driver, c: Call, x: Id) -> None:
    """The executor says whether an effect in doubt was ever started; if so, its result is waited for."""
    require(has_got(s, d, c, x, Stage.DOUBT), ~s.latched[d])
    require((s.launched[x] != s.kind[c]) | has_slot(s, d, c), protection="slots-limited")
    s.stage[d, c] = ite(s.launched[x] == s.kind[c], Stage.RUNNING, Stage.QUEUED)


@action(source="design: in flight at a crash")
def repeat(s: State, d: Driver, c: Call, x: Id) -> None:
    """An effect in doubt goes to the queue again, because its executor says that it may run again."""
    require(has_got(s, d, c, x, Stage.DOUBT), ~s.latched[d])
    require(s.again[c], protection="in-flight-declared")
    s.stage[d, c] = Stage.QUEUED


@action(source="serial ordinals, the fix: effects are indexed")
def finish(s: State, d: Driver, c: Call, x: Id) -> None:
    """An effect has ended; its result is recorded, and the call gets it."""
    require(has_got(s, d, c, x, Stage.RUNNING))
    require(s.leads[d], protection="driver-lease")
    deliver(s, c, x)
    s.completed.update(lambda o: s.completed[o] | (s.filed_for[x] == o))
    s.entry[x] = Entry.COMPLETED
    s.stage[d, c] = Stage.DONE


@action(source="serial ordinals, summary: completed results replay")
def receive(s: State, d: Driver, c: Call, x: Id) -> None:
    """A call whose record is complete gets what was recorded: a result again, or a person's answer."""
    require(has_got(s, d, c, x, Stage.QUEUED), s.entry[x] == Entry.COMPLETED, s.kind[c] != Kind.HOOK)
    deliver(s, c, x)
    s.stage[d, c] = Stage.DONE
