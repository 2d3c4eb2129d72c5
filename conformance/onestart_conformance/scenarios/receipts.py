"""Round one: the command kernel and the receipts, with a callback that counts.

As published, a receipt that cannot be read shows as an older one or as none, and the callback is entered again. As
shipped, the callback is the dispatcher.
"""

from __future__ import annotations

from functools import partial

from attrs import evolve, frozen

from onestart import Command
from onestart_conformance.doubles import REVISION
from onestart_conformance.scenarios import corruption
from onestart_conformance.scenarios.bench import ROUND_ONE, Bench, Equipment
from onestart_conformance.scenarios.corruption import Harm
from onestart_conformance.scenarios.row import Fields, Scenario

LATER = "r2"
COMMAND = Command(
    key="command-1",
    task="task-1",
    function="redispatch",
    payload={"note": "try it again"},
    actor="ADMIN",
    revision=REVISION,
)


@frozen
class Story:
    """What happens between two submissions of one command. later: governance moves on. actor: of the second one."""

    harm: Harm = corruption.nothing
    later: bool = False
    actor: str = COMMAND.actor


def play(bench: Bench, story: Story) -> Fields:
    """Submit, damage, read, submit again."""
    first = bench.submit(COMMAND)
    story.harm(bench, COMMAND.key)
    loaded = bench.load(COMMAND.key)
    if story.later:
        bench.governance.revision = LATER
    entered = bench.callbacks
    again = evolve(COMMAND, actor=story.actor)
    second = bench.submit(again)
    layers = bench.layers()
    return {
        "first": bench.said(first),
        "loaded_state": loaded,
        "read_preserves_original_bytes": layers.bytes,
        "second_reason": bench.said(second),
        "second_action_taken": bench.callbacks > entered,
        "total_synthetic_callback_calls": layers.callback,
        "total_synthetic_effects": layers.effect,
        "actor_fingerprint_equal": again.fingerprint == COMMAND.fingerprint,
    }


def scenario(name: str, statement: str, story: Story, equipment: Equipment = ROUND_ONE) -> Scenario:
    return Scenario(name, statement, partial(play, story=story), equipment)


SCENARIOS = (
    scenario("R0-intact", "A command that is done is submitted again; nothing was damaged.", Story()),
    scenario(
        "R1-unrelated-bad-line",
        "Among the receipts there is a malformed line that is not of this command.",
        Story(corruption.malformed_line),
    ),
    scenario(
        "R2-completion-corrupt",
        "The completed receipt cannot be parsed; the pending one before it can.",
        Story(corruption.completion_unparseable),
    ),
    scenario(
        "R3-both-corrupt",
        "Neither receipt of the command can be parsed.",
        Story(corruption.receipts_unparseable),
    ),
    scenario(
        "R4-corrupt-revision-advanced",
        "Neither receipt can be parsed, and governance has moved on.",
        Story(corruption.receipts_unparseable, later=True),
    ),
    scenario(
        "R5-reader-throws",
        "The receipts cannot be read at all, and the reader says so.",
        Story(corruption.receipts_refused),
    ),
    scenario(
        "R6-future-completion",
        "The completed receipt is of a version that is not known here.",
        Story(corruption.completion_of_later_version),
    ),
    scenario(
        "R7-pending-revision-advanced",
        "The completed receipt cannot be parsed, and governance has moved on.",
        Story(corruption.completion_unparseable, later=True),
    ),
    scenario(
        "R8-lower-executor-dedup",
        "The completed receipt cannot be parsed; what the callback reaches has one effect for a key.",
        Story(corruption.completion_unparseable),
        evolve(ROUND_ONE, coalesces=True),
    ),
    scenario(
        "A4-command-actor-change",
        "Somebody else submits a command under the same key.",
        Story(actor="PM"),
    ),
)
