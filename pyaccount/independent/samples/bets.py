"""A bet against "the mean of V is at least δ₀", for samples 0 ≤ V ≤ W (section 5; Ville 1939).

A wealth of 1 is multiplied by 1 + λ(δ₀ − V) for each sample, with 0 ≤ λ < 1/(W − δ₀) that depends on earlier samples only.
If the mean of V is at least δ₀, the wealth is a supermartingale that is never negative, so it ever reaches 1/q with
probability at most q. Samples that are rounded up, and a wealth that is rounded down, only make it smaller.
"""

from __future__ import annotations

import math
from fractions import Fraction

#: The wealth is counted in units of 2^−256, and betting fractions in units of 2^−20.
_WEALTH, _FRACTION = 256, 20
#: How many samples are looked at before the first bet.
FIRST = 256


class Bets:
    """The wealth of one bet."""

    def __init__(self, claimed: Fraction, weight_bound: Fraction, target: Fraction) -> None:
        """Take δ₀, W > δ₀ and q. Samples are integers in units of 2^−bits, chosen so that δ₀ has 60 of them."""
        self.bits = 60 + max(0, -math.floor(math.log2(claimed)))
        self.claimed = (claimed.numerator << self.bits) // claimed.denominator
        self.weight_bound = -((-weight_bound.numerator << self.bits) // weight_bound.denominator)
        self._goal = -((-1 << _WEALTH) * target.denominator // target.numerator)
        self._wealth, self._fraction, self._next = 1 << _WEALTH, 0, FIRST
        self.samples: list[float] = []

    def won(self) -> bool:
        """Return whether the wealth has reached 1/q."""
        return self._wealth >= self._goal

    def log_wealth(self) -> float:
        """Return the logarithm of the wealth, for people: −177 if it is lost."""
        return math.log(max(1, self._wealth)) - _WEALTH * math.log(2.0)

    def add(self, value: int) -> None:
        """Bet on one sample, rounded up, in units of 2^−bits. The next fraction is chosen after it."""
        value = min(value, self.weight_bound)
        self._wealth += self._wealth * self._fraction * (self.claimed - value) >> self.bits + _FRACTION
        self.samples.append(value / (1 << self.bits))
        if len(self.samples) == self._next:
            self._next += max(FIRST, self._next // 2)
            self._choose()

    def _choose(self) -> None:
        """Choose the fraction that would have been best, if one further sample had been W."""
        claimed, weight_bound = self.claimed / (1 << self.bits), self.weight_bound / (1 << self.bits)
        counts: dict[float, int] = {weight_bound: 1}
        for value in self.samples:
            # Values are put into bins of half a per cent of W: this is a choice, and no bound depends on it.
            near = (int(200 * value / weight_bound) + 0.5) * weight_bound / 200 if value else 0.0
            counts[near] = counts.get(near, 0) + 1
        best, share = 0.0, 0.0
        for k in range(40):
            fraction = 0.95 * 0.85**k / (weight_bound - claimed)
            gain = sum(count * math.log1p(fraction * (claimed - value)) for value, count in counts.items())
            best, share = max((best, share), (gain, fraction))
        # The largest fraction that is allowed is below 1/(W − δ₀), so that no factor is negative.
        allowed = (1 << self.bits + _FRACTION) // max(1, self.weight_bound - self.claimed) - 1
        self._fraction = max(0, min(int(share * (1 << _FRACTION)), allowed))
