"""The worlds that drives run in by default: instances of the command chain."""

from __future__ import annotations

from onestart_model.chain import CHAIN
from onestart_model.instance import Instance

SEED = 0


def chain(*, keys: int = 2, processes: int = 3, tasks: tuple[int, ...] | None = None) -> Instance:
    """An instance of the command chain. tasks: of each key, by number; all of one task by default."""
    of = (0,) * keys if tasks is None else tasks
    return Instance.of(CHAIN, sizes={"Key": keys, "Process": processes, "Task": max(of) + 1}, fixed={"task": of})
