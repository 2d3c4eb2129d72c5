"""The clock of the machine."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """Seconds since 1970, so that processes agree about when a lease ends, on one machine or on several."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
