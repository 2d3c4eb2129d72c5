"""Tools of a real MCP server, a program of its own: called once, replayed, and failing in ways that are recorded."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onestart.flow import BadFlowError, Flow, Flows, Handle, Outcome, flow
from onestart.flow.mcp import Servers, servers
from onestart.memory import MemoryLedger

SERVER = Path(__file__).parent / "mcp_server.py"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes"


def argv(notes: Path) -> list[str]:
    return [sys.executable, str(SERVER), str(notes)]


def run(body: Flow, notes: Path, ledger: MemoryLedger) -> Outcome:
    """In an event loop of its own, as a program does it."""

    async def go() -> Outcome:
        worker = servers({"tested": argv(notes), "absent": ["/no/such/program"]})
        return await Flows(ledger=ledger, workers={"mcp": worker}).run(body, "root")

    return asyncio.run(go())


@flow
async def sums(f: Handle) -> Any:
    first, second = await asyncio.gather(f.mcp("tested", "add", a=1, b=2), f.mcp("tested", "add", a=3, b=4))
    return [first, second["structured"]]


def test_tools_are_called_in_one_session_and_replayed(notes: Path) -> None:
    ledger = MemoryLedger()
    outcome = run(sums, notes, ledger)
    assert outcome.value == [{"content": [{"type": "text", "text": "3"}], "structured": {"result": 3}}, {"result": 7}]
    assert sorted(notes.read_text().splitlines()) == ["add 1 2", "add 3 4", "ended", "started"]
    assert run(sums, notes, ledger) == outcome
    assert len(notes.read_text().splitlines()) == 4


def calling(server: str, tool: str, **arguments: Any) -> Flow:
    @flow(name="calling")
    async def body(f: Handle) -> Any:
        return await f.mcp(server, tool, **arguments)

    return body


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (calling("tested", "fail", why="no room"), "ToolFailedError: fail of tested: .*no room"),
        (calling("tested", "add", a="one", b=2), "ToolFailedError: add of tested: .*"),
        (calling("tested", "nothing"), "(ToolFailedError|ServerFailedError): .*nothing"),
        (calling("tested", "die"), "ServerFailedError: tested: .+"),
        (calling("absent", "add"), "ServerFailedError: absent cannot be started: .+"),
        (calling("other", "add"), "ServerFailedError: there is no server 'other'; known: tested, absent"),
    ],
    ids=["tool's error", "bad arguments", "unknown tool", "dead server", "absent program", "unknown server"],
)
def test_what_fails_fails_the_step_and_fails_alike_when_replayed(notes: Path, body: Flow, said: str) -> None:
    ledger = MemoryLedger()
    outcome = run(body, notes, ledger)
    assert outcome.state == "failed"
    assert outcome.reason == "step_failed"
    text = outcome.message.split(": ", 1)[1]
    assert re.match(said, text), text
    before = notes.read_text() if notes.exists() else ""
    assert run(body, notes, ledger) == outcome
    assert (notes.read_text() if notes.exists() else "") == before


def test_a_server_that_has_died_is_started_again(notes: Path) -> None:
    @flow
    async def twice(f: Handle) -> Any:
        try:
            await f.mcp("tested", "die")
        except Exception:
            return (await f.mcp("tested", "add", a=1, b=1))["structured"]

    assert run(twice, notes, MemoryLedger()).value == {"result": 2}
    assert notes.read_text().splitlines() == ["started", "die", "started", "add 1 1", "ended"]


def test_servers_can_be_ended_before_the_loop(notes: Path) -> None:
    async def go() -> list[str]:
        async with Servers({"tested": argv(notes)}) as programs:
            await Flows(ledger=MemoryLedger(), workers={"mcp": programs.worker()}).run(sums, "root")
            assert "ended" not in notes.read_text()
        return notes.read_text().splitlines()

    assert asyncio.run(go())[-1] == "ended"


@pytest.mark.parametrize("words", ["program", [], [""], [1]])
def test_what_is_no_program_is_refused(words: Any) -> None:
    with pytest.raises(BadFlowError, match="takes a list of texts with a program first"):
        servers({"tested": words})


def test_without_the_extra_one_line_says_what_to_install() -> None:
    """The library itself needs no MCP."""
    source = "import sys; sys.modules['mcp'] = None\nimport onestart.flow\nimport onestart.flow.mcp"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)
    last = done.stderr.splitlines()[-1]
    assert last == "ModuleNotFoundError: MCP servers need mcp: install it with  pip install 'onestart[mcp]'"
