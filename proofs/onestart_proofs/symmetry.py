"""Canonical states: stamps renumbered, and one representative of all states that differ by a renaming.

Elements of a sort are interchangeable because a rule cannot name one. Two states that are equal up to a permutation of
keys, processes and tasks (one that leaves the fixed functions as they are) therefore have the same futures up to that
permutation; the smallest of them stands for all (Ip and Dill, "Better verification through symmetry", 1996).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from onestart_model.execution import Machine
from onestart_model.expression import MaybeType, RuleError, SortType, Value
from onestart_model.instance import FixedValues, Instance, Row
from onestart_model.rules import Model
from onestart_model.state import FIXED
from onestart_proofs.ground import GroundModel
from onestart_proofs.packing import Chunk, Layout, Words, stamp_group

Permutation = Mapping[SortType, tuple[int, ...]]  # element i of the sort becomes permutation[sort][i]
Table = npt.NDArray[np.uint64]
MOST_PERMUTATIONS = 5040
MOST_ELEMENTS = 100
MOST_CHOICES = 100_000


Tables = list[list[tuple[int, Table]]]  # for each chunk, what each of its contents becomes, by word


class Canonical:
    """Maps packed states to their representatives. symmetry=False only renumbers stamps."""

    def __init__(self, model: GroundModel, layout: Layout, *, symmetry: bool) -> None:
        self._stamps = _stamp_tables(model, layout)
        permutations = list(stabilizer(model.instance, model.fixing)) if symmetry else []
        self.order = max(1, len(permutations))
        moved = [p for p in permutations if any(row != tuple(range(len(row))) for row in p.values())]
        self._chunks = layout.chunks
        self._permutations = [_tables(model, layout, permutation) for permutation in moved]

    def states(self, states: Words) -> Words:
        """The representatives; may overwrite its argument."""
        for chunk, table in self._stamps:
            column = states[chunk.word]
            content = ((column >> np.uint64(chunk.shift)) & np.uint64(chunk.mask)).astype(np.intp)
            column &= np.uint64((2**64 - 1) ^ (chunk.mask << chunk.shift))
            column |= table.take(content)
        if not self._permutations:
            return states
        contents = [
            ((states[chunk.word] >> np.uint64(chunk.shift)) & np.uint64(chunk.mask)).astype(np.intp)
            for chunk in self._chunks
        ]
        best = states
        for tables in self._permutations:
            best = _smaller(best, _permuted(contents, tables, len(states)))
        return best


def _permuted(contents: list[npt.NDArray[np.intp]], tables: Tables, words: int) -> Words:
    result = np.zeros((words, len(contents[0])), dtype=np.uint64)
    for content, by_word in zip(contents, tables, strict=True):
        for word, table in by_word:
            result[word] |= table.take(content)
    return result


def _smaller(a: Words, b: Words) -> Words:
    if len(a) == 1:
        return np.minimum(a, b)
    less = b[0] < a[0]
    equal = b[0] == a[0]
    for one, other in zip(a[1:], b[1:], strict=True):
        less |= equal & (other < one)
        equal &= other == one
    return np.where(less, b, a)


def check_size(instance: Instance, *, symmetry: bool) -> None:
    """Raises RuleError if an instance has more renamings, fixed functions or steps than a search can go through."""
    for sort, size in instance.sizes.items():
        if size > MOST_ELEMENTS:
            raise RuleError(f"the instance is too large: {size} elements of {sort}; the most is {MOST_ELEMENTS}")
    renamings = math.prod(_count_renamings(instance, sort) for sort in instance.sizes)
    if symmetry and renamings > MOST_PERMUTATIONS:
        raise RuleError(f"the instance is too large: {renamings} renamings of its elements; use fewer, or no symmetry")
    for action in instance.model.actions:
        steps = math.prod(len(instance.domain(p.type)) for p in action.parameters)
        if steps > MOST_CHOICES:
            raise RuleError(f"the instance is too large: {action.name} has {steps} choices of arguments; use fewer")
    choices = math.prod(instance.choices(f) for f in instance.model.schema.of(FIXED) if f.name not in instance.fixed)
    if choices > MOST_CHOICES:
        raise RuleError(f"the instance is too large: {choices} choices of its fixed functions; use fewer elements")


def _count_renamings(instance: Instance, sort: SortType) -> int:
    """Without a given function all elements are alike, and counting them would take as long as going through them."""
    fixed = any(_is_about(instance, name, sort) for name in instance.fixed)
    return len(_renamings(instance, sort)) if fixed else math.factorial(instance.sizes[sort])


def permutations_of(instance: Instance) -> Iterator[Permutation]:
    """Every renaming of the elements of all sorts that leaves what an instance has fixed of one sort as it is."""
    sorts = list(instance.sizes)
    for rows in itertools.product(*(_renamings(instance, sort) for sort in sorts)):
        yield dict(zip(sorts, rows, strict=True))


def _renamings(instance: Instance, sort: SortType) -> list[tuple[int, ...]]:
    """The permutations of a sort's elements; those that would change a given function of this sort alone are left out.

    Built element by element, so that a given order of the elements leaves one at once.
    """
    given = [row for name, row in instance.fixed.items() if _is_about(instance, name, sort)]
    partial: list[tuple[int, ...]] = [()]
    size = instance.sizes[sort]
    for _ in range(size):
        longer = ((*done, image) for done in partial for image in range(size) if image not in done)
        partial = [images for images in longer if all(_agrees(row, size, images) for row in given)]
    return partial


def _is_about(instance: Instance, name: str, sort: SortType) -> bool:
    """A function that takes elements of this sort alone and gives none."""
    function = instance.model.schema[name]
    return set(function.arguments) == {sort} and not isinstance(function.type, SortType | MaybeType)


def _agrees(row: Row, size: int, images: tuple[int, ...]) -> bool:
    """Whether a function has the same values at the newest element and at its image, beside all the earlier ones."""
    last = len(images) - 1
    if len(row) == size:
        return row[last] == row[images[last]]
    pairs = [(i, last) for i in range(last + 1)] + [(last, i) for i in range(last)]
    return all(row[i * size + j] == row[images[i] * size + images[j]] for i, j in pairs)


def stabilizer(instance: Instance, fixing: FixedValues) -> Iterator[Permutation]:
    """The renamings that leave the fixed functions as they are."""
    return (p for p in permutations_of(instance) if _renamed_fixing(instance, fixing, p) == fixing)


def representatives(instance: Instance) -> Iterator[FixedValues]:
    """One choice of the fixed functions out of those that differ by a renaming."""
    seen: set[FixedValues] = set()
    permutations = list(permutations_of(instance))
    for fixing in Machine(instance).fixings():
        if fixing not in seen:
            seen.update(_renamed_fixing(instance, fixing, p) for p in permutations)
            yield fixing


def _renamed_fixing(instance: Instance, fixing: FixedValues, permutation: Permutation) -> FixedValues:
    return tuple((name, _renamed_row(instance, name, row, permutation)) for name, row in fixing)


def _renamed_row(instance: Instance, name: str, row: Row, permutation: Permutation) -> Row:
    function = instance.model.schema[name]
    places = list(instance.arguments(function))
    result = list(row)
    for arguments, value in zip(places, row, strict=True):
        moved = tuple(permutation[sort][i] for sort, i in zip(function.arguments, arguments, strict=True))
        result[places.index(moved)] = _renamed_value(instance.model, name, value, permutation)
    return tuple(result)


def _renamed_value(model: Model, name: str, value: Value, permutation: Permutation) -> Value:
    match model.schema[name].type, value:
        case (SortType() as sort, int(index)) | (MaybeType(of=sort), int(index)):
            return permutation[sort][index]
        case _:
            return value


def renamed_codes(model: GroundModel, codes: tuple[int, ...], permutation: Permutation) -> tuple[int, ...]:
    """The cells of the renamed state; the plain definition that the tables are built from and tested against."""
    result = list(codes)
    for cell, (target, values) in _moves(model, permutation).items():
        result[target] = values[codes[cell]]
    return tuple(result)


def _moves(model: GroundModel, permutation: Permutation) -> dict[int, tuple[int, list[int]]]:
    """For each cell: the cell that it becomes, and the code that each of its codes becomes."""
    places = {(c.function.name, c.arguments): i for i, c in enumerate(model.cells) if c.function}
    moves = {}
    for index, cell in enumerate(model.cells):
        size = 1 << max(1, (cell.size - 1).bit_length())
        values = list(range(size))
        target = index
        if cell.function is not None:
            function = cell.function
            moved = tuple(permutation[s][i] for s, i in zip(function.arguments, cell.arguments, strict=True))
            target = places[(function.name, moved)]
            sort = function.type.of if isinstance(function.type, MaybeType) else function.type
            if isinstance(sort, SortType):
                for i, image in enumerate(permutation[sort]):
                    values[i + 1] = image + 1
        moves[index] = (target, values)
    return moves


def _tables(model: GroundModel, layout: Layout, permutation: Permutation) -> Tables:
    moves = _moves(model, permutation)
    result: Tables = []
    for chunk in layout.chunks:
        tables: dict[int, Table] = {}
        for cell, content in chunk.contents().items():
            target, values = moves[cell]
            place = layout.fields[target]
            moved = np.array(values, dtype=np.uint64)[content.astype(np.intp)] << np.uint64(place.shift)
            tables[place.word] = tables.get(place.word, np.uint64(0)) | moved
        result.append(list(tables.items()))
    return result


def _stamp_tables(model: GroundModel, layout: Layout) -> list[tuple[Chunk, Table]]:
    """For each group of stamps, the renumbered content of its chunk, already in place."""
    tables = []
    for chunk in layout.chunks:
        if stamp_group(model, chunk.fields[0].cell) is None:
            continue
        contents = chunk.contents()
        values = np.stack(list(contents.values()))
        result = np.zeros(1 << chunk.width, dtype=np.uint64)
        for field, own in zip(chunk.fields, values, strict=True):
            rank = sum(_counts_below(values, j, own) for j in range(len(values))) + (own > 0)
            result |= np.asarray(rank, dtype=np.uint64) << np.uint64(field.shift)
        tables.append((chunk, result))
    return tables


def _counts_below(values: npt.NDArray[np.uint64], j: int, own: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """1 where value j lies strictly between 0 and own and no earlier value equals it."""
    first = np.ones(values.shape[1], dtype=np.bool_)
    for earlier in range(j):
        first &= values[earlier] != values[j]
    below: Table = ((values[j] > 0) & (values[j] < own) & first).astype(np.uint64)
    return below
