"""One latch for a root and all its children: after a refusal nothing is admitted, whatever the author catches."""

from __future__ import annotations

from attrs import define

from onestart.flow.errors import RefusedError


@define(eq=False)
class Latch:
    """refusal: the first one; it is never lifted in this attempt."""

    refusal: RefusedError | None = None

    def refuse(self, refusal: RefusedError) -> RefusedError:
        """Keep the first refusal, and return it to be raised."""
        if self.refusal is None:
            self.refusal = refusal
        return self.refusal

    def check(self) -> None:
        """Raises the refusal, if there is one."""
        if self.refusal is not None:
            raise self.refusal
