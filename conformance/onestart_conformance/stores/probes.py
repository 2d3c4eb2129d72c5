"""Each axiom about stores, put to a ledger directly: small experiments that end in a breach or in none.

A probe of one-at-a-time, of tokens and the like needs a place where ledgers can be opened; those of crashes are in
`crashes`, which has its own simulated machine.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from attrs import frozen

from onestart import Chain, evidence
from onestart.ports import Ledger, LedgerUnavailableError, View
from onestart.records import Attempt, Lease, Receipt, Record
from onestart_conformance.doubles import Engine, PromptExecutor
from onestart_conformance.stores.places import Place
from onestart_conformance.stores.stage import LEASE, REVISION, Office, Time, command

TASKS, THREADS = 16, 4


class ProbeError(AssertionError):
    """An axiom does not hold; the message says how."""


@frozen
class Probe:
    """run: raises ProbeError. seeded: the place, and the chances of one run."""

    axiom: str
    run: Callable[[Place, random.Random], Coroutine[Any, Any, None]]


def require(holds: bool, what: str) -> None:
    """Raises ProbeError if it does not."""
    if not holds:
        raise ProbeError(what)


async def put(ledger: Ledger, record: Record) -> None:
    await ledger.step(lambda view: (record, None))


async def look(ledger: Ledger, see: Callable[[View], Any]) -> Any:
    return await ledger.step(lambda view: (None, see(view)))


async def atomic(place: Place, chance: random.Random) -> None:
    """What a decision raises writes nothing, also among others that do write."""
    ledger = place.open()

    class MistakeError(Exception):
        pass

    async def mistaken(number: int) -> None:
        def decide(view: View) -> tuple[Record | None, None]:
            view.receipt(f"k{number}")
            raise MistakeError

        try:
            await ledger.step(decide)
        except MistakeError:
            return
        raise ProbeError("what the decision raised did not reach its maker")

    good = [n for n in range(TASKS) if chance.random() < 0.6]
    await asyncio.gather(*(put(ledger, _receipt(n)) if n in good else mistaken(n) for n in range(TASKS)))
    there = await look(place.open(), lambda view: [n for n in range(TASKS) if view.receipt(f"k{n}").exists])
    require(there == good, f"{good} were written, and {there} are there")


async def alone(place: Place, chance: random.Random) -> None:
    """Tasks of several ledgers, and threads, all count the same lease up: no count is lost."""

    async def count(ledger: Ledger, times: int) -> None:
        for _ in range(times):
            await ledger.step(_counted)

    failed: list[str] = []

    def thread(times: int) -> None:
        try:
            asyncio.run(count(place.open(), times))
        except LedgerUnavailableError as error:
            failed.append(str(error))

    times = chance.randint(2, 5)
    threads = [threading.Thread(target=thread, args=(times,)) for _ in range(THREADS)]
    for one in threads:
        one.start()
    ledgers = [place.open(), place.open()]
    ends = await asyncio.gather(*(count(ledgers[n % 2], times) for n in range(TASKS)), return_exceptions=True)
    failed += [str(end) for end in ends if end is not None]
    for one in threads:
        await asyncio.to_thread(one.join)
    require(not failed, f"a step beside others failed: {', '.join(failed)}")
    token = await look(place.open(), lambda view: evidence.next_token(view, "t")) - 1
    wanted = times * (THREADS + TASKS)
    require(token == wanted, f"{wanted} steps counted up to {token}")


def _counted(view: View) -> tuple[Record, None]:
    newest = view.lease("t").newest
    return Lease("t", 1 + (newest.token if newest else 0), None, 0.0), None


async def sees(place: Place, chance: random.Random) -> None:
    """Whoever steps after an acknowledgment sees the record, through whatever ledger it comes."""
    ledgers = [place.open() for _ in range(3)]
    for number in range(TASKS):
        writer, reader = chance.choice(ledgers), chance.choice(ledgers)
        await put(writer, _receipt(number))
        seen = await look(reader, partial(_newest, key=f"k{number}"))
        require(seen == _receipt(number), f"receipt {number} was acknowledged, and another step does not see it")


async def bytes_stay(place: Place, chance: random.Random) -> None:
    """Everything that was recorded is there as it was, after more records, reading and opening."""
    before = await place.contents()
    for number in range(chance.randint(1, TASKS)):
        await put(place.open(), _receipt(number) if chance.random() < 0.5 else _offer(number))
        after = await place.contents()
        for name, lines in before.items():
            require(after[name][: len(lines)] == lines, f"what was recorded in {name} changed")
        before = after
    await place.reopen()
    require(await place.contents() == before, "opening it changed what was recorded")


async def lost_is_seen(place: Place, chance: random.Random) -> None:
    """A store is emptied behind the ledger's back, after a whole command: the others tell. So is an older copy of a
    file, though no other store has seen what it lacks.
    """
    await _whole(place)
    older = await place.keep()
    if older is not None:
        await _put_back(place, older)
    store = chance.choice(["receipts", "attempts", "sessions", "leases"])
    await place.lose(store)
    ledger = place.open()
    readings = {
        "receipts": lambda view: view.receipt("k1").health.degraded,
        "sessions": lambda view: view.session("k1").health.degraded,
        "leases": lambda view: view.lease("t1").health.degraded,
        "attempts": lambda view: bool(evidence.findings(view, "k1", "t1")),
    }
    require(await look(ledger, readings[store]), f"{store} were lost, and nobody tells")
    require(
        not await look(ledger, lambda view: evidence.never_intended(view, "k1", "t1")), f"{store} were lost: a start"
    )


async def _put_back(place: Place, older: bytes) -> None:
    """Leaves everything as it was."""
    await put(place.open(), _receipt(TASKS))
    newer = await place.keep()
    assert newer is not None
    await place.put_back(older)
    try:
        told = await look(place.open(), lambda view: bool(view.stray()))
    except LedgerUnavailableError:
        told = True
    require(told, "an older copy was put in the place of a file, and nobody tells")
    await place.put_back(newer)


async def tokens(place: Place, chance: random.Random) -> None:
    """The leases are lost after some acquisitions: the next token is above all of them."""
    ledger = place.open()
    issued = chance.randint(1, 5)
    for token in range(1, issued + 1):
        await put(ledger, Lease("t1", token, "k1", 0.0))
    asked = command()
    await put(ledger, Attempt("k1", "t1", "intended", asked.fingerprint, issued))
    await place.lose("leases")
    token = await look(place.open(), lambda view: evidence.next_token(view, "t1"))
    require(token > issued, f"token {issued} was issued, and after the loss {token} is next")


async def lease_ends(place: Place, chance: random.Random) -> None:
    """A process dies with the lease; the clock jumps by hours; within twice the lease another one gets it."""
    time = Time()
    ledger = place.open()
    await put(ledger, Lease("t1", 1, "k0", time.now() + LEASE, "dead", LEASE))
    time.seconds += chance.choice([-1, 1]) * chance.uniform(3 * LEASE, 1e5)
    chain = Chain(
        ledger=ledger,
        executor=PromptExecutor(Engine(lambda asked: None)),
        governance=Office(),
        clock=time,
        lease_seconds=LEASE,
    )
    for _ in range(2):
        answer = await chain.submit(command())
        if answer.outcome == "started":
            return
        time.seconds += LEASE
    raise ProbeError(f"the clock jumped to {time.seconds:.0f}, and the lease still stands in the way: {answer.reason}")


async def _whole(place: Place) -> None:
    engine = Engine(lambda asked: None)
    chain = Chain(
        ledger=place.open(), executor=PromptExecutor(engine), governance=Office(), clock=Time(), lease_seconds=LEASE
    )
    await chain.submit(command())
    await chain.aclose()


def _newest(view: View, *, key: str) -> Receipt | None:
    return view.receipt(key).newest


def _receipt(number: int) -> Receipt:
    return Receipt(f"k{number}", f"t{number}", "pending", REVISION)


def _offer(number: int) -> Attempt:
    return Attempt(f"k{number}", f"t{number}", "offered", REVISION)


PROBES = (
    Probe("a-step-is-atomic", atomic),
    Probe("one-step-at-a-time", alone),
    Probe("a-step-sees-what-was-acknowledged", sees),
    Probe("bytes-stay", bytes_stay),
    Probe("a-store-that-lost-records-is-seen", lost_is_seen),
    Probe("tokens-only-grow", tokens),
    Probe("a-lease-ends", lease_ends),
)
