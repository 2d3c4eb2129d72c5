"""What a flow hands on is JSON that a record can hold: what is not is refused before an effect, or fails its step."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flow_runs import World
from onestart.command import MOST_DEPTH
from onestart.flow import (
    NEVER,
    BadFlowError,
    Call,
    Flow,
    Flows,
    Handle,
    Known,
    Outcome,
    StepFailedError,
    Worker,
    flow,
)
from onestart.flow.values import MOST_DIAGNOSTIC, MOST_SPEC, MOST_VALUE
from onestart.memory import MemoryLedger

LONG = "x" * (MOST_VALUE + 1)


def nested(deep: int) -> Any:
    value: Any = "core"
    for _ in range(deep):
        value = [value]
    return value


def asks_for(spec: Any) -> Flow:
    @flow(name="asks")
    async def asks(f: Handle) -> Any:
        return await f.llm(spec)

    return asks


@flow
async def short(f: Handle) -> Any:
    """One step, whose failure the body can live with."""
    try:
        return await f.llm("a")
    except StepFailedError as error:
        return error.diagnostic


def worker(result: Any) -> dict[str, Worker]:
    async def carry_out(call: Call) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    return {"llm": Worker(carry_out, in_flight="again")}


def ended(outcome: Outcome | None) -> Outcome:
    assert outcome is not None
    return outcome


@pytest.mark.parametrize("result", [LONG, nested(MOST_DEPTH + 1), object()], ids=["long", "deep", "no JSON"])
def test_a_result_that_cannot_be_recorded_fails_its_step_for_good(result: Any) -> None:
    """The effect was there: that it came to nothing usable is recorded, so that no resume carries it out again."""
    world = World(workers=worker(result))
    first = ended(world.run(short))
    assert first.state == "completed"
    assert "the result of llm-" in first.value
    assert [what for what, _, _ in world.entries()] == ["root", "index", "done", "complete"]
    assert ended(world.run(short)) == first


def test_a_long_diagnostic_is_cut() -> None:
    """What a failing worker prints may be of any length."""
    outcome = ended(World(workers=worker(ValueError(LONG))).run(short))
    assert outcome.value.startswith("ValueError: xxx")
    assert len(outcome.value) < MOST_DIAGNOSTIC + 100

    @flow
    async def raises(f: Handle) -> Any:
        raise ValueError(LONG)

    outcome = ended(World().run(raises))
    assert outcome.state == "failed"
    assert len(outcome.message) < MOST_DIAGNOSTIC + 100


@pytest.mark.parametrize("found", [Known(LONG), Known(failed=LONG)])
def test_what_a_worker_looks_up_is_bounded_too(found: Known) -> None:
    """It is recorded like a result."""
    started: list[str] = []

    async def carry_out(call: Call) -> Any:
        started.append(call.key)
        await asyncio.Event().wait()

    async def look_up(call: Call) -> object:
        return found if call.key in started else NEVER

    world = World(workers={"llm": Worker(carry_out, in_flight="ask", look_up=look_up)})
    assert world.run(short, writes=10) is None
    outcome = ended(world.run(short))
    assert outcome.state == "completed"
    assert len(outcome.value) < MOST_DIAGNOSTIC + 100
    assert len(started) == 1


@pytest.mark.parametrize(
    "spec",
    ["x" * MOST_SPEC, *(nested(deep) for deep in range(MOST_DEPTH - 8, MOST_DEPTH + 2))],
    ids=["long", *(f"{deep} deep" for deep in range(MOST_DEPTH - 8, MOST_DEPTH + 2))],
)
def test_a_spec_that_no_command_can_hold_is_refused_before_it_is_on_record(spec: Any) -> None:
    """Else the step would be admitted, and could never be carried out."""
    world = World()
    outcome = ended(world.run(asks_for(spec)))
    assert (outcome.state, outcome.reason) == ("failed", "bad_flow")
    assert world.effects == []
    assert [what for what, _, _ in world.entries()] == ["root"]


@pytest.mark.parametrize("spec", ["x" * (MOST_SPEC - 100), nested(MOST_DEPTH - 9)], ids=["long", "deep"])
@pytest.mark.parametrize("root", ["root", "\N{OGHAM LETTER BEITH}" * 400], ids=["short id", "long id"])
def test_a_spec_that_is_allowed_is_carried_out(spec: Any, root: str) -> None:
    """Whatever the flow is called."""
    flows = Flows(ledger=MemoryLedger(), workers=worker("fine"))
    assert asyncio.run(flows.run(asks_for(spec), root)).value == "fine"


def test_what_comes_from_outside_is_bounded() -> None:
    """Arguments, answers and what operators say are refused at once; nothing is recorded."""
    ledger = MemoryLedger()
    flows = Flows(ledger=ledger, workers=worker("fine"))
    for refused in (
        lambda: flows.run(short, "root", LONG),
        lambda: flows.answer("root", "human-1", LONG),
        lambda: flows.resolve("root", "llm-1", Known(LONG), by="ann", why="it was seen"),
        lambda: flows.resolve("root", "llm-1", Known(failed=LONG), by="ann", why="it was seen"),
    ):
        with pytest.raises(BadFlowError, match="pass a reference"):
            asyncio.run(refused())
    assert not ledger.records


def test_a_value_that_cannot_be_recorded_fails_the_flow() -> None:
    """And a child's fails its dispatch."""

    @flow
    async def child(f: Handle) -> Any:
        return LONG

    @flow
    async def parent(f: Handle) -> Any:
        try:
            await f.dispatch(child)
        except StepFailedError as error:
            return error.diagnostic

    outcome = ended(World().run(child))
    assert (outcome.state, outcome.reason) == ("failed", "bad_flow")
    outcome = ended(World().run(parent))
    assert "the result of dispatch-" in outcome.value
