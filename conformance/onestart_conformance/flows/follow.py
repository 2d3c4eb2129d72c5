"""Following a trace of the model of flows on the library: for each step, what makes the library take it.

A trace may have been found by proof or enumeration, where nobody knew of a library. A step is taken if what the
library then does is that step of the model. Steps that the library takes without anybody seeing it (a record is found,
a hook is entered, an executor is asked) are not waited for: the monitor takes them when the library shows that it must.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from attrs import frozen

from onestart_conformance.faults.fault import seeded
from onestart_conformance.flows.abstraction import END
from onestart_conformance.flows.faults.catalog import ASIDE, FLOW_FAULTS
from onestart_conformance.flows.monitor import Monitor
from onestart_conformance.flows.scripted import OfTrace, Scene
from onestart_conformance.rules import Rules
from onestart_conformance.stories import Retold, Told
from onestart_model.counterexample import Counterexample, CounterexampleError
from onestart_model.execution import Machine, State, Step
from onestart_model.expression import RuleError
from onestart_model.instance import Instance

MOST_OPENED = 24
UNSEEN = ("enter", "ask", "repeat")
AT_ONCE = ("receive", "replay", "admit")  # may come about without being asked for, when a record is found


@frozen
class Move:
    """What is done: a method of the scene and its arguments."""

    name: str
    arguments: tuple[int | str, ...]


def follow_flow(trace: Counterexample, *, shipped: bool = False, fault: str | None = None) -> Retold:
    """Make the library take the steps of a trace, as far as it does.

    It lacks what the model lacks, and its second lines of defense, which would hide that; shipped: it lacks nothing,
    and is held against all rules. Raises CounterexampleError for a trace that begins anywhere, and for a protection of
    which the library has no fault; RuleError for a fault that there is not.
    """
    if trace.inductive:
        raise CounterexampleError("a counterexample to induction begins anywhere, so no library can be brought there")
    with ExitStack() as stack:
        for name in () if shipped else _faults(trace, fault):
            stack.enter_context(seeded(ASIDE.get(name) or FLOW_FAULTS[name]))
        return Following.of(trace, shipped=shipped).told()


def _faults(trace: Counterexample, fault: str | None) -> list[str]:
    names = [fault] if fault else sorted(trace.instance.without)
    for name in names:
        if name not in FLOW_FAULTS:
            raise RuleError(f"no fault of flows is called {name!r}; `onestart faults --list` shows all")
    lease = ["starts-fenced"] if "driver-lease" in names else []
    return [*(ASIDE if names else ()), *names, *lease]


@frozen
class Following:
    """trace: that is followed. rules, strict: as for a monitor."""

    trace: Counterexample
    rules: Rules
    strict: Rules | None

    @classmethod
    def of(cls, trace: Counterexample, *, shipped: bool) -> Following:
        """By the rules of the trace, with an eye on all of them; or by all of them alone."""
        whole = Rules(_whole(trace.instance), cached=1_000)
        return cls(trace, whole, None) if shipped else cls(trace, Rules(trace.instance, cached=1_000), whole)

    def told(self) -> Retold:
        """As far as it goes."""
        moves: tuple[Move, ...] = ()
        wanted = [number for number, step in enumerate(self.trace.steps) if not self._is_unseen(number, step)]
        done, instead = 0, ""
        while done < len(wanted):
            rest = [self.trace.steps[number] for number in wanted[done:]]
            unseen = self.trace.steps[wanted[done - 1] + 1 if done else 0 : wanted[done]]
            found = self._reach(moves, rest, unseen)
            if found is None:
                instead = self._instead(moves, rest[0])
                break
            moves, taken, ended = found
            done += taken
            if ended:
                break
        return self._retold(moves, wanted[done - 1] + 1 if done else 0, instead)

    def _retold(self, moves: tuple[Move, ...], reached: int, instead: str) -> Retold:
        scene = self._replayed(moves)
        monitor = scene.monitor
        scene.close()
        trace, machine = self.trace, Machine(self.trace.instance)
        if not instead and monitor.objection is None and trace.property:
            instead = f"the library takes the steps, and {trace.property} is not broken"
        told = tuple(
            Told(f"step {number}", (machine.show_step(step),), trace.states[number - 1].diff(trace.states[number]))
            for number, step in enumerate(trace.steps[:reached], 1)
        )
        effects = {str(made.placed.position): 0 for made in scene.program.made if made.kind != "MARKER"}
        for effect in scene.effects:
            position = scene.program.only.get(effect.position, effect.position)
            effects[position] = effects.get(position, 0) + 1
        starts = {f"call{int(p) + 1}": number for p, number in effects.items() if p.isdigit() and number}
        at = reached if monitor.objection is not None else 0
        return Retold(told, monitor.objection, at, starts, monitor.noticed, reached if monitor.noticed else 0, instead)

    def _is_unseen(self, number: int, step: Step) -> bool:
        """Whether nobody sees the library take the step, and others come after it."""
        if number + 1 == len(self.trace.steps):
            return False
        if step.action != "admit":
            return step.action in UNSEEN
        before, after = self.trace.states[number], self.trace.states[number + 1]
        return _record(before, step) == _record(after, step)

    def _replayed(self, moves: tuple[Move, ...]) -> Scene:
        program = OfTrace.read(self.trace.instance, self.trace.states[0])
        scene = Scene(program, Monitor(program, self.rules, self.strict))
        for move in moves:
            getattr(scene, move.name)(*move.arguments)
        return scene

    def _reach(
        self, moves: tuple[Move, ...], rest: list[Step], unseen: Sequence[Step]
    ) -> tuple[tuple[Move, ...], int, bool] | None:
        """The moves with those that make the library take the next steps, how many, and whether that was the end.

        unseen: what the trace has before them. A call that is found there may be awaited by now, or later.
        """
        awaited = tuple(_await(step) for step in unseen if step.action == "admit")
        plans = list(_plans(rest[0]))
        for first in [*((*awaited, *plan) for plan in plans if awaited), *plans]:
            for which in range(3):
                found = self._carried_out(moves, first, which, rest)
                if found is not None:
                    return found
        return None

    def _carried_out(
        self, moves: tuple[Move, ...], first: tuple[Move, ...], which: int, rest: list[Step]
    ) -> tuple[tuple[Move, ...], int, bool] | None:
        """Do what comes first, then open the step at the ledger that was chosen, and those that follow from it."""
        scene = self._replayed(moves)
        try:
            known, taken = len(scene.monitor.steps), list(moves)
            d = _driver(rest[0])
            for move in first:
                if not getattr(scene, move.name)(*move.arguments) and move.name != "begin":
                    continue
                taken.append(move)
            for opened in range(MOST_OPENED):
                news = self._seen(scene, known)
                if scene.monitor.stopped:
                    return (tuple(taken), max(_matched(news, rest), 1), True) if _matched(news, rest) else None
                if _matched(news, rest):
                    return tuple(taken), _matched(news, rest), False
                if [step for step in news if step.action not in AT_ONCE]:
                    return None
                lead = scene.leads.get(d)
                if lead is None or not lead.waiting:
                    return None
                move = Move("open", (d, min(which, len(lead.waiting) - 1) if opened == 0 else len(lead.waiting) - 1))
                scene.open(*move.arguments)  # type: ignore[arg-type]
                taken.append(move)
            return None
        finally:
            scene.close()

    def _instead(self, moves: tuple[Move, ...], wanted: Step) -> str:
        """What the library does where it does not take a step."""
        scene, machine = self._replayed(moves), Machine(self.trace.instance)
        known = len(scene.monitor.steps)
        for move in next(_plans(wanted), ()):
            getattr(scene, move.name)(*move.arguments)
        for _ in range(MOST_OPENED):
            scene.open(_driver(wanted), 0)
        scene.close()
        did = [step for step in scene.monitor.steps[known:] if step.action not in (*UNSEEN, *AT_ONCE)]
        what = f"the library does not take {machine.show_step(wanted)} here"
        return f"{what}, but {machine.show_step(did[0])}" if did else what

    def _seen(self, scene: Scene, known: int) -> list[Step]:
        """The steps that the library was seen to take since."""
        last = self.trace.steps[-1]
        return [step for step in scene.monitor.steps[known:] if step.action not in UNSEEN or step == last]


def _matched(news: list[Step], rest: list[Step]) -> int:
    """How many of the wanted steps were taken, in their order, with nothing else but what comes about by itself."""
    count = 0
    for step in news:
        if count < len(rest) and step == rest[count]:
            count += 1
        elif step.action not in AT_ONCE:
            return 0
    return count


def _plans(step: Step) -> Iterator[tuple[Move, ...]]:
    """What may bring a step about, before steps at the ledger are opened."""
    match step.action, step.arguments:
        case "begin", (int(d),):
            yield (Move("begin", (d,)),)
        case "crash", (int(d),):
            yield (Move("die", (d,)),)
        case "answer", (int(x),):
            yield (Move("answer", (x,)),)
        case "act", (int(d),):
            yield (Move("release", (d, "act")),)
        case _, (int(d), int(c), int()):
            position = str(c)
            made, awaited = Move("release", (d, f"make {position}")), Move("release", (d, f"await {position}"))
            yield {
                "declare": (made,),
                "refuse": (made,),
                "turn_away": (made,),
                "decide": (Move("release", (d, f"conclude {position}")),),
                "finish": (Move("end", (d, position)),),
            }.get(step.action, (awaited,))
            yield (Move("release", (d, END)),)


def _await(step: Step) -> Move:
    d, c = step.arguments[:2]
    return Move("release", (_number(d), f"await {c}"))


def _driver(step: Step) -> int:
    return _number(step.arguments[0])


def _record(state: State, step: Step) -> tuple[object, ...]:
    x = _number(step.arguments[2])
    return tuple(state.read(name, x) for name in ("entry", "filed", "asked"))


def _whole(instance: Instance) -> Instance:
    return Instance(instance.model, instance.sizes, instance.limits, instance.budgets, frozenset(), instance.fixed)


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
