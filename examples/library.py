"""A command is submitted twice, under one key: it starts once, and the second submission gets the recorded result.

Run it in an empty folder; run it again, and it does not start any more.
"""

import asyncio
from typing import Any

from onestart import Chain, Command, Reason
from onestart.executors import CallableExecutor
from onestart.sql.sqlite import SqliteLedger


async def send_invoice(payload: Any) -> None:
    """What is to happen at most once."""
    print(f"sending invoice {payload['number']}")


async def main() -> None:
    """Two submissions of one command, and one of another command under the same key."""
    executor = CallableExecutor("launches", {"send_invoice": send_invoice})
    chain = Chain(ledger=SqliteLedger("ledger.sqlite"), executor=executor)
    invoice = Command(key="invoice-17", task="customer-4", function="send_invoice", payload={"number": 17})
    other = Command(key="invoice-17", task="customer-4", function="send_invoice", payload={"number": 18})
    for command in (invoice, invoice, other):
        answer = await chain.submit(command)
        print(answer.outcome, answer.reason)
        if answer.reason is Reason.CREATED:
            await executor.wait(command.key)
            await chain.reconcile(command.key)


asyncio.run(main())
