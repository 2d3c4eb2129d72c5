"""The dispatcher: from an accepted command to one start, and from doubt to certainty.

Each action changes one store, because no two stores can be written in one step.
"""

from __future__ import annotations

from onestart_model import NONE, action, forget, ite, protected, require
from onestart_model.chain.evidence import holds_lease, in_doubt, lease_free, never_intended, quiet, serves
from onestart_model.chain.state import Attempt, Key, Process, Session, Stage, State


@action(source="receipts, section 4: offer() finds or proposes an attempt")
def offer(s: State, p: Process, k: Key) -> None:
    """A command that nobody ever meant to start gets its attempt."""
    require(serves(s, p, k, Stage.ENTERED), never_intended(s, k), s.attempt[k] != Attempt.OFFERED)
    s.attempt[k] = Attempt.OFFERED


@action(source="receipts, section 4: claim() tries to acquire occupancy")
def claim(s: State, p: Process, k: Key) -> None:
    """A process takes the task's lease under a fresh token: to start an offered attempt, or to resolve a doubt."""
    fresh = (s.attempt[k] == Attempt.OFFERED) & never_intended(s, k)
    require(serves(s, p, k, Stage.ENTERED), fresh | in_doubt(s, k))
    require(lease_free(s, k), protection="one-lease-per-task")
    t = s.task[k]
    own_token = protected("token-per-acquisition") | (s.token[t] == 0)
    s.holder[t] = k
    s.token[t] = ite(own_token, s.token[t].next(), s.token[t])
    s.held[p, t] = s.token[t]
    s.stage[p] = Stage.CLAIMED


@action(source="design: the window that cannot be closed")
def intend(s: State, p: Process, k: Key) -> None:
    """The holder of the lease records that it is about to start, if all is quiet around the task.

    That is asked here and not when the lease is taken: a key may be claimed in doubt and turn out to be fresh.
    """
    require(serves(s, p, k, Stage.CLAIMED), s.attempt[k] == Attempt.OFFERED, never_intended(s, k))
    require(quiet(s, k), protection="task-serial")
    require(holds_lease(s, p, k), protection="fencing-token")
    s.attempt[k] = Attempt.INTENDED
    s.stage[p] = Stage.INTENDED


@action(source="design: each store notes how far the others had got")
def note(s: State, p: Process, k: Key) -> None:
    """The intent is noted beside the lease, so that a lost attempt record is found out."""
    require(serves(s, p, k, Stage.INTENDED))
    require(s.attempt[k] == Attempt.INTENDED, protection="intent-stands")
    require(holds_lease(s, p, k), protection="fencing-token")
    s.noted[k] = True
    s.stage[p] = Stage.CONFIRMED


@action(source="receipts, section 3")
def start(s: State, p: Process, k: Key) -> None:
    """The executor starts the command, unless it has answered to a newer token.

    The executor is outside: no record is read here, and what the process believed last is all it has.
    """
    unnoted = (s.stage[p] == Stage.INTENDED) & ~protected("intent-noted")
    unintended = (s.stage[p] == Stage.CLAIMED) & ~protected("intent-before-start")
    require(s.serving[p] == k, (s.stage[p] == Stage.CONFIRMED) | unnoted | unintended)
    require(s.barrier[s.task[k]] <= s.held[p, s.task[k]], protection="executor-fence")
    s.starts[k] = ite(s.starts[k] < 2, s.starts[k] + 1, 2)
    s.launched[k] = True
    s.running[k] = True
    s.stage[p] = Stage.STARTED


@action(source="receipts, section 4: sessions")
def record(s: State, p: Process, k: Key) -> None:
    """The holder of the lease records the start as a session, if no session record exists."""
    require(serves(s, p, k, Stage.STARTED))
    require(holds_lease(s, p, k), protection="fencing-token")
    s.session[k] = ite(s.session[k] == Session.ABSENT, Session.LIVE, s.session[k])
    s.stage[p] = Stage.ENTERED


@action(source="design: the window that cannot be closed")
def ask(s: State, p: Process, k: Key) -> None:
    """The holder of the lease finds that no record says whether the key was started, and turns to the executor."""
    require(serves(s, p, k, Stage.CLAIMED), in_doubt(s, k))
    s.stage[p] = Stage.ASKING


@action(source="design: an executor that can be asked resolves it")
def look_up(s: State, p: Process, k: Key) -> None:
    """The executor says whether a key in doubt ever started, and from then on refuses starts under older tokens.

    Without the refusal a process that is merely slow could start after it was declared not to have. A key that never
    started goes on from its intent, which the asking process adopts. The executor is outside: no record is read here,
    and somebody may have settled the key since it was found in doubt.
    """
    t = s.task[k]
    require(serves(s, p, k, Stage.ASKING), s.barrier[t] <= s.held[p, t])
    started = s.launched[k] & protected("ask-before-restart")
    s.stage[p] = ite(started, Stage.STARTED, Stage.INTENDED)
    s.barrier[t] = ite(protected("lookup-bars-older-starts"), s.held[p, t], s.barrier[t])


@action(source="design: with a diagnosis and a way out")
def give_up(s: State, p: Process, k: Key) -> None:
    """A key that certainly never started, and whose intent cannot be read, is closed beside the damage."""
    require(serves(s, p, k, Stage.INTENDED), ~s.attempt[k].one_of(Attempt.INTENDED, Attempt.CLOSED))
    require(holds_lease(s, p, k), protection="fencing-token")
    s.attempt[k] = Attempt.CLOSED
    s.stage[p] = Stage.ENTERED


@action(source="design: leases")
def renew(s: State, p: Process, k: Key) -> None:
    """The holder of a lease writes its record anew, with another end.

    There are no durations here: a renewal by the holder changes nothing, and what matters is that nobody else gets one.
    """
    t = s.task[k]
    require(s.serving[p] == k, s.held[p, t] != 0)
    require(holds_lease(s, p, k), protection="renewal-fenced")
    s.holder[t] = k
    s.token[t] = s.held[p, t]


@action(source="receipts, section 4: leases")
def withdraw(s: State, p: Process, k: Key) -> None:
    """A holder that does not start gives its lease back."""
    require(serves(s, p, k, Stage.CLAIMED, Stage.ASKING, Stage.INTENDED), holds_lease(s, p, k))
    forget(s, p)
    s.holder[s.task[k]] = NONE


@action(source="design: a stale holder's writes are refused")
def abandon(s: State, p: Process, k: Key) -> None:
    """A process whose lease is gone drops what it was doing."""
    require(s.serving[p] == k, s.stage[p] != Stage.ENTERED, ~holds_lease(s, p, k))
    forget(s, p)
