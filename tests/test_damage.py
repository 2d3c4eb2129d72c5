"""Damage: nothing is started twice over it, nothing is made up, nothing is kept quiet, and others go on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import onestart_check.damage as checked
from onestart import Chain, Outcome, Reason
from onestart.records import STORES
from onestart_conformance.commands.ledgers import LEDGERS
from onestart_conformance.damage import grammar
from onestart_conformance.damage.campaign import EFFORTS, Effort, damage_campaign, parts, try_all
from onestart_conformance.damage.drawn import draw_pairs
from onestart_conformance.damage.grammar import Damage
from onestart_conformance.damage.jsonl import DiskMedium, FolderMedium
from onestart_conformance.damage.limits import LIMITS, Shown, limits_of
from onestart_conformance.damage.oracles import ORACLES, objections
from onestart_conformance.damage.prepared import ROOT, TASKS, Prepared, command, prepared
from onestart_conformance.damage.site import LEASE
from onestart_conformance.damage.systematic import Scope, Tally, cases, tried
from onestart_conformance.damage.trial import How, attempt
from onestart_conformance.faults import FAULTS
from onestart_conformance.faults.damage import DAMAGE_FAULTS
from onestart_model.chain import CHAIN
from onestart_report.screen import Screen
from onestart_report.verdict import Verdict
from own_pool import AtOnce

ROOM = Path(__file__).parent.parent
SOME = Scope(every=400, pairs=120, records=2)


@pytest.fixture(scope="module")
def medium() -> DiskMedium:
    return DiskMedium()


@pytest.fixture(scope="module")
def ledger(medium: DiskMedium) -> Prepared:
    return prepared(medium)


def test_the_prepared_ledger_has_every_kind_of_record(ledger: Prepared, medium: DiskMedium) -> None:
    """Damage to a kind that is not there would be tried in vain."""
    kinds = {original.line.kind for originals in ledger.records.values() for original in originals}
    assert kinds == {"receipt", "attempt", "session", "lease", "note", "approval", "step"}
    assert ledger.engine.starts == dict.fromkeys(("ended", "live", "lost", "approved", "stopped"), 1)
    assert not medium.verify().told


@pytest.mark.parametrize("store", STORES)
def test_no_oracle_objects_to_any_damage(ledger: Prepared, medium: DiskMedium, store: str) -> None:
    """Every damage to every record; of the bytes some, of which `onestart damage --profile deep` takes all."""
    tally = Tally()
    for done in tried(ledger, medium, cases(ledger, store, SOME)):
        tally.add(*done)
    assert not tally.objected, tally.objected[0]
    assert sum(count.starts for count in tally.counts.values()) == 0
    assert sum(count.reported for count in tally.counts.values()) > 0


def test_no_oracle_objects_to_two_damages_together(ledger: Prepared, medium: DiskMedium) -> None:
    """Two damages, drawn."""
    tally = draw_pairs(ledger, medium, number=7, examples=150)
    assert tally.tried == 150
    assert not tally.objected, tally.objected[0]


@pytest.mark.parametrize("tells", [True, False])
def test_an_intent_that_two_stores_have_lost_is_not_taken_for_none(
    ledger: Prepared, medium: DiskMedium, tells: bool
) -> None:
    """Its key was started, and its attempt and its note are gone with others: it is asked about, or held."""
    damages = (grammar.RolledBack("attempts", 7), grammar.Deleted("leases"))
    trial = attempt(ledger, medium, damages, "lost", How(tells=tells))
    assert trial.starts["lost"] == 1
    assert trial.answers[0].held is not tells
    assert trial.answers[0].findings
    assert trial.unrelated.outcome == Outcome.STARTED
    assert not list(objections(ledger, trial))


def test_an_operator_can_settle_what_two_stores_have_lost(ledger: Prepared, medium: DiskMedium) -> None:
    """A held key has a way out; until then it can be cancelled no more than started."""
    medium.restore(ledger.kept)
    medium.cut("attempts", 7, 0)
    medium.remove("leases")
    site = ledger.site(medium, tells=False)
    site.pass_time(4 * LEASE)
    assert site.submit(command("lost")).reason == Reason.IN_DOUBT
    chain: Chain = site.chain()
    site.pass_time(4 * LEASE)
    assert site.run(chain.cancel("lost")).reason == Reason.IN_DOUBT
    site.run(chain.settle("lost", by="anna", why="it had run"))
    assert site.submit(command("lost")).outcome == Outcome.CLOSED
    assert site.starts["lost"] == 1


def test_a_key_that_comes_after_the_damage_goes_on_by_what_it_records(ledger: Prepared, medium: DiskMedium) -> None:
    """Its receipt is the first record of it, so that nothing of it can be lost."""
    medium.restore(ledger.kept)
    medium.cut("attempts", 7, 0)
    medium.remove("leases")
    site = ledger.site(medium)
    answer = site.submit(command("later", "tomorrow's"))
    assert (answer.outcome, answer.reason) == (Outcome.STARTED, Reason.CREATED)
    assert {finding.store for finding in answer.findings} == {"attempts", "leases"}


REAL: tuple[Damage, ...] = (
    grammar.Flipped("receipts", 1, 40, 3),
    grammar.Cut("attempts", 4, 20),
    grammar.TornTail("sessions", 5, 30),
    grammar.Zeroed("leases", 3, 0, 64),
    grammar.Duplicated("attempts", 1, 3),
    grammar.Reordered("receipts", 1, 3),
    grammar.Swapped("attempts", 4, "attempts", 1),
    grammar.UnknownVersion("receipts", 1),
    grammar.WrongShape("attempts", 4, summed=True),
    grammar.RolledBack("sessions", 1),
    grammar.Deleted("attempts"),
    grammar.Covered("leases"),
    grammar.Garbage("receipts", b"\x00\xff\n"),
    *(() if os.geteuid() == 0 else (grammar.Refused("receipts"),)),
)


@pytest.mark.parametrize("damage", REAL, ids=lambda damage: damage.name)
def test_real_files_fare_as_the_simulated_ones(tmp_path: Path, damage: Damage) -> None:
    """The same answers, the same findings, the same bytes kept."""
    simulated, real = DiskMedium(), FolderMedium(tmp_path / "ledger")
    trials = [attempt(prepared(medium), medium, (damage,), "live") for medium in (simulated, real)]
    assert [(t.answers, t.unrelated, t.sibling, t.changed) for t in trials[:1]] == [
        (t.answers, t.unrelated, t.sibling, t.changed) for t in trials[1:]
    ]
    assert trials[0].verified.told == trials[1].verified.told
    assert not list(objections(prepared(DiskMedium()), trials[0]))


@pytest.mark.parametrize("name", LIMITS)
def test_what_cannot_be_noticed_is_shown_and_said(name: str) -> None:
    """A limit that is no longer one has to leave the documents too. Where files tell of it, nothing starts again."""
    limit = LIMITS[name]
    shown = limit.play(DiskMedium())
    if limit in limits_of("jsonl"):
        assert limit.shown_by(shown)
    else:
        assert shown == Shown(verified=True, told=True, starts=1)
    assert f"`{name}`" in (ROOM / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", DAMAGE_FAULTS)
def test_a_fault_is_caught_by_the_oracle_that_must_catch_it(name: str) -> None:
    """Within a thousand damages, by exactly that oracle; and without the fault nobody objects to the same damage."""
    fault = DAMAGE_FAULTS[name]
    found = damage_campaign(fault, number=0, examples=1000)
    assert found.found is not None, found.others
    case, objection = found.found
    assert fault.caught_by(objection)
    medium = DiskMedium()
    ledger = prepared(medium)
    assert not list(objections(ledger, attempt(ledger, medium, *case)))


def test_faults_of_damage_have_promises_of_the_model_and_names_of_their_own() -> None:
    """What is at stake is a promise or a possibility of the model; a name means one fault."""
    assert len(DAMAGE_FAULTS) >= 8
    assert not DAMAGE_FAULTS.keys() & FAULTS.keys()
    named = {prop.name for prop in CHAIN.properties}
    for fault in DAMAGE_FAULTS.values():
        assert fault.promise in named
        assert fault.oracle in ORACLES


def test_the_parts_of_a_profile_are_all_of_it(monkeypatch: pytest.MonkeyPatch, ledger: Prepared) -> None:
    """Whatever the number of processes, every case is tried once."""
    scope = Scope(every=2000, pairs=1000)
    monkeypatch.setitem(EFFORTS, "quick", Effort(scope, pairs=16))
    chosen = [part for part in parts("jsonl", "quick", 0) if part.store in ("approvals", "")]
    done = Tally()
    for tally in try_all(chosen):
        done.include(tally)
    assert done.tried == len(list(cases(ledger, "approvals", scope))) + 16
    assert not done.oracles


def test_a_check_takes_damage_from_standard_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every case, what cannot be noticed, and every fault are claims of a check, and shown."""
    tiny = Effort(Scope(every=3000, pairs=2000, records=40), pairs=8)
    monkeypatch.setitem(EFFORTS, "standard", tiny)
    monkeypatch.setattr(checked, "parts", lambda *of: [part for part in parts(*of) if part.store in ("approvals", "")])
    monkeypatch.setattr(checked, "DAMAGE_FAULTS", {"strays-dropped": DAMAGE_FAULTS["strays-dropped"]})
    screen, pool = Screen(), AtOnce()
    assert checked.damages("quick", 0, pool, LEDGERS, "") == {}
    trying = checked.damages("standard", 0, pool, ["jsonl"], "")
    damaged = checked.damage(trying, profile="standard", at="", phase=screen.phase)
    checked.drive_faults_of_damage(damaged, profile="standard", seed=0, phase=screen.phase, pool=pool)
    assert {claim.method for claim in damaged.claims} == {"damage", "limit", "seeded fault"}
    assert {claim.verdict for claim in damaged.claims} == {Verdict.PROVED}
    checked.show_damaged(screen, damaged)
    shown = capsys.readouterr().out
    assert "no oracle objects" in shown
    assert "1 of 1 faults caught" in shown


def test_every_key_is_asked_about(ledger: Prepared) -> None:
    """Each prepared key, and the flow, is the subject of some damage."""
    assert {subject for store in STORES for _, subject, _ in cases(ledger, store, SOME)} == {*TASKS, ROOT}
