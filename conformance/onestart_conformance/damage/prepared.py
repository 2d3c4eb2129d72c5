"""The ledger that is damaged: commands of several tasks, each left at another point, and the journal of a flow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from onestart import Command
from onestart.flow.driver import lease_of
from onestart.health import Finding, Health, Reading
from onestart.lines import Line, Place, decode
from onestart.ports import View
from onestart.records import KINDS
from onestart_conformance.damage.medium import Medium
from onestart_conformance.damage.outside import Approvers, StandingClock
from onestart_conformance.damage.site import LEASE, Site, after
from onestart_conformance.doubles import Engine, PromptExecutor, VirtualTime, unheard

ROOT = "story"
TASKS: Mapping[str, str] = {
    "ended": "books",
    "live": "books",
    "waiting": "books",
    "lost": "mail",
    "unsent": "post",
    "unapproved": "bills",
    "approved": "taxes",
    "cancelled": "news",
    "stopped": "press",
}
"""Of each command. ended: has run. live: runs. waiting: is offered, and its task is busy. lost: its start's answer was
lost; unsent: its start was. unapproved: is pending. cancelled: before it was started. stopped: while it ran."""

LOST, UNSENT = frozenset({"lost"}), frozenset({"unsent"})
APPROVED = frozenset({"unapproved", "approved", "cancelled"})


def command(key: str, task: str = "") -> Command:
    """The command that a key stands for. task: of a key that is not prepared."""
    return Command(key=key, task=task or TASKS[key], function="f", payload=key, actor="a")


@frozen
class Original:
    """One record as it was written. raw: its bytes in the medium. line: what they show."""

    store: str
    number: int
    raw: bytes
    line: Line


@frozen
class Prepared:
    """kept: the ledger's bytes. engine, written: what had been started, and the flow's effects. seconds: the time.

    numbering: of the medium. shown: what every place showed. results: what was recorded as each key's.
    records: in their order, by store.
    """

    kept: object
    engine: Engine
    written: Mapping[str, int]
    seconds: float
    numbering: str
    shown: Mapping[Place, Reading[Any]]
    results: Mapping[str, Mapping[str, str]]
    records: Mapping[str, tuple[Original, ...]]

    def site(self, medium: Medium, *, tells: bool = True) -> Site:
        """Processes come up over what is in the medium, and outside all is as it was. tells: see `PromptExecutor`."""
        return Site(
            medium.ledger(),
            PromptExecutor(after(self.engine), tells=tells),
            Approvers(APPROVED),
            StandingClock(VirtualTime(self.seconds)),
            Counter(self.written),
        )


def prepared(medium: Medium) -> Prepared:
    """Have the library write the ledger into an empty medium."""
    executor = PromptExecutor(Engine(unheard), LOST, UNSENT)
    site = Site(medium.ledger(), executor, Approvers(APPROVED))
    _commands(site)
    site.resume(ROOT)
    records = {store: tuple(_originals(medium, store)) for store in medium.stores}
    places = {original.line.place for originals in records.values() for original in originals}
    shown, _ = look(site, places)
    results = {key: shown["receipt", key].records[-1].result for key in TASKS}
    return Prepared(
        kept=medium.keep(),
        engine=executor.engine,
        written=dict(site.written),
        seconds=site.clock.now(),
        numbering=medium.numbering,
        shown=shown,
        results={key: result for key, result in results.items() if result is not None},
        records=records,
    )


def _commands(site: Site) -> None:
    chain = site.chain()
    site.submit(command("ended"))
    site.executor.engine.running.discard("ended")
    site.run(chain.reconcile("ended"))
    for key in ("live", "waiting", "lost", "unsent", "unapproved"):
        site.submit(command(key))
    site.run(chain.approve(command("approved"), by="anna"))
    site.submit(command("approved"))
    site.submit(command("cancelled"))
    site.run(chain.cancel("cancelled"))
    site.submit(command("stopped"))
    site.run(chain.cancel("stopped"))
    site.pass_time(LEASE / 2)


def _originals(medium: Medium, store: str) -> list[Original]:
    found = []
    for number, raw in enumerate(medium.records(store)):
        line = decode(raw.rstrip(b"\n"))
        assert line.health is Health.INTACT, (store, number)
        found.append(Original(store, number, raw, line))
    return found


def look(site: Site, places: Iterable[Place]) -> tuple[dict[Place, Reading[Any]], tuple[Finding, ...]]:
    """What a ledger shows in each of these places, and the damage that may be anybody's."""

    def see(view: View) -> tuple[None, tuple[dict[Place, Reading[Any]], tuple[Finding, ...]]]:
        readings = {place: _reading(view, *place) for place in sorted(places)}
        return None, (readings, view.stray())

    return site.run(site.ledger.step(see))


def _reading(view: View, kind: str, name: str) -> Reading[Any]:
    assert kind in KINDS
    return getattr(view, "steps" if kind == "step" else kind)(name)  # type: ignore[no-any-return]


def subject_of(line: Line) -> str:
    """The key that is submitted again after damage to this record; the flow's id for what is of a flow."""
    if line.key in TASKS:
        return line.key
    of_task = [key for key, task in TASKS.items() if task == line.task]
    return of_task[-1] if of_task else ROOT


def task_of(subject: str) -> str:
    """The task that a subject occupies."""
    return lease_of(ROOT) if subject == ROOT else TASKS[subject]
