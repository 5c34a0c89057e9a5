"""How far a run may go within a budget: the last round up to which a certificate says so.

A longer run contains a shorter one, so what is certified for a length holds for every shorter length, and what cannot be
certified for a length is not tried for longer ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.document.ranges import ITERATIONS

if TYPE_CHECKING:
    from pyaccount.accountant.ledger import Ledger
    from pyaccount.accountant.planned import Planned

#: ε and δ.
PrivacyTarget = tuple[float, float]


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


class Horizons:
    """A horizon for each budget, and for each kind of rounds that a ledger may go on with.

    `holds` certifies a document at a target, as accurately as it takes to say yes or no.
    """

    def __init__(self, holds: Callable[[Document, PrivacyTarget], bool]) -> None:
        self._holds = holds
        self._known: dict[tuple[object, ...], Horizon] = {}

    def know(self, plan: Planned, epsilon: float, delta: float) -> None:
        """Take note that a certificate says of the whole plan that it keeps a budget."""
        self._known[epsilon, delta] = Horizon(beyond=plan.length + 1, within=plan.length)

    def of_plan(self, plan: Planned, length: int, target: PrivacyTarget, *, find: bool) -> Horizon:
        """What is known of the first `length` rounds of a plan; with `find` the last length that is certified.

        The whole plan is asked about first: if it keeps the budget, so does everything else. Where samples are drawn it is
        the only question.
        """
        horizon = self._known.setdefault(target, Horizon(beyond=plan.length + 1))

        def certified(rounds: int) -> bool:
            return self._holds(plan.prefix(rounds), target)

        horizon.ask(plan.length, certified)
        if plan.sampled:
            horizon.beyond = min(horizon.beyond, horizon.within + 1)
        elif find or horizon.within < length < horizon.beyond:
            horizon.find(certified)
        return horizon

    def of_ledger(self, ledger: Ledger, target: PrivacyTarget, *, find: bool) -> Horizon:
        """What is known of the length of a ledger's last phase, after the ones before it."""
        length, start = ledger.last_length, ledger.lasting(0)
        question = (*target, json.dumps(start.phases, sort_keys=True))
        horizon = self._known.setdefault(question, Horizon(beyond=int(ITERATIONS.maximum) + 1))

        def certified(rounds: int) -> bool:
            return self._holds(load(start.lasting(rounds).mapping()), target)

        if find:
            horizon.find(certified)
        elif horizon.within < length < horizon.beyond:
            horizon.ask(length, certified)
            # Loops ask about one round more each time: the answer about the next doubling answers many.
            ahead = min(2 * length, horizon.beyond - 1)
            horizon.ask(ahead, certified)
            if horizon.within < ahead:
                horizon.find(certified)
        return horizon
