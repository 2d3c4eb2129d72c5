"""Supporting invariants: together with the promises they are inductive, so the proof holds for any program.

They tell why no completed effect runs again. Ordinals are claimed in their order by every attempt, and the journal
holds all ordinals up to some point. So a call that comes to another ordinal than that of its record finds it held; or
else the one of its record is claimed already: by a call that asks for just the same, or by the verdict of the hook that
made it. Neither can happen to a call that is told apart.
"""

from __future__ import annotations

from onestart_model import NONE, Bool, forall, implies, invariant
from onestart_model.flows.identity import lower
from onestart_model.flows.promises import told_apart
from onestart_model.flows.state import EFFECTS, Call, Driver, Entry, Id, Kind, Stage, State

ADMITTED = (Stage.QUEUED, Stage.DOUBT, Stage.ENTERED, Stage.RUNNING)


def fits(s: State, c: Call, x: Id) -> Bool:
    """The id is the call's own, or an ordinal if it has none."""
    return (s.own[c] == x) | ((s.own[c] == NONE) & s.ordinal[x])


def alike(s: State, c: Call, x: Id) -> Bool:
    """The id is on record for a call of this kind that asks for the same."""
    return (s.entry[x] != Entry.ABSENT) & (s.filed[x] == s.kind[c]) & (s.asked[x] == s.asks[c])


@invariant(supporting=True)
def one_driver_leads(s: State) -> Bool:
    """The lease names one driver."""
    return forall(Driver, Driver, lambda d, e: implies(s.leads[d] & s.leads[e], d == e))


@invariant(supporting=True)
def idle_drivers_know_nothing(s: State) -> Bool:
    """A driver that is not active has made no calls, and refused none."""

    def empty(d: Driver) -> Bool:
        no_calls = forall(Call, lambda c: s.stage[d, c] == Stage.IDLE)
        return no_calls & ~s.latched[d] & forall(Id, lambda x: s.claimed[d, x] == NONE)

    return forall(Driver, lambda d: implies(~s.active[d], empty(d)))


@invariant(supporting=True, rests_on=("an_id_fits_its_call",))
def a_call_has_an_id_once_it_is_made(s: State) -> Bool:
    """A call has an id exactly while it is not idle, and claims it."""
    return forall(Driver, Call, lambda d, c: (s.taken[d, c] == NONE) == (s.stage[d, c] == Stage.IDLE)) & forall(
        Driver, lambda d: forall(Call, Id, lambda c, x: implies(s.taken[d, c] == x, s.claimed[d, x] == c))
    )


@invariant(supporting=True)
def an_id_fits_its_call(s: State) -> Bool:
    """A call takes, and is filed under, its own id, or an ordinal if it has none."""
    taken = forall(Driver, lambda d: forall(Call, Id, lambda c, x: implies(s.taken[d, c] == x, fits(s, c, x))))
    return taken & forall(Call, Id, lambda c, x: implies(s.filed_for[x] == c, fits(s, c, x)))


@invariant(
    supporting=True,
    rests_on=(
        "a_declared_call_meets_its_own_kind",
        "an_admitted_call_has_its_record",
    ),
)
def a_record_is_of_a_call(s: State) -> Bool:
    """What is filed under an id is what the call asked for whose record it is."""
    present = forall(
        Id,
        lambda x: (
            ((s.entry[x] == Entry.ABSENT) == (s.filed_for[x] == NONE))
            & ((s.entry[x] == Entry.ABSENT) == (s.filed[x] == Kind.NOTHING))
            & implies(s.entry[x] == Entry.ADMITTED, s.filed[x] != Kind.MARKER)
            & ((s.launched[x] == Kind.NOTHING) | (s.launched[x] == s.filed[x]))
        ),
    )
    return present & forall(Call, Id, lambda c, x: implies(s.filed_for[x] == c, alike(s, c, x)))


@invariant(supporting=True, rests_on=("a_declared_call_meets_its_own_kind",))
def an_admitted_call_has_its_record(s: State) -> Bool:
    """Whatever was admitted is on record under its id, with what it asked for."""

    def recorded(d: Driver, c: Call, x: Id) -> Bool:
        admitted = s.stage[d, c].one_of(*ADMITTED) | ((s.stage[d, c] == Stage.DONE) & ~s.latched[d])
        return implies((s.taken[d, c] == x) & admitted, alike(s, c, x))

    return forall(Driver, lambda d: forall(Call, Id, lambda c, x: recorded(d, c, x)))


@invariant(
    supporting=True,
    rests_on=(
        "a_call_has_an_id_once_it_is_made",
        "a_record_is_of_a_call",
        "an_admitted_call_has_its_record",
        "idle_drivers_know_nothing",
        "one_driver_leads",
    ),
)
def a_declared_call_meets_its_own_kind(s: State) -> Bool:
    """What the leading driver is about to admit finds nothing, or a record of its kind; a question, the same one."""

    def met(d: Driver, c: Call, x: Id) -> Bool:
        question = implies(s.kind[c] == Kind.HUMAN, s.asked[x] == s.asks[c])
        found = (s.entry[x] == Entry.ABSENT) | ((s.filed[x] == s.kind[c]) & question)
        return implies(s.leads[d] & (s.taken[d, c] == x) & (s.stage[d, c] == Stage.DECLARED), found)

    return forall(Driver, lambda d: forall(Call, Id, lambda c, x: met(d, c, x)))


@invariant(
    supporting=True,
    rests_on=(
        "a_call_has_an_id_once_it_is_made",
        "a_declared_call_meets_its_own_kind",
        "an_admitted_call_has_its_record",
        "ordinals_are_claimed_in_their_order",
        "who_claims_an_id_took_it_or_moved_past_it",
    ),
)
def the_journal_has_no_holes(s: State) -> Bool:
    """The counter gets to any ordinal on record before any that is not."""

    def earlier(x: Id, y: Id) -> Bool:
        both = s.ordinal[x] & s.ordinal[y]
        return implies(both & (s.entry[x] != Entry.ABSENT) & (s.entry[y] == Entry.ABSENT), lower(s, x, y))

    return forall(Id, Id, earlier)


@invariant(supporting=True, rests_on=("watermarks_have_no_holes",))
def ordinals_are_claimed_in_their_order(s: State) -> Bool:
    """The counter gets to any claimed ordinal before any free one, and two claimed ones have an order."""

    def earlier(d: Driver, x: Id, y: Id) -> Bool:
        both = s.ordinal[x] & s.ordinal[y] & (s.claimed[d, x] != NONE) & (x != y)
        free = implies(both & (s.claimed[d, y] == NONE), lower(s, x, y))
        return free & implies(both & (s.claimed[d, y] != NONE), lower(s, x, y) | lower(s, y, x))

    return forall(Driver, lambda d: forall(Id, Id, lambda x, y: earlier(d, x, y)))


@invariant(
    supporting=True,
    rests_on=(
        "ordinals_are_claimed_in_their_order",
        "the_journal_has_no_holes",
    ),
)
def watermarks_have_no_holes(s: State) -> Bool:
    """A watermark counts ordinals that are on record, all up to some point."""

    def earlier(h: Id, x: Id, y: Id) -> Bool:
        both = s.passed[h, x] & s.ordinal[y] & (x != y)
        free = implies(both & ~s.passed[h, y], lower(s, x, y))
        return free & implies(both & s.passed[h, y], lower(s, x, y) | lower(s, y, x))

    return forall(Id, Id, lambda h, x: implies(s.passed[h, x], s.ordinal[x] & (s.entry[x] != Entry.ABSENT))) & forall(
        Id, lambda h: forall(Id, Id, lambda x, y: earlier(h, x, y))
    )


@invariant(
    supporting=True,
    rests_on=(
        "a_call_has_an_id_once_it_is_made",
        "a_declared_call_meets_its_own_kind",
        "a_hook_is_under_way_when_it_makes_calls",
        "a_record_is_of_a_call",
        "watermarks_have_no_holes",
    ),
)
def who_claims_an_id_took_it_or_moved_past_it(s: State) -> Bool:
    """Another id than its own is claimed only by a replayed hook: one that a call of that hook is on record under."""

    def claims(d: Driver, c: Call, x: Id) -> Bool:
        made = forall(Call, lambda o: implies(s.part_of[o] == c, s.stage[d, o] == Stage.IDLE))
        past = (s.kind[c] == Kind.HOOK) & (s.stage[d, c] == Stage.DONE) & made
        replayed = (s.entry[x] != Entry.ABSENT) & s.ordinal[x]

        def by(h: Id) -> Bool:
            return (s.entry[h] == Entry.COMPLETED) & s.passed[h, x] & s.within[x, h]

        under = forall(Id, lambda h: implies((s.taken[d, c] == h) & (h != x), past & replayed & by(h)))
        return implies(s.claimed[d, x] == c, (s.taken[d, c] != NONE) & under)

    return forall(Driver, lambda d: forall(Call, Id, lambda c, x: claims(d, c, x)))


@invariant(supporting=True, rests_on=("a_call_has_an_id_once_it_is_made",))
def a_hook_is_under_way_when_it_makes_calls(s: State) -> Bool:
    """A call that a hook makes comes after the hook has begun."""

    def begun(d: Driver, c: Call, h: Call) -> Bool:
        under_way = (s.kind[h] == Kind.HOOK) & s.stage[d, h].one_of(Stage.ENTERED, Stage.DONE)
        return implies((s.stage[d, c] != Stage.IDLE) & (s.part_of[c] == h), under_way)

    return forall(Driver, lambda d: forall(Call, Call, lambda c, h: begun(d, c, h)))


@invariant(
    supporting=True,
    rests_on=(
        "a_call_has_an_id_once_it_is_made",
        "a_declared_call_meets_its_own_kind",
        "a_hook_is_under_way_when_it_makes_calls",
        "a_record_is_of_a_call",
        "an_admitted_call_has_its_record",
        "an_id_fits_its_call",
        "who_claims_an_id_took_it_or_moved_past_it",
    ),
)
def a_call_within_a_hook_is_one_of_its_calls(s: State) -> Bool:
    """A record within that of a hook is of a call that such a hook makes."""

    def maker(x: Id, h: Id, c: Call) -> Bool:
        hooks = forall(Call, lambda o: implies(s.part_of[c] == o, alike(s, o, h) & fits(s, o, h)))
        return implies(s.within[x, h] & (s.filed_for[x] == c), (s.part_of[c] != NONE) & hooks)

    return forall(Id, lambda x: forall(Id, Call, lambda h, c: maker(x, h, c)))


@invariant(
    supporting=True,
    rests_on=(
        "a_call_comes_past_its_record_only_if_that_is_claimed",
        "a_declared_call_meets_its_own_kind",
        "a_record_is_of_a_call",
        "an_admitted_call_has_its_record",
        "an_id_fits_its_call",
        "nobody_else_is_admitted_on_the_record_of_a_call",
        "who_claims_an_id_took_it_or_moved_past_it",
    ),
)
def a_call_that_is_told_apart_has_one_record(s: State) -> Bool:
    """Where the call was filed last, its record is; and if it is told apart, it has no other."""
    return forall(
        Call,
        Id,
        lambda c, x: (
            implies(s.home[c] == x, s.filed_for[x] == c)
            & implies(told_apart(s, c) & (s.filed_for[x] == c), s.home[c] == x)
        ),
    )


@invariant(
    supporting=True,
    rests_on=(
        "a_declared_call_meets_its_own_kind",
        "a_record_is_of_a_call",
        "an_admitted_call_has_its_record",
        "an_id_fits_its_call",
    ),
)
def a_call_that_is_told_apart_finds_its_own_record(s: State) -> Bool:
    """What a call that is told apart was admitted under is its own record."""

    def own_record(d: Driver, c: Call, x: Id) -> Bool:
        return implies(told_apart(s, c) & (s.taken[d, c] == x) & s.stage[d, c].one_of(*ADMITTED), s.filed_for[x] == c)

    return forall(Driver, lambda d: forall(Call, Id, lambda c, x: own_record(d, c, x)))


@invariant(
    supporting=True,
    rests_on=(
        "a_call_has_an_id_once_it_is_made",
        "a_record_is_of_a_call",
        "an_id_fits_its_call",
        "idle_drivers_know_nothing",
        "one_driver_leads",
        "the_journal_has_no_holes",
    ),
)
def a_call_comes_past_its_record_only_if_that_is_claimed(s: State) -> Bool:
    """If a call takes a new ordinal, and is on record under another, that one is lower and claimed."""

    def past(d: Driver, c: Call, x: Id, y: Id) -> Bool:
        new = s.leads[d] & (s.taken[d, c] == y) & (s.entry[y] == Entry.ABSENT) & (s.filed_for[x] == c)
        return implies(new, (s.claimed[d, x] != NONE) & lower(s, x, y) & s.ordinal[x] & s.ordinal[y])

    return forall(Driver, Call, lambda d, c: forall(Id, Id, lambda x, y: past(d, c, x, y)))


@invariant(
    supporting=True,
    rests_on=(
        "a_call_has_an_id_once_it_is_made",
        "a_call_that_is_told_apart_finds_its_own_record",
        "a_call_within_a_hook_is_one_of_its_calls",
        "a_declared_call_meets_its_own_kind",
        "a_hook_is_under_way_when_it_makes_calls",
        "a_record_is_of_a_call",
        "an_admitted_call_has_its_record",
        "an_id_fits_its_call",
        "idle_drivers_know_nothing",
        "one_driver_leads",
        "watermarks_have_no_holes",
        "who_claims_an_id_took_it_or_moved_past_it",
    ),
)
def nobody_else_is_admitted_on_the_record_of_a_call(s: State) -> Bool:
    """Who claims the record of a call that is made and told apart is that call, or is not admitted."""

    def claims(d: Driver, o: Call, c: Call, x: Id) -> Bool:
        other = (s.claimed[d, x] == o) & (o != c) & (s.stage[d, c] != Stage.IDLE)
        its_record = s.leads[d] & told_apart(s, c) & (s.filed_for[x] == c)
        waits = (s.stage[d, o] == Stage.DECLARED) & (s.taken[d, o] == x)
        return implies(other & its_record, s.latched[d] | waits)

    return forall(Driver, Call, lambda d, o: forall(Call, Id, lambda c, x: claims(d, o, c, x)))


@invariant(
    supporting=True,
    rests_on=(
        "a_call_comes_past_its_record_only_if_that_is_claimed",
        "a_call_has_an_id_once_it_is_made",
        "a_call_that_is_told_apart_finds_its_own_record",
        "a_call_that_is_told_apart_has_one_record",
        "a_declared_call_meets_its_own_kind",
        "a_record_is_of_a_call",
        "an_admitted_call_has_its_record",
        "an_id_fits_its_call",
        "nobody_else_is_admitted_on_the_record_of_a_call",
        "who_claims_an_id_took_it_or_moved_past_it",
    ),
)
def what_was_executed_is_on_record(s: State) -> Bool:
    """An effect that was executed was launched under the call's record; what was completed is complete there."""

    def shown(c: Call, x: Id) -> Bool:
        launched = implies(s.executions[c] != 0, s.launched[x] == s.kind[c])
        return implies(
            told_apart(s, c) & (s.home[c] == x), launched & implies(s.completed[c], s.entry[x] == Entry.COMPLETED)
        )

    filed = forall(
        Call, lambda c: implies(told_apart(s, c) & ((s.executions[c] != 0) | s.completed[c]), s.home[c] != NONE)
    )
    return filed & forall(Call, Id, shown)


@invariant(
    supporting=True,
    rests_on=(
        "a_call_has_an_id_once_it_is_made",
        "a_declared_call_meets_its_own_kind",
        "a_record_is_of_a_call",
        "an_admitted_call_has_its_record",
        "idle_drivers_know_nothing",
        "one_driver_leads",
    ),
)
def what_waits_was_not_started(s: State) -> Bool:
    """What the leading driver may start was never launched, unless it may run again."""

    def waits(d: Driver, c: Call, x: Id) -> Bool:
        queued = (s.stage[d, c] == Stage.QUEUED) & s.kind[c].one_of(*EFFECTS, Kind.DISPATCH)
        entered = (s.stage[d, c] == Stage.ENTERED) & (s.kind[c] == Kind.DISPATCH)
        about = s.leads[d] & (s.taken[d, c] == x) & (s.entry[x] == Entry.ADMITTED) & (queued | entered)
        return implies(about & ~s.again[c], s.launched[x] == Kind.NOTHING)

    return forall(Driver, lambda d: forall(Call, Id, lambda c, x: waits(d, c, x)))
