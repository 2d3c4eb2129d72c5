"""Event logs of flows: what drivers tell fits, and what they cannot have done does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flow_runs import CutLedger, CutOffError
from onestart.command_line import run
from onestart.eventlog import EventLog
from onestart.flow import Call, Flows, Handle, Worker, flow
from onestart.records import Record

Line = dict[str, Any]


@flow
async def judged(f: Handle) -> Any:
    async def judge(f: Handle, given: Any) -> str:
        return "pass" if await f.llm("inner") else "fail"

    await asyncio.gather(f.llm("a"), f.hook("judge", judge), f.dispatch(child))
    await f.human("Go on?")
    return await f.llm("b")


@flow
async def child(f: Handle) -> Any:
    return await f.llm("c")


async def work(call: Call) -> str:
    return "done"


class Clock:
    seconds = 0.0

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Of a flow that is cut off, resumed, parked, answered and completed, by three drivers."""
    path = tmp_path_factory.mktemp("logs") / "events.log"
    clock, records = Clock(), list[Record]()
    for number, writes in enumerate((30, None, None)):
        clock.seconds += 1000
        ledger = CutLedger(records, writes=writes)
        with EventLog(path) as log:
            flows = Flows(
                ledger=ledger,
                workers={"llm": Worker(work, in_flight="again")},
                observer=log,
                clock=clock,
                process=f"driver{number}",
            )
            asyncio.run(attempt(flows, answer=number == 1))
        records = list(ledger.records)
    return path.read_text(encoding="utf-8").splitlines()


async def attempt(flows: Flows, *, answer: bool) -> None:
    try:
        outcome = await flows.run(judged, "root")
    except CutOffError:
        return
    if answer:
        await flows.answer("root", outcome.waits[0].wait, "yes")


def traced(tmp_path: Path, lines: list[str], change: Callable[[list[Line]], None] = lambda lines: None) -> int:
    told = [json.loads(line) for line in lines]
    change(told)
    path = tmp_path / "events.log"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in told), encoding="utf-8")
    return run(["trace", str(path)])


def of(lines: list[Line], action: str) -> list[Line]:
    return [line for line in lines if line.get("action") == action]


def test_what_drivers_tell_fits(tmp_path: Path, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert traced(tmp_path, lines) == 0
    assert "the log fits the model" in capsys.readouterr().out
    assert len({json.loads(line)["process"] for line in lines}) == 3


def by_a_stale_driver(lines: list[Line]) -> None:
    of(lines, "flow_done")[-1].update(process="driver0", token=1)


def with_an_old_token(lines: list[Line]) -> None:
    of(lines, "flow_lease")[-1]["token"] = 1


def without_its_index(lines: list[Line]) -> None:
    last = of(lines, "flow_index")[-1]
    last["details"]["step"] = "llm-after-" + 64 * "0" + "-0"


def after_its_end(lines: list[Line]) -> None:
    first = of(lines, "flow_complete")[0]
    again = {**of(lines, "flow_done")[-1], "order": first["order"] + 1, "token": first["token"]}
    lines.insert(lines.index(first) + 1, again)


def after_a_refusal(lines: list[Line]) -> None:
    last = of(lines, "flow_index")[-1]
    refused = {"root": "root", "what": "ended", "step": "", "body": {"state": "refused"}}
    lines.insert(lines.index(last), {**last, "action": "flow_ended", "layer": "read", "details": refused})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (by_a_stale_driver, "driver-lease"),
        (with_an_old_token, "has token 1, after"),
        (without_its_index, "not sound"),
        (after_its_end, "after the flow was complete"),
        (after_a_refusal, "after the attempt was refused"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_they_cannot_have_done_does_not(
    tmp_path: Path, lines: list[str], capsys: pytest.CaptureFixture[str], change: Any, said: str
) -> None:
    """The event at which it stops fitting is named, with those of the flow before it."""
    assert traced(tmp_path, lines, change) == 1
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("missing", ["root", "what", "step", "body"])
def test_an_event_without_its_parts_is_no_event(
    tmp_path: Path, lines: list[str], capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    def cut(lines: list[Line]) -> None:
        del of(lines, "flow_done")[0]["details"][missing]

    assert traced(tmp_path, lines, cut) == 2
    said = capsys.readouterr().err
    assert "its details are not those of flow_done" in said
    assert "Traceback" not in said
