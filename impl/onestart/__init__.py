"""onestart: one idempotency key, at most one start.

A `Chain` takes a `Command` through receipt, attempt, lease and session to at most one start by its executor, over a
ledger that several processes share. Whatever crashes, and whatever is submitted again, the answer says how far it is.
"""

from onestart.answers import Answer, Outcome, Reason, Result
from onestart.chain import Chain, Permissive, Status
from onestart.command import BadCommandError, Command
from onestart.events import Event, Observer
from onestart.health import Finding, Health, Reading
from onestart.ports import (
    CannotTellError,
    Clock,
    Executor,
    FencedError,
    Governance,
    Ledger,
    LedgerUnavailableError,
    Order,
    Ruling,
)
from onestart.sessions import NothingToDoError

__all__ = [
    "Answer",
    "BadCommandError",
    "CannotTellError",
    "Chain",
    "Clock",
    "Command",
    "Event",
    "Executor",
    "FencedError",
    "Finding",
    "Governance",
    "Health",
    "Ledger",
    "LedgerUnavailableError",
    "NothingToDoError",
    "Observer",
    "Order",
    "Outcome",
    "Permissive",
    "Reading",
    "Reason",
    "Result",
    "Ruling",
    "Status",
]
