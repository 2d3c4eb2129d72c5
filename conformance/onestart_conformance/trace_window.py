"""A window on one task: what a step of one key by one strand can depend on, as a small state of the model.

The guards and updates of a step look at the key and the strand that take it, and at the lease of the task. Of other
keys there is one question, `quiet`, which any single key that is not quiet answers; and the lease may name another key,
no matter which. Of other strands there is one question, in `settle`, whether one is confirmed for the key: that strand
is put into the window there. So a window of three keys and two processes is exact for a task with any number of both:
the key, one that is not quiet, the one that the lease names; the strand, and one that is free. Stamps are compared in
order only, so three of them, renumbered, stand for all. (A test takes steps in a window and in the whole side by side.)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

from attrs import frozen

from onestart_conformance.rules import Rules
from onestart_conformance.trace_book import KeyRecord, StrandRecord, TaskRecord
from onestart_model.chain import CHAIN
from onestart_model.execution import State, Step
from onestart_model.expression import Value
from onestart_model.instance import Instance

KEYS, PROCESSES = 3, 2
REMEMBERED = 50_000
OF_TASK = ("holder", "token", "lease_damaged", "barrier")
OF_PROCESS = ("serving", "stage", "held", "unconfirmed", "unapproved")
IDLE = StrandRecord("")

Cells = tuple[Value, ...]


@frozen
class Window:
    """A state, and what its elements and stamps are. names: of the three keys. tokens: what stamps 0, 1, ... are."""

    state: State
    names: tuple[str | None, ...]
    tokens: tuple[int, ...]


class Plain(Rules):
    """Rules that leave stamps as they are, so that it can be told what has become of each."""

    def _apply(self, state: State, step: Step) -> State | None:
        if self.machine.why_not(state, step) is not None:
            return None
        return self.machine.successor(state, step)


class Windows:
    """Makes windows, and reads what has become of what is in them."""

    def __init__(self) -> None:
        sizes = {"Key": KEYS, "Process": PROCESSES, "Task": 1}
        self.rules = Plain(Instance.of(CHAIN, sizes=sizes, fixed={"task": (0,) * KEYS}))
        functions = CHAIN.schema.functions
        names = [f.name for f in functions]
        self.of_key = [f.name for f in functions if [s.name for s in f.arguments] == ["Key"] and f.name != "task"]
        known = {"task", *self.of_key, *OF_TASK, *OF_PROCESS}
        assert known == set(names), f"nobody keeps {known ^ set(names)}"
        self._key_places = [names.index(name) for name in self.of_key]
        self._holder, self._token, self._damaged, self._barrier = (names.index(name) for name in OF_TASK)
        self._process_places = [names.index(name) for name in OF_PROCESS]
        self._serving, self._stage, self._held, self._unconfirmed, self._unapproved = self._process_places
        self._initial = self.rules.initial()
        self.blank: Cells = tuple(self._initial.rows[place][0] for place in self._key_places)
        self._probing = self._probe()
        self._state = lru_cache(REMEMBERED)(self._compose)
        self.quiet = lru_cache(REMEMBERED)(self._quiet)

    def compose(
        self, key: KeyRecord, task: TaskRecord, strand: StrandRecord, others: Sequence[KeyRecord] = ()
    ) -> Window:
        """A window on the key. others: one that is not quiet, one that the lease names, if there are such."""
        names = (key.name, *(other.name for other in others), None, None)[:KEYS]
        tokens = tuple(sorted({0, task.token, task.barrier, strand.held}))
        serving = None if not strand.serving else 0 if strand.key == key.name else KEYS - 1
        state = self._state(
            (key.cells, *(other.cells for other in others)),
            None if task.holder is None else names.index(task.holder),
            tokens.index(task.token),
            task.lease_damaged,
            tokens.index(task.barrier),
            (serving, strand.stage, tokens.index(strand.held), strand.unconfirmed, strand.unapproved),
        )
        return Window(state, names, tokens)

    def _compose(
        self,
        of_keys: tuple[Cells, ...],
        holder: int | None,
        token: int,
        damaged: Value,
        barrier: int,
        of_process: tuple[Value, ...],
    ) -> State:
        rows = list(self._initial.rows)
        first, second, third = (*of_keys, self.blank, self.blank)[:KEYS]
        for place, a, b, c in zip(self._key_places, first, second, third, strict=True):
            rows[place] = (a, b, c)
        rows[self._holder] = (holder,)
        rows[self._token] = (token,)
        rows[self._damaged] = (damaged,)
        rows[self._barrier] = (barrier,)
        for place, value in zip(self._process_places, of_process, strict=True):
            rows[place] = (value, rows[place][1])
        return State(self._initial.instance, tuple(rows), ())

    def cells(self, state: State) -> Cells:
        """What the state says of the key."""
        rows = state.rows
        return tuple([rows[place][0] for place in self._key_places])

    def read_task(self, window: Window, state: State, task: TaskRecord) -> None:
        """Keep what has become of the task."""
        rows, tokens = state.rows, (*window.tokens, window.tokens[-1] + 1)
        holder = rows[self._holder][0]
        task.holder = None if holder is None else window.names[_index(holder)]
        task.token = tokens[_index(rows[self._token][0])]
        task.lease_damaged = rows[self._damaged][0]
        task.barrier = tokens[_index(rows[self._barrier][0])]

    def read_strand(self, window: Window, state: State, strand: StrandRecord, key: str) -> StrandRecord:
        """What has become of the strand. key: the one that the window is on."""
        rows, tokens = state.rows, (*window.tokens, window.tokens[-1] + 1)
        serving = rows[self._serving][0] is not None
        return StrandRecord(
            key,
            serving,
            rows[self._stage][0],
            tokens[_index(rows[self._held][0])],
            rows[self._unconfirmed][0],
            rows[self._unapproved][0],
            strand.token if serving else 0,
            *strand[7:],
        )

    def _probe(self) -> State:
        """A state in which a process is about to record the intent of a key, if only all is quiet."""
        state = self._initial
        for step in (
            Step("accept", (0, 0)),
            Step("enter", (0, 0, True, True)),
            Step("offer", (0, 0)),
            Step("claim", (0, 0)),
        ):
            state = self.rules.machine.apply(state, step)
        return state

    def _quiet(self, cells: Cells) -> bool:
        """Whether no key of the task has to wait for one with these cells, as the rules say while the lease is legible.

        A damaged lease makes every key restless; but then nobody holds it, and nobody may record an intent anyway.
        """
        rows = list(self._probing.rows)
        for place, value in zip(self._key_places, cells, strict=True):
            rows[place] = (rows[place][0], value, rows[place][2])
        return self.rules.enabled(State(self._initial.instance, tuple(rows), ()), Step("intend", (0, 0)))


@cache
def standard() -> Windows:
    """The windows of all checks: they remember nothing but what the rules say."""
    return Windows()


def _index(value: Value) -> int:
    assert isinstance(value, int)
    return value
