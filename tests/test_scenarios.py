"""The published observations come out on this library as they were made, and its promises hold as it is shipped."""

from __future__ import annotations

import json
from functools import partial
from hashlib import sha256
from typing import Any

import pytest
from attrs import evolve

from onestart import Order
from onestart.command_line import run as run_command
from onestart.ports import View
from onestart_conformance.doubles import Engine
from onestart_conformance.scenarios import (
    AS_SHIPPED,
    SCENARIOS,
    Bench,
    Equipment,
    Row,
    Scenario,
    corruption,
    differences,
    dispatch,
    published,
    run,
    run_all,
)
from onestart_conformance.scenarios.bench import ROUND_ONE, ROUND_TWO
from onestart_conformance.scenarios.promises import broken
from onestart_conformance.scenarios.receipts import COMMAND
from onestart_conformance.scenarios.words import LAYERS

DIGESTS = {
    "observations-1.json": "f15d1b50c7fea27bc31bdd91382da145d22bcc5373bb165fd4ea2f944140c32e",
    "observations-2.json": "e775111bd14440fdfd7faf79f1822bcf7681de1836e4885d28faf722daee3536",
    "observations-3.json": "0325dc8361059bc83c94f914925e84572bb63a00507636847e208612a7b1eaec",
    "observations-4.json": "977ae999985ca195932009c521d0ec336567864ef5b9c2df005ed3c4ccf2d7b4",
    "observations-5.json": "3124bf15822dbe2ebedc443f2c08dfb0f3d48b4c89c115577f0f3d1b5f5bae8b",
    "observations-6.json": "f220aabe339f7db202cd1da645d6ecb76d2f59ff2d64d5966f989e359ecc4bab",
}
EVERY = pytest.mark.parametrize("name", list(SCENARIOS))
SEVERITY = pytest.mark.parametrize("wholly", [False, True], ids=["bodies", "whole lines"])


@pytest.mark.parametrize("name", published.FILES)
def test_the_observations_are_those_that_were_published(name: str) -> None:
    """Byte for byte: a comparison with an edited file would prove nothing."""
    assert sha256(published.content(name)).hexdigest() == DIGESTS[name]


def test_every_published_row_is_a_scenario() -> None:
    """All thirty, in published order, and both formal runs of each."""
    assert list(SCENARIOS) == list(published.rows())
    assert len(SCENARIOS) == 30
    assert {len(formal) for formal in published.rows().values()} == {2}


def test_nothing_that_was_observed_is_left_out() -> None:
    """What is not compared are names, digests of fixtures, and texts about limits."""
    for name in published.FILES:
        for row in json.loads(published.content(name))["rows"]:
            compared = published.rows()[row["id"]][0]
            assert set(row) - set(compared) <= {"id", "source_sha256", "limitation", "limit"}


@EVERY
@SEVERITY
def test_it_comes_out_as_published(name: str, wholly: bool) -> None:
    """Every field, in both formal runs, however much of a line the damage takes."""
    row = run(SCENARIOS[name], wholly=wholly)
    assert row.differences == ()
    assert dict(row.as_published) == dict(row.published)


@EVERY
@SEVERITY
def test_it_is_safe_as_shipped(name: str, wholly: bool) -> None:
    """At most one start and effect of a key, bytes kept, damage reported where it is and nowhere else."""
    assert run(SCENARIOS[name], wholly=wholly).as_shipped.broken == ()


@EVERY
def test_it_is_the_same_every_time(name: str) -> None:
    """A scenario leaves nothing to chance."""
    assert run(SCENARIOS[name]).to_json() == run(SCENARIOS[name]).to_json()


def test_a_new_key_starts() -> None:
    """I7 is the control without which all this could be a system that never starts anything."""
    for row in (run(SCENARIOS["I7"]), run(SCENARIOS["I7"], wholly=True)):
        assert row.as_shipped.starts == {"command-1": 1, "command-2": 1}
        assert row.as_shipped.reasons[-1] == "task_dispatch_attempt_created"


def test_eight_kernels_enter_one_dispatcher() -> None:
    """They really are in it together: all have read the receipt before any has an answer."""
    row = run(SCENARIOS["I6"])
    assert row.layers.callback == row.as_shipped.layers.callback == 9
    assert row.as_shipped.layers.start == 1


def test_people_cannot_be_told_apart() -> None:
    """A3 is no test of two accounts: what the library is told is the same."""
    plays = [SCENARIOS[name].play for name in ("A0-same", "A3-human-outside-input")]
    assert all(isinstance(play, partial) for play in plays)
    first, second = (play.keywords["then"] for play in plays if isinstance(play, partial))
    assert first != second
    assert first.command() == second.command()


# The comparison can fail ---------------------------------------------------------------------------------------------


def row_with(name: str, equipment: Equipment) -> Row:
    return run(SCENARIOS[name], equipment=equipment)


@pytest.mark.parametrize(
    "name",
    ["R2-completion-corrupt", "R6-future-completion", "R7-pending-revision-advanced", "R8-lower-executor-dedup", "I1"],
)
def test_only_the_lenient_reader_goes_back_to_the_pending_receipt(name: str) -> None:
    """With the reader as shipped a damaged completion does not give way to an older record."""
    strict = row_with(name, evolve(SCENARIOS[name].equipment, lenient=False))
    assert 'loaded_state (read): published "pending", here null' in strict.differences


def test_only_the_synthetic_callback_has_a_second_effect() -> None:
    """Behind the same reader the real dispatcher does not: what round two found out about round one."""
    for name in ("R2-completion-corrupt", "R3-both-corrupt", "R6-future-completion"):
        real = row_with(name, ROUND_TWO)
        assert "total_synthetic_effects (effect): published 2, here 1" in real.differences
        assert not any("callback_calls" in text for text in real.differences)


def test_only_deduplication_coalesces_the_effect() -> None:
    """R8 without it is R2."""
    row = row_with("R8-lower-executor-dedup", ROUND_ONE)
    assert row.differences == ("total_synthetic_effects (effect): published 1, here 2",)


@pytest.mark.parametrize(
    ("name", "story", "field"),
    [
        ("I0", dispatch.Story(), "second_reason"),
        ("I1", dispatch.Story(), "loaded_state"),
        ("I2", dispatch.Story(corruption.nothing), "loaded_state"),
        ("I3", dispatch.Story(), "process_count"),
        ("I4", dispatch.Story(), "attempt_statuses"),
        ("I5", dispatch.Story(), "second_reason"),
        ("I6", dispatch.Story(kernels=7), "dispatch_kinds"),
        ("I7", dispatch.Story(cancelled=True), "total_sdk_send_calls"),
    ],
)
def test_what_happens_makes_the_difference(name: str, story: dispatch.Story, field: str) -> None:
    """Without what sets a row apart from the others, it does not come out."""
    other = evolve(SCENARIOS[name], play=partial(dispatch.play, story=story))
    assert any(text.startswith(field) for text in run(other).differences)


@EVERY
def test_every_field_counts(name: str) -> None:
    """A published value that was another one would be missed, and so would a field that is not there."""
    formal = published.rows()[name][0]
    seen: dict[str, Any] = dict(formal)
    assert list(differences(formal, seen)) == []
    for field in formal:
        changed = {**formal, field: ["something else"]}
        assert len(list(differences(changed, seen))) == 1
        without = {other: value for other, value in formal.items() if other != field}
        assert len(list(differences(formal, without))) == len(list(differences(without, formal))) == 1


def test_numbers_are_not_taken_for_truth_values() -> None:
    assert list(differences({"calls": 1}, {"calls": True}))


def test_fields_of_a_layer_are_published_ones() -> None:
    """The table of layers names fields that there are."""
    assert set(LAYERS) <= {field for formal in published.rows().values() for field in formal[0]}


# The promises can be broken ------------------------------------------------------------------------------------------


def broken_with(scenario: Scenario, equipment: Equipment) -> list[str]:
    bench = Bench(equipment)
    scenario.play(bench)
    return list(broken(bench, scenario.starts))


def test_the_experiment_does_not_keep_them() -> None:
    """The lenient reader conceals damage, and the synthetic callback has a second effect."""
    second = SCENARIOS["R2-completion-corrupt"]
    assert "command-1 had 2 effects" in broken_with(second, ROUND_ONE)
    assert broken_with(SCENARIOS["I2"], ROUND_TWO) == [
        "command-1 was answered task_already_dispatched, and the damage was not reported"
    ]


def test_a_second_start_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    once = Engine.start

    def twice(engine: Engine, submission: int, order: Order) -> None:
        once(engine, submission, order)
        once(engine, submission, order)

    monkeypatch.setattr(Engine, "start", twice)
    assert broken_with(SCENARIOS["I0"], AS_SHIPPED) == ["command-1 had 2 starts", "command-1 had 2 effects"]


def test_a_start_that_does_not_come_is_seen() -> None:
    idle = evolve(SCENARIOS["I7"], play=SCENARIOS["I4"].play)
    assert broken_with(idle, AS_SHIPPED) == ["1 keys were started, and 2 have to be"]


def test_bytes_that_change_are_seen() -> None:
    """In a reading, and in a submission."""
    bench = Bench(AS_SHIPPED)
    bench.submit(COMMAND)
    data = bench.disk.files["ledger/attempts.jsonl"].data

    def scribble(view: View) -> None:
        data[10] ^= 1

    bench.look(scribble)
    assert "reading changed bytes" in broken(bench, 1)
    assert any("attempts.jsonl changed" in text for text in broken(bench, 1))


def test_damage_that_is_reported_where_none_is_is_seen() -> None:
    bench = Bench(AS_SHIPPED)
    SCENARIOS["I1"].play(bench)
    bench.heard = [evolve(heard, damaged=False) for heard in bench.heard]
    assert any("reported where none is" in text for text in broken(bench, 1))


# The damage is what it is said to be ---------------------------------------------------------------------------------


def naive(bench: Bench, key: str) -> str | None:
    """The published reader, over our lines: backward, skipping what cannot be parsed or is of another version."""
    for raw in reversed(bytes(bench.disk.files["ledger/receipts.jsonl"].data).splitlines()):
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if isinstance(line, list) and line[:2] == ["onestart", 1] and line[3:5] == ["receipt", key]:
            state = line[9]["state"]
            assert isinstance(state, str)
            return state
    return None


@SEVERITY
@pytest.mark.parametrize(
    ("harm", "left"),
    [
        (corruption.nothing, "completed"),
        (corruption.malformed_line, "completed"),
        (corruption.completion_unparseable, "pending"),
        (corruption.receipts_unparseable, None),
        (corruption.completion_of_later_version, "pending"),
    ],
)
def test_the_lenient_reader_is_the_published_one(harm: corruption.Harm, left: str | None, wholly: bool) -> None:
    """The fault returns what a reader of that description returns, and no health."""
    bench = Bench(ROUND_TWO, wholly)
    bench.submit(COMMAND)
    harm(bench, COMMAND.key)
    assert bench.load(COMMAND.key) == naive(bench, COMMAND.key) == left
    assert not bench.look(lambda view: view.receipt(COMMAND.key).health.degraded or view.stray())


def test_a_later_version_is_legible_and_another_version() -> None:
    """R6 is no corruption: the line is as a later release writes it."""
    bench = Bench(AS_SHIPPED)
    bench.submit(COMMAND)
    corruption.completion_of_later_version(bench, COMMAND.key)
    last = json.loads(bytes(bench.disk.files["ledger/receipts.jsonl"].data).splitlines()[-1])
    assert last[:2] == ["onestart", 2]
    assert str(bench.look(lambda view: view.receipt(COMMAND.key).health)) == "unsupported_version"


# The command ---------------------------------------------------------------------------------------------------------


def test_the_command_shows_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["scenarios"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in SCENARIOS)
    assert "as published: 30 of 30" in out
    assert "as shipped:   30 of 30" in out


def test_the_command_shows_a_row_in_detail(capsys: pytest.CaptureFixture[str]) -> None:
    """By its number, in any case of letters."""
    assert run_command(["scenarios", "r3"]) == 0
    out = capsys.readouterr().out
    assert "Neither receipt of the command can be parsed." in out
    assert all(field in out for field in published.rows()["R3-both-corrupt"][0])


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["scenarios", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["fine"] is True
    assert report["rows"] == [row.to_json() for row in run_all()]
    assert all(row["holds"] for row in (*report["flows"], *report["shapes"]))


def test_the_command_fails_with_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("onestart_conformance.scenarios.bench.LenientLedger", lambda ledger: ledger)
    assert run_command(["scenarios", "R2"]) == 1
    out = capsys.readouterr().out
    assert 'R2-completion-corrupt as published, loaded_state (read): published "pending", here null' in out
    assert "as published: 0 of 1" in out


def test_the_command_names_what_is_close(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["scenarios", "R22"]) == 2
    assert "no published row is called 'R22'; did you mean R2-completion-corrupt" in capsys.readouterr().err
