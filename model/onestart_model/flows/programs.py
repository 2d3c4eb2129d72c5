"""Programs of instances: branches of calls, written in words, as the fixed functions of a state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from attrs import frozen

from onestart_model.instance import Row


@frozen
class Step:
    """A call of a branch. again: it may run again. in_hook: the hook before it in the branch makes it.

    single: its worker has one slot. counted: its causal predecessors are unknown, so that it takes an ordinal even
    under version 3.
    """

    kind: str
    spec: int
    again: bool
    in_hook: bool
    counted: bool
    single: bool = False

    @classmethod
    def of(cls, words: str) -> Step:
        """From words: a kind, a letter for what is asked; ">" before what a hook calls; "again", "raced", "single"."""
        kind, *rest = words.removeprefix(">").split()
        letters = [word for word in rest if len(word) == 1]
        spec = ord(letters[0]) - ord("a") if letters else 0
        return cls(kind.upper(), spec, "again" in rest, words.startswith(">"), "raced" in rest, "single" in rest)


@frozen
class Program:
    """Branches that run side by side, and after all of them what closes the body.

    version: of the ids. spare: ordinals beyond one for each call that takes one. drivers: how many there are.
    """

    branches: tuple[tuple[Step, ...], ...]
    version: int = 3
    last: tuple[Step, ...] = ()
    spare: int = 0
    drivers: int = 1

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for branch in (*self.branches, self.last) for step in branch)

    @property
    def sizes(self) -> Mapping[str, int]:
        specs = 1 + max(step.spec for step in self.steps)
        return {"Call": len(self.steps), "Id": len(self.steps) + self.spare, "Spec": specs, "Driver": self.drivers}

    @property
    def fixed(self) -> Mapping[str, Row]:
        """The values of all fixed functions."""
        calls, ids = range(len(self.steps)), range(len(self.steps) + self.spare)
        before, part_of = set(self._order()), dict(self._parts())
        own = tuple(i if self.version == 3 and not self.steps[i].counted else None for i in calls)
        return {
            "kind": tuple(step.kind for step in self.steps),
            "asks": tuple(step.spec for step in self.steps),
            "before": tuple((a, b) in before for a in calls for b in calls),
            "part_of": tuple(part_of.get(i) for i in calls),
            "unlike": tuple(self._is_unlike(i, part_of, own) for i in calls),
            "again": tuple(step.again for step in self.steps),
            "single": tuple(step.single for step in self.steps),
            "own": own,
            "ordinal": tuple(x not in own for x in ids),
            "below": tuple(x < y for x in ids for y in ids),
        }

    def _numbered(self) -> Iterator[list[tuple[int, Step]]]:
        number = 0
        for branch in (*self.branches, self.last):
            yield list(enumerate(branch, number))
            number += len(branch)

    def _order(self) -> Iterator[tuple[int, int]]:
        """Each call comes after all earlier ones of its branch but those that hooks make; the last, after all."""
        branches = [[i for i, step in branch if not step.in_hook] for branch in self._numbered()]
        ends = branches.pop()
        for branch in [*branches, ends]:
            yield from ((a, b) for n, b in enumerate(branch) for a in branch[:n])
        yield from ((a, b) for branch in branches for a in branch for b in ends)

    def _parts(self) -> Iterator[tuple[int, int]]:
        for branch in self._numbered():
            hook = 0
            for number, step in branch:
                if step.in_hook:
                    yield number, hook
                elif step.kind == "HOOK":
                    hook = number

    def _is_unlike(self, call: int, part_of: Mapping[int, int], own: tuple[int | None, ...]) -> bool:
        same = [o for o in self.steps if (o.kind, o.spec) == (self.steps[call].kind, self.steps[call].spec)]
        maker = part_of.get(call)
        return len(same) == 1 and (maker is None or own[maker] is not None or self._is_unlike(maker, part_of, own))


def program(
    *branches: Iterable[str], version: int = 3, last: Iterable[str] = (), spare: int = 0, drivers: int = 1
) -> Program:
    """A program in words, such as program(["run a", "llm"], ["hook", ">run b"], last=["marker"])."""
    steps = tuple(tuple(Step.of(words) for words in branch) for branch in branches)
    return Program(steps, version, tuple(Step.of(words) for words in last), spare, drivers)
