"""What nobody can notice, shown: damage that leaves a ledger as it once was, or as a crash might have left it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from onestart_conformance.damage.medium import Medium
from onestart_conformance.damage.prepared import LOST, command
from onestart_conformance.damage.site import LEASE, Site
from onestart_conformance.doubles import Engine, PromptExecutor, unheard

_DATABASES = ("sqlite", "postgres")


@frozen
class Shown:
    """What came of it. verified: whether the ledger's own check says anything. told: whether the answer does.

    starts: of the key, in all.
    """

    verified: bool
    told: bool
    starts: int


@frozen
class Limit:
    """starts: how often the key is started in the end; 2 where there is nothing to tell a replay from a first call.

    verified: the ledger's own check misses a record, though no answer does. ledgers: the kinds that it is a limit of.
    """

    name: str
    statement: str
    play: Callable[[Medium], Shown]
    starts: int
    verified: bool
    ledgers: tuple[str, ...]

    def shown_by(self, shown: Shown) -> bool:
        """Whether it is as it is said here."""
        return shown == Shown(self.verified, False, self.starts)


def _all_rolled_back(medium: Medium) -> Shown:
    site = _site(medium)
    site.submit(command("ended"))
    older = medium.keep()
    site.submit(command("approved"))
    medium.restore(older)
    return _again(site, medium, "approved")


def _completion_cut_off(medium: Medium) -> Shown:
    site = _site(medium)
    site.submit(command("approved"))
    medium.cut("receipts", 1, 0)
    return _again(site, medium, "approved")


def _unseen_in_two_stores(medium: Medium) -> Shown:
    """The intent and its note are what was written last to each of their stores."""
    site = _site(medium)
    site.submit(command("lost"))
    medium.cut("attempts", 1, 0)
    medium.cut("leases", 1, 0)
    return _again(site, medium, "lost")


def _site(medium: Medium) -> Site:
    return Site(medium.ledger(), PromptExecutor(Engine(unheard), LOST))


def _again(site: Site, medium: Medium, key: str) -> Shown:
    """What a process does that comes up when the lease has run out."""
    verified = medium.verify()
    site.ledger = medium.ledger()
    site.executor.lost = frozenset()
    site.pass_time(4 * LEASE)
    answer = site.submit(command(key))
    return Shown(verified.told, bool(answer.findings), site.starts.get(key, 0))


def _named(*limits: Limit) -> Mapping[str, Limit]:
    return {limit.name: limit for limit in limits}


LIMITS = _named(
    Limit(
        "all-rolled-back-together",
        "every store is an older copy, all of the same moment: that is what the ledger was then",
        _all_rolled_back,
        2,
        False,
        ("jsonl", *_DATABASES),
    ),
    Limit(
        "completion-cut-off",
        "the last receipt's row was deleted by hand, and no other record of its key was written since",
        _completion_cut_off,
        1,
        True,
        _DATABASES,
    ),
    Limit(
        "intent-and-note-cut-off",
        "the last rows of two tables were deleted by hand, which are all that was known of an intent",
        _unseen_in_two_stores,
        2,
        True,
        _DATABASES,
    ),
)


def limits_of(ledger: str) -> list[Limit]:
    """Those of one kind of ledger. Beside the files of JSON lines it is noted how far each of them had got."""
    return [limit for limit in LIMITS.values() if ledger in limit.ledgers]
