"""A line: one asyncio task of a flow, and what has happened before the point that it has got to.

`frontier` holds the newest causal predecessors: a step that another one follows is not in it, as far as one line can
tell. It depends on what the flow awaits, never on when results arrive:

- a call that is awaited takes the place of what it came after;
- a task begins after the call that made it, its fork, which stands for all that came before; so no two lines that are
  under way have the same frontier, and each counts its own calls;
- whoever awaits a task comes after the task's last steps; one without steps adds nothing;
- whoever awaits several at once and gets the first failure comes after the failure, whichever it was;
- a group that fails stands for all that was done in it, and its body for nothing: how far that got says nothing either.

What a line waits for otherwise (timers, threads, queues, races) decides an order that nobody can know from the flow's
code. From there on its calls are counted, and so are those of everybody who awaits it. A lock or semaphore is no such
thing: it decides when a line goes on, not what it does.
"""

from __future__ import annotations

from asyncio import TaskGroup
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from attrs import define, field

from onestart.flow.identity import frontier_hash

if TYPE_CHECKING:
    from onestart.flow.tasks import FlowTask

Counts = tuple[int, int]  # calls and forks


@define(eq=False)
class Tally:
    """What was counted after each frontier of a scope.

    passed: steps and failures that some line comes after. cut: the frontiers where lines were broken off.
    """

    calls: dict[str, int] = field(factory=dict)
    forks: dict[str, int] = field(factory=dict)
    passed: set[str] = field(factory=set)
    cut: set[str] = field(factory=set)

    def call(self, after: str) -> int:
        """One more call; returns its ordinal."""
        ordinal = self.calls.get(after, 0)
        self.calls[after] = ordinal + 1
        return ordinal

    def fork(self, after: str) -> int:
        """One more task, or failure of several; returns its number."""
        number = self.forks.get(after, 0)
        self.forks[after] = number + 1
        return number

    def has_passed(self, name: str) -> bool:
        """Whether some line has got beyond this causal predecessor: a step, a fork, a failure, the inside of a hook."""
        kind, _, rest = name.partition("-after-")
        if kind == "fork":
            after, _, number = rest.rpartition("-")
            return self.forks.get(after, 0) > int(number)
        return name in self.passed or name.startswith("within-")

    def of(self, after: str) -> Counts:
        return self.calls.get(after, 0), self.forks.get(after, 0)


@define(eq=False)
class Line:
    """unknown: why the order is not known any more, empty while it is. birth: the fork that it began with.

    origin: the frontier of its maker at the fork. within: the hook that it runs for. closed: frontiers that this line
    and those that it awaited have left behind, with what was counted there; taken along by the next step's record.
    groups: the task groups that are open, with their tasks. interrupting: the one that has broken off its own body.
    """

    tally: Tally
    on_fork: Callable[[Line, str], None]
    _newest: set[str] = field(factory=set)
    maker: Line | None = None
    birth: str = ""
    origin: frozenset[str] = frozenset()
    within: str = ""
    unknown: str = ""
    closed: dict[str, Counts] = field(factory=dict)
    groups: dict[TaskGroup, list[FlowTask]] = field(factory=dict)
    interrupting: object = None
    joined_by: list[Line] = field(factory=list)
    _frontier: frozenset[str] | None = None
    _replaced: frozenset[str] = frozenset()
    _hash: str = ""

    @property
    def frontier(self) -> frozenset[str]:
        """The newest causal predecessors of what comes next."""
        if self._frontier is None:
            self._frontier = frozenset(self._newest)
        return self._frontier

    @property
    def after(self) -> str:
        """The hash of the frontier."""
        self.settle()
        if not self._hash:
            self._hash = frontier_hash(self.frontier)
        return self._hash

    def call(self) -> int:
        """Count a call; returns its ordinal among those of the same frontier."""
        return self.tally.call(self.after)

    def fork(self) -> Line:
        """A line for a new task."""
        after = self.after
        number = self.tally.fork(after)
        self.on_fork(self, after)
        birth = f"fork-after-{after}-{number}"
        return Line(
            self.tally,
            self.on_fork,
            {birth},
            maker=self,
            birth=birth,
            origin=self.frontier,
            within=self.within,
            unknown=self.unknown,
        )

    def inside(self, step: str) -> Line:
        """A line for the body of a hook: nothing of it counts outside, where the hook is one step."""
        return Line(self.tally, self.on_fork, {f"within-{step}"}, within=step, unknown=self.unknown)

    def stepped(self, step: str, after: frozenset[str], declared_by: Line | None) -> None:
        """A step that was awaited: it takes the place of what it came after, if that is where this line stood."""
        self._move({step}, after if declared_by is self else frozenset())

    def cut_off(self) -> None:
        """The line is broken off where it stands: what an earlier attempt has done from there on is not reached."""
        self.tally.cut.add(self.after)

    def join(self, other: Line) -> None:
        """A task that was awaited has come to its end."""
        if any(line is self for line in other.joined_by) or other is self:
            return
        other.settle()
        other.joined_by.append(self)
        self.unclear(other.unknown)
        news = other.frontier - {other.birth}
        if not other.unknown:
            self.closed.update(other.closed)
            self.closed[other.after] = other.tally.of(other.after)
        if news:
            self._move(news, other.origin if other.maker is self else frozenset())

    def failed(self) -> None:
        """Several tasks were awaited at once and one has failed; which, and how far the others are, says nothing."""
        after = self.after
        number = self.tally.fork(after)
        self._move({f"failure-after-{after}-{number}"}, self.frontier)

    def group_failed(self, group: object, tasks: list[FlowTask]) -> None:
        """A group was left because one of its tasks, or its body, has failed: what follows comes after its beginning.

        What was counted where the body stood is not all that there is, so it is not closed.
        """
        self._hash = ""
        self._newest.clear()
        self._move({f"failure-of-{tasks[0].line.birth}"}, frozenset())
        if self.interrupting is group:
            self.interrupting, self.unknown = None, ""

    def interrupted(self, group: object) -> None:
        """A group breaks off its body, which may go on nevertheless: the order is not known until the group is left."""
        self.cut_off()
        if not self.unknown:
            self.interrupting = group
            self.unclear("a cancellation")

    def unclear(self, why: str) -> None:
        """From here on the order is not known."""
        if why and not self.unknown:
            self.unknown = why

    def settle(self) -> None:
        """Join the tasks of the groups that have been left since, of a group within another one first."""
        if not self.groups:
            return
        for group in [
            g for g in reversed(self.groups) if getattr(g, "_exiting", False) and not getattr(g, "_tasks", True)
        ]:
            tasks = self.groups.pop(group)
            if getattr(group, "_aborting", False):
                self.group_failed(group, tasks)
            else:
                for task in tasks:
                    self.join(task.line)

    def take_closed(self) -> dict[str, Counts]:
        """What is closed and not on record yet.

        Not where this line stands: a task that it has joined ended there, but it goes on counting there itself.
        """
        here = self.after
        closed = {after: counts for after, counts in self.closed.items() if after != here}
        self.closed = {after: counts for after, counts in self.closed.items() if after == here}
        return closed

    def _move(self, news: Iterable[str], replaced: frozenset[str]) -> None:
        """Come after some news, which take the place of what they came after themselves.

        In place, and each set of predecessors is taken away once: a line may await thousands of tasks.
        """
        if self._hash:  # else nothing was counted here
            self.closed[self._hash] = self.tally.of(self._hash)
        if replaced is not self._replaced:
            self._newest -= replaced
            self._replaced = replaced
        news = set(news)
        self._newest |= news
        self.tally.passed |= news
        self._frontier, self._hash = None, ""
