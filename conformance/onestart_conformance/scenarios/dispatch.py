"""Round two: the whole chain behind the same kernel and the same reader, so that starts can be counted.

The callback may be entered again; session, attempt and lease still say that the command has started.
"""

from __future__ import annotations

from functools import partial

from attrs import evolve, frozen

from onestart_conformance.scenarios import corruption
from onestart_conformance.scenarios.bench import ROUND_TWO, Bench
from onestart_conformance.scenarios.corruption import Harm
from onestart_conformance.scenarios.receipts import COMMAND, LATER
from onestart_conformance.scenarios.row import Fields, Scenario
from onestart_conformance.scenarios.words import dispatch_kind


@frozen
class Story:
    """What happens after a command has started.

    process: a second process goes on, from what is on the disk. cancelled: its session is. later: governance moves on.
    kernels: submit at once. key: of the second submission.
    """

    harm: Harm = corruption.receipts_unparseable
    process: bool = False
    cancelled: bool = False
    later: bool = False
    kernels: int = 1
    key: str = COMMAND.key


def play(bench: Bench, story: Story) -> Fields:
    """Start, damage, read, and take the second step."""
    bench.submit(COMMAND)
    story.harm(bench, COMMAND.key)
    if story.process:
        bench.new_process("process-2")
    loaded = bench.load(COMMAND.key)
    if story.cancelled:
        bench.cancel(COMMAND.key)
    if story.later:
        bench.governance.revision = LATER
    answers = bench.submit_together(evolve(COMMAND, key=story.key), story.kernels)
    reasons = [bench.said(answer) for answer in answers]
    layers = bench.layers()
    return {
        "second_reason": reasons[0] if story.kernels == 1 else reasons,
        "dispatch_kinds": [dispatch_kind(a) for process in bench.processes for a in process.entered.answers],
        "total_sdk_send_calls": layers.start,
        "attempt_count": layers.attempt,
        "attempt_statuses": bench.attempts(),
        "loaded_state": loaded,
        "read_preserved_bytes": layers.bytes,
        "process_count": len({event.process for event in bench.events}),
    }


def scenario(name: str, short: str, statement: str, story: Story, starts: int = 1) -> Scenario:
    return Scenario(name, statement, partial(play, story=story), ROUND_TWO, starts, short=short)


SCENARIOS = (
    scenario(
        "I0",
        "intact",
        "A started command is submitted again; nothing was damaged.",
        Story(corruption.nothing),
    ),
    scenario(
        "I1",
        "completion corrupt",
        "The completed receipt of a started command cannot be parsed.",
        Story(corruption.completion_unparseable),
    ),
    scenario(
        "I2",
        "both corrupt",
        "Neither receipt of a started command can be parsed.",
        Story(),
    ),
    scenario(
        "I3",
        "second process",
        "Neither receipt can be parsed, and a second process goes on from what is on the disk.",
        Story(process=True),
    ),
    scenario(
        "I4",
        "cancelled, same key",
        "Neither receipt can be parsed; the session is cancelled, and the same key comes again.",
        Story(cancelled=True),
    ),
    scenario(
        "I5",
        "revision advanced",
        "Neither receipt can be parsed, and governance has moved on.",
        Story(later=True),
    ),
    scenario(
        "I6",
        "eight kernels",
        "Neither receipt can be parsed, and eight kernels submit at once to one dispatcher.",
        Story(kernels=8),
    ),
    scenario(
        "I7",
        "cancelled, new key",
        "The control: the session is cancelled, and a command with a new key may start.",
        Story(cancelled=True, key="command-2"),
        2,
    ),
)
