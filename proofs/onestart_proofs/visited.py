"""The set of visited states: an open-addressing hash table whose operations are on whole columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from onestart_proofs.packing import Words

Slots = npt.NDArray[np.int64]
_EMPTY = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_MULTIPLIER = np.uint64(0x9E37_79B9_7F4A_7C15)


class Visited:
    """States in the order in which they were found, each once.

    Packed states never fill the top bit of a word, so a word of all ones marks an empty slot.
    """

    def __init__(self, words: int, *, capacity: int = 1 << 16) -> None:
        self._words = words
        self._states: npt.NDArray[np.uint64] = np.empty((words, 0), dtype=np.uint64)
        self.count = 0
        self._allocate(capacity)

    def _allocate(self, capacity: int) -> None:
        self._slots: npt.NDArray[np.uint64] = np.full((self._words, capacity), _EMPTY, dtype=np.uint64)
        self._numbers: npt.NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self._mask = np.int64(capacity - 1)
        states = np.empty((self._words, capacity // 2), dtype=np.uint64)
        states[:, : self.count] = self._states[:, : self.count]
        self._states = states

    def __getitem__(self, part: slice) -> Words:
        return self._states[:, : self.count][:, part]

    def rows(self, numbers: npt.NDArray[np.intp]) -> Words:
        """The states of these numbers."""
        return np.ascontiguousarray(self._states[:, numbers])

    @property
    def bytes(self) -> int:
        """Memory held by the tables."""
        return self._slots.nbytes + self._numbers.nbytes + self._states.nbytes

    def add(self, candidates: Words) -> int:
        """Insert states, of which any may be known or occur several times; returns how many were new."""
        capacity = self._slots.shape[1]
        while 2 * (self.count + candidates.shape[1]) > capacity:
            capacity *= 4
        if capacity > self._slots.shape[1]:
            self._allocate(capacity)
            self._rehash()
        before = self.count
        slots = _hash(candidates, capacity)
        while candidates.shape[1]:
            candidates, slots = self._round(candidates, slots)
        return self.count - before

    def _round(self, candidates: Words, slots: Slots) -> tuple[Words, Slots]:
        """Look at one slot for each candidate; returns those that must look on."""
        found = self._slots[0][slots]
        empty = found == _EMPTY
        other = found != candidates[0]
        for word in range(1, self._words):
            other |= self._slots[word][slots] != candidates[word]
        other &= ~empty
        free, taken = empty.nonzero()[0], other.nonzero()[0]
        claims, where = candidates.take(free, axis=1), slots.take(free)
        lost = self._claim(claims, where)
        return (
            np.concatenate([candidates.take(taken, axis=1), claims.take(lost, axis=1)], axis=1),
            np.concatenate([(slots.take(taken) + 1) & self._mask, where.take(lost)]),
        )

    def _claim(self, claims: Words, where: Slots) -> npt.NDArray[np.intp]:
        """Put the claims in empty slots; where several want one slot, one wins. Returns which have lost."""
        order = np.arange(len(where), dtype=np.int32)
        self._numbers[where] = order
        won = self._numbers[where] == order
        first = won.nonzero()[0]
        winners, places = claims.take(first, axis=1), where.take(first)
        self._slots[:, places] = winners
        count = self.count + len(places)
        self._numbers[places] = np.arange(self.count, count, dtype=np.int32)
        self._states[:, self.count : count] = winners
        self.count = count
        lost: npt.NDArray[np.intp] = (~won).nonzero()[0]
        return lost

    def _rehash(self) -> None:
        """Find a slot in the new table for every known state; they keep their numbers."""
        for start in range(0, self.count, 1 << 17):
            numbers = np.arange(start, min(self.count, start + (1 << 17)), dtype=np.int32)
            slots = _hash(self._states[:, numbers], self._slots.shape[1])
            while len(numbers):
                empty = self._slots[0][slots] == _EMPTY
                self._numbers[slots[empty]] = numbers[empty]
                placed = empty & (self._numbers[slots] == numbers)
                self._slots[:, slots[placed]] = self._states[:, numbers[placed]]
                numbers, slots = numbers[~placed], (slots[~placed] + 1) & self._mask

    def find(self, states: Words) -> npt.NDArray[np.int64]:
        """The number of each state, in the order found; -1 for one that is not there."""
        result = np.full(states.shape[1], -1, dtype=np.int64)
        looking = np.arange(states.shape[1])
        slots = _hash(states, self._slots.shape[1])
        while len(looking):
            empty = self._slots[0][slots] == _EMPTY
            same = ~empty
            for word in range(self._words):
                same &= self._slots[word][slots] == states[word][looking]
            result[looking[same]] = self._numbers[slots[same]]
            more = ~same & ~empty
            looking, slots = looking[more], (slots[more] + 1) & self._mask
        return result


def _hash(states: Words, capacity: int) -> Slots:
    mixed = states[0] * _MULTIPLIER
    for word in states[1:]:
        mixed ^= mixed >> np.uint64(29)
        mixed += word
        mixed *= _MULTIPLIER
    mixed ^= mixed >> np.uint64(32)
    mixed *= _MULTIPLIER
    slots: Slots = (mixed >> np.uint64(64 - (capacity.bit_length() - 1))).astype(np.int64)
    return slots
