"""How far a run may go within a budget: the last round up to which a certificate says so.

A longer run contains a shorter one, so what is certified for a length holds for every shorter length, and what cannot be
certified for a length is not tried for longer ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Horizon:
    """Lengths up to `within` are certified to keep the budget; those from `beyond` on were not, or there is no such run."""

    beyond: int
    within: int = 0

    @property
    def known(self) -> bool:
        """Whether no length lies between the two."""
        return self.beyond - self.within <= 1

    def ask(self, length: int, certified: Callable[[int], bool]) -> None:
        """Find out about one length, unless it is known."""
        if not self.within < length < self.beyond:
            return
        if certified(length):
            self.within = length
        else:
            self.beyond = length

    def find(self, certified: Callable[[int], bool]) -> int:
        """The last length that is certified: by doubling from the last known one, then by halving what is left."""
        stride = max(1, self.within)
        while not self.known and self.within + stride < self.beyond:
            before = self.within
            self.ask(self.within + stride, certified)
            if self.within == before:
                break
            stride *= 2
        while not self.known:
            self.ask((self.within + self.beyond) // 2, certified)
        return self.within
