"""Approvals: bound to a digest of who asks for what. Rows A0 to A3, and O1.

What a person is called, and in which session the question was asked, is no part of what the digest is taken of.
"""

from __future__ import annotations

from functools import partial

from attrs import frozen

from onestart import Command
from onestart.ports import View
from onestart.records import Approval
from onestart_conformance.doubles import REVISION
from onestart_conformance.scenarios import corruption
from onestart_conformance.scenarios.bench import ROUND_TWO, Bench
from onestart_conformance.scenarios.row import Fields, Scenario
from onestart_conformance.scenarios.words import error_code

APPROVER = "ADMIN"


@frozen
class Request:
    """Who asks. session: the process in which it is asked. human: a name that the library has no place for."""

    actor: str = "DEV-01"
    session: str = "session-1"
    human: str = "first person"

    def command(self) -> Command:
        """What the library is told of it."""
        return Command(
            key="operation-1",
            task="task-1",
            function="push",
            payload={"branch": "main"},
            actor=self.actor,
            revision=REVISION,
        )


ASKED = Request()


def play(bench: Bench, then: Request) -> Fields:
    """Approve what one request asks for, and let another one, perhaps the same, make use of it."""
    bench.governance.needs_approval = True
    _go_to(bench, ASKED.session)
    bench.approve(ASKED.command(), APPROVER)
    _go_to(bench, then.session)
    command = then.command()
    answer = bench.submit(command)
    _finish(bench, command.key)
    approval = bench.look(partial(_approval, key=command.key))
    layers = bench.layers()
    statuses = bench.attempts()
    return {
        "digest_equal": approval is not None and approval.digest == command.fingerprint,
        "calls": layers.start,
        "error": error_code(answer),
        "status": statuses[0] if statuses else None,
        "decision_actor": approval.by if approval is not None else None,
    }


def play_corrupt(bench: Bench) -> Fields:
    """Approve, damage the approval, and submit what was approved."""
    bench.governance.needs_approval = True
    command = ASKED.command()
    bench.approve(command, APPROVER)
    corruption.approval_unparseable(bench, command.key)
    bench.look(partial(_approval, key=command.key))
    return {"error": error_code(bench.submit(command)), "read_preserves_original_bytes": bench.layers().bytes}


def _go_to(bench: Bench, session: str) -> None:
    if bench.process.name != session:
        bench.new_process(session)


def _finish(bench: Bench, key: str) -> None:
    """The operation succeeds, if it was started."""
    bench.process.executor.engine.running.discard(key)
    bench.reconcile(key)


def _approval(view: View, key: str) -> Approval | None:
    return view.approval(key).newest


def scenario(name: str, statement: str, then: Request, starts: int = 1) -> Scenario:
    play_it = partial(play, then=then)
    return Scenario(name, statement, play_it, ROUND_TWO, starts, ("error", "status"))


SCENARIOS = (
    scenario("A0-same", "What was approved is asked for again, by the same.", ASKED),
    scenario("A1-actor-change", "Another actor asks for what was approved.", Request(actor="DEV-02"), 0),
    scenario("A2-session-change", "It is asked for in another session.", Request(session="session-2")),
    scenario(
        "A3-human-outside-input",
        "Another person asks, which nothing that the library is told can show.",
        Request(human="second person"),
    ),
)
CORRUPT = (Scenario("O1-corrupt-approval", "The approval cannot be parsed.", play_corrupt, ROUND_TWO, 0, ("error",)),)
