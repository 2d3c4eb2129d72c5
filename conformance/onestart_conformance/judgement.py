"""What a judge objects to. The oracles, and how an objection is shown."""

from __future__ import annotations

from attrs import frozen

RULE = "rule"  # an event is no enabled action of the model
ANSWER = "answer"  # an answer is not what the records, or the model, say
BYTES = "bytes"  # recorded bytes changed or went
READ = "read"  # a fresh reader sees another receipt, session, lease or note than the model
CALLBACK = "callback"  # the callback was entered without the model
ATTEMPT = "attempt"  # a fresh reader sees another attempt than the model
START = "start"  # the executor started a key another number of times than the model
EFFECT = "effect"  # more effects than starts
ORDER = "linearizability"  # no order of the submissions explains their answers
PROMISE = "promise"  # what the implementation has done breaks a promise of the model
CRASH = "exception"  # the library raised what it should not

ORACLES = (RULE, ANSWER, BYTES, READ, CALLBACK, ATTEMPT, START, EFFECT, ORDER, PROMISE, CRASH)


@frozen
class Objection:
    """oracle: which one objects. what: in words. protections: those whose removal alone would allow the step.

    promise: what the step breaks, if it breaks anything at once.
    """

    oracle: str
    what: str
    protections: tuple[str, ...] = ()
    promise: str = ""

    def __str__(self) -> str:
        parts = [f"{self.oracle}: {self.what}"]
        if self.protections:
            parts.append(f"only without {' or '.join(self.protections)}")
        if self.promise:
            parts.append(f"breaks {self.promise}")
        return "; ".join(parts)
