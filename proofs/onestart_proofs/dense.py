"""A visited set without hashing, for models whose parts take few values each.

For every chunk of the packed state, the contents that it can take are found by running the rules with all other chunks
free. If the product of their numbers is small, a state is the number that its chunks' places make in a mixed radix, and
a table with an entry for each number is the visited set. This is faster than a hash table by a small factor, and it is
only an over-approximation that costs memory, never a state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from onestart_proofs.columns import Program
from onestart_proofs.folding import Cell, Const, Expr
from onestart_proofs.ground import GroundAction, GroundModel
from onestart_proofs.packing import LANE_BITS, Chunk, Column, Layout, Words, column_type, lane_of, stamp_group

MOST_ENTRIES = 1 << 26
UNKNOWN = 1 << 48  # the place of a content that cannot occur: beyond every table, so that meeting it is an error
MOST_COMBINATIONS = 1 << 12
Contents = npt.NDArray[np.int64]


def local_contents(model: GroundModel, layout: Layout) -> list[Contents] | None:
    """For each chunk, the contents that it may ever take; None if that is too much to find out."""
    initial = layout.pack(model.initial)
    contents = [np.array([int(initial[c.word] >> np.uint64(c.shift)) & c.mask], dtype=np.int64) for c in layout.chunks]
    effects = [_Effect(model, layout, action) for action in model.actions]
    changed = set(range(len(contents)))
    while changed:
        now, changed = changed, set()
        for effect in effects:
            if not now & set(effect.chunks):
                continue
            if np.prod([len(contents[c]) for c in effect.chunks]) > MOST_COMBINATIONS:
                return None
            changed |= effect.extend(contents)
    return contents


class _Effect:
    """One ground action, run on every combination of contents of the chunks that it touches."""

    def __init__(self, model: GroundModel, layout: Layout, action: GroundAction) -> None:
        self._action = action
        self._layout = layout
        values = list(action.updates.values())
        self._program = Program([*action.guards, *values])
        read = {index for expr in (*action.guards, *values) for index in cells_in(expr)}
        touched = read | set(action.updates)
        self._read = read
        self.chunks = [i for i, c in enumerate(layout.chunks) if touched & {f.cell for f in c.fields}]
        self._written = [i for i in self.chunks if set(action.updates) & {f.cell for f in layout.chunks[i].fields}]
        self._cells = len(model.cells)

    def extend(self, contents: list[Contents]) -> set[int]:
        """Add what the action makes of the contents known so far; returns the chunks that got new ones."""
        grids = np.meshgrid(*(contents[c] for c in self.chunks), indexing="ij")
        combined = {chunk: grid.ravel() for chunk, grid in zip(self.chunks, grids, strict=True)}
        registers = self._program.run(self._columns(combined))
        count = len(next(iter(combined.values()))) if combined else 1
        enabled = np.ones(count, dtype=np.bool_)
        for guard in self._action.guards:
            enabled &= registers[guard]
        changed = set()
        for chunk in self._written:
            after = self._after(self._layout.chunks[chunk], combined[chunk], registers)[enabled]
            known = len(contents[chunk])
            contents[chunk] = np.unique(np.concatenate([contents[chunk], after]))
            if len(contents[chunk]) > known:
                changed.add(chunk)
        return changed

    def _columns(self, combined: dict[int, Contents]) -> list[Column]:
        columns: list[Column] = [np.zeros(1, dtype=np.uint8)] * self._cells
        for chunk, column in combined.items():
            part = self._layout.chunks[chunk]
            for f in (f for f in part.fields if f.cell in self._read):
                value = (column >> (f.shift - part.shift)) & f.mask
                columns[f.cell] = value.astype(column_type(f.width))
        return columns

    def _after(self, chunk: Chunk, before: Contents, registers: object) -> Contents:
        after = before.copy()
        for f in chunk.fields:
            if f.cell in self._action.updates:
                value = registers[self._action.updates[f.cell]]  # type: ignore[index]
                place = f.shift - chunk.shift
                after &= ~(f.mask << place)
                after |= (np.asarray(value).astype(np.int64) & f.mask) << place
        return after


def cells_in(expr: Expr) -> Iterator[int]:
    """The cells that an expression reads."""
    match expr:
        case Cell(index=index):
            yield index
        case Const():
            return
        case _:
            yield from itertools.chain.from_iterable(map(cells_in, expr.operands))


class DenseVisited:
    """States in the order in which they were found, each once; `Visited` with a table in place of hashing."""

    def __init__(self, layout: Layout, contents: list[Contents]) -> None:
        self.count = 0
        self._lanes, entries = _lane_tables(layout, contents)
        self._seen: npt.NDArray[np.bool_] = np.zeros(entries, dtype=np.bool_)
        self._numbers: npt.NDArray[np.int32] | None = None
        self._states: npt.NDArray[np.uint64] = np.empty((layout.words, 1 << 16), dtype=np.uint64)

    def __getitem__(self, part: slice) -> Words:
        return self._states[:, : self.count][:, part]

    def rows(self, numbers: npt.NDArray[np.intp]) -> Words:
        """The states of these numbers."""
        return np.ascontiguousarray(self._states[:, numbers])

    @property
    def bytes(self) -> int:
        """Memory held by the tables."""
        numbers = 0 if self._numbers is None else self._numbers.nbytes
        return self._seen.nbytes + self._states.nbytes + numbers

    def _places(self, states: Words) -> Contents:
        places: Contents = np.zeros(states.shape[1], dtype=np.int64)
        for word, lane, table in self._lanes:
            places += table.take(lane_of(states[word], lane))
        return places

    def add(self, candidates: Words) -> int:
        """Insert states, of which any may be known or occur several times; returns how many were new."""
        places = self._places(candidates)
        fresh = (~self._seen.take(places)).nonzero()[0]
        self._seen[places.take(fresh)] = True
        new = _distinct(candidates.take(fresh, axis=1))
        count = self.count + new.shape[1]
        while count > self._states.shape[1]:
            self._states = np.concatenate([self._states, np.empty_like(self._states)], axis=1)
        self._states[:, self.count : count] = new
        self.count, self._numbers = count, None
        return int(new.shape[1])

    def find(self, states: Words) -> npt.NDArray[np.int64]:
        """The number of each state, in the order found; -1 for one that is not there."""
        if self._numbers is None:
            self._numbers = np.full(len(self._seen), -1, dtype=np.int32)
            self._numbers[self._places(self[:])] = np.arange(self.count, dtype=np.int32)
        return self._numbers.take(self._places(states)).astype(np.int64)


def _lane_tables(layout: Layout, contents: list[Contents]) -> tuple[list[tuple[int, int, Contents]], int]:
    """For each lane, what its content adds to a state's place; and how many places there are."""
    tables: dict[tuple[int, int], Contents] = {}
    every = np.arange(1 << LANE_BITS, dtype=np.int64)
    stride = 1
    for chunk, known in zip(layout.chunks, contents, strict=True):
        place = np.full(1 << chunk.width, UNKNOWN, dtype=np.int64)
        place[known] = np.arange(len(known)) * stride
        lane = (chunk.word, chunk.shift // LANE_BITS)
        part = place[(every >> (chunk.shift % LANE_BITS)) & chunk.mask]
        tables[lane] = tables.get(lane, np.int64(0)) + part
        stride *= len(known)
    return [(word, lane, table) for (word, lane), table in tables.items()], stride


def _distinct(states: Words) -> Words:
    """The states without repetitions. Sorting one word is vectorized, and faster than np.unique, which hashes."""
    ordered = np.sort(states, axis=1) if len(states) == 1 else states[:, np.lexsort(states)]
    keep = np.ones(ordered.shape[1], dtype=np.bool_)
    keep[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    return ordered.take(keep.nonzero()[0], axis=1)


def dense_visited(model: GroundModel, layout: Layout) -> DenseVisited | None:
    """A dense visited set for the model, None if its table would be too large."""
    if any(stamp_group(model, cell) is not None for cell in range(len(model.cells))):
        return None  # a stamp is renumbered by what the whole group holds, which a chunk's own steps do not show
    contents = local_contents(model, layout)
    if contents is None:
        return None
    entries = 1
    for known in contents:
        entries *= len(known)
    return DenseVisited(layout, contents) if entries <= MOST_ENTRIES else None
