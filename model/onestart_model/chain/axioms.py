"""What the rules take for granted of the stores. Nothing here is proved: each store is tested against these directly.

A ledger that keeps them makes a step of the rules one step of the world; `environment` says what may happen to records
beyond that. The names are those of the table that `onestart stores` prints.
"""

from __future__ import annotations

from attrs import frozen

ATOMICITY, ORDER, DURABILITY, DAMAGE, TIME = "atomicity", "order", "durability", "damage", "time"


@frozen
class Axiom:
    """layer: what it is about. rests: what in the rules leans on it."""

    name: str
    layer: str
    statement: str
    rests: str


AXIOMS = (
    Axiom(
        "a-step-is-atomic",
        ATOMICITY,
        "A step writes one record, wholly or not at all, and what a decision raises writes nothing.",
        "each action writes one store",
    ),
    Axiom(
        "a-failed-step-is-there-or-not",
        ATOMICITY,
        "A step whose outcome its maker does not learn is wholly there or wholly absent; once somebody has found "
        "which, it stays so for all who come later.",
        "crash: what was under way took place, or did not",
    ),
    Axiom(
        "one-step-at-a-time",
        ORDER,
        "Between what a step reads and what it writes no other step happens, in any task, thread or process.",
        "guards and updates of an action are one step",
    ),
    Axiom(
        "a-step-sees-what-was-acknowledged",
        ORDER,
        "A decision sees every record that was acknowledged before it began, whoever made it.",
        "guards read the state before the step",
    ),
    Axiom(
        "nothing-without-what-it-saw",
        ORDER,
        "If a record is there after a crash, so is every earlier record of its key or task, in whatever store.",
        "crash leaves the durable state as it was",
    ),
    Axiom(
        "acknowledged-is-durable",
        DURABILITY,
        "What a step wrote and what its decision could read is there, and can be read, after any crash and power "
        "failure once the step is acknowledged.",
        "crash leaves the durable state as it was",
    ),
    Axiom(
        "a-crash-damages-nothing",
        DURABILITY,
        "A crash or power failure alone makes no record read as damaged, and nothing as missing.",
        "damage comes from outside",
    ),
    Axiom(
        "a-store-opens-after-a-crash",
        DURABILITY,
        "After any crash the next process can open the ledger and take steps.",
        "crash: a process comes back",
    ),
    Axiom(
        "bytes-stay",
        DAMAGE,
        "Records are added, never changed or removed, by reading, writing or recovery.",
        "bytes_are_never_destroyed",
    ),
    Axiom(
        "a-store-that-lost-records-is-seen",
        DAMAGE,
        "A receipt, session or lease record that another store has seen, and that is gone, reads as damaged; a lost "
        "attempt record is reported, and the note of its intent stays. An older copy of a file is seen, whatever the "
        "others had seen of it.",
        "damage_receipt, damage_session, damage_lease, lose_attempt",
    ),
    Axiom(
        "tokens-only-grow",
        DAMAGE,
        "The token after a repair is above all that were issued for the task, also by records that are gone.",
        "a repaired lease outranks every holder before it",
    ),
    Axiom(
        "a-lease-ends",
        TIME,
        "However the clock jumps, a lease that nobody renews has run out once it has gone on for twice its length, "
        "and no holder writes after it has run out.",
        "expire can always happen",
    ),
)


def axiom_named(name: str) -> Axiom | None:
    """The axiom of this name, if there is one."""
    return next((axiom for axiom in AXIOMS if axiom.name == name), None)
