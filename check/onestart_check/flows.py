"""What a check drives of flows: the published table, shapes of public reports, random and systematic drives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Executor, Future

from attrs import define, field
from rich.markup import escape

from onestart_check.driven import hunt_down
from onestart_conformance.commands.faults import show_hunts
from onestart_conformance.flows.campaign import FlowCampaign, flow_campaign
from onestart_conformance.flows.faults import FLOW_FAULTS
from onestart_conformance.flows.rows import ROWS, Played, play_row
from onestart_conformance.flows.shapes import SHAPES, Shaped, play_shape
from onestart_conformance.flows.systematic import BOUNDS, FlowWalk, flow_bound, walk_flow
from onestart_conformance.hunts import Hunt
from onestart_model.catalog import PROFILES
from onestart_proofs.evidence import Phase
from onestart_report.claims import Claim, shown
from onestart_report.screen import Screen, colored
from onestart_report.verdict import Verdict

Walking = Mapping[tuple[str, int], Future[FlowWalk]]

LIBRARY = "flows of the library"
EXAMPLES = {"quick": 200, "standard": 1_000, "deep": 20_000}
HUNTED = 2_000  # random runs for each fault


@define
class FlowsDriven:
    """walks: by bound and version of step ids."""

    rows: list[Played] = field(factory=list)
    shapes: list[Shaped] = field(factory=list)
    random: FlowCampaign | None = None
    walks: dict[tuple[str, int], FlowWalk] = field(factory=dict)
    hunts: list[Hunt] = field(factory=list)
    claims: list[Claim] = field(factory=list)

    @property
    def followed(self) -> Counter[str]:
        """How many runs were followed on the model, and why the others were not."""
        every = [walk.followed for walk in self.walks.values()]
        return sum([*every, self.random.tally.followed] if self.random is not None else every, Counter[str]())


def flow_walks(profile: str, pool: Executor) -> Walking:
    """The systematic drives of a profile, under way in the pool."""
    bounds = [bound for bound in BOUNDS if PROFILES.index(bound.profile) <= PROFILES.index(profile)]
    return {(bound.name, version): pool.submit(_walk, bound.name, version) for bound in bounds for version in (2, 3)}


def _walk(name: str, version: int) -> FlowWalk:
    walk = walk_flow(flow_bound(name), version)
    walk.objected = str(walk.objection or "")
    walk.world = None  # a world cannot be handed to another process
    return walk


def drive_flows(walking: Walking, *, profile: str, seed: int, phase: Phase) -> FlowsDriven:
    """Rows, shapes and drives. The same seed gives the same runs. walking: the systematic drives."""
    driven, examples = FlowsDriven(), EXAMPLES[profile]
    with phase("published rows and reported shapes of flows") as tell:
        driven.rows = [play_row(row) for row in ROWS.values()]
        driven.shapes = [play_shape(shape) for shape in SHAPES.values()]
        tell(f"{len(driven.rows)} rows, {len(driven.shapes)} shapes", 1.0)
    driven.claims += [_claim(p.row.name, "published row", p.row.statement, p.holds) for p in driven.rows]
    driven.claims += [_claim(s.shape.name, "reported shape", s.shape.statement, s.holds) for s in driven.shapes]
    with phase(f"random drive of flows, seed {seed}") as tell:
        found = flow_campaign(number=seed, examples=examples, report=lambda n: tell(f"{n:,} runs", n / examples))
        tell(f"{found.tally.examples:,} runs, {found.tally.effects:,} effects", 1.0)
    driven.random = found
    if found.world is not None:
        driven.claims.append(_claim("flows", "random drive", str(found.world.objection), False))
    for (name, version), walk in walking.items():
        with phase(f"systematic drive of flows, {name}, version {version}") as tell:
            done = driven.walks[name, version] = walk.result()
            tell(f"{done.runs:,} runs, {done.places:,} places to die", None)
        detail = done.objected or f"{done.runs:,} runs, none left"
        driven.claims.append(_claim(f"{name} {version}", "systematic drive", detail, done.complete))
    return driven


def drive_faults_of_flows(driven: FlowsDriven, *, profile: str, seed: int, phase: Phase, pool: Executor) -> None:
    """Flows with each seeded fault."""
    if profile != "quick":
        hunt_down(driven, FLOW_FAULTS, seed=seed, examples=HUNTED, phase=phase, pool=pool)


def _claim(subject: str, method: str, detail: str, holds: bool) -> Claim:
    return shown(subject, method, LIBRARY, detail, holds)


def show_flows(screen: Screen, driven: FlowsDriven) -> None:
    """Rows, shapes and drives, and who objects."""
    held, shaped = sum(p.holds for p in driven.rows), sum(s.holds for s in driven.shapes)
    screen.line(
        f"Flows: {held} of {len(driven.rows)} published rows equal, "
        f"{shaped} of {len(driven.shapes)} reported shapes as said."
    )
    screen.line()
    rows = [
        (name, str(version), flow_bound(name).statement, f"{w.orders:,}", f"{w.places:,}", f"{w.runs:,}", _left(w))
        for (name, version), w in driven.walks.items()
    ]
    if driven.random is not None:
        rows.append(("random", "2, 3", "all kinds, changed flows", "", "", f"{driven.random.tally.examples:,}", ""))
    columns = ("flows", "ids", "scope", "first orders", "places to die", "runs", "left")
    screen.table("What was driven of flows", columns, rows)
    followed = driven.followed
    if followed:
        titles = ("how far a run was followed on the model", "runs")
        screen.table("Flows beside their model", titles, [(how, f"{runs:,}") for how, runs in followed.most_common()])
    if driven.hunts:
        show_hunts(screen, driven.hunts, systematic=False)
        screen.line()
    for claim in driven.claims:
        if claim.verdict is not Verdict.PROVED:
            screen.line(f"{colored(claim.verdict)}: {escape(claim.subject)}: {escape(claim.detail)}")


def _left(walk: FlowWalk) -> str:
    return "nothing" if walk.complete else "not known"
