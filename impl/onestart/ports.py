"""What is outside: ledger, executor, governance and clock. The chain reaches the world through these alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from attrs import frozen

from onestart.command import Command
from onestart.health import Finding, Reading
from onestart.records import Approval, Attempt, Lease, Note, Receipt, Record, Session, Step

T = TypeVar("T")


class LedgerUnavailableError(Exception):
    """A store cannot be read or written; nothing is known about what it holds. store: its name, if it is one."""

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"{store}: {reason}")
        self.store = store
        self.reason = reason


class NotALedgerError(LedgerUnavailableError):
    """There is no ledger that this program knows; nothing was touched."""

    def __init__(self, reason: str) -> None:
        super().__init__("ledger", reason)


class View(Protocol):
    """All stores as they are at one moment, while no other step happens."""

    @property
    def order(self) -> int:
        """How many records there are in all."""

    @property
    def now(self) -> float | None:
        """Seconds of the ledger's own clock, None if it has none: then the clocks of its processes agree."""

    def receipt(self, key: str) -> Reading[Receipt]: ...

    def attempt(self, key: str) -> Reading[Attempt]: ...

    def session(self, key: str) -> Reading[Session]: ...

    def approval(self, key: str) -> Reading[Approval]: ...

    def lease(self, task: str) -> Reading[Lease]: ...

    def steps(self, root: str) -> Reading[Step]:
        """The journal of a flow, all of it."""

    def note(self, key: str) -> Reading[Note]:
        """The notes of the key's intents, which are kept beside the leases."""

    def task_of(self, key: str) -> str | None:
        """The task that the key's records are of, from any legible part of any of them."""

    def keys(self, task: str) -> Iterable[str]:
        """Every key with a record of this task."""

    def all_keys(self) -> Iterable[str]:
        """Every key with a record."""

    def stray(self) -> tuple[Finding, ...]:
        """Damage of which nobody can tell whose it was."""


class Ledger(Protocol):
    """Several stores behind one door."""

    async def step(self, decide: Callable[[View], tuple[Record | None, T]]) -> T:
        """Read, decide and write at most one record while no other step happens, in any process.

        Returns decide's second value once the record, and all that decide could read, is durable. decide is called
        once, in any thread, must not block, and gets a view that is valid for the call only. Raises
        LedgerUnavailableError if a store cannot be read or written; a record may then be there or not.
        """


@frozen
class Order:
    """What an executor is asked to start. token: the fencing token of the task's lease."""

    key: str
    task: str
    token: int
    function: str = ""
    payload: Any = None


class FencedError(Exception):
    """The executor has answered to a newer token of the task, so it refuses this one."""


class CannotTellError(Exception):
    """The executor does not know whether it ever started a key."""


class Executor(Protocol):
    """What starts things. A key is started at most once by a call of `start`, which the chain makes at most once.

    It may have a method `check(command)` that raises BadCommandError for what it could never start: it is called before
    anything is recorded, since a command that is accepted and then refused for good leaves its task in doubt.

    It may have a method `identify()`, a coroutine that returns a name, if it knows of its own starts alone: an executor
    of another name, on another machine say, is then never asked what became of a key that this one was to start. An
    executor without a name answers for every start there ever was.
    """

    async def start(self, order: Order) -> None:
        """Start it, durably known to `look_up` from then on.

        Raises FencedError, without starting, if it has answered to a newer token of the task. Any other error leaves
        open whether it was started.
        """

    async def look_up(self, key: str, task: str, token: int) -> bool:
        """Whether the key was ever started; from then on, starts of the task under older tokens are refused.

        Raises CannotTellError if that is not known, FencedError if it has answered to a newer token.
        """

    async def running(self, key: str) -> bool:
        """Whether the key may still be executing. Raises CannotTellError if that is not known."""

    async def stop(self, key: str) -> None:
        """Ask for the execution to end; it may go on for a while, or for good."""


@frozen
class Ruling:
    """revision: the governance revision in force. needs_approval: whether this command takes an approval."""

    revision: str | None = None
    needs_approval: bool = False


class Governance(Protocol):
    """Who decides whether a command may go on."""

    async def rule(self, command: Command) -> Ruling: ...


class Clock(Protocol):
    """Seconds, of which only differences mean anything; nothing but the time when a lease ends depends on them."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...
