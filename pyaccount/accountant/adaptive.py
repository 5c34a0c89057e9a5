"""Rounds whose parameters may depend on earlier results: a ledger with a filter that was fixed before the first release.

The first round decides which filter keeps the budget (`filters.choosing`): it was described before anything was released, so
that the filter was, too. Every later round is recorded only if the filter admits it. What was recorded is priced again from
the phases of the ledger, so that equal rounds in a row are rounded once, however they were counted.

Two statements come out. The filter's: everything that is ever released within it is (ε, δ)-DP, whatever was chosen by
looking at results, and also if nothing more is released; `document` is the mechanism that stands for it. The odometer's:
what was released so far, at a time that may be chosen by looking at results, is (ε_t, δ)-DP in the sense P(B) ≤ E_Q[e^{ε_t};
B] + δ for every event B (`filters.odometer`). They are two statements, each with its own δ: the smaller of the two, chosen
after looking, holds at 2δ.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyaccount.accountant.ledger import OpenLedger
from pyaccount.document.loading import load
from pyaccount.document.ranges import ITERATIONS
from pyaccount.errors import DocumentError, Problem, StateError
from pyaccount.filters import filter_of
from pyaccount.filters.choosing import filter_for, gaussian_divergences, gaussian_odometer
from pyaccount.filters.gaussian import GaussianFilter
from pyaccount.filters.mixture import MixtureFilter, mixture_of
from pyaccount.rounding import shortest, up

if TYPE_CHECKING:
    from pyaccount.filters import Filter


@dataclass(frozen=True, slots=True)
class Filtered:
    """The rounds so far, and what they spend of a budget. It never changes; `plus` returns a new one."""

    ledger: OpenLedger
    epsilon: float
    delta: float
    filter: Filter | None = None
    #: What all phases but the last spend, and what all spend, in the filter's terms.
    before: tuple[float, ...] = ()
    spent: tuple[float, ...] = ()

    def plus(self, count: int, arguments: Mapping[str, Any] | None) -> Filtered:
        """Return the ledger with more rounds if the filter admits them. Raises `DocumentError` if it does not."""
        after = self.asked(count, arguments)
        if after is None:
            raise self._refusal(count, arguments)
        return after

    def asked(self, count: int, arguments: Mapping[str, Any] | None) -> Filtered | None:
        """Return the ledger with more rounds, like the last ones if none are described; None if the filter refuses them.

        Raises `DocumentError` for rounds that no document describes, or that have no bound in the filter's terms.
        """
        return self._with(self.ledger.plus(count, arguments))

    def most(self, arguments: Mapping[str, Any] | None) -> int:
        """Return the largest number of further rounds that the filter admits, at most the range of a document."""
        one = self.ledger.plus(1, arguments)
        start, chosen = one.last_length - 1, self._filtering(one)
        return _last_admitted(
            int(ITERATIONS.maximum) - start, lambda more: chosen._with(one.lasting(start + more)) is not None
        )

    def _filtering(self, ledger: OpenLedger) -> Filtered:
        """Return this with a filter: one for rounds like the last ones of a ledger, if there is none yet."""
        if self.filter is not None:
            return self
        first = load({**ledger.head, **ledger.lasting(1).phases[-1]})
        filter = filter_for(first, self.epsilon, self.delta)
        return replace(self, filter=filter, before=filter.nothing, spent=filter.nothing)

    def _with(self, ledger: OpenLedger) -> Filtered | None:
        """Return this with a ledger that continues it by more rounds of one kind; None if the filter refuses them."""
        chosen = self._filtering(ledger)
        assert chosen.filter is not None
        before = chosen.before if len(ledger.phases) == len(self.ledger.phases) else chosen.spent
        cost = chosen.filter.cost(load({**ledger.head, **ledger.phases[-1]}))
        if not chosen.filter.admits(before, cost):
            return None
        return replace(chosen, ledger=ledger, before=before, spent=chosen.filter.after(before, cost))

    def stopped(self, delta: float) -> float:
        """Return the odometer's ε of the rounds so far at δ, if nothing more is released: an upper bound."""
        if self.filter is None:
            return 0.0
        if isinstance(self.filter, MixtureFilter):
            return self.filter.stopped(self.spent, delta)
        if isinstance(self.filter, GaussianFilter):
            odometer = gaussian_odometer(self.epsilon, self.delta)
            return odometer.stopped(gaussian_divergences(odometer, self.spent[0]), delta)
        return self.spent[0]

    def mapping(self) -> dict[str, Any]:
        """Return the document of the filter's whole budget, with ε as the blank."""
        assert self.filter is not None
        head = copy.deepcopy(self.ledger.head)
        head["privacy"]["epsilon"] = "solve"
        return {**head, **self.filter.phase()}

    def record(self) -> dict[str, Any]:
        """Return the rounds and the filter as they are saved."""
        more = {} if self.filter is None else {"filter": self.filter.mapping()}
        return {**self.ledger.record(), **more}

    def reread(self, ledger: OpenLedger, stated: object, source: str) -> Filtered:
        """Return this with the saved rounds and filter. Raises `StateError` if they do not belong to this budget."""
        if not ledger.phases:
            if stated is not None:
                raise StateError(f"{source}: document.filter: there is a filter, but no rounds")
            return replace(self, ledger=ledger)
        filter = self._stated(stated, source)
        if self.filter is not None and filter != self.filter:
            # Which filter counts is fixed by the first round, before anything was released.
            raise StateError(
                f"{source}: document.filter: this is not the filter that the first round of this run fixed"
            )
        spent, before = filter.nothing, filter.nothing
        for index, phase in enumerate(ledger.phases):
            try:
                cost = filter.cost(load({**ledger.head, **phase}))
            except DocumentError as error:
                raise StateError(f"{source}: document.phases[{index}]: {error}") from error
            if not filter.admits(spent, cost):
                raise StateError(f"{source}: document.phases[{index}]: the budget does not allow these rounds")
            before, spent = spent, filter.after(spent, cost)
        return replace(self, ledger=ledger, filter=filter, before=before, spent=spent)

    def _stated(self, stated: object, source: str) -> Filter:
        """Return the saved filter, if it keeps the budget."""
        if not isinstance(stated, Mapping):
            raise StateError(f"{source}: document.filter: the filter of the budget is missing")
        try:
            filter: Filter = mixture_of(stated) if "orders" in stated else filter_of(stated, ("document", "filter"))
        except (DocumentError, KeyError, TypeError, ValueError) as error:
            raise StateError(f"{source}: document.filter: this is not the filter of an accountant: {error}") from error
        if not keeps(filter, self.epsilon, self.delta):
            raise StateError(f"{source}: document.filter: this filter does not keep the budget of the accountant")
        return filter

    def _refusal(self, count: int, arguments: Mapping[str, Any] | None) -> DocumentError:
        """Return the error that says what the budget is, how much of it is spent, and how many rounds fit."""
        fits = self.most(arguments)
        spent = self.stopped(self.delta)
        many = "1 round" if count == 1 else f"{count} rounds"
        advice = (
            "stop here, or add more noise"
            if fits == 0
            else f"at most {fits} more {'fits' if fits == 1 else 'fit'} into it"
        )
        message = (
            f"{many} like this would exceed the budget of ({shortest(self.epsilon)}, {shortest(self.delta)}), which was fixed "
            f"when the accountant was made; the rounds so far have ε ≤ {up(spent)} at this δ. Nothing was counted: {advice}"
        )
        path = ("privacy", "epsilon")
        return DocumentError([Problem("budget-exceeded", message, path, value=self.epsilon, allowed=f"{fits} rounds")])


def keeps(filter: Filter, epsilon: float, delta: float) -> bool:
    """Return whether a filter, read from a file, promises at least (ε, δ)."""
    if isinstance(filter, GaussianFilter):
        from pyaccount.risk.gaussian import gaussian_terms

        return delta > 0.0 and gaussian_terms(filter.mu, epsilon).most <= delta
    stated = filter.mapping()
    return (stated.get("epsilon"), stated.get("delta", 0.0)) == (epsilon, delta)


def _last_admitted(most: int, admits: Callable[[int], bool]) -> int:
    """Return the largest number up to `most` for which `admits` is true, found by doubling and halving; 0 if there is none."""
    low, high = 0, 1
    while high <= most and admits(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if admits(middle) else (low, middle)
    return low
