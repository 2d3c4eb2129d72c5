"""A trial: damage is done to the prepared ledger, and the library is asked what it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import evolve, field, frozen

from onestart import Answer, Outcome
from onestart.flow import FlowError
from onestart.health import Finding, Reading
from onestart.lines import Place
from onestart.ports import LedgerUnavailableError
from onestart_conformance.damage.grammar import Damage
from onestart_conformance.damage.medium import Medium, Verified
from onestart_conformance.damage.prepared import ROOT, Prepared, command, look, task_of
from onestart_conformance.damage.site import LEASE, Site
from onestart_conformance.layers import compare_bytes
from onestart_conformance.scenarios.bench import Layers

T = TypeVar("T")

SIBLING = "sibling"  # a new key of the subject's task
UNRELATED = "unrelated"  # a new key of a task of which nothing was recorded


@frozen
class Said:
    """What came back of a call. findings: the damage that it reports. raised: what it should not have raised."""

    who: str
    outcome: str
    reason: str
    result: Mapping[str, str] | None = None
    findings: tuple[str, ...] = ()
    raised: str = ""

    @property
    def held(self) -> bool:
        """Whether nothing was done, as things stand."""
        return self.outcome not in (Outcome.STARTED, Outcome.CLOSED, "completed", "parked")


@frozen
class Seen:
    """What a reader sees. readings, stray: as of a view. unavailable: why it sees nothing, if it does not.

    raised: what reading should not have raised.
    """

    readings: Mapping[Place, Reading[Any]] = field(factory=dict)
    stray: tuple[Finding, ...] = ()
    unavailable: str = ""
    raised: str = ""


@frozen
class Trial:
    """damages: what was done. subject: the key that is asked about, or the flow.

    left: the bytes of each record, by store, after the damage. torn: stores that end in what may be a part of a last
    write. readable: whether the system lets a process read. seen, verified: what is read before anything is asked;
    afterwards, what is read when the subject was answered for the first time. answers: of the subject, twice; then of
    an unrelated command and of another one of the task. starts, effects: in all, of each key. before, after: the six
    layers. changed: recorded bytes that are not as they were.
    """

    damages: tuple[Damage, ...]
    subject: str
    left: Mapping[str, tuple[bytes, ...]]
    torn: frozenset[str]
    readable: bool
    seen: Seen
    verified: Verified
    afterwards: Seen
    answers: tuple[Said, ...]
    unrelated: Said
    sibling: Said
    starts: Mapping[str, int]
    effects: Mapping[str, int]
    before: Layers
    after: Layers
    changed: tuple[str, ...]


@frozen
class How:
    """tells: whether the executor can say what it has started. warm: the first question is to a process that had the
    ledger open before the damage. recovers: the later process takes up all that is unfinished first.
    """

    tells: bool = True
    warm: bool = False
    recovers: bool = True


PLAINLY = How()


def attempt(prepared: Prepared, medium: Medium, damages: Sequence[Damage], subject: str, how: How = PLAINLY) -> Trial:
    """Damage the ledger and ask: the subject, and once more when its lease has run out; then the others, apart."""
    site = _damaged(prepared, medium, damages, how)
    done = medium.bytes()
    left = {store: medium.records(store) for store in medium.stores}
    torn = frozenset(store for store in medium.stores if medium.torn(store))
    readable = medium.readable
    seen, verified = see(site, prepared.shown), _verified(medium)
    before = _layers(site, seen, subject, kept=True)
    answers = [_again(site, subject)]
    afterwards = see(site, prepared.shown)
    site.pass_time(4 * LEASE)
    site.ledger = medium.ledger()
    if how.recovers:
        answers.append(_ask("recovery", lambda: site.run(site.chain().recover())))
    answers.append(_again(site, subject))
    after = _layers(site, afterwards, subject, kept=medium.bytes() == done)
    changed = [objection.what for objection in compare_bytes(done, medium.bytes())]
    other = _damaged(prepared, medium, damages, evolve(how, warm=False))
    unrelated = _submit(other, UNRELATED, "nobody else's")
    sibling = _submit(other, SIBLING, task_of(subject))
    changed += [objection.what for objection in compare_bytes(done, medium.bytes())]
    return Trial(
        damages=tuple(damages),
        subject=subject,
        left=left,
        torn=torn,
        readable=readable,
        seen=seen,
        verified=verified,
        afterwards=afterwards,
        answers=tuple(answers),
        unrelated=unrelated,
        sibling=sibling,
        starts=_most(site.starts, other.starts),
        effects=_most(site.effects, other.effects),
        before=before,
        after=evolve(after, bytes=not changed),
        changed=tuple(changed),
    )


def _damaged(prepared: Prepared, medium: Medium, damages: Sequence[Damage], how: How) -> Site:
    medium.restore(prepared.kept)
    site = prepared.site(medium, tells=how.tells)
    if how.warm:
        look(site, prepared.shown)
    for damage in damages:
        damage.apply(medium)
    if not how.warm:
        site.ledger = medium.ledger()
    return site


def see(site: Site, places: Iterable[Place]) -> Seen:
    """What is read, by the process that is asked."""
    try:
        return Seen(*look(site, places))
    except LedgerUnavailableError as error:
        return Seen(unavailable=str(error))
    except Exception as error:
        return Seen(raised=f"reading: {type(error).__name__}: {error}")


def _verified(medium: Medium) -> Verified:
    try:
        return medium.verify()
    except Exception as error:
        return Verified({}, raised=f"the ledger's own check: {type(error).__name__}: {error}")


def _most(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """What was done at most: the two went apart after the damage."""
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in {*one, *other}}


def _again(site: Site, subject: str) -> Said:
    return _resume(site) if subject == ROOT else _submit(site, subject)


def _submit(site: Site, key: str, task: str = "") -> Said:
    def submit() -> Said:
        answer: Answer = site.submit(command(key, task))
        result = None if answer.result is None else answer.result.to_json()
        return Said(
            key, str(answer.outcome), str(answer.reason), result, tuple(str(finding) for finding in answer.findings)
        )

    return _ask(key, submit)


def _resume(site: Site) -> Said:
    def resume() -> Said:
        try:
            outcome = site.resume(ROOT)
        except FlowError as error:
            return Said(ROOT, "held", error.reason, None, (str(error),))
        except LedgerUnavailableError as error:
            return Said(ROOT, "held", "store_unavailable", None, (str(error),))
        told = tuple(text for text in (outcome.message, *outcome.held.values(), *outcome.findings) if text)
        return Said(ROOT, outcome.state, outcome.reason, None, told)

    return _ask(ROOT, resume)


def _ask(who: str, call: Callable[[], Any]) -> Said:
    """What a call says; what it raises is nothing that a caller could be prepared for."""
    try:
        said = call()
    except LedgerUnavailableError as error:
        return Said(who, "held", "store_unavailable", None, (str(error),))
    except Exception as error:
        return Said(who, "raised", type(error).__name__, raised=f"{type(error).__name__}: {error}")
    return said if isinstance(said, Said) else Said(who, "done", "")


def _layers(site: Site, seen: Seen, subject: str, *, kept: bool) -> Layers:
    """Where the ledger has got to, layer by layer."""
    receipt = seen.readings.get(("step" if subject == ROOT else "receipt", subject))
    attempts = [r for (kind, _), r in seen.readings.items() if kind == "attempt" and r.exists]
    return Layers(
        kept,
        "unavailable" if receipt is None else str(receipt.health),
        site.callbacks,
        len(attempts),
        sum(site.starts.values()),
        sum(site.effects.values()),
    )
