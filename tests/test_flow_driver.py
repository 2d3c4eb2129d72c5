"""A root, its driver and its journal: who may drive, what is kept, what is refused, and what a version is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from flow_runs import Clock, World
from onestart.flow import (
    AGAIN,
    NEVER,
    BadFlowError,
    Call,
    DriverBusyError,
    Flow,
    Flows,
    Handle,
    JournalError,
    Known,
    NewerJournalError,
    Outcome,
    StepFailedError,
    UnknownKindError,
    WaitError,
    Worker,
    flow,
)
from onestart.flow.journal import read
from onestart.health import Health, Reading
from onestart.memory import MemoryLedger
from onestart.ports import LedgerUnavailableError
from onestart.records import Lease, Step
from test_jsonl_ledger import Disk, ledger_on, put


@flow
async def asks(f: Handle) -> Any:
    """Two branches, one of which asks a person."""

    async def ask() -> Any:
        return await f.human("Ship it?", to="anna")

    async def work() -> Any:
        return [await f.llm("a"), await f.llm("b")]

    return await asyncio.gather(ask(), work())


def completed(outcome: Outcome | None) -> Any:
    assert outcome is not None
    assert outcome.state == "completed", outcome
    return outcome.value


def test_a_flow_parks_when_nothing_else_can_be_done() -> None:
    """Not before: the other branch is carried out, and is not repeated when the flow goes on."""
    world = World()
    outcome = world.run(asks)
    assert outcome is not None
    assert (outcome.state, outcome.exit_code) == ("parked", 3)
    (question,) = outcome.waits
    assert (question.question, question.to) == ("Ship it?", "anna")
    assert world.effects == ["a", "b"]
    again = world.run(asks)
    assert again == outcome
    world.answer(question.wait, {"yes": True})
    assert completed(world.run(asks)) == [{"yes": True}, ["result of a", "result of b"]]
    assert world.effects == ["a", "b"]


def test_an_answer_is_given_once() -> None:
    """The same again is no other answer; another one is refused, and so is one to nothing."""
    world = World()
    outcome = world.run(asks)
    assert outcome is not None
    wait = outcome.waits[0].wait
    world.answer(wait, "yes")
    world.answer(wait, "yes")
    for other, value, said in ((wait, "no", "answered already"), ("human-9", "yes", "no question")):
        with pytest.raises(WaitError, match=said):
            world.answer(other, value)
    assert [body["value"] for what, _, body in world.entries() if what == "answer"] == ["yes"]


def test_a_completed_flow_gives_its_value_again() -> None:
    """And writes nothing but that a driver was there."""
    world = World()
    value = completed(world.run(flow(name="short")(short)))
    before = world.entries()
    assert completed(world.run(flow(name="short")(short))) == value
    assert world.entries() == before
    assert world.effects == ["a"]


async def short(f: Handle) -> Any:
    return await f.llm("a")


def test_one_driver_at_a_time() -> None:
    """A second one is turned away while the first lives, and takes over when its lease has run out."""

    async def both() -> None:
        clock, ledger = Clock(), MemoryLedger()
        begun, go = asyncio.Event(), asyncio.Event()

        async def slow(call: Call) -> str:
            begun.set()
            await go.wait()
            return "done"

        def flows(name: str) -> Flows:
            return Flows(ledger=ledger, workers={"llm": Worker(slow)}, clock=clock, process=name)

        first = asyncio.create_task(flows("one").run(flow(short), "root"))
        await begun.wait()
        with pytest.raises(DriverBusyError):
            await flows("two").run(flow(short), "root")
        clock.seconds += 1000
        second = await flows("two").run(flow(short), "root")
        assert second.state == "held"
        go.set()
        outcome = await first
        assert (outcome.state, outcome.reason) == ("lost", "driver_lease_lost")
        done = [record for record in ledger.records if isinstance(record, Step) and record.what == "done"]
        assert done == []

    asyncio.run(both())


def test_a_failure_is_recorded_and_replayed() -> None:
    """With the same diagnostic, and without another effect."""

    @flow
    async def tries(f: Handle) -> Any:
        try:
            await f.llm("fails")
        except StepFailedError as error:
            return [error.diagnostic, await f.run(["instead"])]
        raise AssertionError

    world = World(failing=frozenset(["fails"]), in_flight="again")
    world.run(tries, arrivals=1)
    assert completed(world.run(tries)) == ["ValueError: fails fails", "result of instead"]
    assert world.effects.count("fails") == 1


def test_a_body_that_raises_fails_and_may_be_resumed() -> None:
    """What was done stays done."""
    broken = [True]

    @flow
    async def body(f: Handle) -> Any:
        await f.llm("a")
        if broken[0]:
            raise KeyError("oops")
        return "fine"

    world = World()
    outcome = world.run(body)
    assert outcome is not None
    assert (outcome.state, outcome.reason, outcome.exit_code) == ("failed", "step_failed", 1)
    assert "KeyError" in outcome.message
    broken[0] = False
    assert completed(world.run(body)) == "fine"
    assert world.effects == ["a"]


@pytest.mark.parametrize("cut", range(3, 12))
def test_a_worker_that_can_be_asked_resolves_what_was_under_way(cut: int) -> None:
    """It says whether the step was ever started, and what it came to; nobody guesses."""
    started: dict[str, str] = {}

    async def carry_out(call: Call) -> str:
        assert call.key not in started
        started[call.key] = "kept"
        await asyncio.sleep(0)
        return "kept"

    async def look_up(call: Call) -> object:
        return Known(started[call.key]) if call.key in started else NEVER

    world = World(workers={"llm": Worker(carry_out, in_flight="ask", look_up=look_up)})
    body = flow(name="short")(short)
    assert world.run(body, writes=cut) is None
    assert completed(world.run(body)) == "kept"
    assert len(started) == 1


def test_a_worker_that_cannot_tell_leaves_it_to_an_operator() -> None:
    async def carry_out(call: Call) -> str:
        await asyncio.Event().wait()
        return "never"

    async def look_up(call: Call) -> object:
        return None

    world = World(workers={"llm": Worker(carry_out, in_flight="ask", look_up=look_up)})
    body = flow(name="short")(short)
    assert world.run(body, writes=10) is None
    outcome = world.run(body)
    assert outcome is not None
    assert outcome.state == "held"
    assert "cannot tell" in str(outcome.held)


def test_who_is_cancelled_takes_nobody_along() -> None:
    """A step that one task no longer waits for goes on, is recorded, and can be awaited by another."""

    @flow
    async def body(f: Handle) -> Any:
        step = f.llm("a")

        async def wait() -> Any:
            return await step

        first, second = asyncio.create_task(wait()), asyncio.create_task(wait())
        await asyncio.sleep(0)
        first.cancel()
        return [await second, await step]

    world = World()
    assert completed(world.run(body)) == ["result of a", "result of a"]
    assert world.effects == ["a"]


@pytest.mark.parametrize("identity", [2, 3])
def test_what_nobody_awaits_is_done_all_the_same(identity: int) -> None:
    """A body that returns first does not decide how much of a branch is done; in order it resumes from any cut."""

    @flow
    async def body(f: Handle) -> Any:
        async def aside() -> None:
            await f.llm("aside 1")
            await f.run(["aside 2"])

        asyncio.create_task(aside())  # noqa: RUF006
        return await f.llm("a")

    order = ("a", "aside 1", "aside 2")
    whole = World(identity=identity)
    assert completed(whole.run(body, order=order)) == "result of a"
    assert whole.effects == ["a", "aside 1", "aside 2"]
    for cut in range(2, len(whole.records)):
        world = World(identity=identity, in_flight="again")
        world.run(body, order=order, writes=cut)
        assert completed(world.run(body, order=order)) == "result of a"


def test_a_question_that_nobody_awaits_parks_the_flow() -> None:
    @flow
    async def body(f: Handle) -> Any:
        asyncio.ensure_future(f.human("Really?"))  # noqa: RUF006
        return await f.llm("a")

    world = World()
    outcome = world.run(body)
    assert outcome is not None
    assert outcome.state == "parked"
    world.answer(outcome.waits[0].wait, "yes")
    assert completed(world.run(body)) == "result of a"


def test_what_waits_for_something_else_ends_with_the_body() -> None:
    """A heartbeat, say."""

    @flow
    async def body(f: Handle) -> Any:
        async def forever() -> None:
            await asyncio.Event().wait()

        asyncio.create_task(forever())  # noqa: RUF006
        return await f.llm("a")

    assert completed(World().run(body)) == "result of a"


def test_an_operator_says_what_became_of_a_step() -> None:
    """That it may be carried out again, what it came to, or how it failed; with who says so, and why."""

    @flow
    async def body(f: Handle) -> Any:
        try:
            return await f.llm("a")
        except StepFailedError as error:
            return error.diagnostic

    async def resolve(world: World, step: str, resolution: Any, **said: Any) -> None:
        ledger = MemoryLedger(world.records)
        flows = Flows(ledger=ledger, clock=world.clock)
        await flows.resolve("root", step, resolution, **({"by": "anna", "why": "I looked"} | said))
        world.records = list(ledger.records)

    ends = ((AGAIN, "result of a"), (Known("seen"), "seen"), (Known(failed="gone"), "gone"))
    for resolution, value in ends:
        world = World()
        assert world.run(body, arrivals=0) is None
        step = next(step for what, step, _ in world.entries() if what == "index")
        with pytest.raises(WaitError, match="a driver may be carrying out"):
            asyncio.run(resolve(world, step, resolution))
        world.clock.seconds += 100
        for wrong in ({"by": ""}, {"why": "\n"}):
            with pytest.raises(BadFlowError):
                asyncio.run(resolve(world, step, resolution, **wrong))
        with pytest.raises(WaitError, match="no step 'llm-9'"):
            asyncio.run(resolve(world, "llm-9", resolution))
        asyncio.run(resolve(world, step, resolution))
        assert completed(world.run(body)) == value
        assert world.effects == ["a", "a"] if resolution is AGAIN else ["a"]
        with pytest.raises(WaitError, match="is under way"):
            asyncio.run(resolve(world, step, resolution))


def test_slots_limit_how_many_are_under_way() -> None:
    """For each kind apart, in the order in which they were asked for."""
    under_way, most = [0], [0]

    async def carry_out(call: Call) -> str:
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        await asyncio.sleep(0)
        under_way[0] -= 1
        return "done"

    @flow
    async def wide(f: Handle) -> Any:
        return await asyncio.gather(*(f.llm(f"item {n}") for n in range(7)))

    world = World(workers={"llm": Worker(carry_out, slots=2)})
    assert completed(world.run(wide)) == ["done"] * 7
    assert most == [2]


def test_a_hook_that_ran_steps_of_its_own_is_replayed_as_one() -> None:
    """In both versions, and the counter goes on where it was."""
    judged = []

    @flow
    async def body(f: Handle) -> Any:
        async def judge(f: Handle, given: Any) -> str:
            judged.append(given)
            await f.llm("inner 1")
            await f.llm("inner 2")
            return "pass"

        return [await f.hook("judge", judge, {"x": 1}), await f.run(["a"]), await f.run(["b"])]

    for identity in (2, 3):
        judged.clear()
        world = World(identity=identity, in_flight="again")
        assert world.run(body, arrivals=3) is None
        assert completed(world.run(body)) == ["pass", "result of a", "result of b"]
        assert judged == [{"x": 1}]
        assert world.effects.count("inner 1") == world.effects.count("a") == 1
        if identity == 2:
            assert [s for w, s, _ in world.entries() if w == "index"] == ["hook-1", "llm-2", "llm-3", "run-4", "run-5"]


@pytest.mark.parametrize(("verdict", "said"), [(None, "noop"), ("fail", "fail"), (ValueError("no"), "fail")])
def test_verdicts(verdict: Any, said: str) -> None:
    """None is noop, and what it raises is fail."""

    async def judge(f: Handle, given: Any) -> Any:
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    @flow
    async def body(f: Handle) -> Any:
        return await f.hook("judge", judge)

    assert completed(World().run(body)) == said


def test_another_input_does_not_get_the_verdict() -> None:
    given = ["one"]

    async def judge(f: Handle, given: Any) -> str:
        return "pass"

    @flow
    async def body(f: Handle) -> Any:
        return [await f.hook("judge", judge, given[0]), await f.run(["a"])]

    for identity in (2, 3):
        given[0] = "one"
        world = World(identity=identity)
        world.run(body, arrivals=0)
        given[0] = "two"
        outcome = world.run(body)
        assert outcome is not None
        assert (outcome.state, outcome.reason) == ("refused", "run_admission_conflict")


def test_children_share_the_latch_and_have_ids_of_their_own() -> None:
    """What happens under a dispatch is recorded under its id, in the root's journal."""

    @flow
    async def child(f: Handle, name: str) -> Any:
        return [await f.llm(f"{name} 1"), await f.run([f"{name} 2"])]

    @flow
    async def parent(f: Handle) -> Any:
        return await asyncio.gather(f.dispatch(child, "p"), f.dispatch(child, "q"))

    world = World(identity=2)
    completed(world.run(parent))
    steps = [step for what, step, _ in world.entries() if what == "index"]
    assert sorted(steps) == ["dispatch-1--llm-1", "dispatch-1--run-2", "dispatch-2--llm-1", "dispatch-2--run-2"]
    world = World(in_flight="again")
    assert world.run(parent, arrivals=2) is None
    assert completed(world.run(parent)) == [
        ["result of p 1", "result of p 2"],
        ["result of q 1", "result of q 2"],
    ]
    assert world.effects.count("p 1") == 1


def test_versions_are_kept() -> None:
    """A root goes on with the version that it has begun with; one without a version counts; a newer one is refused."""
    body = flow(name="short")(short)
    for begun, goes_on in ((2, 3), (3, 2)):
        world = World(identity=begun, in_flight="again")
        world.run(body, arrivals=0)
        world.identity = goes_on
        completed(world.run(body))
        steps = {step for what, step, _ in world.entries() if what in ("index", "done")}
        assert len(steps) == 1
        assert ("-after-" in steps.pop()) is (begun == 3)
    for version, error in ((4, NewerJournalError), ("3", NewerJournalError), (0, NewerJournalError)):
        world = World(records=[Step("root", "flow:root", "root", "", 1, {"flow": "short", "version": version})])
        with pytest.raises(error, match="version"):
            world.run(body)
        assert len([r for r in world.records if isinstance(r, Step)]) == 1
    world = World(records=[Step("root", "flow:root", "root", "", 1, {"flow": "short"})])
    completed(world.run(body))
    assert "llm-1" in [step for _, step, _ in world.entries()]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (Step("root", "flow:root", "newfangled", "", 1, {}), "newer version"),
        (Step("root", "flow:root", "index", "run-1", 1, {}), "another shape"),
        (Step("root", "flow:root", "index", "run-x", 1, {"kind": "run"}), "no step id"),
        (Step("root", "flow:root", "answer", "human-1", 1, {"value": 1}), "another shape"),
    ],
)
def test_a_journal_that_cannot_be_used_is_refused_untouched(entry: Step, said: str) -> None:
    begin = Step("root", "flow:root", "root", "", 1, {"flow": "short", "version": 3, "arguments": []})
    world = World(records=[begin, entry])
    with pytest.raises(JournalError, match=said):
        world.run(flow(name="short")(short))
    assert [r for r in world.records if isinstance(r, Step)] == [begin, entry]


def test_another_flow_or_other_arguments_are_refused() -> None:
    @flow(name="short")
    async def takes(f: Handle, *given: Any) -> Any:
        return await f.llm("a")

    world = World(in_flight="again")
    world.run(takes, 1, arrivals=0)
    with pytest.raises(JournalError, match="is a flow 'short', not 'other'"):
        world.run(flow(name="other")(short))
    with pytest.raises(JournalError, match=r"with the arguments \[1\], not \[2\]"):
        world.run(takes, 2)
    assert completed(world.run(takes, 1)) == "result of a"


def test_what_cannot_be_used_is_said() -> None:
    """Before anything is recorded."""

    @flow
    async def no_worker(f: Handle) -> Any:
        return await f.llm("a")

    async def attempt(body: Flow, root: str, *arguments: Any, **options: Any) -> Outcome:
        return await Flows(ledger=MemoryLedger(), **options).run(body, root, *arguments)

    outcome = asyncio.run(attempt(no_worker, "root"))
    assert (outcome.state, outcome.reason) == ("failed", UnknownKindError.reason)
    uses: tuple[Callable[[], Coroutine[Any, Any, Outcome]], ...] = (
        lambda: attempt(no_worker, ""),
        lambda: attempt(no_worker, "x" * 401),
        lambda: attempt(no_worker, "root", object()),
        lambda: attempt(short, "root"),  # type: ignore[arg-type]
        lambda: attempt(no_worker, "root", identity=4),
        lambda: attempt(no_worker, "root", workers={"human": Worker(_worker)}),
        lambda: attempt(no_worker, "root", workers={"llm": _worker}),
    )
    for wrong in uses:
        with pytest.raises(BadFlowError):
            asyncio.run(wrong())
    with pytest.raises(BadFlowError):
        Worker(_worker, in_flight="ask")
    with pytest.raises(BadFlowError):
        Worker(_worker, slots=0)


async def _worker(call: Call) -> str:
    return "done"


@pytest.mark.parametrize("value", [object(), {1: 2}, float("nan"), (1, 2)])
def test_results_are_json(value: Any) -> None:
    """A result that is none fails its step, and a value that is none fails the flow; neither is a traceback."""

    async def odd(call: Call) -> Any:
        return value

    world = World(workers={"llm": Worker(odd)})
    outcome = world.run(flow(short))
    assert outcome is not None
    assert (outcome.state, outcome.reason) == ("failed", "step_failed")

    @flow
    async def returns(f: Handle) -> Any:
        return value

    outcome = World().run(returns)
    assert outcome is not None
    assert (outcome.state, outcome.reason) == ("failed", "bad_flow")


def test_a_damaged_lease_is_not_taken_for_a_free_one() -> None:
    """Nobody knows who drives, so nobody else does; the message says what to do."""
    disk = Disk()
    put(ledger_on(disk), Lease("flow:root", 1, "root", 1e9))
    path = next(path for path in disk.files if path.endswith("leases.jsonl"))
    disk.files[path][-8] ^= 1

    async def attempt() -> Outcome:
        return await Flows(ledger=ledger_on(disk)).run(flow(short), "root")

    with pytest.raises(JournalError, match="lease is damaged"):
        asyncio.run(attempt())


def test_damage_that_may_hide_an_entry_is_reported() -> None:
    """Nobody can tell whose it was, so it stops nothing and is told of."""
    disk = Disk()

    async def attempt(root: str) -> Outcome:
        return await Flows(ledger=ledger_on(disk), workers={"llm": Worker(_worker)}).run(flow(short), root)

    assert asyncio.run(attempt("one")).findings == ()
    path = next(path for path in disk.files if path.endswith("flows.jsonl"))
    disk.files[path] += b"x" * 50 + b"\n"
    outcome = asyncio.run(attempt("two"))
    assert outcome.state == "completed"
    assert outcome.findings == ("flows.jsonl:5: corrupt, whose it was cannot be told",)
    assert outcome.to_json()["findings"]


def test_a_damaged_journal_is_not_taken_for_a_short_one() -> None:
    """What cannot be read might have been a result."""
    begin = Step("root", "flow:root", "root", "", 1, {"flow": "short", "version": 3, "arguments": []})
    for reading in (Reading((begin,), 2, Health.CORRUPT, "flows.jsonl:2"), Reading((begin,), 2, Health.INTACT, "x")):
        with pytest.raises(JournalError, match="damaged"):
            read("root", reading)


@pytest.mark.parametrize("steps", range(1, 40))
def test_a_ledger_that_fails_ends_the_attempt(steps: int) -> None:
    """With a reason and no traceback, wherever it fails; what was recorded is there when it works again."""

    class Failing(MemoryLedger):
        left = steps

        async def step(self, decide: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise LedgerUnavailableError("flows", "the disk is full")
            return await super().step(decide)

    @flow
    async def body(f: Handle) -> Any:
        return await asyncio.gather(f.llm("a"), f.hook("h", _judge), f.llm("b"))

    workers = {"llm": Worker(_worker, in_flight="again")}
    ledger, clock = Failing(), Clock()
    try:
        outcome = asyncio.run(Flows(ledger=ledger, workers=workers, clock=clock).run(body, "root"))
    except LedgerUnavailableError:
        outcome = None
        assert not any(isinstance(record, Step) for record in ledger.records), "the attempt had begun"
    if ledger.left < 0 and outcome is not None and outcome.state != "completed":
        assert outcome.state in ("refused", "held"), outcome
        assert "disk is full" in outcome.message + str(outcome.held)
    clock.seconds += 1000
    again = Flows(ledger=MemoryLedger(ledger.records), workers=workers, clock=clock)
    assert asyncio.run(again.run(body, "root")).value == ["done", "noop", "done"]


async def _judge(f: Handle, given: Any) -> None:
    return None


def test_a_busy_loop_keeps_its_lease() -> None:
    """Timers come late where thousands of branches run in one round, so the lease is renewed with what is recorded."""
    world = World()
    clock = world.clock

    async def long_round(call: Call) -> str:
        clock.seconds += 12
        return "done"

    @flow
    async def body(f: Handle) -> Any:
        return await asyncio.gather(*(f.llm(f"item {n}") for n in range(12)))

    world.workers = {"llm": Worker(long_round)}
    assert completed(world.run(body)) == ["done"] * 12


def test_the_lease_is_given_back() -> None:
    """So that the next attempt need not wait."""
    world = World()
    world.run(asks)
    leases = [record for record in world.records if isinstance(record, Lease) and record.task == "flow:root"]
    assert leases[-1].holder is None
