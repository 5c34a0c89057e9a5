"""The horizon of a run within a budget: the last round up to which a certificate shows that the budget is kept.

A longer run contains a shorter one, so a certificate for a length holds for every shorter length. If no certificate is
found for a length, longer ones are not tried.
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
    from pyaccount.accountant.ledger import OpenLedger
    from pyaccount.accountant.planned import Planned

#: The pair (ε, δ).
PrivacyTarget = tuple[float, float]


@dataclass(slots=True)
class Horizon:
    """Lengths up to `within` are certified; those from `beyond` on were not, or no such run exists."""

    beyond: int
    within: int = 0

    @property
    def known(self) -> bool:
        """Return whether no length lies between `within` and `beyond`."""
        return self.beyond - self.within <= 1

    def ask(self, length: int, certified: Callable[[int], bool]) -> None:
        """Certify one length, unless its answer is known."""
        if not self.within < length < self.beyond:
            return
        if certified(length):
            self.within = length
        else:
            self.beyond = length

    def find(self, certified: Callable[[int], bool]) -> int:
        """Return the last certified length, found by doubling from the last known one and then by halving."""
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
    """A horizon for each budget, and for each kind of rounds that may continue a ledger.

    `holds` certifies a document at a target, only as accurately as the decision requires.
    """

    def __init__(self, holds: Callable[[Document, PrivacyTarget], bool]) -> None:
        self._holds = holds
        self._known: dict[tuple[object, ...], Horizon] = {}

    def know(self, plan: Planned, epsilon: float, delta: float) -> None:
        """Record that a certificate shows that the whole plan keeps a budget."""
        self._known[epsilon, delta] = Horizon(beyond=plan.length + 1, within=plan.length)

    def of_plan(self, plan: Planned, length: int, target: PrivacyTarget, *, find: bool) -> Horizon:
        """Return the known horizon of the first `length` rounds of a plan.

        With `find`, the last certified length is searched for. The whole plan is certified first: if it keeps the
        budget, so does every part of it. If samples are drawn, nothing else is certified.
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

    def of_ledger(self, ledger: OpenLedger, target: PrivacyTarget, *, find: bool) -> Horizon:
        """Return the known horizon of the length of a ledger's last phase, which follows the phases before it."""
        length, start = ledger.last_length, ledger.lasting(0)
        question = (*target, json.dumps(start.phases, sort_keys=True))
        horizon = self._known.setdefault(question, Horizon(beyond=int(ITERATIONS.maximum) + 1))

        def certified(rounds: int) -> bool:
            return self._holds(load(start.lasting(rounds).mapping()), target)

        if find:
            horizon.find(certified)
        elif horizon.within < length < horizon.beyond:
            horizon.ask(length, certified)
            # Loops ask about one more round each time: the answer for the next doubling answers many calls.
            ahead = min(2 * length, horizon.beyond - 1)
            horizon.ask(ahead, certified)
            if horizon.within < ahead:
                horizon.find(certified)
        return horizon
