"""What a check finds out about stores: the axioms that the rules take for granted, put to each ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future

from onestart_conformance.stores.suite import HOLDS, PLANS, REFUTED, Table, run
from onestart_proofs.evidence import Phase
from onestart_report.claims import Claim
from onestart_report.verdict import Verdict

LEDGERS = ("memory", "jsonl", "sqlite")
PLAN_OF = {"quick": "glance", "standard": "quick", "deep": "standard"}  # `onestart stores` goes further


def store_tests(profile: str, seed: int, pool: Executor) -> dict[str, Future[Table]]:
    """Each kind of ledger, under way in the pool."""
    return {ledger: pool.submit(_tested, ledger, profile, seed) for ledger in LEDGERS}


def _tested(ledger: str, profile: str, seed: int) -> Table:
    table = Table()
    run(ledger, PLANS[PLAN_OF[profile]], seed=seed, report=lambda name, share: None, table=table)
    return table


def collect(pending: Mapping[str, Future[Table]], seed: int, phase: Phase) -> Table:
    """What came of it."""
    whole = Table()
    for ledger, future in pending.items():
        with phase(f"axioms about stores on {ledger}, seed {seed}") as tell:
            table = future.result()
            tell(f"{sum(done.images for done in table.explored):,} images after crashes", 1.0)
        whole.add(table)
    return whole


def claims_of(table: Table) -> Iterator[Claim]:
    """A claim for each axiom that applies; what is known to be limited is none."""
    for tested in table.tested.values():
        scope = f"the {tested.ledger} ledger"
        if tested.verdict == HOLDS:
            yield Claim(tested.axiom, "axiom", scope, Verdict.PROVED, f"{tested.runs:,} runs")
        elif tested.verdict == REFUTED:
            yield Claim(tested.axiom, "axiom", scope, Verdict.REFUTED, tested.breach)
