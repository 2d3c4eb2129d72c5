"""Supporting invariants: together with the promises they are inductive, so the proof holds for any number of elements.

They tell why there is one start. A process *may start* a key if it is confirmed and the executor does not bar it.
Such a process is the only one for its key, the key has not been launched, and its task is engaged by no other key. All
of it rests on the fence while the intent is recorded and noted, and on the bar afterwards, when no fence helps.
"""

from __future__ import annotations

from onestart_model import NONE, Bool, forall, implies, invariant
from onestart_model.chain.evidence import completed, holds_lease, serves
from onestart_model.chain.state import Attempt, Key, Process, Receipt, Session, Stage, State, Task


def may_start(s: State, p: Process, k: Key) -> Bool:
    """The process is confirmed for the key, and the executor would accept its token."""
    return serves(s, p, k, Stage.CONFIRMED) & (s.barrier[s.task[k]] <= s.held[p, s.task[k]])


def about_to_confirm(s: State, p: Process, k: Key) -> Bool:
    """The process passes the fence and is about to note the key's intent."""
    return serves(s, p, k, Stage.INTENDED) & holds_lease(s, p, k)


@invariant(supporting=True)
def idle_processes_serve_nothing(s: State) -> Bool:
    """A process has a stage exactly while it serves a key."""
    return forall(Process, lambda p: (s.serving[p] == NONE) == (s.stage[p] == Stage.IDLE))


@invariant(supporting=True)
def held_tokens_were_issued(s: State) -> Bool:
    """Nobody knows a token above that in the lease record, and a record that names a holder is legible."""
    return forall(Process, Task, lambda p, t: s.held[p, t] <= s.token[t]) & forall(
        Task,
        lambda t: (s.barrier[t] <= s.token[t]) & implies(s.holder[t] != NONE, (s.token[t] != 0) & ~s.lease_damaged[t]),
    )


@invariant(supporting=True)
def no_token_is_held_twice(s: State) -> Bool:
    """Two processes never hold the same token of a task."""
    return forall(
        Process,
        Process,
        lambda p, q: implies(p != q, forall(Task, lambda t: (s.held[p, t] == 0) | (s.held[p, t] != s.held[q, t]))),
    )


@invariant(supporting=True)
def launched_means_started_once(s: State) -> Bool:
    """The executor has launched a key exactly if it was started once."""
    return forall(Key, lambda k: s.launched[k] == (s.starts[k] == 1)) & forall(Key, lambda k: s.starts[k] <= 1)


@invariant(supporting=True)
def what_runs_was_launched(s: State) -> Bool:
    """Only a launched key runs, has a session, or has an ended attempt; and an ended one does not run."""
    return forall(
        Key,
        lambda k: (
            implies(s.running[k] | (s.session[k] != Session.ABSENT) | (s.attempt[k] == Attempt.ENDED), s.launched[k])
            & implies(s.attempt[k].one_of(Attempt.ENDED, Attempt.CLOSED), ~s.running[k])
        ),
    )


@invariant(supporting=True)
def whoever_knows_of_a_start_is_right(s: State) -> Bool:
    """A process that believes its key started serves a launched key."""
    return forall(Process, Key, lambda p, k: implies(serves(s, p, k, Stage.STARTED), s.launched[k]))


@invariant(supporting=True)
def a_start_is_noted_before(s: State) -> Bool:
    """The lease store has a note of every key that was launched, or that a process is confirmed for."""
    return forall(Key, lambda k: implies(s.launched[k], s.noted[k])) & forall(
        Process, Key, lambda p, k: implies(serves(s, p, k, Stage.CONFIRMED), s.noted[k])
    )


@invariant(supporting=True)
def who_may_start_is_first(s: State) -> Bool:
    """A key that some process may still start has not been launched, and is neither closed nor refused."""
    return forall(
        Process,
        Key,
        lambda p, k: implies(may_start(s, p, k), ~s.launched[k] & (s.attempt[k] != Attempt.CLOSED) & ~s.closed[k]),
    )


@invariant(supporting=True)
def who_may_start_is_alone(s: State) -> Bool:
    """Two processes never may start the same key."""
    return forall(
        Process,
        Process,
        lambda p, q: implies(p != q, forall(Key, lambda k: ~(may_start(s, p, k) & may_start(s, q, k)))),
    )


@invariant(supporting=True)
def who_is_about_to_confirm_is_alone(s: State) -> Bool:
    """While a process is about to confirm a key, the key has not been launched and nobody may start it."""
    return forall(
        Process,
        Key,
        lambda p, k: implies(
            about_to_confirm(s, p, k), ~s.launched[k] & forall(Process, lambda q: ~may_start(s, q, k))
        ),
    )


@invariant(supporting=True)
def closed_keys_stay_closed(s: State) -> Bool:
    """A key whose caller was told that it is closed has a completed receipt, and no attempt that could go on."""
    return forall(
        Key,
        lambda k: implies(s.closed[k], completed(s, k) & ~s.attempt[k].one_of(Attempt.OFFERED, Attempt.INTENDED)),
    )


@invariant(supporting=True)
def accepted_before_attempted(s: State) -> Bool:
    """A key with an attempt, a note or a process in the callback has an accepted command."""
    return forall(
        Key,
        lambda k: implies((s.attempt[k] != Attempt.ABSENT) | s.noted[k], s.receipt[k] != Receipt.ABSENT),
    ) & forall(Process, Key, lambda p, k: implies(s.serving[p] == k, s.receipt[k] != Receipt.ABSENT))


def _engages(s: State, k: Key) -> Bool:
    return s.running[k] | (s.attempt[k] == Attempt.INTENDED)


def _rivals(s: State, k: Key, o: Key) -> Bool:
    return (k != o) & (s.task[k] == s.task[o])


@invariant(supporting=True)
def one_key_engages_a_task(s: State) -> Bool:
    """Of two keys of a task, at most one runs or has a recorded intent."""
    return forall(Key, Key, lambda k, o: implies(_rivals(s, k, o), ~(_engages(s, k) & _engages(s, o))))


@invariant(supporting=True)
def who_may_start_engages_the_task(s: State) -> Bool:
    """While a process may start a key, no other key of the task runs or has a recorded intent."""
    return forall(
        Process,
        lambda p: forall(Key, Key, lambda k, o: implies(may_start(s, p, k) & _rivals(s, k, o), ~_engages(s, o))),
    )


@invariant(supporting=True)
def one_key_of_a_task_may_start(s: State) -> Bool:
    """Two processes never may start two keys of one task."""
    return forall(
        Process,
        Process,
        lambda p, q: forall(
            Key, Key, lambda k, o: implies(_rivals(s, k, o), ~(may_start(s, p, k) & may_start(s, q, o)))
        ),
    )
