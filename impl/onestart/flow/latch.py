"""One latch for a root and all its children: after a refusal nothing is admitted, whatever the author catches."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define

from onestart.flow.errors import RefusedError


@define(eq=False)
class Latch:
    """refusal: the first one; it is never lifted in this attempt. wake: called with it."""

    refusal: RefusedError | None = None
    wake: Callable[[], None] | None = None

    def refuse(self, refusal: RefusedError) -> RefusedError:
        """Keep the first refusal, and return it to be raised."""
        if self.refusal is None:
            self.refusal = refusal
            if self.wake is not None:
                self.wake()
        return self.refusal

    def check(self) -> None:
        """Raises the refusal, if there is one."""
        if self.refusal is not None:
            raise self.refusal
