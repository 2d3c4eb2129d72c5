"""What a check makes of damage: every case of the profile, what cannot be noticed, and seeded faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future

from attrs import define, field

from onestart_check.driven import hunt_down
from onestart_conformance.commands.damage import show_damage, show_limits
from onestart_conformance.commands.faults import show_hunts
from onestart_conformance.damage.campaign import effort_of, medium_of, parts, try_part
from onestart_conformance.damage.limits import Limit, Shown, limits_of
from onestart_conformance.damage.systematic import Tally
from onestart_conformance.faults.damage import DAMAGE_FAULTS
from onestart_conformance.hunts import Hunt
from onestart_proofs.evidence import Phase
from onestart_report.claims import Claim, shown
from onestart_report.screen import Screen

Trying = Mapping[str, Sequence[Future[Tally]]]

HUNTED = 1_000  # damages for each fault


@define
class Damaged:
    """tallies, shown: by ledger."""

    tallies: dict[str, Tally] = field(factory=dict)
    shown: dict[str, list[tuple[Limit, Shown]]] = field(factory=dict)
    hunts: list[Hunt] = field(factory=list)
    claims: list[Claim] = field(factory=list)


def damages(profile: str, seed: int, pool: Executor, ledgers: Sequence[str], at: str) -> Trying:
    """The damage of a profile, under way in the pool. at: where PostgreSQL is."""
    if profile == "quick":
        return {}
    return {ledger: [pool.submit(try_part, part) for part in parts(ledger, profile, seed, at)] for ledger in ledgers}


def damage(trying: Trying, *, profile: str, at: str, phase: Phase) -> Damaged:
    """What came of it. trying: the parts under way."""
    damaged = Damaged()
    for ledger, futures in trying.items():
        tally = damaged.tallies[ledger] = Tally()
        with phase(f"damage, {ledger}") as tell:
            for number, future in enumerate(futures, 1):
                tally.include(future.result())
                tell(f"{tally.tried:,} damages", number / len(futures))
        unnoticed = damaged.shown[ledger] = [(limit, limit.play(medium_of(ledger, at))) for limit in limits_of(ledger)]
        every = effort_of(ledger, profile).scope.every
        scope = f"the ledger {ledger}, {'every byte' if every == 1 else f'one byte of {every}'}"
        detail = str(tally.objected[0][1]) if tally.objected else f"{tally.tried:,} damages"
        damaged.claims.append(shown(ledger, "damage", scope, detail, not tally.oracles))
        damaged.claims += [shown(n.name, "limit", scope, n.statement, n.shown_by(one)) for n, one in unnoticed]
    return damaged


def drive_faults_of_damage(damaged: Damaged, *, profile: str, seed: int, phase: Phase, pool: Executor) -> None:
    """A damaged ledger with each seeded fault."""
    if profile != "quick":
        hunt_down(damaged, DAMAGE_FAULTS, seed=seed, examples=HUNTED, phase=phase, pool=pool)


def show_damaged(screen: Screen, damaged: Damaged) -> None:
    """A table for each ledger, what cannot be noticed, and who found which fault."""
    for ledger, tally in damaged.tallies.items():
        show_damage(screen, ledger, tally)
        show_limits(screen, ledger, damaged.shown[ledger])
    if damaged.hunts:
        show_hunts(screen, damaged.hunts, systematic=False)
        screen.line()
