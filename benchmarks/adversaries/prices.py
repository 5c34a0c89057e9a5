"""What filters charge for a case, beside the divergences and the profile that data sets attain."""

from __future__ import annotations

import math
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from adversaries.statements import SAME, Statements, gaussian_delta
from pyaccount.errors import DocumentError
from pyaccount.filters import BasicFilter, ConcentratedFilter, GaussianFilter
from pyaccount.filters.cut import cut_costs
from pyaccount.filters.renyi import divergences_of

ORDERS = (1.01, 1.3, 1.5, 2.0, 2.5, 3.0, 5.0, 8.0, 16.0, 33.0, 128.0)
#: Orders at which sup D_a/a is looked for.
CONCENTRATED = tuple(1.0 + 2.0 ** (k / 3.0) for k in range(-21, 25))
#: Values of δ near which the pair of the Gaussian filter is asked.
_NEAR = (0.9, 0.5, 1e-1, 1e-2, 1e-4, 1e-7, 1e-11, 1e-20)


class Prices(Statements):
    """The prices of all filters."""

    def judge_prices(self, document: dict[str, Any]) -> None:
        read = self.read(document)
        for name in self.prices_by_name():
            self.price(document, read, name)

    def prices_by_name(self) -> dict[str, Callable[[dict[str, Any], Any, int], None]]:
        return {
            "renyi": self._renyi, "zcdp": self._zcdp, "gaussian": self._gaussian, "basic": self._basic, "cut": self._cut,
        }  # fmt: skip

    def price(self, document: dict[str, Any], read: Any, name: str, most: int = 4) -> None:
        with self.refusing(document, f"price {name}"), _alarm(self.limit):
            self.prices_by_name()[name](document, read, most)

    def _renyi(self, document: dict[str, Any], read: Any, most: int) -> None:
        for order in random.Random(self.case.seed).sample(ORDERS, most):
            try:
                (price,) = divergences_of(read, (order,))
            except DocumentError as error:
                self.result.refused.append(f"price renyi: {error.problems[0].slug}")
                continue
            truth = max(law.divergence(order) for law in self.both)
            self.compare(document, f"Rényi divergence of order {order}", price, truth * (1.0 - SAME), upper=True)

    def _zcdp(self, document: dict[str, Any], read: Any, _: int) -> None:
        (price,) = ConcentratedFilter(1.0).cost(read)
        truth = max(law.divergence(order) / order for law in self.both for order in CONCENTRATED)
        truth = max(truth, *(law.kullback_leibler() for law in self.both))
        self.compare(document, "ρ of the filter for zCDP", price, truth * (1.0 - SAME), upper=True)

    def _gaussian(self, document: dict[str, Any], read: Any, _: int) -> None:
        (square,) = GaussianFilter(1.0).cost(read)
        mu = math.sqrt(square)
        for level in _NEAR:
            epsilon = self.near(level)
            delta = gaussian_delta(mu, epsilon)
            what = f"μ = {mu:.6g} of the Gaussian filter: δ({epsilon:.6g})"
            self.compare(document, what, delta, self.least(self.both, epsilon) * (1.0 - 1e-9), upper=True)

    def _basic(self, document: dict[str, Any], read: Any, _: int) -> None:
        epsilon, delta = BasicFilter(1.0, 0.5).cost(read)
        self.bound(document, "price of the filter in (ε, δ) terms", self.both, epsilon, delta)

    def _cut(self, document: dict[str, Any], read: Any, most: int) -> None:
        """A cut pays for larger losses with δ: (1 − e^{ε−L})_+ is at most κ e^{(a−1)(L−ε)} for the others."""
        rng = random.Random(self.case.seed)
        orders, cut = tuple(sorted(rng.sample((2.0, 4.0, 16.0), min(most, 3)))), (0.3, 1.0, 3.0)[self.case.seed % 3]
        *left, large = cut_costs(read, orders, cut)
        for epsilon in (0.0, 0.5 * cut, cut, 2.0 * cut):
            for order, price in zip(orders, left, strict=True):
                log = (order - 1.0) * (price - epsilon) + (order - 1.0) * math.log1p(-1.0 / order) - math.log(order)
                bound = large + math.exp(min(log, 5.0))
                what = f"cut at {cut}, order {order}: δ({epsilon})"
                self.compare(document, what, bound, self.least(self.both, epsilon) * (1.0 - 1e-9), upper=True)


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after that long; prices have no limit of their own."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
