"""Event logs against the model: what the library writes fits, and what does not fit is named."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from event_streams import EVERYTHING, HEALTHY, Stream, driven, endless, ticking, write, write_each
from onestart import Event
from onestart.eventlog import EventLogError
from onestart_conformance.trace_book import Book, KeyRecord, StrandRecord, TaskRecord
from onestart_conformance.trace_log import Report, check
from onestart_conformance.trace_merge import WRITES, Numbers
from onestart_conformance.trace_scene import CRASHED, DAMAGED, EXPIRED, FINISHED, LATE, LOST, SPOILED, UNTOLD
from onestart_conformance.trace_story import NoCounterexampleError, Story, counterexample, tell
from onestart_conformance.trace_window import Windows, standard
from onestart_model.chain import CHAIN
from onestart_model.execution import Machine, State, Step
from onestart_model.instance import Instance

FATAL = EVERYTHING - {"lose_attempt"}


def checked(paths: Sequence[Path], **options: Any) -> Report:
    return check([str(path) for path in paths], **options)


def line_of(report: Report) -> int:
    assert report.misfit is not None
    return int(report.misfit.where.rpartition(":")[2])


# What the library writes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_what_the_library_tells_fits(seed: int, tmp_path: Path) -> None:
    """Whatever crashes, fails, expires or is damaged; in one file, and in a file for each process."""
    stream = driven(seed, FATAL)
    shared = checked([write(tmp_path / "log", stream.events, stream.processes)])
    apart = checked(write_each(tmp_path, stream))
    for report in (shared, apart):
        assert report.misfit is None, report.misfit
        assert report.total == len(stream.events)


@pytest.mark.parametrize("seed", range(12))
def test_a_store_that_falls_back_is_seen(seed: int, tmp_path: Path) -> None:
    stream = driven(seed, frozenset(("lose_attempt", "die", "reconcile", "finish")), swarm=False)
    report = checked([write(tmp_path / "log", stream.events, stream.processes)])
    assert report.misfit is None, report.misfit


@pytest.mark.parametrize("seed", range(4))
def test_a_log_may_end_anywhere(seed: int, tmp_path: Path) -> None:
    stream = driven(seed, HEALTHY | {"die", "pass_time"}, steps=50, swarm=False)
    for end in range(1, len(stream.events)):
        report = checked([write(tmp_path / f"{end}", stream.events[:end])])
        assert report.misfit is None, (end, report.misfit)


@pytest.mark.parametrize("seed", range(25))
def test_a_process_that_is_killed_may_have_taken_one_step_more(seed: int, tmp_path: Path) -> None:
    stream = driven(seed, HEALTHY | {"die", "pass_time", "foreign", "stale"}, swarm=False)
    untold = [last_of(stream, process) for process in stream.dead]
    events = [event for event in stream.events if event not in untold]
    report = checked([write(tmp_path / "log", events, stream.processes)])
    assert report.misfit is None, report.misfit


def last_of(stream: Stream, process: str) -> Event | None:
    own = [event for event in stream.events if event.process == process]
    return own[-1] if own else None


def test_what_no_event_tells_is_counted(tmp_path: Path) -> None:
    reports = []
    for seed in range(12):
        stream = driven(seed, FATAL)
        untold = [last_of(stream, process) for process in stream.dead]
        kept = [event for event in stream.events if event not in untold]
        reports.append(checked([write(tmp_path / f"{seed}", kept, stream.processes)]))
    for kind in (EXPIRED, FINISHED, CRASHED, DAMAGED, UNTOLD):
        assert sum(report.notes[kind] for report in reports), kind
    counted = {kind for report in reports for kind in report.notes if report.notes[kind]}
    shown = {kind for report in reports for kind in report.examples}
    assert counted - {CRASHED} <= shown


def test_a_healthy_log_needs_no_assumption(tmp_path: Path) -> None:
    for seed in range(6):
        stream = driven(seed, HEALTHY, swarm=False)
        report = checked([write(tmp_path / f"{seed}", stream.events)])
        assert report.misfit is None
        assert not any(report.notes[kind] for kind in (UNTOLD, SPOILED, LOST)), report.notes


def test_events_are_counted_by_layer(tmp_path: Path) -> None:
    stream = driven(3, HEALTHY, swarm=False)
    report = checked([write(tmp_path / "log", stream.events)])
    for layer, count in report.events.items():
        assert count == sum(event.layer == layer for event in stream.events)
    assert report.keys == len({event.key for event in stream.events})
    assert (report.tasks, report.processes) == (1, len({event.process for event in stream.events}))


# What does not fit ---------------------------------------------------------------------------------------------------

HAPPY = ("accept", "ruled", "enter", "offer", "claim", "intend", "note", "start", "record", "report_dispatched")
RESULT = {"outcome": "started", "reason": "task_dispatch_attempt_created"}
DETAILS: dict[str, dict[str, Any]] = {
    "ruled": {"revision": "r1", "expected": "r1"},
    "enter": {"required": False, "approved": "", "digest": "f"},
    "claim": {"ends": 31.0},
    "look_up": {"started": False},
    "report_dispatched": {**RESULT, "result": RESULT, "damage": []},
}


def told(*actions: str, key: str = "k", process: str = "p", start: int = 0, at: float = 1.0) -> list[Event]:
    """What one strand tells, on top of `start` records."""
    events, order = [], start
    token = 0
    for action in actions:
        order += action in WRITES
        token = 1 if action == "claim" else token
        event = Event(action, process, 1, key, "t", order, at, token, "f", DETAILS.get(action, {}))
        events.append(event)
    return events


def misfit(tmp_path: Path, events: Sequence[Event]) -> tuple[int, Report]:
    """The index of the event that does not fit."""
    report = checked([write(tmp_path / "log", ticking(events))])
    return line_of(report) - 2, report


def test_the_happy_path_fits(tmp_path: Path) -> None:
    assert checked([write(tmp_path / "log", ticking(told(*HAPPY)))]).misfit is None


@pytest.mark.parametrize("gone", range(len(HAPPY) - 1))
def test_an_event_that_is_missing_is_missed_by_the_next(gone: int, tmp_path: Path) -> None:
    events = told(*HAPPY)
    del events[gone]
    expected = gone + 1 if HAPPY[gone] == "accept" else gone  # governance is asked after that, and rules on anything
    assert misfit(tmp_path, events)[0] == expected


@pytest.mark.parametrize("twice", range(len(HAPPY)))
def test_an_event_that_is_told_twice_is_named(twice: int, tmp_path: Path) -> None:
    events = list(ticking(told(*HAPPY)))
    events.insert(twice + 1, events[twice])
    report = checked([write(tmp_path / "log", events)])
    assert line_of(report) - 2 == twice + 1
    assert report.misfit is not None
    assert "twice" in report.misfit.objection.what


@pytest.mark.parametrize("first", range(2, len(HAPPY) - 1))
def test_events_in_another_order_are_named(first: int, tmp_path: Path) -> None:
    actions = list(HAPPY)
    actions[first], actions[first + 1] = actions[first + 1], actions[first]
    assert misfit(tmp_path, told(*actions))[0] == first


@pytest.mark.parametrize("action", ["intend", "note", "start", "record"])
def test_a_wrong_token_is_named(action: str, tmp_path: Path) -> None:
    events = told(*HAPPY)
    index = HAPPY.index(action)
    events[index] = evolve(events[index], token=7)
    where, report = misfit(tmp_path, events)
    assert where == index
    assert report.misfit is not None
    assert report.misfit.objection.protections == ("fencing-token",)


def test_a_second_start_is_named(tmp_path: Path) -> None:
    events = told(*HAPPY[:8])
    again = told("accept", *HAPPY[1:8], process="q", start=5, at=40.0)[1:]
    again = [evolve(event, token=2 if event.token else 0) for event in again if event.action != "offer"]
    where, report = misfit(tmp_path, [*events, *again])
    assert report.misfit is not None
    assert [*events, *again][where].action == "intend"  # a key in doubt may be claimed, and then has to be asked about


def test_a_start_of_a_key_in_doubt_without_asking_is_named(tmp_path: Path) -> None:
    events = told(*HAPPY[:7])
    again = [event for event in told(*HAPPY, process="q", start=6, at=40.0) if event.action not in ("accept", "offer")]
    again = [evolve(event, token=2 if event.token else 0) for event in again if event.action != "intend"]
    where, _ = misfit(tmp_path, [*events, *again])
    assert [*events, *again][where].action == "note"


def test_a_claim_before_the_lease_has_ended_is_named(tmp_path: Path) -> None:
    events = told(*HAPPY[:5])
    again = [evolve(e, token=2 if e.token else 0) for e in told("ruled", "enter", "claim", process="q", start=3)]
    where, report = misfit(tmp_path, [*events, *again])
    assert where == len(events) + 2
    assert report.misfit is not None
    assert report.misfit.objection.protections == ("one-lease-per-task",)
    assert report.misfit.objection.promise == "a_live_lease_is_not_taken"
    late = [evolve(event, at=31.0) for event in again]
    assert checked([write(tmp_path / "late", ticking([*events, *late]))]).misfit is None


def answer_of(event: Event, **details: Any) -> Event:
    """What the strand of an event is answered with."""
    return evolve(event, action="report", at=event.at + 1, details=details)


def test_a_write_that_is_told_late_is_counted(tmp_path: Path) -> None:
    """The step may have been in time; nobody can tell, so it is no misfit, and it is said."""
    events = told(*HAPPY)
    late = [*events[:8], *(evolve(event, at=50.0) for event in events[8:])]
    report = checked([write(tmp_path / "log", ticking(late))])
    assert report.misfit is None
    assert report.notes[LATE] == 1
    assert report.examples[LATE] == [f"{tmp_path / 'log'}:10: record of key 'k'"]


def test_another_command_under_the_key_is_named(tmp_path: Path) -> None:
    events = told(*HAPPY)
    other = [evolve(event, fingerprint="other") for event in told("ruled", "enter", process="q", start=7)]
    answer = {"outcome": "started", "reason": "task_already_dispatched", "result": RESULT, "damage": []}
    where, report = misfit(tmp_path, [*events, *other, answer_of(other[-1], **answer)])
    assert where == len(events) + 1
    assert report.misfit is not None
    assert "fingerprint" in report.misfit.objection.protections


def test_another_result_is_named(tmp_path: Path) -> None:
    details = {"outcome": "closed", "reason": "task_cancelled"}
    answer = {**details, "result": details, "damage": []}
    replay = Event("replay", "q", 1, "k", "t", 7, 2.0, 0, "f", answer)
    assert misfit(tmp_path, [*told(*HAPPY), replay])[0] == len(HAPPY)


def test_a_log_that_begins_in_the_middle_does_not_fit(tmp_path: Path) -> None:
    where, report = misfit(tmp_path, told(*HAPPY)[2:])
    assert where == 0
    assert report.misfit is not None
    assert "receipt" in report.misfit.guard


def test_a_step_of_a_process_that_goes_on_is_not_assumed(tmp_path: Path) -> None:
    """Another process can claim the task only if the first one has withdrawn, which it would have told of."""
    first = told("accept", *HAPPY[1:5])
    second = [evolve(e, token=2 if e.token else 0) for e in told("ruled", "enter", "claim", process="q", start=4)]
    silent = checked([write(tmp_path / "silent", ticking([*first, *second]))])
    assert silent.misfit is None
    assert silent.notes[UNTOLD] == 1
    further = told("accept", *HAPPY[1:6])[-1:]
    report = checked([write(tmp_path / "goes on", ticking([*first, *second, evolve(further[0], order=6)]))])
    assert line_of(report) - 2 == len(first) + 2


def test_damage_that_no_answer_tells_of_is_not_assumed(tmp_path: Path) -> None:
    """Another command may get in where damage hides what the key is bound to; but then the answer says so."""
    events = told("accept")
    other = [evolve(event, fingerprint="other") for event in told("ruled", "enter", process="q", start=1)]
    held = {"outcome": "held", "reason": "task_busy", "result": None}
    assert misfit(tmp_path, [*events, *other, answer_of(other[-1], **held, damage=[])])[0] == 2
    damaged = answer_of(other[-1], **held, damage=["receipts"])
    fits = checked([write(tmp_path / "damaged", ticking([*events, *other, damaged]))])
    assert fits.misfit is None
    assert fits.notes[SPOILED] == 1


def test_a_key_belongs_to_one_task(tmp_path: Path) -> None:
    elsewhere = evolve(told("accept", start=7)[0], task="another", process="q")
    assert misfit(tmp_path, [*told(*HAPPY), elsewhere])[0] == len(HAPPY)
    turned_away: dict[str, Any] = {
        "reason": "idempotency_key_conflict",
        "outcome": "turned_away",
        "result": None,
        "damage": [],
    }
    conflict = Event("conflict", "q", 1, "k", "another", 7, 2.0, 0, "other", turned_away)
    assert checked([write(tmp_path / "away", ticking([*told(*HAPPY), conflict]))]).misfit is None


def test_lost_events_leave_nothing_to_say(tmp_path: Path) -> None:
    path = write(tmp_path / "log", told("accept"))
    path.write_bytes(path.read_bytes().replace(b'"process":"p"}', b'"process":"p","lost":3}', 1))
    with pytest.raises(EventLogError, match="3 events could not be written"):
        checked([path])


def spoiled(stream: Stream, chance: random.Random) -> list[Event]:
    """A stream in which things are not as they were."""
    events = list(stream.events)
    for _ in range(chance.randrange(1, 6)):
        at, other = chance.randrange(len(events)), chance.randrange(len(events))
        changes: list[dict[str, Any]] = [
            {"action": events[other].action, "details": {**events[at].details, **events[other].details}},
            {"key": chance.choice(["key1", "key2", "key3"])},
            {"order": chance.randrange(40)},
            {"token": chance.randrange(5)},
            {"process": events[other].process, "strand": events[other].strand},
            {"task": chance.choice(["task1", "task2"])},
            {"at": chance.random() * 2000},
        ]
        events[at] = evolve(events[at], **chance.choice(changes))
    return events


@pytest.mark.parametrize("seed", range(40))
def test_whatever_a_log_says_there_is_an_answer(seed: int, tmp_path: Path) -> None:
    stream = driven(seed % 10, EVERYTHING, swarm=False)
    path = write(tmp_path / "log", spoiled(stream, random.Random(seed)), stream.processes)
    report = checked([path])
    if report.misfit is not None:
        story = tell([str(path)], report.misfit, lambda events, share: None)
        with suppress(NoCounterexampleError):
            assert counterexample(story, report.misfit).steps


# How it is told ------------------------------------------------------------------------------------------------------


def test_the_story_of_a_misfit(tmp_path: Path) -> None:
    events = told(*HAPPY[:5])
    again = [evolve(e, token=2 if e.token else 0) for e in told("ruled", "enter", "claim", process="q", start=3)]
    path = write(tmp_path / "log", ticking([*events, *again]))
    report = checked([path])
    assert report.misfit is not None
    story = tell([str(path)], report.misfit, lambda events, share: None)
    assert [chapter.event.action for chapter in story.last] == [*HAPPY[:5], "ruled", "enter"]
    trace = counterexample(story, report.misfit)
    assert [step.action for step in trace.steps] == ["accept", "enter", "offer", "claim", "enter", "claim"]
    assert trace.property == "a_live_lease_is_not_taken"
    assert trace.instance.without == {"one-lease-per-task"}
    assert trace.broken()


def test_steps_of_a_whole_run_are_a_trace(tmp_path: Path) -> None:
    """What was taken window by window is taken again in one instance, all keys and processes together."""
    for seed in range(8):
        stream = driven(seed, FATAL, swarm=False)
        path = write(tmp_path / f"{seed}", [*stream.events, *told("note", start=10**6)], stream.processes)
        report = checked([path], only="task1")
        assert report.misfit is None
        story = Story()
        checked([path], only="task1", recorder=story.record)
        note = checked([path]).misfit
        assert note is not None
        if all(step.placed for step in story.steps):
            assert len(counterexample(story, evolve(note, refused=None)).steps) == len(story.steps)


def test_what_no_protection_forbids_is_no_counterexample(tmp_path: Path) -> None:
    events = told(*HAPPY)
    del events[4]
    _, report = misfit(tmp_path, events)
    assert report.misfit is not None
    with pytest.raises(NoCounterexampleError, match="no protection"):
        counterexample(Story(), report.misfit)


# A window is exact ---------------------------------------------------------------------------------------------------

WHOLE = Instance.of(CHAIN, sizes={"Key": 4, "Process": 3, "Task": 1}, fixed={"task": (0,) * 4})


def walked(seed: int, length: int) -> list[State]:
    machine, chance = Machine(WHOLE), random.Random(seed)
    state = next(machine.initial_states())
    states = [state]
    steps = list(machine.steps())
    while len(states) < length:
        step = chance.choice(steps)
        if machine.why_not(state, step) is None:
            state = machine.apply(state, step)
            states.append(state)
    return states


def records(windows: Windows, state: State) -> tuple[list[KeyRecord], TaskRecord, list[StrandRecord]]:
    names = [f"k{number}" for number in range(4)]
    cells = [tuple(state.read(function, number) for function in windows.of_key) for number in range(4)]
    keys = [KeyRecord(name, "t", of) for name, of in zip(names, cells, strict=True)]
    holder = state.read("holder", 0)
    token, barrier = state.read("token", 0), state.read("barrier", 0)
    assert isinstance(token, int)
    assert isinstance(barrier, int)
    lease = (None if not isinstance(holder, int) else names[holder], token, state.read("lease_damaged", 0), barrier)
    strands = []
    for number in range(3):
        serving, held = state.read("serving", number), state.read("held", number, 0)
        assert isinstance(held, int)
        key = names[serving] if isinstance(serving, int) else ""
        ghosts = (state.read("unconfirmed", number), state.read("unapproved", number))
        strands.append(StrandRecord(key, serving is not None, state.read("stage", number), held, *ghosts))
    return keys, TaskRecord("t", *lease), strands


def windowed(windows: Windows, state: State, step: Step) -> tuple[object, ...] | None:
    """What a step makes of its key, task and process, seen through a window."""
    keys, task, strands = records(windows, state)
    kinds = [str(parameter.type) for parameter in CHAIN.action_named(step.action).parameters]
    named = dict(zip(kinds, step.arguments, strict=True))
    key, process = named.get("Key", 0), named.get("Process", 0)
    assert isinstance(key, int)
    assert isinstance(process, int)
    if step.action == "settle":
        confirmed = [n for n, s in enumerate(strands) if s.stage == "CONFIRMED" and s.key == keys[key].name]
        process = (confirmed or [0])[0]
    restless = [k for k in keys if not windows.quiet(k.cells) and k is not keys[key]][:1]
    holders = [k for k in keys if k.name == task.holder and k is not keys[key] and k not in restless]
    window = windows.compose(keys[key], task, strands[process], [*restless, *holders])
    small = Step(
        step.action,
        tuple(0 if kind in ("Key", "Process", "Task") else v for kind, v in zip(kinds, step.arguments, strict=True)),
    )
    after = windows.rules.apply(window.state, small)
    if after is None:
        return None
    windows.read_task(window, after, task)
    serves = strands[process].key if strands[process].serving else keys[key].name
    strand = windows.read_strand(window, after, strands[process], serves)
    return (windows.cells(after), (*task.lease, task.barrier), strand if strand.serving else strand._replace(key=""))


def in_the_whole(windows: Windows, machine: Machine, state: State, step: Step) -> tuple[object, ...] | None:
    if machine.why_not(state, step) is not None:
        return None
    kinds = [str(parameter.type) for parameter in CHAIN.action_named(step.action).parameters]
    named = dict(zip(kinds, step.arguments, strict=True))
    key, process = named.get("Key", 0), named.get("Process", 0)
    assert isinstance(key, int)
    assert isinstance(process, int)
    after = machine.successor(state, step)
    (keys, task, strands), (before, _, others) = records(windows, after), records(windows, state)
    assert [k.cells for n, k in enumerate(keys) if n != key] == [k.cells for n, k in enumerate(before) if n != key]
    assert [s for n, s in enumerate(strands) if n != process] == [s for n, s in enumerate(others) if n != process]
    return (keys[key].cells, (*task.lease, task.barrier), strands[process])


@pytest.mark.parametrize("seed", range(6))
def test_a_window_shows_all_that_a_step_depends_on(seed: int) -> None:
    """Every step, in the whole of four keys and three processes and in its window: allowed alike, to the same end."""
    windows, machine = standard(), Machine(WHOLE)
    steps = list(machine.steps())
    chance = random.Random(seed)
    for state in walked(seed, 40):
        for step in chance.sample(steps, 60):
            whole = in_the_whole(windows, machine, state, step)
            if step.action != "settle" or whole is None:
                assert windowed(windows, state, step) == whole, machine.show_step(step)
            else:
                assert windowed(windows, state, step) is not None


# Memory and order ----------------------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Records of tasks that are not in use are on disk, so three times the events take the same memory."""
    peaks = []
    for name, count in (("warm", 4500), ("short", 1500), ("long", 4500)):
        path = write(tmp_path / name, endless(count))
        tracemalloc.start()
        report = checked([path], in_memory=30, window=100)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert report.misfit is None
        assert report.total == count
    assert peaks[2] < 1.1 * peaks[1]


def test_records_survive_their_way_to_disk() -> None:
    with_all: Any = ("p", 1)
    book = Book(in_memory=100)
    strand = StrandRecord("k", True, "CLAIMED", 2, False, False, 2, True, 5)
    task = book.task("t")
    task.holder, task.token, task.ends, task.strands, task.restless = "k", 2, 31.5, {with_all: strand}, ["k"]
    task.last = ("p", 1, "claim", "k", 5, 1.5)
    key = KeyRecord("k", "t", ("PENDING", "OFFERED", False, 0), 4, "f", {"outcome": "started"}, "f", True)
    book.keep_key(key, new=True)
    before = task.copy()
    for number in range(1000):
        book.task(f"t{number}")
        book.keep_key(KeyRecord(f"k{number}", "t", ()), new=True)
        book.see(f"p{number}")
    assert book.task("t") == before
    assert book.task("t") is not task
    assert book.key("k") == key
    assert book.key("nobody") is None
    book.see("p1")
    assert book.counts == {"key": 1001, "task": 1001, "process": 1000}
    book.close()


def test_numbers_that_are_missing() -> None:
    numbers = Numbers()
    assert numbers.take(1, wrote=True)
    assert numbers.take(4, wrote=True)
    assert numbers.take(6, wrote=False)
    assert numbers.missing == [2, 3, 5, 6]
    assert numbers.between(1, 3)
    assert not numbers.between(3, 4)
    numbers.use(1, 3)
    assert numbers.missing == [3, 5, 6]
    assert numbers.take(2, wrote=True)
    assert numbers.take(5, wrote=True)
    assert not numbers.take(5, wrote=True)
    assert numbers.fell == 1
    assert numbers.between(0, 2)


def delayed(events: Sequence[Event], chance: random.Random) -> list[Event]:
    """The same events, some of them told later, but before their strand goes on."""
    late = list(events)
    for _ in range(len(events) // 4):
        at = chance.randrange(len(late))
        event = late.pop(at)
        end = at
        while end < min(at + 6, len(late)) and late[end].process != event.process:
            end += 1
        late.insert(end, event)
    return late


@pytest.mark.parametrize("seed", range(10))
def test_late_lines_are_put_in_order(seed: int, tmp_path: Path) -> None:
    """Processes that share a file may tell of their steps in another order than they took them."""
    stream = driven(seed, HEALTHY | {"die", "pass_time", "foreign"}, swarm=False)
    events = delayed(stream.events, random.Random(seed))
    assert events != list(stream.events)
    report = checked([write(tmp_path / "log", events, stream.processes)])
    assert report.misfit is None, report.misfit
    assert not report.notes[UNTOLD]
