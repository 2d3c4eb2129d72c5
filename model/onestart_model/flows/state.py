"""The state of one root's flow: its program, its journal, what executors know, what a driver keeps in memory.

The program is fixed and arbitrary: any calls, any kinds, any causal order. What is not fixed is the order in which
calls that are free to go are made: results arrive as they like, in the first attempt and in every resume.
"""

from __future__ import annotations

from onestart_model import (
    NONE,
    Bool,
    Enumeration,
    Fn,
    Maybe,
    Number,
    Sort,
    durable,
    external,
    fixed,
    ghost,
    member,
    state,
    volatile,
)


class Call(Sort):
    """A call of the program: the same one in every attempt, whenever it is reached."""


class Id(Sort):
    """What the journal files a call under: an ordinal of the one counter, or an id that only one call can have."""


class Spec(Sort):
    """What a call asks for: a command or a prompt, a question and whom it goes to, a hook's input."""


class Driver(Sort):
    """A process that runs the root's body. It can crash at any point, and begin anew."""


class Kind(Enumeration):
    """What is called. NOTHING stands where nothing is filed."""

    NOTHING = member()
    RUN = member("a command: an effect")
    LLM = member("a model: an effect")
    AGENT = member("an agent: an effect")
    HELPER = member("a helper: an effect that has a path of its own")
    MCP = member("a tool of an MCP server: likewise")
    PLUGIN = member("a plugin: likewise")
    MEMORY = member("a finding that is kept: an effect")
    ON = member("a subscription: an effect")
    HUMAN = member("a question to a person; it parks until somebody answers")
    HOOK = member("a hook: gives a verdict, and may make calls of its own")
    DISPATCH = member("a child flow under this call's id; its step stands for all steps of the child")
    MARKER = member("the completion marker: the body is over")


ON_THEIR_OWN = (Kind.HELPER, Kind.MCP, Kind.PLUGIN)
EFFECTS = (Kind.RUN, Kind.LLM, Kind.AGENT, *ON_THEIR_OWN, Kind.MEMORY, Kind.ON)


class Entry(Enumeration):
    """How far the record under an id has got."""

    ABSENT = member()
    ADMITTED = member("admitted, parked, or a child flow that has a record; how it ended is not on record")
    COMPLETED = member("its result, answer or verdict is recorded")


class Stage(Enumeration):
    """How far a call has got in an attempt."""

    IDLE = member("not made yet")
    DECLARED = member("has an id")
    QUEUED = member("admitted; waits for a worker slot, a person, or its recorded result")
    DOUBT = member("admitted by an earlier attempt, which may have started it")
    ENTERED = member("a hook or a child flow that is under way")
    RUNNING = member("its effect was started")
    DONE = member("it has its result")


@state
class State:
    kind: Fn[Call, Kind] = fixed()
    asks: Fn[Call, Spec] = fixed()
    before: Fn[Call, Call, Bool] = fixed()  # the first has to be done before the second is made
    part_of: Fn[Call, Maybe[Call]] = fixed()  # the hook that makes the call
    unlike: Fn[Call, Bool] = fixed()  # no other call can be taken for it
    again: Fn[Call, Bool] = fixed()  # its executor says that the effect may be run again
    single: Fn[Call, Bool] = fixed()  # its worker has one slot: such calls of a kind are carried out one at a time
    own: Fn[Call, Maybe[Id]] = fixed()  # the id that follows from its causal predecessors, none where they are unknown
    ordinal: Fn[Id, Bool] = fixed()
    below: Fn[Id, Id, Bool] = fixed()  # the order of ordinals

    entry: Fn[Id, Entry] = durable("journal", Entry.ABSENT)
    filed: Fn[Id, Kind] = durable("journal", Kind.NOTHING)
    asked: Fn[Id, Maybe[Spec]] = durable("journal", NONE)
    within: Fn[Id, Id, Bool] = durable("journal", False)  # the first is of a call that the hook of the second made
    passed: Fn[Id, Id, Bool] = durable("journal", False)  # a verdict's watermark: the ordinals that were passed with it
    leads: Fn[Driver, Bool] = durable("lease", False)  # the driver that took the root last

    launched: Fn[Id, Kind] = external(Kind.NOTHING)  # what was last started under the id

    active: Fn[Driver, Bool] = volatile(False)
    latched: Fn[Driver, Bool] = volatile(False)  # this attempt has refused a call
    taken: Fn[Driver, Call, Maybe[Id]] = volatile(NONE)
    claimed: Fn[Driver, Id, Maybe[Call]] = volatile(NONE)  # by the call that took it, or the hook that moved past it
    stage: Fn[Driver, Call, Stage] = volatile(Stage.IDLE)

    filed_for: Fn[Id, Maybe[Call]] = ghost(NONE)  # whose record it is; no journal knows that
    home: Fn[Call, Maybe[Id]] = ghost(NONE)  # where the call was filed last
    executions: Fn[Call, Number] = ghost(0, upto=2)
    completed: Fn[Call, Bool] = ghost(False)  # a result of the call's effect was recorded
    repeated: Fn[Call, Bool] = ghost(False)  # its effect was executed after that
    crossed: Fn[Call, Bool] = ghost(False)  # it got what was recorded for a call that asked for something else
    exchanged: Fn[Call, Bool] = ghost(False)  # it got what was recorded for another call
    late: Fn[Driver, Bool] = ghost(False)  # it went on after a refusal
    moved: Fn[Driver, Bool] = ghost(False)  # in this attempt calls came in an order that gave some a new id
    needless: Fn[Driver, Bool] = ghost(False)  # it read the journal in a first attempt
