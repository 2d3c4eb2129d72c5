"""Packing: the cells of a state in machine words.

A word is cut into chunks of a few bits that hold whole cells, small enough for a table with an entry for each content
of the chunk. Renumbering stamps and permuting elements then are table look-ups, whatever the rules say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from attrs import frozen

from onestart_model.expression import RuleError
from onestart_proofs.ground import GroundModel

Words = npt.NDArray[np.uint64]  # shape (words, states)
Column = npt.NDArray[np.generic]  # shape (states,)

CHUNK_BITS = 11
GROUP_BITS = 20
WORD_BITS = 63  # the top bit stays clear, so that a word of all ones can mark an empty slot


@frozen
class Field:
    """Where a cell lives."""

    cell: int
    word: int
    shift: int
    width: int

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1


@frozen
class Chunk:
    word: int
    shift: int
    width: int
    fields: tuple[Field, ...]

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1

    def contents(self) -> dict[int, npt.NDArray[np.uint64]]:
        """For each cell of the chunk, its value in every content of the chunk."""
        every = np.arange(1 << self.width, dtype=np.uint64)
        return {f.cell: (every >> np.uint64(f.shift - self.shift)) & np.uint64(f.mask) for f in self.fields}


@frozen
class Layout:
    """fields: one for each cell, by its number. words: how many machine words a state takes."""

    fields: tuple[Field, ...]
    chunks: tuple[Chunk, ...]
    words: int

    def pack(self, codes: Sequence[int]) -> npt.NDArray[np.uint64]:
        """One state as a row of words."""
        row = [0] * self.words
        for field in self.fields:
            row[field.word] |= codes[field.cell] << field.shift
        return np.array(row, dtype=np.uint64)

    def unpack(self, row: npt.NDArray[np.uint64]) -> tuple[int, ...]:
        return tuple((int(row[f.word]) >> f.shift) & f.mask for f in self.fields)

    def columns(self, states: Words) -> list[Column]:
        """A column for each cell; of Booleans where a cell has two values."""
        columns: list[Column] = []
        for f in self.fields:
            raw = (states[f.word] >> np.uint64(f.shift)) & np.uint64(f.mask)
            columns.append(raw.astype(np.bool_ if f.width == 1 else np.uint8 if f.width <= 8 else np.uint32))
        return columns


def lay_out(model: GroundModel) -> Layout:
    """A layout for the cells of a model. Raises RuleError if one group of stamps is too large for a table."""
    clusters = _clusters(model)
    fields: dict[int, Field] = {}
    chunks: list[Chunk] = []
    word = position = 0
    for cluster in clusters:
        width = sum(_width(model, cell) for cell in cluster)
        if width > GROUP_BITS:
            raise RuleError(
                "the instance is too large: the stamps of one element do not fit a table; use fewer elements"
            )
        if position + width > WORD_BITS:
            word, position = word + 1, 0
        start, placed = position, []
        for cell in cluster:
            size = _width(model, cell)
            fields[cell] = Field(cell, word, position, size)
            placed.append(fields[cell])
            position += size
        chunks.append(Chunk(word, start, position - start, tuple(placed)))
    return Layout(tuple(fields[i] for i in range(len(model.cells))), tuple(chunks), word + 1)


def _width(model: GroundModel, cell: int) -> int:
    return max(1, (model.cells[cell].size - 1).bit_length())


def _clusters(model: GroundModel) -> list[list[int]]:
    """The stamps of each group together, all other cells in their order up to the size of a chunk."""
    groups: dict[tuple[str, int], list[int]] = {}
    clusters: list[list[int]] = []
    current: list[int] = []
    used = 0
    for index in range(len(model.cells)):
        group = stamp_group(model, index)
        if group is not None:
            groups.setdefault(group, []).append(index)
            continue
        width = _width(model, index)
        if used + width > CHUNK_BITS and current:
            clusters.append(current)
            current, used = [], 0
        current.append(index)
        used += width
    return [c for c in [*groups.values(), *clusters, current] if c]


def stamp_group(model: GroundModel, index: int) -> tuple[str, int] | None:
    """The group that a cell's stamp belongs to, None for a cell that holds none."""
    cell = model.cells[index]
    if cell.function is None or cell.function.group is None:
        return None
    return cell.function.group.name, cell.arguments[-1]
