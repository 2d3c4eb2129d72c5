"""What flows promise. Where a promise needs version 3, or calls that can be told apart, it says so itself."""

from __future__ import annotations

from onestart_model import NONE, Bool, can_still, exists, forall, implies, invariant, reachable, step_invariant
from onestart_model.flows.state import EFFECTS, Call, Driver, Entry, Id, Kind, Stage, State


def told_apart(s: State, c: Call) -> Bool:
    """The call has an id of its own, or no other can be taken for it."""
    return (s.own[c] != NONE) | s.unlike[c]


@invariant(
    layer="effect",
    source="design: a completed effect is never executed again",
    rests_on=(
        "a_call_that_is_told_apart_finds_its_own_record",
        "a_call_that_is_told_apart_has_one_record",
        "what_was_executed_is_on_record",
    ),
)
def a_completed_effect_is_never_executed_again(s: State) -> Bool:
    """No effect starts after its result was recorded; two that nothing tells apart may stand in for each other."""
    return forall(Call, lambda c: implies(told_apart(s, c), ~s.repeated[c]))


@invariant(
    layer="effect",
    source="design: in flight at a crash",
    rests_on=(
        "a_call_that_is_told_apart_finds_its_own_record",
        "a_call_that_is_told_apart_has_one_record",
        "a_record_is_of_a_call",
        "an_admitted_call_has_its_record",
        "what_waits_was_not_started",
        "what_was_executed_is_on_record",
    ),
)
def an_effect_runs_twice_only_if_declared(s: State) -> Bool:
    """No effect is executed twice, unless its executor says that it may run again."""
    return forall(Call, lambda c: implies(told_apart(s, c) & ~s.again[c], s.executions[c] <= 1))


@invariant(layer="effect", source="design: slots of workers")
def a_worker_carries_out_no_more_than_it_has_slots_for(s: State) -> Bool:
    """Of calls whose worker has one slot, a driver has one of a kind under way at a time."""

    def under_way(d: Driver, c: Call) -> Bool:
        return s.single[c] & s.kind[c].one_of(*EFFECTS) & (s.stage[d, c] == Stage.RUNNING)

    def alone(d: Driver, c: Call, o: Call) -> Bool:
        return implies(under_way(d, c) & under_way(d, o) & (s.kind[c] == s.kind[o]), c == o)

    return forall(Driver, lambda d: forall(Call, Call, lambda c, o: alone(d, c, o)))


@invariant(
    layer="read",
    source="serial ordinals, mechanism: answer applied to a different question",
    rests_on=("an_admitted_call_has_its_record",),
)
def what_is_recorded_reaches_only_who_asked_for_it(s: State) -> Bool:
    """A result, answer or verdict reaches only a call of the same kind that asked for the same."""
    return forall(Call, lambda c: ~s.crossed[c])


@invariant(
    layer="read",
    source="serial ordinals, gaps: identical specs",
    rests_on=("a_call_that_is_told_apart_finds_its_own_record",),
)
def identical_calls_exchange_nothing(s: State) -> Bool:
    """With ids of version 3, a call gets only what was recorded for itself, even if another asks for just the same."""
    return forall(Call, lambda c: implies(s.own[c] != NONE, ~s.exchanged[c]))


@invariant(layer="attempt", source="serial ordinals, the fix: one latch")
def nothing_goes_on_after_a_refusal(s: State) -> Bool:
    """After a refusal nothing takes an id, is admitted, starts, or acts."""
    return forall(Driver, lambda d: ~s.late[d])


@invariant(
    layer="attempt",
    source="serial ordinals, tests: a live in-order resume",
    rests_on=(
        "a_record_is_of_a_call",
        "idle_drivers_know_nothing",
    ),
)
def an_in_order_resume_is_never_refused(s: State) -> Bool:
    """As long as each call takes the id under which it is on record, and no other does, nothing is refused."""
    return forall(Driver, lambda d: implies(s.latched[d], s.moved[d]))


@invariant(
    layer="attempt",
    source="design: with version 3 every order resumes",
    rests_on=(
        "a_record_is_of_a_call",
        "an_id_fits_its_call",
        "watermarks_have_no_holes",
    ),
)
def no_order_is_refused_under_version_3(s: State) -> Bool:
    """If all calls have ids of version 3, no attempt is refused, in whatever order they come."""
    return implies(forall(Call, lambda c: s.own[c] != NONE), forall(Driver, lambda d: ~s.latched[d]))


@invariant(layer="read", source="serial ordinals, the fix: first attempts read nothing extra")
def a_first_attempt_reads_nothing_extra(s: State) -> Bool:
    """The journal is read by attempts that resume, and by no other."""
    return forall(Driver, lambda d: ~s.needless[d])


@step_invariant(layer="bytes", source="design: admission binds the id to the spec")
def a_record_keeps_its_meaning(s: State, after: State) -> Bool:
    """No step makes a record one of another kind or spec, or an open one of a completed one."""

    def kept(x: Id) -> Bool:
        same = (after.filed[x] == s.filed[x]) & (after.asked[x] == s.asked[x])
        ended = implies(s.entry[x] == Entry.COMPLETED, after.entry[x] == Entry.COMPLETED)
        return implies(s.entry[x] != Entry.ABSENT, same & ended & (after.entry[x] != Entry.ABSENT))

    return forall(Id, kept)


@reachable(layer="attempt", source="design: with version 3 every order resumes")
def a_result_is_replayed(s: State) -> Bool:
    """A resumed attempt gets a result that an earlier one recorded, and goes on to another call."""
    return exists(
        Driver,
        lambda d: exists(
            Call,
            Call,
            lambda a, b: (
                s.before[a, b] & (s.stage[d, a] == Stage.DONE) & (s.stage[d, b] == Stage.RUNNING) & s.completed[a]
            ),
        ),
    )


@reachable(layer="attempt", source="serial ordinals, the fix: the guard does not make a reordered resume succeed")
def a_resume_is_refused(s: State) -> Bool:
    """Where calls take ordinals, a resume in which they come in another order can be refused."""
    return exists(Driver, lambda d: s.latched[d])


@reachable(layer="read", source="serial ordinals, gaps: identical specs")
def calls_exchange_what_is_recorded(s: State) -> Bool:
    """Where calls take ordinals, one can get what was recorded for another that asked for just the same."""
    return exists(Call, lambda c: s.exchanged[c])


def over(s: State) -> Bool:
    """The completion marker is on record."""
    return exists(Id, lambda x: (s.filed[x] == Kind.MARKER) & (s.entry[x] == Entry.COMPLETED))


@can_still(avoiding=("crash", "repeat"), source="design: every root can still complete")
def every_root_can_still_end(s: State) -> Bool:
    """Every root can still complete, or be refused where its causal order is not known."""
    refused = exists(Driver, lambda d: s.latched[d]) & exists(Call, lambda c: s.own[c] == NONE)
    return over(s) | refused
