"""Bounds how often an attack on one run is right, if the certificate is true.

Each of m canaries is included by its own fair coin s_j ∈ {0, 1}. From the run's outcome y an attacker makes r guesses,
at most one for each canary; which canaries are guessed, and how, is a function of y alone. W is the number of right
guesses. For a mechanism that is private with respect to one canary, the laws of y given s_j = 1 and s_j = 0 (and all
other coins) are hard to distinguish.

The audit is that of Steinke, Nasr & Jagielski 2023 (arXiv:2305.08846); the bound is the recursion of Mahloujifar, Melis
& Chaudhuri 2024 (arXiv:2410.22235) for trade-off curves; the proof here also covers curves that differ by direction,
and abstentions. Let g₁ and g₀ be concave with Pr[y ∈ E | s_j = 1] ≤ g₁(Pr[y ∈ E | s_j = 0]) and the same with 0 and 1
exchanged for g₀, for every E: the certified true-positive rates. Fix j, i and the other coins, and let E₁ be the
outcomes in which j is guessed to be included and at least i other guesses are right; E₀ those in which it is guessed to
be excluded. Then the probabilities that j is right, or wrong, with at least i others right are C = ½(P₁(E₁) + P₀(E₀))
and I = ½(P₀(E₁) + P₁(E₀)), and

    C ≤ ½ g₁(P₀(E₁)) + ½ g₀(P₁(E₀)) ≤ G(I),    G(z) = max {½ g₁(u) + ½ g₀(v) : ½(u + v) = z},

where G is concave; if nobody is ever guessed to be excluded, E₀ is empty and G(z) = ½ g₁(2z), and likewise for the
other guess. By Jensen this stays true on average over the other coins and over j = 1 … m. With M_i = Pr[W ≥ i] the
means are

    a_{i+1} = (1/m) E[W; W ≥ i + 1] = ((i + 1) M_{i+1} + Σ_{w > i+1} M_w)/m,
    b_i = (1/m) E[r − W; W ≥ i] = ((r − i) M_i − Σ_{w > i} M_w)/m,

since "j right and at least i others right" is "j right and W ≥ i + 1", and "j wrong …" is "j wrong and W ≥ i". So
a_{i+1} ≤ G(b_i), that is,

    M_i ≥ (Σ_{w > i} M_w + m G⁻¹(a_{i+1}))/(r − i)   and   M_i ≥ M_{i+1},    i = 0 … r − 1,

with right sides that do not fall in any M_w. Starting from M_v = t and M_w = 0 for w > v and taking the least M_i that
both allow, for i = v − 1 down to 0, gives lower bounds on the true M_i whenever Pr[W ≥ v] ≥ t. If they end above M_0 =
1, then Pr[W ≥ v] < t.

For (ε, δ) alone g₁ and g₀ are its two lines. The formula published for that (the code of arXiv:2305.08846, Appendix D:
a binomial tail and 2mδ times a slope of it) is not an upper bound: three canaries and an outcome that is each vector of
guesses with probability 0.13125, but all of them wrong with 0.08125, is (0, 0.05)-private, and has a right guess with
probability 0.91875, where the formula says at most 0.9125. Where both can be used they give nearly the same ε.

**Rounding.** G⁻¹ is evaluated at an argument that is smaller by a relative 1e-12, more than the rounding of the
interpolation. The test against 1 requires 1 + 1e-9, more than the rounding of sums of at most `MOST_GUESSES` positive
terms.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import special  # type: ignore[import-untyped]

from pyaccount.risk.tradeoff import TradeOff

#: The most guesses: the recursion takes one step for each.
MOST_GUESSES = 20_000
#: The relative decrease and the margin of the section "Rounding" above.
SLACK, MARGIN = 1e-12, 1e-9


@dataclass(frozen=True, slots=True)
class Guesses:
    """The numbers of canaries, of those guessed to be included and to be excluded, and of right guesses."""

    canaries: int
    included: int
    excluded: int
    right: int

    @property
    def total(self) -> int:
        """The number r of all guesses."""
        return self.included + self.excluded


class Corners(NamedTuple):
    """The corners (false-positive rate, upper bound on the true-positive rate) of g₁ (presence) and g₀ (absence)."""

    presence: list[tuple[float, float]]
    absence: list[tuple[float, float]]

    @classmethod
    def of(cls, curve: TradeOff) -> Corners:
        """Return the corners of a certified curve."""
        presence = curve.vertices()
        return cls(presence, presence if curve.symmetric else curve.swapped.vertices())


@dataclass(frozen=True, slots=True)
class PairCurve:
    """G: the largest probability of a right guess as a function of that of a wrong one; a concave polygon from 0 on."""

    wrong: tuple[float, ...]
    right: tuple[float, ...]

    @classmethod
    def of(cls, curve: Corners, guesses: Guesses) -> PairCurve:
        """Return G for a certified curve and the guesses that are made: steepest pieces of both directions first."""
        sides = [curve.presence] * (guesses.included > 0) + [curve.absence] * (guesses.excluded > 0)
        start, pieces = 0.0, []
        for corners in sides:
            start += 0.5 * corners[0][1]
            for (u, g), (v, h) in pairwise(corners):
                if v > u and h > g:
                    pieces.append(((h - g) / (v - u), 0.5 * (v - u), 0.5 * (h - g)))
        wrong, right = [0.0], [start]
        for _, length, rise in sorted(pieces, reverse=True):
            wrong.append(wrong[-1] + length)
            right.append(right[-1] + rise)
        return cls(tuple(wrong), tuple(right))

    def inverse(self, right: float) -> float:
        """Return G⁻¹: the least probability of a wrong guess for that of a right one, rounded down; ∞ if none."""
        y = right * (1.0 - SLACK)
        if y <= self.right[0]:
            return 0.0
        k = bisect_right(self.right, y)
        if k == len(self.right):
            return float("inf") if y > self.right[-1] * (1.0 + SLACK) else self.wrong[-1] * (1.0 - SLACK)
        share = (y - self.right[k - 1]) / (self.right[k] - self.right[k - 1])
        return self.wrong[k - 1] + share * (self.wrong[k] - self.wrong[k - 1])


def impossible(curve: PairCurve, guesses: Guesses, probability: float) -> bool:
    """Return whether Pr[W ≥ v] is proven to be below `probability`, by the recursion in the module's docstring."""
    m, r, v = guesses.canaries, guesses.total, guesses.right
    # `tail` is M_{i+1}, and `beyond` is the sum of all M_w with w > i + 1.
    tail, beyond = probability, 0.0
    for i in range(v - 1, -1, -1):
        needed = m * curve.inverse(((i + 1) * tail + beyond) / m)
        beyond += tail
        tail = max(tail, (beyond + needed) / (r - i))
        if tail > 1.0 + MARGIN:
            return True
    return False


def by_curve(curve: PairCurve, guesses: Guesses) -> float:
    """Return an upper bound on Pr[W ≥ v] for a mechanism with this curve, accurate to one part in a thousand."""
    above, below = 1.0, 1e-300
    if not impossible(curve, guesses, above):
        return above
    if impossible(curve, guesses, below):
        return below
    while above > below * 1.001:
        middle = (above * below) ** 0.5
        if impossible(curve, guesses, middle):
            above = middle
        else:
            below = middle
    return above


def binomial_above(successes: int, trials: int, level: float) -> float:
    """Return the upper confidence bound of Clopper & Pearson (1934) on a success probability, rounded up.

    It is wrong with probability at most `level`.
    """
    if successes == trials:
        return 1.0
    return min(1.0, float(special.betainccinv(successes + 1, trials - successes, level)) * (1.0 + MARGIN))


def chosen_guesses(scores: Sequence[float], included: Sequence[bool], sides: tuple[int, int], seed: int) -> Guesses:
    """Guess that the highest scores were included and the lowest excluded, with the numbers of guesses in `sides`.

    Equal scores are ordered at random by the seed, because their order in a file may reveal who was included.
    """
    random = np.random.default_rng(seed)
    values, coins = np.asarray(scores, dtype=np.float64), np.asarray(included, dtype=np.bool_)
    order = random.permutation(len(values))
    order = order[np.argsort(values[order], kind="stable")]
    lowest, highest = order[: sides[1]], order[len(order) - sides[0] :]
    right = int(coins[highest].sum()) + int((~coins[lowest]).sum())
    return Guesses(len(values), sides[0], sides[1], right)
