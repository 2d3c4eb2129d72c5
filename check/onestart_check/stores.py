"""What a check finds out about stores: the axioms that the rules take for granted, put to each ledger, and kills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future

from attrs import define, field

from onestart_conformance.commands.stores import KILLS, MEMORY
from onestart_conformance.stores.killing import Kills, kill_all
from onestart_conformance.stores.suite import HOLDS, PLANS, REFUTED, Table, parts, try_part
from onestart_proofs.evidence import Phase
from onestart_report.claims import Claim
from onestart_report.verdict import Verdict

PLAN_OF = {"quick": "glance", "standard": "quick", "deep": "standard"}  # `onestart stores` goes further


@define
class Stored:
    """table: the axioms, by ledger. killed: processes, by ledger."""

    table: Table = field(factory=Table)
    killed: dict[str, Kills] = field(factory=dict)

    @property
    def claims(self) -> Iterator[Claim]:
        """A claim for each axiom that applies, and for the kills; what is known to be limited is none."""
        for tested in self.table.tested.values():
            scope = f"the {tested.ledger} ledger"
            if tested.verdict == HOLDS:
                yield Claim(tested.axiom, "axiom", scope, Verdict.PROVED, f"{tested.runs:,} runs")
            elif tested.verdict == REFUTED:
                yield Claim(tested.axiom, "axiom", scope, Verdict.REFUTED, tested.breach)
        for ledger, kills in self.killed.items():
            verdict = Verdict.REFUTED if kills.breaches else Verdict.PROVED
            detail = next(iter(kills.breaches), f"{kills.kills:,} kills")
            yield Claim("kills", "kills", f"the {ledger} ledger", verdict, detail)


Storing = dict[str, list[Future[Table]]]


def store_tests(profile: str, seed: int, pool: Executor, ledgers: Sequence[str], at: str) -> Storing:
    """Each kind of ledger, under way in the pool."""
    plan = PLANS[PLAN_OF[profile]]
    return {
        ledger: [pool.submit(try_part, part) for part in parts(ledger, plan, seed=seed, at=at)]
        for ledger in (MEMORY, *ledgers)
    }


def collect(pending: Storing, *, profile: str, seed: int, at: str, phase: Phase) -> Stored:
    """What came of it; then processes are killed."""
    stored = Stored()
    for ledger, futures in pending.items():
        with phase(f"axioms about stores on {ledger}, seed {seed}") as tell:
            for number, future in enumerate(futures, 1):
                stored.table.add(future.result())
                images = sum(done.images for done in stored.table.explored if done.machine == ledger)
                tell(f"{images:,} images after crashes", number / len(futures))
    for ledger in pending if KILLS[profile] else ():
        if ledger != MEMORY:
            with phase(f"{KILLS[profile]:,} kills on {ledger}, seed {seed}") as tell:
                stored.killed[ledger] = kill_all(ledger, KILLS[profile], seed=seed, report=tell, conninfo=at)
    return stored
