"""The output laws of a mechanism on neighbouring data sets, as masses of finitely many outcomes.

Outcomes of continuous mechanisms are cells: which cell the output is in is post-processing, so that every divergence of the
cells is a lower bound on that of the mechanism. Outcomes are merged for the same reason. Masses are doubles with a bound on their
relative error, which every statement here subtracts: what `least` and `divergence` return is below the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
#: The rounding of one product.
UNIT = 2.0**-52
#: How many outcomes are kept of a composition.
KEPT = 1000
#: How many pairs of outcomes a product has at most; its factors are merged before.
_PAIRS = 25_000
#: Masses below this are no longer doubles with all their digits. Outcomes with one are left out, which only lowers divergences.
_LEAST = 1e-290


@dataclass(frozen=True)
class Law:
    """The masses of outcomes on a data set with the record (p) and on its neighbour (q).

    `low` and `high` enclose the loss ln p/q inside of each outcome, where it is known. `base` are the masses on a data set with
    neither of the two records, where it is a third one.
    """

    p: Array
    q: Array
    error: float = 4.0 * UNIT
    low: Array | None = None
    high: Array | None = None
    base: Array | None = None

    @property
    def losses(self) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(self.p) - np.log(self.q))

    def reversed(self) -> Law:
        """Return the same with the data sets exchanged."""
        known = self.low is not None and self.high is not None
        return Law(self.q, self.p, self.error, -self.high if known else None, -self.low if known else None, self.base)  # type: ignore[operator]

    def least(self, epsilon: float) -> float:
        """Return a lower bound on δ(ε) = Σ (p − e^ε q)_+."""
        with np.errstate(over="ignore", invalid="ignore"):
            more = self.p * (1.0 - self.error) - _times_exp(self.q * (1.0 + self.error), epsilon)
        return float(np.sum(more[more > 0.0])) * (1.0 - len(self.p) * UNIT)

    def most(self, epsilon: float) -> float | None:
        """Return an upper bound on δ(ε) of what the outcomes are cells of; None if losses within cells are not known."""
        if self.low is None or self.high is None:
            return None
        p = self.p * (1.0 + self.error)
        with np.errstate(over="ignore", invalid="ignore"):
            above = p - _times_exp(self.q * (1.0 - self.error), epsilon)
            inside = p * -np.expm1(np.minimum(epsilon - self.high, 0.0))
        value = np.where(self.low >= epsilon, np.maximum(above, 0.0), np.maximum(np.minimum(inside, p), 0.0))
        return float(np.sum(value)) * (1.0 + len(self.p) * UNIT) + max(0.0, 1.0 - float(np.sum(self.p)) * (1.0 + 1e-9))

    def largest_loss(self) -> float:
        """Return a lower bound on the largest loss."""
        there = self.p > _LEAST
        return float(np.max(self.losses[there])) - 4.0 * self.error if np.any(there) else 0.0

    def divergence(self, order: float) -> float:
        """Return a lower bound on the Rényi divergence of an order above 1."""
        there = self.p > _LEAST
        if np.any(self.q[there] <= 0.0):
            return math.inf
        terms = order * np.log(self.p[there]) + (1.0 - order) * np.log(np.maximum(self.q[there], 1e-320))
        top = float(np.max(terms))
        total = top + math.log(float(np.sum(np.exp(terms - top))))
        # What is missing of the masses only lowers the sum; rounding moves it by the error of powers.
        return (total - 2.0 * order * (self.error + 1e-13)) / (order - 1.0)

    def kullback_leibler(self) -> float:
        """Return E_P ln p/q of the outcomes, about a lower bound."""
        there = self.p > _LEAST
        if np.any(self.q[there] <= 0.0):
            return math.inf
        return float(np.sum(self.p[there] * self.losses[there])) - 1e-9


def _times_exp(masses: Array, epsilon: float) -> Array:
    """Return masses·e^ε without an overflow of zeros."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.minimum(np.log(masses) + epsilon, 700.0)))


def finite(
    p: Sequence[float], q: Sequence[float], error: float = 4.0 * UNIT, base: Sequence[float] | None = None
) -> Law:
    """Return the law of outcomes that are not cells: the loss of each is known."""
    law = Law(np.array([float(x) for x in p]), np.array([float(x) for x in q]), error)
    losses = law.losses
    losses = np.where(np.isnan(losses), 0.0, losses)
    third = None if base is None else np.array([float(x) for x in base])
    return Law(law.p, law.q, error, losses - 2.0 * error, losses + 2.0 * error, third)


NOTHING = finite([1.0], [1.0], 0.0, [1.0])


def merged(law: Law, kept: int = KEPT) -> Law:
    """Return the law with at most about `kept` outcomes: neighbours in loss are one."""
    if len(law.p) <= kept:
        return law
    losses = law.losses
    there = (law.p + law.q > 0.0) & ~np.isnan(losses)
    order = np.flatnonzero(there)[np.argsort(losses[there], kind="stable")]
    ranked = losses[order]
    finite_ones = ranked[np.isfinite(ranked)]
    if not len(finite_ones):
        return law
    # Cells of equal width in loss, half of them where the mass is, and none across an infinite loss. Small powers of masses are
    # narrow cells for the tails, too, where a small δ comes from.
    weight = np.maximum(law.p[order], law.q[order]) ** 0.15
    share = np.cumsum(weight) / np.sum(weight)
    span = max(float(finite_ones[-1] - finite_ones[0]), 1e-12)
    place = np.where(np.isfinite(ranked), (ranked - finite_ones[0]) / span, np.where(ranked > 0, 2.0, -1.0))
    label = np.floor(place * kept / 2.0) * (kept + 1.0) + np.floor(share * kept / 2.0)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(label) != 0.0]))

    def added(values: Array | None) -> Array | None:
        return None if values is None else np.add.reduceat(values[order], starts)

    low = None if law.low is None else np.minimum.reduceat(law.low[order], starts)
    high = None if law.high is None else np.maximum.reduceat(law.high[order], starts)
    p, q = added(law.p), added(law.q)
    assert p is not None
    assert q is not None
    return Law(p, q, law.error + len(law.p) * UNIT, low, high, added(law.base))


def positive(law: Law) -> Law:
    """Return the law without outcomes of which a mass that is positive may have become too small for a double."""
    small = (law.p < _LEAST) | (law.q < _LEAST)
    return _part(law, ~small) if np.any(small) else law


def product(one: Law, other: Law, kept: int = KEPT) -> Law:
    """Return the law of two independent outputs."""
    if len(one.p) * len(other.p) > _PAIRS:
        # The smaller one of the two keeps what it has, if that is no more than its share.
        share = max(1, min(len(one.p), len(other.p), math.isqrt(_PAIRS)))
        rest = _PAIRS // share
        one, other = (
            (merged(one, share), merged(other, rest))
            if len(one.p) <= len(other.p)
            else (merged(one, rest), merged(other, share))
        )

    def outer(left: Array | None, right: Array | None, plus: bool = False) -> Array | None:
        if left is None or right is None:
            return None
        return np.asarray((np.add if plus else np.multiply).outer(left, right).ravel())

    with np.errstate(invalid="ignore"):
        low, high = outer(one.low, other.low, plus=True), outer(one.high, other.high, plus=True)
    p, q = outer(one.p, other.p), outer(one.q, other.q)
    assert p is not None
    assert q is not None
    if low is not None and high is not None:
        low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    made = Law(p, q, one.error + other.error + 2.0 * UNIT, low, high, outer(one.base, other.base))
    lost = (p < _LEAST) & (np.multiply.outer(one.p > 0.0, other.p > 0.0).ravel())
    lost |= (q < _LEAST) & (np.multiply.outer(one.q > 0.0, other.q > 0.0).ravel())
    return merged(_part(made, ~lost) if np.any(lost) else made, kept)


def products(laws: Sequence[Law], kept: int = KEPT) -> Law:
    return reduce(lambda one, other: product(one, other, kept), laws, NOTHING)


def power(law: Law, count: int, kept: int = KEPT) -> Law:
    """Return the law of independent runs."""
    made, square = NOTHING, law
    while count:
        if count & 1:
            made = product(made, square, kept)
        count >>= 1
        if count:
            square = product(square, square, kept)
    return made


def adaptive(first: Law, choices: Sequence[Law], epsilon: float) -> Law:
    """Return the law of an adversary that sees the first output, and then chooses the data sets of the second mechanism.

    It chooses what has the largest δ at the loss that is left: a δ that any choice attains is a lower bound.
    """
    losses = np.clip(np.where(np.isnan(first.losses), 0.0, first.losses), -700.0, 700.0)
    grid = np.linspace(epsilon - float(np.max(losses)), epsilon - float(np.min(losses)), 40)
    table = np.array([[_signed(law, float(x)) for x in grid] for law in choices])
    best = np.argmax(np.array([np.interp(epsilon - losses, grid, row) for row in table]), axis=0)
    parts = []
    for index, law in enumerate(choices):
        taken = best == index
        if np.any(taken):
            parts.append(product(_part(first, taken), law))
    return merged(_joined(parts))


def _signed(law: Law, epsilon: float) -> float:
    """Return δ − (1 − e^ε)_+, which is what choices differ by; it does not vanish in rounding at negative ε."""
    if epsilon >= 0.0:
        return law.least(epsilon)
    return math.exp(epsilon) * law.reversed().least(-epsilon)


def _part(law: Law, taken: npt.NDArray[np.bool_]) -> Law:
    def some(values: Array | None) -> Array | None:
        return None if values is None else values[taken]

    return Law(law.p[taken], law.q[taken], law.error, some(law.low), some(law.high), some(law.base))


def _joined(laws: Sequence[Law]) -> Law:
    return Law(
        np.concatenate([law.p for law in laws]),
        np.concatenate([law.q for law in laws]),
        max(law.error for law in laws),
    )


def sampled(law: Law, rate: float, *, shows: bool, base: Array | None = None) -> Law:
    """Return the law of a run that draws the record with a probability.

    Where other records show whether it was drawn (`shows`), a run without it is an outcome of its own. Otherwise its outcomes are
    those of `base`, or of the data set without the record.
    """
    left, error = 1.0 - rate, law.error + 4.0 * UNIT
    if shows:
        p, q = np.append(rate * law.p, left), np.append(rate * law.q, left)
        known = law.low is not None and law.high is not None
        low = np.append(law.low, -4.0 * error) if known else None  # type: ignore[arg-type]
        high = np.append(law.high, 4.0 * error) if known else None  # type: ignore[arg-type]
        return Law(p, q, error, low, high)
    if base is not None:
        return Law(left * base + rate * law.p, left * base + rate * law.q, error)
    p = left * law.q + rate * law.p
    if law.low is None or law.high is None or rate >= 1.0:
        return Law(p, law.q, error, law.low if rate >= 1.0 else None, law.high if rate >= 1.0 else None)
    with np.errstate(over="ignore", divide="ignore"):
        low, high = (np.logaddexp(math.log(left), math.log(rate) + end) for end in (law.low, law.high))
    return Law(p, law.q, error, low - 1e-12, high + 1e-12)
