"""Damage to rows and pages: the same oracles as for lines, and no value out of a file is taken at its word."""

from __future__ import annotations

from itertools import islice

import pytest

from onestart import LedgerUnavailableError, Outcome, Reason
from onestart.records import STORES
from onestart.sql.rows import Row, from_values
from onestart.sql.view import RowsView
from onestart_conformance.damage.drawn import draw_pairs
from onestart_conformance.damage.grammar import CutFile, Damage, Edited, Garbage, OfFile, Removed, RolledBack
from onestart_conformance.damage.limits import LIMITS
from onestart_conformance.damage.oracles import judged, objections
from onestart_conformance.damage.prepared import Prepared, command, prepared
from onestart_conformance.damage.sqlite import SqliteMedium
from onestart_conformance.damage.systematic import EDITS, Case, Scope, Tally, cases, cases_of_file, tried
from onestart_conformance.damage.trial import How, attempt

SOME = Scope(every=400, pairs=200)


@pytest.fixture(scope="module")
def medium() -> SqliteMedium:
    return SqliteMedium()


@pytest.fixture(scope="module")
def ledger(medium: SqliteMedium) -> Prepared:
    return prepared(medium)


def judge(ledger: Prepared, medium: SqliteMedium, chosen: list[Case]) -> Tally:
    tally = Tally()
    for done in tried(ledger, medium, chosen):
        tally.add(*done)
    assert not tally.objected, tally.objected[0]
    return tally


@pytest.mark.parametrize("store", STORES)
def test_no_oracle_objects_to_damaged_rows(ledger: Prepared, medium: SqliteMedium, store: str) -> None:
    """A sample of every kind of damage; `onestart damage --ledger sqlite` takes all."""
    every = list(cases(ledger, store, SOME))
    tally = judge(ledger, medium, every[:: max(1, len(every) // 30)])
    assert sum(count.reported for count in tally.counts.values()) > 0


def test_no_oracle_objects_to_edited_columns(ledger: Prepared, medium: SqliteMedium) -> None:
    """Each edit of each column, in some store."""
    edits = [case for store in STORES for case in cases(ledger, store, SOME) if isinstance(case[0][0], Edited)]
    each: dict[tuple[object, str], list[Case]] = {(edit, store): [] for edit in EDITS for store in STORES}
    for case in edits:
        edit = case[0][0]
        assert isinstance(edit, Edited)
        each[(edit.column, edit.value), edit.store].append(case)
    judge(ledger, medium, [some[-1] for some in each.values()])


def test_no_oracle_objects_to_damaged_pages(ledger: Prepared, medium: SqliteMedium) -> None:
    """Bits, sectors and the end of the file: whatever it holds then, nothing is started twice or made up."""
    assert isinstance(ledger.kept, bytes)
    every = list(cases_of_file(ledger.kept, Scope(every=997)))
    assert all(isinstance(case[0][0], OfFile) for case in every)
    judge(ledger, medium, list(islice(every, 0, None, 3)))


def test_no_oracle_objects_to_two_damages_together(ledger: Prepared, medium: SqliteMedium) -> None:
    """Two damages, drawn."""
    tally = draw_pairs(ledger, medium, number=3, examples=40)
    assert not tally.objected, tally.objected[0]


@pytest.mark.parametrize(
    ("went", "put_in", "subject"),
    [
        (Removed("receipts", 7), Garbage("receipts", b"\xff\xfe\n"), "unapproved"),
        (RolledBack("flows", 4), Garbage("flows", b'["onestart",1,'), "story"),
    ],
)
def test_a_row_that_was_put_in_is_no_trace_of_another(
    ledger: Prepared, medium: SqliteMedium, went: Damage, put_in: Damage, subject: str
) -> None:
    """The oracle has no reason to ask more of the library than without it; what went without a trace, it counts."""
    alone, both = (attempt(ledger, medium, damages, subject) for damages in ((went,), (went, put_in)))
    for trial in (alone, both):
        assert list(objections(ledger, trial)) == []
        assert judged(ledger, trial).hidden
        assert trial.verified.told


@pytest.mark.parametrize("name", LIMITS)
def test_what_cannot_be_noticed_is_shown(name: str) -> None:
    """The same as with lines, but that a database counts its records, so that its own check misses one."""
    assert LIMITS[name].shown_by(LIMITS[name].play(SqliteMedium()))


def test_a_key_that_nobody_could_submit_is_no_bar_to_a_recovery(ledger: Prepared, medium: SqliteMedium) -> None:
    """One row's key was edited; what other rows tell of is taken up all the same."""
    trial = attempt(ledger, medium, (Edited("receipts", 7, "key", "\x07"),), "unsent", How(recovers=True))
    assert [said.raised for said in trial.answers] == ["", "", ""]
    assert trial.answers[-1].outcome == Outcome.STARTED


@pytest.mark.parametrize("column", ["key", "name"])
def test_a_text_that_is_none_is_a_typed_error_and_stops_nobody_else(
    ledger: Prepared, medium: SqliteMedium, column: str
) -> None:
    """Whoever has to read the row is told; an unrelated command does not."""
    medium.restore(ledger.kept)
    medium.run(f'UPDATE "receipts" SET "{column}" = CAST(x\'ff\' AS TEXT) WHERE "key" = \'live\'')
    site = ledger.site(medium)
    assert site.submit(command("later", "tomorrow's")).outcome == Outcome.STARTED
    if column == "key":
        with pytest.raises(LedgerUnavailableError):
            site.run(site.chain().recover())


@pytest.mark.parametrize("byte", [1, 15, 16, 71, 72, 99, 100, 511, 512, 1000, 4095, 4096, 8192])
def test_a_file_that_is_cut_off_is_not_begun_anew(ledger: Prepared, medium: SqliteMedium, byte: int) -> None:
    """SQLite takes a few bytes for an empty database; a ledger of which some is there has been one."""
    trial = attempt(ledger, medium, (CutFile(byte),), "ended")
    assert trial.starts["ended"] == 1
    assert trial.answers[0].held
    assert trial.answers[0].findings


GOOD = (1, "receipt", "k", 1, "k", "t", 0, b"line")


@pytest.mark.parametrize("place", range(7))
def test_a_value_of_another_type_is_a_typed_error(place: int) -> None:
    """Damage to pages can make anything of a value."""
    assert from_values(GOOD) == Row(*GOOD)
    with pytest.raises(LedgerUnavailableError, match="another type"):
        from_values((*GOOD[:place], None, *GOOD[place + 1 :]))


@pytest.mark.parametrize("store", ["receipts", "leases"])
def test_a_number_that_became_a_text_holds_the_task(ledger: Prepared, medium: SqliteMedium, store: str) -> None:
    """A maximum over rows is the text, if one of them has one: damage, and nothing starts on it."""
    medium.restore(ledger.kept)
    medium.run(f'UPDATE "{store}" SET "lease" = \'some\'')
    answer = ledger.site(medium).submit(command("later", "books"))
    assert (answer.outcome, answer.reason) == (Outcome.HELD, Reason.STORE_UNAVAILABLE)
    assert "another type" in answer.detail


def test_a_line_that_is_no_bytes_is_illegible(ledger: Prepared, medium: SqliteMedium) -> None:
    """It is damage to that one record."""
    assert from_values((*GOOD[:-1], "a text")).line == b""
    trial = attempt(ledger, medium, (Edited("receipts", 3, "line", "a text"),), "live")
    assert trial.answers[0].findings
    assert not trial.verified.raised


class Misled:
    """Rows as a damaged index finds them: what was asked for, and a row of another key."""

    def of_keys(self, keys: list[str]) -> list[Row]:
        return [Row(1, "receipt", "stranger" if key == "a" else key, 1, key, "t", 0, b"") for key in keys]


def test_a_row_that_is_not_what_it_is_found_by_is_damage_to_that_key() -> None:
    """It is neither lost nor taken for another key's."""
    view = RowsView(Misled())  # type: ignore[arg-type]
    view._load(["a", "b"])
    assert view.receipt("a").health.degraded
    assert view.receipt("b").health.degraded
