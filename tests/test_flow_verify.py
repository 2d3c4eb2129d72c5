"""Journals that drivers have written are sound, cut off anywhere; of a mutilated one it is said what is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from flow_programs import PROGRAMS, awaited, failing, gathered, hooked, nested, parent, raced, run, serial, unawaited
from flow_programs import to_the_end as to_its_end
from flow_runs import World
from onestart.flow import Flow, Handle, Outcome, flow
from onestart.flow.identity import frontier_hash, parse
from onestart.flow.verify import CHECKS, Facts, Soundness, verify
from onestart.memory import MemoryLedger
from onestart.ports import View
from onestart.records import Record, Step

NAMED = pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
VERSIONED = pytest.mark.parametrize("version", [2, 3])


@VERSIONED
@NAMED
def test_what_a_run_writes_is_sound_at_every_moment(program: Flow, version: int) -> None:
    entries = run(program, version)
    for length in range(1, len(entries) + 1):
        assert verify(entries[:length]) == Soundness((), length)


STEADY = [program for program in PROGRAMS if program is not unawaited]  # which may end before it has done all again


@pytest.mark.parametrize("program", STEADY, ids=[program.name for program in STEADY])
def test_cut_off_it_goes_on_and_stays_sound(program: Flow) -> None:
    """With causal ids every resume comes to what an uninterrupted run comes to."""
    whole = World(failing=frozenset({"fail"}), in_flight="again")
    expected = to_the_end(whole, program)
    for cut in range(1, len(whole.records), 1 + len(whole.records) // 40):
        world = World(failing=frozenset({"fail"}), in_flight="again")
        world.run(program, writes=cut)
        assert to_the_end(world, program) == expected
        assert verify(journal(world)).problems == ()


def to_the_end(world: World, program: Flow) -> Outcome | None:
    while (outcome := world.run(program)) is not None and outcome.state == "parked":
        for question in outcome.waits:
            world.answer(question.wait, "yes")
    return outcome


def journal(world: World) -> list[Step]:
    return [record for record in world.records if isinstance(record, Step)]


class SlowLedger(MemoryLedger):
    """Others get on while it is written."""

    async def step(self, decide: Callable[[View], tuple[Record | None, Any]]) -> Any:
        await asyncio.sleep(0)
        answer = await super().step(decide)
        await asyncio.sleep(0)
        return answer


def after(rounds: int) -> asyncio.Future[None]:
    """Something that is not of the flow, so many rounds of the loop away."""
    future = asyncio.get_running_loop().create_future()

    def tick(left: int) -> None:
        if not future.done():
            future.set_result(None) if left == 0 else future.get_loop().call_soon(tick, left - 1)

    tick(rounds)
    return future


def test_nothing_is_recorded_after_the_end() -> None:
    """Whatever a flow has left running, and whenever it gets to its next step."""
    late = set()
    for rounds in range(100):

        @flow
        async def leaves(f: Handle, rounds: int = rounds) -> int:
            async def background() -> None:
                await after(rounds)
                await f.run(["late"])

            tasks = [asyncio.create_task(background())]
            await f.run(["first"])
            return len(tasks)

        ledger = SlowLedger()
        asyncio.run(to_its_end(leaves, ledger, 3))
        entries = [record for record in ledger.records if isinstance(record, Step)]
        assert entries[-1].what == "complete"
        late.add(len(entries))
    assert late == {4, 6}  # without and with the late step


def test_a_legacy_journal_has_no_version_and_indexes_at_the_end() -> None:
    assert verify(legacy()).sound


def legacy() -> list[Step]:
    task = "flow:root"
    return [
        Step("root", task, "root", "", 1, {"flow": "old"}),
        Step("root", task, "done", "run-1", 1, {"kind": "run", "result": 1}),
        Step("root", task, "wait", "human-2", 1, {"question": "q?", "to": "anna"}),
        Step("root", task, "attempt", "", 2, {"number": 2}),
        Step("root", task, "answer", "human-2", 0, {"value": "yes"}),
        Step("root", task, "index", "hook-3", 2, {"kind": "hook"}),
        Step("root", task, "verdict", "hook-3", 2, {"verdict": "pass"}),
        Step("root", task, "complete", "complete-4", 2, {"result": None}),
    ]


def test_nothing_is_nothing() -> None:
    assert verify([]) == Soundness((), 0)


Mutilation = Callable[[list[Step]], list[Step]]


def place_of(entries: list[Step], what: str, kind: str = "", nth: int = 0) -> int:
    """Where the nth entry of this sort is."""
    found = [
        number
        for number, entry in enumerate(entries)
        if entry.what == what and (not kind or getattr(parse(entry.step), "kind", "") == kind)
    ]
    return found[nth]


def without(what: str, kind: str = "", nth: int = 0) -> Mutilation:
    def mutilate(entries: list[Step]) -> list[Step]:
        number = place_of(entries, what, kind, nth)
        return entries[:number] + entries[number + 1 :]

    return mutilate


def without_step(step: str) -> Mutilation:
    return lambda entries: [entry for entry in entries if entry.step != step]


def twice(what: str, kind: str = "", **body: Any) -> Mutilation:
    """The entry once more, right after it."""

    def mutilate(entries: list[Step]) -> list[Step]:
        number = place_of(entries, what, kind)
        entry = entries[number]
        return [*entries[: number + 1], evolve(entry, body=dict(entry.body) | body), *entries[number + 1 :]]

    return mutilate


def changed(what: str, kind: str = "", nth: int = 0, /, *, step: str | None = None, **body: Any) -> Mutilation:
    """The entry with another id, or with something else in its body."""

    def mutilate(entries: list[Step]) -> list[Step]:
        number = place_of(entries, what, kind, nth)
        entry = entries[number]
        new = evolve(entry, step=entry.step if step is None else step, body=dict(entry.body) | body)
        return [*entries[:number], new, *entries[number + 1 :]]

    return mutilate


def renamed(old: str, new: str) -> Mutilation:
    """A step under another id throughout."""
    return lambda entries: [evolve(entry, step=new) if entry.step == old else entry for entry in entries]


def added(entry: Step) -> Mutilation:
    return lambda entries: [*entries, entry]


def with_token(what: str, nth: int, token: int) -> Mutilation:
    def mutilate(entries: list[Step]) -> list[Step]:
        number = place_of(entries, what, "", nth)
        return [*entries[:number], evolve(entries[number], token=token), *entries[number + 1 :]]

    return mutilate


def swapped(first: str, second: str) -> Mutilation:
    """The first entries of two sorts in each other's place."""

    def mutilate(entries: list[Step]) -> list[Step]:
        one, two = place_of(entries, first), place_of(entries, second)
        entries = list(entries)
        entries[one], entries[two] = entries[two], entries[one]
        return entries

    return mutilate


def with_cause(cause: str) -> Mutilation:
    """A step that came after something else, and whose hash says so."""

    def mutilate(entries: list[Step]) -> list[Step]:
        entry = entries[place_of(entries, "index")]
        parsed = parse(entry.step)
        assert parsed is not None
        step = str(evolve(parsed, after=frontier_hash([cause])))
        new = evolve(entry, step=step, body=dict(entry.body) | {"after": [cause]})
        return [new if other is entry else evolve_if(other, entry.step, step) for other in entries[:3]]

    return mutilate


def evolve_if(entry: Step, old: str, new: str) -> Step:
    return evolve(entry, step=new) if entry.step == old else entry


def closing(calls: int, forks: int) -> Mutilation:
    """Another statement about the first frontier that was left behind."""

    def mutilate(entries: list[Step]) -> list[Step]:
        number = next(n for n, entry in enumerate(entries) if entry.body.get("closed"))
        after = next(iter(entries[number].body["closed"]))
        last = place_of(entries, "index", "", -1)
        body = dict(entries[last].body)
        body["closed"] = dict(body["closed"]) | {after: [calls, forks]}
        return [*entries[:last], evolve(entries[last], body=body), *entries[last + 1 :]]

    return mutilate


def narrowed(entries: list[Step]) -> list[Step]:
    """Every frontier was left behind with one call less than it had."""
    return [
        evolve(entry, body=dict(entry.body) | {"closed": {a: [max(c - 1, 0), f] for a, (c, f) in closed.items()}})
        if (closed := entry.body.get("closed"))
        else entry
        for entry in entries
    ]


def same_place(entries: list[Step]) -> list[Step]:
    """Two counted steps in one place."""
    placed = [n for n, entry in enumerate(entries) if "place" in entry.body]
    first, second = entries[placed[0]], entries[placed[1]]
    moved = evolve(second, body=dict(second.body) | {"place": first.body["place"]})
    return [moved if entry is second else entry for entry in entries]


def without_llm(entries: list[Step]) -> list[Step]:
    return without_step(entries[place_of(entries, "index", "llm")].step)(entries)


def with_fork(entries: list[Step], number: int) -> list[Step]:
    """The last step came after a fork that a frontier, closed by then, has not had."""
    after = next(a for entry in entries for a, (_, forks) in entry.body.get("closed", {}).items() if forks)
    cause = f"fork-after-{after}-{number}"
    last = place_of(entries, "index", "", -1)
    step = f"{entries[last].body['kind']}-after-{frontier_hash([cause])}-0"
    return [*entries[:last], evolve(entries[last], step=step, body=dict(entries[last].body) | {"after": [cause]})]


def end_on_last(entries: list[Step]) -> list[Step]:
    """The marker has the place of the last step."""
    last = parse(entries[place_of(entries, "index", "", -1)].step)
    assert last is not None
    return [*entries[:-1], evolve(entries[-1], step=str(evolve(last, kind="complete")))]


LOST = "f" * 64
EMPTY = frontier_hash([])
BY_SHAPE = ("shape", "id")  # of which the reader of journals speaks already
MUTILATED: dict[str, tuple[Flow, int, Mutilation, str]] = {
    "no beginning": (serial, 3, without("root"), "root"),
    "two beginnings": (serial, 3, twice("root"), "root"),
    "an attempt too many": (serial, 3, twice("attempt"), "attempt"),
    "an attempt is missing": (gathered, 3, changed("attempt", number=4), "attempt"),
    "an older token": (serial, 3, with_token("done", 0, 0), "token"),
    "an entry of no shape": (serial, 3, changed("wait", question=["?"], closed=7), "shape"),
    "an entry that nobody knows": (serial, 3, added(Step("root", "flow:root", "moved", "", 9)), "shape"),
    "an id that is none": (serial, 2, changed("index", step="run_1"), "id"),
    "a result of no step": (serial, 2, changed("done", step="run_1"), "id"),
    "another kind": (serial, 2, changed("index", kind="llm"), "kind"),
    "a causal id in a counted root": (serial, 2, renamed("run-1", f"run-after-{EMPTY}-0"), "version"),
    "under no dispatch": (parent, 2, renamed("dispatch-2--run-2", "run-1--run-2"), "scope"),
    "declared, and not counted": (raced, 3, changed("index", declared={f"run-after-{EMPTY}-0": ""}), "declaration"),
    "declared in another flow": (parent, 2, changed("index", declared={"dispatch-9--run-1": ""}), "declaration"),
    "declared on the ordinal of another step": (serial, 2, changed("index", declared={"run-2": ""}), "holder"),
    "admitted twice": (serial, 3, twice("index"), "admission"),
    "completed, and never admitted": (serial, 2, without("index"), "admission"),
    "answered, and never asked": (serial, 2, without("wait"), "admission"),
    "run again, and never admitted": (
        serial,
        2,
        added(Step("root", "flow:root", "again", "run-9", 9, {"number": 1})),
        "admission",
    ),
    "completed twice": (serial, 3, twice("done", result="other"), "completion"),
    "answered twice": (serial, 3, twice("answer", value="no"), "completion"),
    "two verdicts": (hooked, 3, twice("verdict", verdict="fail"), "completion"),
    "run again after its end": (
        serial,
        2,
        lambda entries: [*entries[:-1], Step("root", "flow:root", "again", "run-1", 9, {"number": 1})],
        "completion",
    ),
    "run again out of turn": (
        serial,
        2,
        lambda entries: [*entries[:2], Step("root", "flow:root", "again", "run-1", 1, {"number": 3})],
        "again",
    ),
    "one ordinal, two steps": (serial, 2, renamed("llm-2", "llm-1"), "holder"),
    "a child's dispatch has the ordinal of another step": (
        parent,
        2,
        lambda entries: [evolve(e, step=e.step.replace("dispatch-2--", "dispatch-1--")) for e in entries],
        "holder",
    ),
    "one place, two steps": (raced, 3, same_place, "holder"),
    "an ordinal is missing": (serial, 2, without_step("llm-2"), "ordinal"),
    "the last ordinal is missing": (gathered, 2, without_step("run-6"), "ordinal"),
    "an ordinal of a child is missing": (parent, 2, without_step("dispatch-2--llm-1"), "ordinal"),
    "an ordinal of a hook is missing": (hooked, 2, without_step("llm-3"), "ordinal"),
    "another hash": (serial, 3, changed("index", "llm", after=["run-9"]), "cause"),
    "no causes": (serial, 3, changed("index", "llm", after=None), "cause"),
    "a predecessor is missing": (awaited, 3, without_llm, "predecessor"),
    "a predecessor has no result": (serial, 3, without("done"), "predecessor"),
    "within a hook that is not there": (serial, 3, with_cause(f"within-hook-after-{LOST}-0"), "predecessor"),
    "a fork too many": (nested, 3, lambda entries: with_fork(entries, 9), "predecessor"),
    "a place that is none": (raced, 3, changed("index", "run", place=["here", 0]), "place"),
    "a place in a counted root": (serial, 2, changed("index", place=[EMPTY, 0]), "place"),
    "closed with other counts": (nested, 3, closing(7, 7), "closed"),
    "more calls than were closed": (nested, 3, narrowed, "closed"),
    "part of a hook that is not there": (hooked, 3, changed("index", "llm", within=f"hook-after-{LOST}-0"), "within"),
    "part of something that is no hook": (hooked, 2, changed("index", "llm", within="run-1"), "within"),
    "a watermark below its hook": (hooked, 2, changed("verdict", after_step=1), "watermark"),
    "a watermark below its own steps": (hooked, 2, changed("verdict", after_step=3), "watermark"),
    "something after the end": (serial, 3, swapped("complete", "answer"), "marker"),
    "the end on the ordinal of a step": (serial, 2, changed("complete", step="complete-3"), "marker"),
    "the end of a child": (parent, 2, changed("complete", step="dispatch-1--complete-9"), "marker"),
    "the end in the place of a step": (failing, 3, end_on_last, "marker"),
}


@pytest.mark.parametrize(("program", "version", "mutilation", "check"), MUTILATED.values(), ids=list(MUTILATED))
def test_a_mutilated_journal_is_found_out(program: Flow, version: int, mutilation: Mutilation, check: str) -> None:
    entries = mutilation(run(program, version))
    found = verify(entries)
    assert not found.sound
    assert check in {problem.check for problem in found.problems}, [str(problem) for problem in found.problems]


def test_each_check_finds_something() -> None:
    """A check that no mutilated journal needs would not be tested."""
    found = {
        check
        for program, version, mutilation, name in MUTILATED.values()
        if name not in BY_SHAPE
        for facts in [Facts.of(tuple(mutilation(run(program, version))))]
        for check in CHECKS
        if list(check(facts))
    }
    assert found == set(CHECKS)


def test_a_problem_says_where_it_is() -> None:
    entries = without("done")(run(serial, 2))
    entries = twice("answer", value="no")(entries)
    [problem] = verify(entries).problems
    assert str(problem) == "entry 10: 'human-4' has come to its end already, in entry 9 (completion)"
