"""Bounds of δ for correlated noise with b-min-sep sampling, by moments of the likelihood ratio.

f = P/Q is the likelihood ratio of a run with the record and without it, y ~ Q. Independent runs multiply their f.

**Removed.** (x − e^ε)₊ ≤ c_m·e^(−(m−1)ε)·x^m for x ≥ 0, with c_m = (m−1)^(m−1)/m^m: their quotient is largest at
x = e^ε·m/(m−1). So δ ≤ c_m·e^(−(m−1)ε)·Z_m for every m ≥ 2 (section 10.1). More generally, if p(x) = Σ a_k·x^k ≥ (x − 1)₊ for
x ≥ 0, then δ ≤ Σ a_k·e^((1−k)ε)·Z_k (section 10.8), with Z_k from above if a_k > 0 and from below if a_k < 0. Any such polynomial
will do. The one in the certificate is read, and its inequality is proven here.

**Added.** δ = E(1 − e^ε·f)₊. (a) f ≥ w_∅, the probability of never taking part, so δ = 0 for ε ≥ −ln w_∅ (section 10.7). (b) ln f
is convex, so it is above its tangent at any −d: ln f(y) ≥ ln f(−d) + ⟨g, y + d⟩, where g is the mean of Cx under the weights
w_x·e^(−⟨Cx, d⟩ − ‖Cx‖²/2)/f(−d). With s = ‖g‖, ⟨g, y⟩ − s²/2 is the loss of N(g) against N(0). So δ(ε) is at most that of a
Gaussian mechanism of sensitivity s at ε + ln f(−d) + ⟨g, d⟩ + s²/2.

**Public participations.** If the pattern is known, the run is a Gaussian mechanism with sensitivity ‖Cx‖. By joint convexity the
largest one bounds δ in both directions.

**Rare truncation** (section 9.4; zero-out). The numbers r of other records are released first. Let e be the probability, given r,
that the record takes part in a round with r_i ≥ B, and h = E e ≤ Σ_i Pr[r_i ≥ B]·Pr[x_i = 1]. Given r, the laws are
(1 − e)P^∅ + e·P′ and (1 − e)Q + e·Q′ with (1 − e)P^∅ ≤ P, where P^∅ is P given that the record avoids those rounds. So
H_α ≤ H_((1−e)α)(P‖Q) + e ≤ W·(1 − e)^(−(m−1)) + e, W the bound by Z_m. By convexity in e that is at most W + (1 + 2^m·W)·e for
e ≤ 1/2; and for larger e, δ ≤ 1 ≤ 2e. So the mean is at most W + max(2, 1 + 2^m·W)·h. If the record is added, P^∅ has f ≥ w_∅ as
well, so δ ≤ h for ε ≥ −ln w_∅.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import mul
from typing import NamedTuple

from . import proof
from .derived import RepeatedRound, rounded_root
from .enclosures import exp, ln, up
from .polynomials import is_above
from .proof import ProvenBounds
from .replicas import BITS, MOST_NUMBERS, MovedColumns, Renewals, ReplicaRecursion, logarithm
from .rounds import GaussianRound, MixtureRound, Round
from .shapes import refused

#: Bits of logarithms and exponentials.
_BITS = 320
#: Tangents are computed for matrices with at most this many entries.
MOST_ENTRIES = 1_000_000
#: No further order is tried once δ is above the claim by no more than this share.
ENOUGH = Fraction(1, 5000)


def log_above(x: Fraction) -> Fraction:
    """Return an upper bound of ln x, for x > 0."""
    return Fraction(ln(up(x, _BITS), _BITS) + 1, 1 << _BITS)


def exp_above(x: Fraction) -> Fraction:
    """Return an upper bound of e^x."""
    return Fraction(exp(up(x, _BITS), _BITS) + 1, 1 << _BITS)


class Tangent(NamedTuple):
    """A tangent of ln f at −d: rise ≤ ln f(−d) + ⟨g, d⟩, low ≤ ‖g‖² ≤ high, and g is near Σ_i along_i·c_i/2^_BITS."""

    along: list[int]
    low: Fraction
    high: Fraction
    rise: Fraction


class SecretPatterns(Round):
    """A run of which it is only known what it moves if participations are public."""

    def __init__(self, square: Fraction) -> None:
        """Take the largest ‖Cx‖², in squared units of the noise."""
        self.square = square

    def value(self, grid: object, k: int) -> int:
        """Refuse to be composed on a lattice of losses."""
        raise refused("correlated noise with sampling inside of a sampled phase")

    def public(self) -> GaussianRound:
        """Return the run with known participations."""
        return GaussianRound(rounded_root(self.square))


class Correlated(SecretPatterns):
    """A run with b-min-sep sampling, and a matrix with at most b bands and no negative entries."""

    #: Coefficients of a polynomial to try, if any.
    polynomial: Sequence[Fraction] = ()

    def __init__(self, law: Renewals, columns: MovedColumns, truncated: Fraction) -> None:
        """Take the participations, the columns, and the h of rare truncation. At most ⌈n/b⌉ orthogonal columns are moved."""
        super().__init__(-(-law.rounds // law.apart) * max(map(columns.norm, columns.columns)))
        self.law, self.columns, self.truncated = law, columns, truncated
        self._known: dict[tuple[int, bool], Fraction | None] = {}

    def moment(self, m: int, seconds: float, *, above: bool = True, goal: Fraction | None = None) -> Fraction | None:
        """Return a bound of Z_m, or None if that takes too long; one that is at most a goal will do."""
        if m < 2:
            return Fraction(1)  # f has mean 1
        if (m, above) not in self._known:
            states = math.comb(self.law.apart + m - 2, m - 1)
            # Weights of polynomials cancel, so that a chance p^m of a large factor needs all its digits.
            bits = BITS + 64 if self.polynomial else BITS
            # In one round a table grows by less than e^(m(m−1)/2·norm), and ratios are looked at in doubles.
            large = m * (m - 1) // 2 * max(map(self.columns.norm, self.columns.columns)) > 500
            fits = not large and states * (self.law.apart + 1) <= MOST_NUMBERS and states * 3e-5 < seconds
            found = (
                ReplicaRecursion(self.law, self.columns, m, up=above, bits=bits).moment(seconds, goal) if fits else None
            )
            self._known[m, above] = found.value if found else None
        return self._known[m, above]

    def never(self) -> Fraction | None:
        """Return an upper bound of −ln w_∅; None if w_∅ = 0.

        Cold: w_∅ = (1 − p)^n. Warm, with D = 1 + (b−1)p: the record is free with probability 1/D, or waits for j = 1..b−1 rounds,
        each with probability p/D. With w = min(b − 1, n), w_∅ ≥ (1 − p)^(n−w)/D·((1 − p)^w + Σ_(j ≤ w) p·(1 − p)^(w−j)), and the
        last factor is 1.
        """
        law = self.law
        waits = min(law.apart - 1, law.rounds) if law.warm else 0
        if law.p == 1 and law.rounds > waits:
            return None
        each = log_above(1 / (1 - law.p)) if law.rounds > waits else Fraction(0)
        return (law.rounds - waits) * each + (log_above(1 + (law.apart - 1) * law.p) if law.warm else 0)

    def tangent(self, along: Sequence[int], theta: Fraction) -> Tangent | None:
        """Return the tangent of ln f at −d, where d = θ·Σ_i along_i·c_i/2^_BITS; None if f(−d) is below any number used here."""
        law, columns = self.law, self.columns

        def moved(weights: Sequence[int]) -> list[int]:
            total = [0] * law.rounds
            for i, weight in enumerate(weights):
                for t, entry in enumerate(columns.of(i + 1)[: law.rounds - i], i):
                    total[t] += weight * entry
            return total

        direction, inner = moved(along), list[Fraction]()
        for i, weight in enumerate(along):
            product = sum(map(mul, columns.of(i + 1), direction[i:])) * columns.square + weight * columns.also
            inner.append(theta * product / (1 << _BITS))
        exponents = [x + columns.norm(columns.of(i + 1)[: law.rounds - i]) / 2 for i, x in enumerate(inner)]
        low, least = self._joined(exponents, up=False)
        high, most = self._joined(exponents, up=True)
        if not least:
            return None
        low, high = ([(x << _BITS) // most for x in low], [(x << _BITS) // least + 1 for x in high])
        squares = [
            (sum(x * x for x in moved(each)) * columns.square + sum(x * x for x in each) * columns.also)
            / (1 << 2 * _BITS)
            for each in (low, high)
        ]
        rise = sum(map(mul, low, inner), Fraction(0)) / (1 << _BITS) - log_above(Fraction(1 << _BITS, least))
        return Tangent(low, squares[0], squares[1], rise)

    def _joined(self, exponents: Sequence[Fraction], *, up: bool) -> tuple[list[int], int]:
        """Return f·π_i and f of the law w_x·e^(−Σ x_i·exponent_i)/f, in units of 2^−_BITS, rounded up or down.

        Given that a record is free in round i, what follows has weight A_i = (1−p)·A_(i+1) + p_i·A_(i+b) with
        p_i = p·e^(−exponent_i), and what came before u_(i+1) = (1−p)·u_i + p_(i+1−b)·u_(i+1−b). All terms are positive.
        """
        law, n, b, unit = self.law, self.law.rounds, self.law.apart, 1 << _BITS
        whole = 1 + (b - 1) * law.p if law.warm else Fraction(1)

        def rounded(x: Fraction) -> int:
            return math.ceil(x * unit) if up else math.floor(x * unit)

        stays, before = rounded(1 - law.p), rounded(law.p / whole) if law.warm else 0
        joins = [rounded(law.p * (exp_above(-each) if up else 1 / exp_above(each))) for each in exponents]
        after, free = [unit] * (n + b), [rounded(1 / whole)]
        for i in range(n - 1, -1, -1):
            after[i] = (stays * after[i + 1] + joins[i] * after[i + b] >> _BITS) + up
        for i in range(1, n):
            joined = joins[i - b] * free[i - b] >> _BITS if i >= b else before
            free.append((stays * free[-1] >> _BITS) + joined + 2 * up)
        total = free[0] * after[0] + before * sum(after[1:b])
        return [
            (x * y >> _BITS) * z + (z << 1) * up >> _BITS for x, y, z in zip(free, joins, after[b:], strict=True)
        ], (total >> _BITS) + up


def _other_moment(part: Round, m: int) -> Fraction:
    """Return an upper bound of Z_m of a round that is no run of this module.

    N(s) against N(0) has e^(m(m−1)s²/2), and a mixture with one shift Σ_j Bin(j; m, p)·e^(j(j−1)s²/2).
    """
    if isinstance(part, GaussianRound):
        weights, shift = {1: Fraction(1)}, part.shift
    elif isinstance(part, MixtureRound) and list(part.given) == [1] and not part.against and not part.lost:
        weights, shift = part.given, part.shift
    else:
        raise refused("correlated noise with sampling beside these phases")
    square, p = Fraction(shift(_BITS), 1 << _BITS) ** 2, weights[1]
    return sum(
        (
            math.comb(m, j) * p**j * (1 - p) ** (m - j) * exp_above(Fraction(j * (j - 1), 2) * square)
            for j in range(m + 1)
        ),
        Fraction(0),
    )


def prove(
    parts: Sequence[RepeatedRound], epsilon: Fraction, target: Fraction, seconds: float, log: Callable[[str], None]
) -> ProvenBounds:
    """Return bounds of δ at ε and of ε at δ: of runs with correlated noise by moments, of anything else by lattices."""
    secret = [(part, count) for part, count in parts if isinstance(part, SecretPatterns)]
    runs = [(part, count) for part, count in secret if isinstance(part, Correlated)]
    rest = [(part, count) for part, count in parts if not isinstance(part, SecretPatterns)]
    if not secret:
        return proof.prove(parts, epsilon, target, seconds, log)
    if any(part.truncated for part, _ in runs):
        if len(parts) > 1 or runs[0][1] > 1:
            raise refused("truncated batches of correlated noise beside other phases")
        return _Composed(runs, rest, runs[0][0].truncated, log).bounds(epsilon, target, seconds)
    public = [*rest, *((part.public(), count) for part, count in secret)]
    if epsilon > 1000:
        raise refused("correlated noise with sampling at an ε above 1000")
    known = proof.prove(public, epsilon, target, seconds / 8, log)._replace(lower=None)
    if known.delta <= target or len(runs) < len(secret):
        return known
    found = _Composed(runs, rest, Fraction(0), log).bounds(epsilon, target, seconds)
    return found if found.delta < known.delta else known


def _above(x: Fraction) -> Fraction:
    """Return a multiple of 2^−_BITS that is at least x."""
    return Fraction(math.ceil(x * (1 << _BITS)), 1 << _BITS)


def _some(until: float) -> float:
    """Return the seconds for one Gaussian mechanism beside others."""
    return max(0.1, min(10.0, until - time.process_time()))


def _power(x: Fraction, n: int) -> Fraction:
    """Return an upper bound of x^n, for x ≥ 1."""
    if n * logarithm(x) > 20_000:
        raise refused("so many rounds beside correlated noise")
    total, square = Fraction(1), _above(x)
    while n:
        total, square, n = _above(total * square) if n & 1 else total, _above(square * square), n >> 1
    return total


class _Composed:
    """Runs with correlated noise beside other rounds."""

    def __init__(
        self,
        runs: Sequence[tuple[Correlated, int]],
        rest: Sequence[RepeatedRound],
        truncated: Fraction,
        log: Callable[[str], None],
    ) -> None:
        """Take the runs, the other rounds, and the h of rare truncation of the only run, or 0."""
        self.runs, self.rest, self.truncated, self.log = runs, list(rest), truncated, log

    def _moment(self, m: int, until: float, goal: Fraction) -> Fraction | None:
        """Return an upper bound of Z_m of everything: moments of independent parts multiply. One below a goal will do."""
        total, alone = Fraction(1), len(self.runs) == 1 and self.runs[0][1] == 1 and not self.rest
        for part, count in self.runs:
            known = part.moment(m, until - time.process_time(), goal=goal if alone and goal > 0 else None)
            if known is None:
                return None
            total *= _power(known, count)
        for other, count in self.rest:
            total *= _power(_other_moment(other, m), count)
        return _above(total)

    def bounds(self, epsilon: Fraction, target: Fraction, seconds: float) -> ProvenBounds:
        """Return the bounds of both directions; the order m grows until the claim is proven, or the bound grows."""
        until, h = time.process_time() + seconds, self.truncated
        added, removed, before, m = self._added(epsilon, target, until), Fraction(1), Fraction(2), 2
        epsilons: list[Fraction] = []
        # If added records are above the claim, moments can only show the ε that holds.
        until -= 0.0 if added <= target else seconds * 0.9
        whole = self._polynomial(epsilon, until) if added <= target else None
        if whole is not None:
            removed = min(removed, whole)
        while removed > target * (1 + ENOUGH):
            share = Fraction((m - 1) ** (m - 1), m**m)
            room = (target - 2 * h) / (1 + 2**m * h) / share
            moment = self._moment(m, until, room / exp_above(-(m - 1) * epsilon))
            if moment is None:
                break
            one = share * moment * exp_above(-(m - 1) * epsilon)
            one += max(Fraction(2), 1 + 2**m * one) * h
            self.log(f"ln E f^{m} ≤ {logarithm(moment):.6g}: δ {float(min(one, Fraction(1))):.6g}")
            if room > 0:
                epsilons.append(log_above(moment / room) / (m - 1))
            removed = min(removed, one)
            if one > before:
                break
            before, m = one, m + 1
        if removed <= target:
            epsilons.append(epsilon)
        least = max(min(epsilons), Fraction(0)) if epsilons else None
        if least is not None and self._added(least, target, until) > target:
            least = epsilon if max(removed, added) <= target else None
        return ProvenBounds(max(removed, added), least, None, 0.0)

    def _added(self, epsilon: Fraction, target: Fraction, until: float) -> Fraction:
        """Return an upper bound of δ(ε) if the record is added: by (a), or else by (b)."""
        never = [(part.never(), count) for part, count in self.runs]
        if all(each is not None for each, _ in never):
            left = epsilon - sum(count * each for each, count in never if each is not None)
            if left >= 0:
                beside = (
                    proof.prove(self.rest, left, target, _some(until), self.log).delta if self.rest else Fraction(0)
                )
                return min(Fraction(1), beside + self.truncated)
        if self.truncated or sum(part.law.rounds * len(part.columns.of(1)) for part, _ in self.runs) > MOST_ENTRIES:
            return Fraction(1)
        best, theta = Fraction(1), Fraction(0)
        along: list[Sequence[int]] = [[0] * part.law.rounds for part, _ in self.runs]
        for _ in range(4):
            known = [part.tangent(each, theta) for (part, _), each in zip(self.runs, along, strict=True)]
            tangents = [each for each in known if each is not None]
            if len(tangents) < len(known):
                break
            counts = [count for _, count in self.runs]
            high = sum((each.high * count for each, count in zip(tangents, counts, strict=True)), Fraction(0))
            rise = sum(
                ((each.rise + each.low / 2) * count for each, count in zip(tangents, counts, strict=True)), Fraction(0)
            )
            if epsilon + rise > 0:
                parts: list[RepeatedRound] = [*self.rest, (GaussianRound(rounded_root(high)), 1)]
                best = min(best, proof.prove(parts, epsilon + rise, target, _some(until), self.log).delta)
            if best <= target or time.process_time() > until:
                break
            # The next tangent is near where a Gaussian mechanism of this size would have the loss −ε, and a little further.
            along, size = [each.along for each in tangents], float(high)
            theta = Fraction(max(0.0, (float(epsilon + rise) / size - 0.5) + 0.5 / math.sqrt(size))).limit_denominator(
                1000
            )
        return best

    def _polynomial(self, epsilon: Fraction, until: float) -> Fraction | None:
        """Return the bound by the polynomial of the certificate, if there is one and it is above (x − 1)₊."""
        (run, count), *more = self.runs
        alone = not (self.rest or more or self.truncated) and count == 1
        if not alone or not run.polynomial or not is_above(run.polynomial):
            return None
        total = Fraction(0)
        for k, coefficient in enumerate(run.polynomial):
            moment = run.moment(k, until - time.process_time(), above=coefficient > 0)
            if moment is None:
                return None
            factor = exp_above((1 - k) * epsilon)
            total += coefficient * moment * (factor if coefficient > 0 else factor - Fraction(4, 1 << _BITS))
        self.log(f"a polynomial of degree {len(run.polynomial) - 1}: δ {float(total):.6g}")
        return max(total, Fraction(0))
