"""The claims that proofs and searches amount to."""

from __future__ import annotations

from collections.abc import Iterable

from onestart_model.rules import CAN_STILL, REACHABLE, Property
from onestart_proofs.graph import Stuck
from onestart_proofs.induction import Proof
from onestart_proofs.search import Exploration
from onestart_report.claims import ALL_SIZES, Claim
from onestart_report.verdict import Verdict


def proof_claims(proof: Proof) -> list[Claim]:
    """One claim for each property that was proved, or not."""
    claims = []
    for name in dict.fromkeys(o.property for o in proof.obligations):
        obligations = proof.of(name)
        failed = [o for o in obligations if o.verdict is not Verdict.PROVED]
        detail = f"{len(obligations)} obligation{'s' if len(obligations) > 1 else ''}"
        if failed:
            detail = f"{len(failed)} of {detail}, first {failed[0].action}"
            detail += f": {failed[0].reason}" if failed[0].reason else ""
        elif unproved := proof.unproved_basis(name):
            detail += f", but they rest on {unproved[0]}"
        claims.append(Claim(name, "induction", ALL_SIZES, proof.verdict_of(name), detail))
    for action, possible in proof.possible.items():
        verdict = Verdict.PROVED if possible is Verdict.PROVED else Verdict.UNDETERMINED
        detail = "some state allows it" if verdict is Verdict.PROVED else "no state is known that allows it"
        claims.append(Claim(action, "vacuity", ALL_SIZES, verdict, detail))
    return claims


def exploration_claims(exploration: Exploration, properties: Iterable[Property]) -> list[Claim]:
    """One claim for each property; what can still happen is decided elsewhere (`possibility_claim`)."""
    return [_of_property(exploration, p) for p in properties if p.kind != CAN_STILL]


def possibility_claim(exploration: Exploration, prop: Property, stuck: Stuck | None) -> Claim:
    """What can still happen: undetermined unless it was searched for in a complete exploration without budgets."""
    if stuck is not None:
        return stuck_claim(exploration, stuck)
    reason = f"ended by {exploration.reason}" if exploration.reason else "a budget may be what is in the way"
    return Claim(prop.name, "enumeration", exploration.instance.scope, Verdict.UNDETERMINED, reason)


def _of_property(exploration: Exploration, prop: Property) -> Claim:
    sighting = exploration.sightings.get(prop.name)
    covered = f"{exploration.states:,} states"
    seen, unseen = Verdict.REFUTED, Verdict.PROVED
    if prop.kind == REACHABLE:
        seen, unseen = Verdict.PROVED, Verdict.REFUTED
    if sighting is not None:
        return Claim(prop.name, "enumeration", exploration.instance.scope, seen, f"after {sighting.steps()} steps")
    if not exploration.complete:
        detail = f"{covered} covered, ended by {exploration.reason}"
        return Claim(prop.name, "enumeration", exploration.instance.scope, Verdict.UNDETERMINED, detail)
    return Claim(prop.name, "enumeration", exploration.instance.scope, unseen, covered)


def stuck_claim(exploration: Exploration, stuck: Stuck) -> Claim:
    verdict = Verdict.PROVED if not stuck.stuck else Verdict.REFUTED
    detail = f"from all {stuck.states:,} states" if not stuck.stuck else f"not from {stuck.stuck:,} of {stuck.states:,}"
    return Claim(stuck.property, "enumeration", exploration.instance.scope, verdict, detail)
