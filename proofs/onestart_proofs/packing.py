"""Packing: the cells of a state in machine words.

A word is four lanes of 16 bits. A lane holds chunks, and a chunk whole cells, few enough for a table with an entry for
each content of the chunk. Renumbering stamps, permuting elements and numbering states then are table look-ups, whatever
the rules say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from attrs import frozen

from onestart_model.expression import RuleError
from onestart_proofs.ground import GroundModel

Words = npt.NDArray[np.uint64]  # shape (words, states)
Column = npt.NDArray[np.generic]  # shape (states,)

LANE_BITS = 16
LANES = 4
CHUNK_BITS = 13


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
            lane = lane_of(states[f.word], f.shift // LANE_BITS)
            raw = (lane >> np.uint16(f.shift % LANE_BITS)) & np.uint16(f.mask)
            columns.append(raw.astype(column_type(f.width)))
        return columns


def lane_of(word: npt.NDArray[np.uint64], lane: int) -> npt.NDArray[np.uint16]:
    """16 bits of every state. Lane 0 holds the lowest bits."""
    place = lane if sys.byteorder == "little" else LANES - 1 - lane
    return word.view(np.uint16)[place::LANES]


def column_type(width: int) -> type[np.generic]:
    return np.bool_ if width == 1 else np.uint8 if width <= 8 else np.uint16


def lay_out(model: GroundModel) -> Layout:
    """A layout for the cells of a model.

    Raises RuleError if a cell, or the stamps of one element, do not fit a lane.
    """
    clusters = _clusters(model)
    widths = [sum(_width(model, cell) for cell in cluster) for cluster in clusters]
    if max(widths) > LANE_BITS:
        raise RuleError(
            "the instance is too large: a number, or the stamps of one element, do not fit 16 bits; use fewer elements"
        )
    fields: dict[int, Field] = {}
    chunks: list[Chunk] = []
    used: list[int] = []
    # First fit by falling width. The top bit of a word stays clear, so that a word of all ones can mark an empty slot.
    for cluster, width in sorted(zip(clusters, widths, strict=True), key=lambda pair: -pair[1]):
        lane = next((i for i, n in enumerate(used) if n + width <= _room(i)), len(used))
        while lane >= len(used) or used[lane] + width > _room(lane):
            used.append(0)
            lane = len(used) - 1
        word, start = lane // LANES, lane % LANES * LANE_BITS + used[lane]
        chunks.append(_chunk(model, cluster, word, start))
        fields.update({f.cell: f for f in chunks[-1].fields})
        used[lane] += width
    return Layout(tuple(fields[i] for i in range(len(model.cells))), tuple(chunks), max(c.word for c in chunks) + 1)


def _room(lane: int) -> int:
    return LANE_BITS - (lane % LANES == LANES - 1)


def _chunk(model: GroundModel, cluster: list[int], word: int, start: int) -> Chunk:
    fields, shift = [], start
    for cell in cluster:
        fields.append(Field(cell, word, shift, _width(model, cell)))
        shift += fields[-1].width
    return Chunk(word, start, shift - start, tuple(fields))


def _width(model: GroundModel, cell: int) -> int:
    return max(1, (model.cells[cell].size - 1).bit_length())


def _clusters(model: GroundModel) -> list[list[int]]:
    """The stamps of each group together, and the other cells by the element that they are of, up to a chunk's size.

    What belongs to one element changes together, so that a chunk takes few of its possible contents.
    """
    groups: dict[tuple[str, int], list[int]] = {}
    elements: dict[tuple[object, int], list[int]] = {}
    for index, cell in enumerate(model.cells):
        group = stamp_group(model, index)
        if group is not None:
            groups.setdefault(group, []).append(index)
        else:
            sort = cell.function.arguments[0] if cell.function else None
            elements.setdefault((sort, cell.arguments[0] if cell.arguments else 0), []).append(index)
    return [*groups.values(), *(part for cells in elements.values() for part in _split(model, cells))]


def _split(model: GroundModel, cells: list[int]) -> Iterator[list[int]]:
    part: list[int] = []
    for cell in cells:
        if part and sum(_width(model, c) for c in [*part, cell]) > CHUNK_BITS:
            yield part
            part = []
        part.append(cell)
    yield part


def stamp_group(model: GroundModel, index: int) -> tuple[str, int] | None:
    """The group that a cell's stamp belongs to, None for a cell that holds none."""
    cell = model.cells[index]
    if cell.function is None or cell.function.group is None:
        return None
    return cell.function.group.name, cell.arguments[-1]
