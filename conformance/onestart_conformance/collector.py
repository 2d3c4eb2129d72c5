"""The garbage collector where much is made and little is left: drives of many worlds, event logs of any length.

With Python's own thresholds a fifth of the time goes to looking for cycles among what is still in use.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS = 100_000  # new ones between two collections: a few hundred worlds


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Collect less often, and leave what is there already out of it. Nested drives change nothing."""
    before = gc.get_threshold()
    if before[0] == OBJECTS or not gc.isenabled():
        yield
        return
    gc.freeze()
    gc.set_threshold(OBJECTS, 50, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
