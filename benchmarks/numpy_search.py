"""Hand-written NumPy breadth-first search of IdemStart (BUG false): `python numpy_search.py K W E`.

A key's five variables are one digit, a worker's two another; a state is the mixed-radix number of its digits, an
int64, and a frontier is one column of states. The digits of a key are the values its own variables can take when the
workers are left free, so the numbers are dense enough for the visited set to be one byte per number. Every action
changes the digit of one key, of one worker or of one of each; a move is a table from the digits to the number to add,
chosen so that no two rows of it have one successor: what a move finds unvisited is new, without sorting or hashing.
"""

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.int64]

ABSENT, PENDING, PENDING_CORRUPT, COMPLETED, BOTH_CORRUPT = range(5)
NONE, OFFERED, CLAIMED, RUNNING, TERMINAL = range(5)
BLOCK = 1 << 15  # rows expanded at a time: a block's columns stay in the second-level cache


class Key(NamedTuple):
    """The variables of one key."""

    rcpt: int = ABSENT
    att: int = NONE
    holder: int = 0
    epoch: int = 0
    starts: int = 0


Job = tuple[int, int]  # a worker's job and jep
IDLE: Job = (0, 0)


def settled(rcpt: int) -> int:
    """The receipt after a completion or a cancellation."""
    return COMPLETED if rcpt == PENDING else rcpt


def key_steps(s: Key, last: int) -> Iterator[Key]:
    """Submit, Offer, Expire, Corrupt and Cancel."""
    if s.rcpt == ABSENT:
        yield s._replace(rcpt=PENDING)
    if s.rcpt == PENDING and s.att == NONE:
        yield s._replace(att=OFFERED)
    if s.holder and s.epoch < last:
        att = {CLAIMED: OFFERED, RUNNING: TERMINAL}.get(s.att, s.att)
        yield s._replace(holder=0, epoch=s.epoch + 1, att=att)
    if s.rcpt in (PENDING, COMPLETED, PENDING_CORRUPT):
        yield s._replace(rcpt=PENDING_CORRUPT if s.rcpt == PENDING else BOTH_CORRUPT)
    if s.att in (OFFERED, CLAIMED):
        yield s._replace(att=TERMINAL, holder=0, rcpt=settled(s.rcpt))


def pair_steps(s: Key, job: Job, k: int, w: int) -> Iterator[tuple[Key, Job]]:
    """Claim, Start and Complete of key k by worker w."""
    if s.att == OFFERED and not s.holder and not job[0]:
        yield s._replace(att=CLAIMED, holder=w), (k, s.epoch)
    if job == (k, s.epoch) and s.holder == w:
        if s.att == CLAIMED and s.rcpt == PENDING:
            yield s._replace(att=RUNNING, starts=min(s.starts + 1, 2)), job
        if s.att == RUNNING:
            yield s._replace(att=TERMINAL, holder=0, rcpt=settled(s.rcpt)), IDLE


def key_digits(workers: int, last: int) -> list[Key]:
    """Every value a key can take, whatever the workers' jobs are."""
    found = {Key(): 0}
    for s in (todo := [Key()]):
        free = [t for w in range(1, workers + 1) for job in (IDLE, (1, s.epoch)) for t, _ in pair_steps(s, job, 1, w)]
        for t in (*key_steps(s, last), *free):
            if t not in found:
                found[t] = len(found)
                todo.append(t)
    return todo


def one_to_one(size: int, steps: list[tuple[int, int, int]]) -> list[Column]:
    """Tables of the number to add (0: disabled) that together make the steps (digit, digit after, number to add)."""
    tables: list[tuple[Column, set[int]]] = []
    for before, after, delta in steps:
        for table, taken in tables:
            if not table[before] and after not in taken:
                break
        else:
            tables.append((table := np.zeros(size, np.int64), taken := set()))
        table[before] = delta
        taken.add(after)
    return [table for table, _ in tables]


def search(K: int, W: int, E: int) -> tuple[int, int, int]:
    """The numbers of distinct states, of generated states and of levels."""
    digits = key_digits(W, E)
    jobs = [IDLE, *((k, e) for k in range(1, K + 1) for e in range(E + 1))]
    number, job_number = ({s: i for i, s in enumerate(of)} for of in (digits, jobs))
    n, m = len(digits), len(jobs)
    key_unit, job_unit = [m**W * n**k for k in range(K)], [m**w for w in range(W)]
    starts = np.array([s.starts for s in digits])

    steps = [(i, number[t], number[t] - i) for i, s in enumerate(digits) for t in key_steps(s, E)]
    key_moves = one_to_one(n, steps)
    pair_moves = {}
    for k in range(K):
        for w in range(W):
            steps = []
            for i, s in enumerate(digits):
                for j, job in enumerate(jobs):
                    for t, after in pair_steps(s, job, k + 1, w + 1):
                        a, b = number[t], job_number[after]
                        steps.append((i * m + j, a * m + b, (a - i) * key_unit[k] + (b - j) * job_unit[w]))
            pair_moves[k, w] = one_to_one(n * m, steps)

    seen = np.zeros(n**K * m**W, np.bool_)
    frontier = np.zeros(1, np.int64)
    seen[0] = True
    distinct, generated, levels = 1, 1, 0
    new: list[Column] = []

    def visit(y: Column) -> None:
        """Count successors, all different, and keep the unvisited."""
        nonlocal distinct, generated
        generated += len(y)
        y = y.take((~seen.take(y)).nonzero()[0])
        seen[y] = True
        distinct += len(y)
        new.append(y)

    def move(block: Column, column: Column, table: Column) -> None:
        """Visit the successors of a block by a table of the column of digits."""
        delta = table.take(column)
        rows = (delta != 0).nonzero()[0]
        visit(block.take(rows) + delta.take(rows))

    while len(frontier):
        levels += 1
        new = []
        for start in range(0, len(frontier), BLOCK):
            block = frontier[start : start + BLOCK]
            key = [block // unit % n for unit in key_unit]
            worker = [block // unit % m for unit in job_unit]
            for k in range(K):
                assert starts.take(key[k]).max() <= 1, "AtMostOneStart is violated"
                for table in key_moves:
                    move(block, key[k], table * key_unit[k])
                column = key[k] * m
                for w in range(W):
                    for table in pair_moves[k, w]:
                        move(block, column + worker[w], table)
            for w in range(W):  # Crash
                for j in range(1, m):
                    visit(block.take((worker[w] == j).nonzero()[0]) - j * job_unit[w])
        frontier = np.concatenate(new)
    return distinct, generated, levels


if __name__ == "__main__":
    print(*search(*map(int, sys.argv[1:])))
