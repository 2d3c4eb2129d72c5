"""The published table of the guard against serial ordinals: each row with its protection taken out, and as shipped.

They are flows with counted ids, version 2. Each plays a first run that is cut short, and a resume in which results
arrive or are replayed in another order. Effects are named by capital letters; small ones are there to be waited for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack

from attrs import frozen

from onestart_conformance.faults.fault import seeded
from onestart_conformance.flows.faults.catalog import ASIDE, FLOW_FAULTS
from onestart_conformance.flows.plan import Plan, Stop
from onestart_conformance.flows.program import Block, Call, Caught, Fan, Part, Program, Saved
from onestart_conformance.flows.run import play
from onestart_conformance.flows.world import World

MISMATCH, CONFLICT = "serial_replay_order_mismatch", "run_admission_conflict"
_HASH = re.compile(r"(?<=after-)[0-9a-f]{64}-")
LAST_FIRST = (1,) * 8


@frozen
class FlowRow:
    """statement: as in the table. removed: faults that take the protection out, none for what holds either way.

    without: what shows then; shipped: what shows as it is. Each is compared with what `seen` says, word by word.
    """

    name: str
    statement: str
    plan: Plan
    removed: tuple[str, ...]
    without: str
    shipped: str


@frozen
class Played:
    """A row as it came out. guarded and bare: as shipped, and without the protection. objection: of the model, to that
    which is shipped.
    """

    row: FlowRow
    bare: str
    guarded: str
    objection: str = ""

    @property
    def holds(self) -> bool:
        return self.bare == self.row.without and self.guarded == self.row.shipped and not self.objection


def play_row(row: FlowRow) -> Played:
    """Both columns."""
    with ExitStack() as stack:
        for name in row.removed:
            stack.enter_context(seeded(ASIDE.get(name) or FLOW_FAULTS[name]))
        bare = play(row.plan, judged=False)
    guarded = play(row.plan, judged=False, followed=True)
    objection = guarded.followed.objection if guarded.followed is not None else None
    return Played(row, seen(bare), seen(guarded), str(objection or ""))


def seen(world: World) -> str:
    """Effects up to the end of the resume, how it ended, what it has admitted, and which questions it saw answered."""
    told = world.told[:2][-1]
    effects = (e.placed.call.label for e in world.effects if e.attempt <= told.number)
    words = ["".join(sorted(label for label in effects if label.isupper())) or "-"]
    outcome = told.outcome
    if outcome is None:
        return " ".join([*words, "cut"])
    words.append(outcome.reason if outcome.state in ("refused", "failed") else outcome.state)
    words += [f"on {question.wait}" for question in outcome.waits]
    admitted = [e.step for e in told.wrote if e.what in ("index", "wait", "complete") or "kind" in e.body]
    if admitted:
        words.append("admits " + ", ".join(dict.fromkeys(admitted)))
    return _HASH.sub("", " ".join([*words, *(f"answers {label}" for label in _answered(world, told.number))]))


def _answered(world: World, attempt: int) -> Iterator[str]:
    """Questions that were given an answer in an attempt."""
    told = world.told[attempt]
    for step, placed in told.placed.items():
        if placed.call.kind == "human" and step in told.given:
            yield placed.call.label


def _run(label: str) -> Call:
    return Call("run", label)


def _llm(label: str) -> Call:
    return Call("llm", label)


def _swapped(left: Part, right: Part, stop: str, *, eager: bool = False, version: int = 2) -> Plan:
    """Two branches whose first results arrive in reverse, then a crash; a resume has them in the order of the text."""
    program = Program((Fan("gather", ((_run("a"), left), (_run("b"), right))),))
    return Plan(program, (LAST_FIRST, ()), (Stop(stop),), version, eager=eager)


def _edited(before: Block, after: Block, stop: str, *, eager: bool = False) -> Plan:
    """A flow that is another one by the time that it is resumed."""
    return Plan(Program(before), (), (Stop(stop),), 2, changed=Program(after), eager=eager)


def _alone(call: Call) -> Plan:
    return Plan(Program((call,)), version=2)


def _slowly(*block: Part) -> Part:
    """Calls that their branch takes a while to get to, although nothing is waited for: gatherings in gatherings."""
    part = Fan("gather", (block,))
    for _ in range(16):
        part = Fan("gather", ((part,),))
    return part


def _ask(question: str, to: str = "anybody") -> Call:
    return Call("human", question, to)


CHILD = Call("dispatch", "child", body=(_llm("C"), _llm("D")))
REFUSED, CONFLICTED = f"{MISMATCH}", f"{CONFLICT}"
KINDS_ASIDE = ("ordinal-kind", "journal-reached", "twins-wait")


def _kinds() -> Iterator[FlowRow]:
    yield FlowRow(
        "run-on-llm",
        "f.run reaches a completed f.llm's ordinal",
        _swapped(_run("Z"), _llm("L"), "done a"),
        KINDS_ASIDE,
        "LLZ completed admits run-3, llm-4, complete-5",
        f"L {REFUSED}",
    )
    yield FlowRow(
        "llm-on-run",
        "f.llm reaches a completed f.run's ordinal",
        _swapped(_llm("L"), _run("Z"), "done a"),
        KINDS_ASIDE,
        "LZZ completed admits llm-3, run-4, complete-5",
        f"Z {REFUSED}",
    )
    yield FlowRow(
        "run-on-agent",
        "f.run reaches a completed f.agent's ordinal",
        _swapped(_run("Z"), Call("agent", "G"), "done a"),
        KINDS_ASIDE,
        "GGZ completed admits run-3, agent-4, complete-5",
        f"G {REFUSED}",
    )
    yield FlowRow(
        "answer-to-another",
        "an f.human answer applied to a different question",
        _swapped(_ask("Delete the left bucket?"), _ask("Ship the right release?"), "done a", eager=True),
        ("question-bound",),
        "- parked on human-4 admits human-4 answers Delete the left bucket?",
        f"- {REFUSED}",
    )
    yield FlowRow(
        "run-instead-of-llm",
        "f.run on an llm ordinal, refused before admission",
        _edited((_llm("L"), _run("c")), (_run("Z"), _run("c")), "done L"),
        KINDS_ASIDE,
        "LZ completed admits run-1, run-2, complete-3",
        f"L {REFUSED}",
    )
    yield FlowRow(
        "llm-instead-of-run",
        "f.llm on a run ordinal, refused before preflight",
        _edited((_run("Z"), _run("c")), (_llm("L"), _run("c")), "done Z"),
        KINDS_ASIDE,
        "LZ completed admits llm-1, run-2, complete-3",
        f"Z {REFUSED}",
    )
    yield FlowRow(
        "marker-on-step",
        "completion marker on a journaled step's ordinal",
        _edited((_run("a"), _llm("L")), (_run("a"),), "done L"),
        ("marker-checked", "journal-reached"),
        "L completed admits complete-2",
        f"L {REFUSED}",
    )


def _questions() -> Iterator[FlowRow]:
    for what, other in (("question", _ask("Why?")), ("recipient", _ask("Who?", "bob"))):
        for answered in (False, True):
            yield FlowRow(
                f"{'answered' if answered else 'asked'}-{what}",
                f"f.human with a different {what}, {'answered' if answered else 'asked'}",
                _edited((_ask("Who?"),), (other,), "wait Who?", eager=answered),
                ("question-bound",),
                f"- completed admits complete-2 answers {other.label}" if answered else "- parked on human-1",
                f"- {REFUSED}",
            )


def _holders() -> Iterator[FlowRow]:
    yield FlowRow(
        "run-on-question",
        "f.run reaches a parked f.human's ordinal",
        _swapped(_run("L"), _slowly(_ask("ask")), "start L"),
        ("waits-hold", "index-at-admission", "twins-wait"),
        "LL parked on human-4 admits human-4, run-3",
        f"L {REFUSED}",
    )
    yield FlowRow(
        "run-on-dispatch",
        "f.run reaches an unfinished f.dispatch's ordinal",
        Plan(
            Program((Fan("gather", ((_run("a"), _run("L")), (_run("b"), _slowly(CHILD)))),)),
            ((1, 0, 0), ()),
            (Stop("done L"),),
            2,
        ),
        ("dispatches-hold", "twins-wait"),
        f"CLL {REFUSED} admits run-3",
        f"CL {REFUSED}",
    )
    yield FlowRow(
        "child-claims-ordinal",
        "dispatch-1--run-1 claims ordinal 1; prefix parsing",
        _edited((Call("dispatch", "child", body=(_run("C"),)),), (_run("Z"),), "start C"),
        ("dispatches-hold", "journal-reached"),
        "CZ completed admits run-1, complete-2",
        f"C {REFUSED}",
    )
    yield FlowRow(
        "run-on-mcp",
        "f.run reaches a completed f.mcp call's ordinal",
        Plan(
            Program((Fan("gather", ((_run("a"), _run("L")), (_run("b"), _slowly(Call("mcp", "m"))))),)),
            ((1, 1, 0, 0), ()),
            (Stop("done L"),),
            2,
        ),
        ("effects-indexed", "twins-wait"),
        f"LL {REFUSED} admits run-3",
        f"L {REFUSED}",
    )
    hook = Call("hook", "hook", body=(_run("a"),))
    yield FlowRow(
        "watermark",
        "a replayed hook watermark skips the concurrent branch's step",
        Plan(Program((Fan("gather", ((hook,), (_slowly(_run("B")),))),)), ((1, 0), ()), (Stop("verdict hook"),), 2),
        ("watermark", "journal-reached"),
        "BB completed admits run-4, complete-5",
        f"B {REFUSED}",
    )


def _latches() -> Iterator[FlowRow]:
    refused = Caught((_run("Z"),))
    yield FlowRow(
        "caught-refusal",
        "refusal stays latched through an author catch",
        _edited((_llm("L"),), (refused, _run("Y")), "done L"),
        ("latch-nowhere", "refusal-ends-attempt"),
        f"LY {REFUSED} admits run-2",
        f"L {REFUSED}",
    )
    yield FlowRow(
        "declared-before",
        "step declared before the refusal and awaited after it",
        _edited((Saved(_run("Y"), (_llm("L"),)),), (Saved(_run("Y"), (refused,)),), "done L"),
        ("latch-at-start",),
        f"LY {REFUSED} admits run-1",
        f"L {REFUSED}",
    )
    yield FlowRow(
        "running-child",
        "a running dispatched child stops when its parent refuses",
        Plan(
            Program((Fan("gather", ((CHILD,), (_llm("L"),))),)),
            ((1, 0), ()),
            (Stop("done C"),),
            2,
            changed=Program((Fan("gather", ((CHILD,), (Caught((_run("Z"),)), _slowly()))),)),
        ),
        ("latch-in-children", "refusal-ends-attempt"),
        f"CDL {REFUSED} admits dispatch-1--llm-2",
        f"CL {REFUSED}",
    )
    for kind in ("memory", "on"):
        what = "f.memory.learn" if kind == "memory" else "f.on subscription"
        yield FlowRow(
            f"{kind}-after-refusal",
            f"no {what} after a caught refusal",
            _edited((_llm("L"),), (refused, Call(kind, "M")), "done L"),
            ("latch-on-activities",),
            f"LM {REFUSED} admits {kind}-2",
            f"L {REFUSED}",
        )


def _indexed() -> Iterator[FlowRow]:
    for kind, fails in (("helper", False), ("plugin", False), ("plugin", True), ("mcp", True)):
        how = "failed with a diagnostic" if fails else "completed"
        yield FlowRow(
            f"{kind}-{'failed' if fails else 'completed'}",
            f"{kind} effect that {how} is indexed",
            Plan(Program((Caught((Call(kind, "E", fails=fails),)),)), version=2),
            ("effects-indexed",),
            "E completed admits complete-2",
            f"E completed admits {kind}-1, complete-2",
        )


def _either_way() -> Iterator[FlowRow]:
    for kind in ("run", "llm", "agent"):
        shown = f"R {CONFLICTED}"
        plan = _swapped(Call(kind, "L"), Call(kind, "R"), "done a")
        yield FlowRow(f"same-kind-{kind}", f"{kind} and {kind} swapped, refused by the kernel", plan, (), shown, shown)
    plan = Plan(_swapped(_run("Z"), _llm("L"), "").program, (LAST_FIRST, LAST_FIRST), (Stop("done b"),), 2)
    shown = "LZ completed admits llm-3, run-4, complete-5"
    yield FlowRow("in-order", "an in-order resume", plan, (), shown, shown)
    plan = _swapped(_run("Z"), _llm("L"), "done a", version=3)
    shown = "LZ completed admits run-after-0, complete-after-0"
    yield FlowRow("causal-root", "roots with causal ids ignore the guard's ordinals", plan, (), shown, shown)


ROWS = {row.name: row for rows in (_kinds, _questions, _holders, _latches, _indexed, _either_way) for row in rows()}
