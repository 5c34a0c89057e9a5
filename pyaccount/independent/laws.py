"""What one round reveals: upper bounds of its profile, in both directions.

H_α(P‖Q) = sup_S P(S) − α·Q(S). Shifts are in units of the noise's standard deviation. *Side* 0 is H_α(P‖Q), where P is the law
with the record, and side 1 is H_α(Q‖P). Bounds are asked for at α = e^ε ≥ 1: below, H_α(P‖Q) = 1 − α + α·H_(1/α)(Q‖P). α
stands as an integer within a unit, and H changes by at most as much.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache, reduce
from itertools import accumulate, pairwise

from . import choices
from .enclosures import exp, ln, root, tail, up
from .lattice import Law, LossGrid, NotCheckableError, coefficients, hull, repeated

#: By how much weights that are rounded up may exceed 1 together.
ROUNDED = Fraction(1, 1 << 60)
#: Bits of chords beyond those of the values.
MORE = 128


class Round:
    """A bound on the profile of one round."""

    #: Whether one bound holds for both sides; whether values need not be convex, so that their lower hull is taken.
    symmetric = hull = False
    #: Digits that masses need besides the usual ones.
    more_digits = 0
    #: The largest loss.
    largest: Fraction | float = math.inf
    #: The laws of two data sets, if some are known: no bound is below them.
    attained: KnownPair | None = None

    def at(self, grid: LossGrid, k: int) -> int:
        """Return an upper bound of H_α(P‖Q) at e^(kh) for any k, with grid.bits bits."""
        raise NotCheckableError("a run whose rounds do not compose, inside of a sample or beside others")

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the bound of one side at e^(kh), k ≥ 0: that, or the reflection of that at e^(−kh)."""
        if side and not self.symmetric:
            return grid.reflected(k, self.at(grid, -k))
        return self.at(grid, k)


class KnownPair(Round):
    """Two laws P and Q, with sets S₂ ⊂ S₁ between which {P > αQ} lies: H_α ≤ P(S₁) − α·Q(S₂), and H_α ≥ P(S₁) − α·Q(S₁).

    The sets are nested, and named by numbers t. `lost` of P, and of Q if both are rounded, counts as an infinite loss; what is
    left out only raises H.
    """

    lost = Fraction(0)

    def between(self, loss: int, alpha: int, bits: int) -> tuple[int, int]:
        """Return the names of S₁ and S₂ for α = e^loss, which are both given within a unit."""
        raise NotImplementedError

    def mass(self, t: int, bits: int, law: int) -> int:
        """Return P (0) or Q (1) of a set, within 2^20 units: a law has fewer than 2^18 weights."""
        raise NotImplementedError

    def masses(self, loss: int, bits: int) -> tuple[int, int]:
        """Return P and Q of a set of outputs with losses above about this one."""
        t, _ = self.between(loss, exp(loss, bits), bits)
        return self.mass(t, bits, 0), self.mass(t, bits, 1)

    def at(self, grid: LossGrid, k: int) -> int:
        """Return the bound of a pair."""
        return self.bound(grid.loss(k), grid.alpha(k), grid.bits)

    def bound(self, loss: int, alpha: int, bits: int) -> int:
        """Return a bound of H_α for any α = e^loss."""
        first, second = self.between(loss, alpha, bits)
        p, q = self.mass(first, bits, 0), self.mass(second, bits, 1)
        return p - (alpha * q >> bits) + ((alpha >> bits) + 2 << 20) + up(self.lost, bits)


class MixtureRound(KnownPair):
    """P = Σ_j w_j·N(j·s) against Q = Σ_j v_j·N(j·s).

    P − αQ is Σ c_j·N(js), c_j = w_j − αv_j: a positive function times Σ c_j·e^(−(js)²/2)·x^j, x = e^(sy). If the c_j change
    their sign once, from − to + (checked), this has one root (Descartes' rule), so that {P > αQ} is {y > t}. Signs at t₁ and t₂
    prove that t lies between. Weights are rounded up, and that of 0 is what is left; each errs by a unit. s is rounded up: a
    smaller one is a factor, and more noise.
    """

    def __init__(
        self,
        w: Mapping[int, Fraction],
        square: Fraction,
        v: Mapping[int, Fraction] | None = None,
        lost: Fraction = Fraction(0),
    ) -> None:
        """Take the weights of j ≠ 0 under P and Q, and s²."""
        self.w, self.v, self.square, self.lost, self.attained = dict(w), dict(v or {}), square, lost, self
        sums = [sum(each.values(), lost if each else Fraction(0)) for each in (self.w, self.v)]
        least = min(*self.w.values(), *self.v.values(), lost)
        if max(sums) > 1 + lost + ROUNDED or least < 0 or 0 in {*self.w, *self.v}:
            raise NotCheckableError("weights that are not those of a law")
        self.symmetric = self.v == {-j: each for j, each in self.w.items()}

    @cache  # noqa: B019 - a round lives as long as its proof
    def rounded(self, bits: int) -> tuple[int, dict[int, tuple[int, int]]]:
        """Return s, and the weights under P and Q of all j, in their order."""
        sides = [{j: up(each, bits) for j, each in side.items()} for side in (self.w, self.v)]
        for side in sides:
            side[0] = max(0, (1 << bits) - sum(side.values()) - (up(self.lost, bits) if side else 0))
        weights = {j: (sides[0].get(j, 0), sides[1].get(j, 0)) for j in sorted({*sides[0], *sides[1]})}
        return root(self.square, bits), weights

    def between(self, loss: int, alpha: int, bits: int) -> tuple[int, int]:
        """Return thresholds, where P − αQ is negative, and positive: any do, and those chosen are near each other."""
        s, weights = self.rounded(bits)
        signed = {j: (p << bits) - alpha * q for j, (p, q) in weights.items()}
        signs, far = [each > 0 for each in signed.values() if each], 1 << bits + 60
        if signs != sorted(signs):
            raise NotCheckableError("a pair whose likelihood ratio is not known to increase")
        if all(signs) or not any(signs):
            return (-far, -far) if any(signs) else (far, far)
        below, above = choices.thresholds(signed, s, bits)
        low = next((t for t in below if _sign(signed, s, t, bits) < 0), -far)
        return low, next((t for t in above if _sign(signed, s, t, bits) > 0), far)

    def mass(self, t: int, bits: int, law: int) -> int:
        """Return the mass of {y > t}."""
        s, weights = self.rounded(bits)
        return sum(pair[law] * tail(t - j * s, bits) for j, pair in weights.items() if pair[law]) >> bits


def _sign(signed: Mapping[int, int], s: int, t: int, bits: int) -> int:
    """Return the sign of Σ c_j·N(js) at t; 0 if it is not certain: exponents err by 4 units, and e^x by one."""
    exponents = {j: (j * s * t >> bits) - ((j * s) ** 2 >> bits + 1) for j in signed}
    most = max(exponents.values())
    total = sum(each * exp(exponents[j] - most, bits) >> bits for j, each in signed.items())
    error = (8 * sum(map(abs, signed.values())) >> bits) + len(signed) + 1
    return (total > error) - (total < -error)


class GaussianRound(MixtureRound):
    """N(s) against N(0), where t = ε/s + s/2."""

    def __init__(self, square: Fraction) -> None:
        """Take s²."""
        super().__init__({1: Fraction(1)}, square)
        self.symmetric = True

    def between(self, loss: int, alpha: int, bits: int) -> tuple[int, int]:
        """Return t, less and more its error: that of ε is divided by s."""
        s, one = self.rounded(bits)[0], 1 << bits
        if not s >> bits // 2:
            raise NotCheckableError("noise that is so large")
        middle, error = (loss << bits) // s + (s >> 1), one // s + 4
        return middle - error, middle + error


class FiniteRound(KnownPair):
    """A pair of laws with finitely many outcomes; a set is named by how many of those it has whose P/Q is largest."""

    def __init__(self, outcomes: Sequence[tuple[Fraction | int, Fraction | int]], lost: Fraction = Fraction(0)) -> None:
        """Take numbers in proportion to the probabilities of the outcomes, P and Q, with equal sums."""
        sides = list(zip(*outcomes, strict=True))
        if sum(sides[0]) != sum(sides[1]) or min(map(min, sides)) < 0 or not any(sides[0]):
            raise NotCheckableError("outcomes whose probabilities do not add up to 1")
        self.lost, self.attained = lost, self
        self.symmetric = sorted(outcomes) == sorted((q, p) for p, q in outcomes)
        unit = math.lcm(*(each.denominator for side in sides for each in side))
        counts = [(int(p * unit), int(q * unit)) for p, q in outcomes if p + q]
        self.outcomes = sorted(counts, key=lambda pair: Fraction(pair[1], sum(pair)))
        self.sums: list[list[int]] = [list(accumulate(side, initial=0)) for side in zip(*self.outcomes, strict=True)]

    def between(self, loss: int, alpha: int, bits: int) -> tuple[int, int]:
        """Return how many outcomes have P > αQ."""
        t = bisect_left(self.outcomes, True, key=lambda pair: pair[0] << bits <= alpha * pair[1])
        return t, t

    def mass(self, t: int, bits: int, law: int) -> int:
        """Return the mass of the first t outcomes."""
        return (self.sums[law][t] << bits) // self.sums[law][-1]


#: A pair that differs for certain.
DIFFERENT = FiniteRound([(Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))])


class LaplaceRound(KnownPair):
    """Lap(θ, 1) against Lap(0, 1), whose largest loss is θ; a set of losses above t is named by t."""

    symmetric = True

    def __init__(self, theta: Fraction, *, attained: bool = True) -> None:
        """Take the sensitivity in units of the scale, and whether this pair is that of two data sets."""
        self.theta = self.largest = theta
        self.attained = self if attained else None

    def between(self, loss: int, alpha: int, bits: int) -> tuple[int, int]:
        """Return ε."""
        return loss, loss

    def mass(self, t: int, bits: int, law: int) -> int:
        """Return 1 − e^((ε − θ)/2)/2 or e^((−ε − θ)/2)/2, if −θ ≤ ε < θ."""
        one, theta = 1 << bits, up(self.theta, bits)
        if abs(t) >= theta:
            return one if t < 0 else 0
        return exp(-t - theta >> 1, bits) >> 1 if law else one - (exp(t - theta >> 1, bits) >> 1)


class Chords(Round):
    """A bound by values at some α: H is convex and does not increase, so it is below chords between them, and the last value."""

    symmetric = True

    def corners(self, bits: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return the α, from one that is at most any that is asked for, and the values, with so many bits."""
        raise NotImplementedError

    def at(self, grid: LossGrid, k: int) -> int:
        """Return the value on a chord; a unit of α is taken off."""
        alphas, values = self.corners(grid.bits + MORE)
        wide = grid.alpha(k) - 1 << MORE
        i = bisect_right(alphas, wide) - 1
        fall = 0
        if i + 1 < len(alphas):
            fall = (values[i] - values[i + 1]) * (wide - alphas[i]) // (alphas[i + 1] - alphas[i])
        return (values[i] - fall >> MORE) + 2


class Ranges(Chords):
    """Runs whose losses are each in an interval of length r, and may depend on those before (Dong, Durfee & Rogers 2020).

    h_0(α) = (1 − α)₊ and, with p = (e^r − x)/(e^r − 1), h_n(α) = sup over 1 ≤ x ≤ e^r of p·h_(n−1)(α/x) + (1 − p)·
    h_(n−1)(αe^r/x), on both sides. h_n is convex (a supremum of such functions), so it is below chords between α = e^(jg), g =
    r/parts, and h_(n−1) may be replaced by them. With x = e^(ig)·z, 1 ≤ z ≤ e^g, both arguments are each in one cell, whose
    chords are c − u·e^g/z and d − v·e^g/z. The sum is (K − A·z − B/z)/(e^r − 1), with A = e^(ig)(c − d) and B = e^g(e^r·u − v),
    not negative by convexity, and at most (K − 2√(AB))/(e^r − 1). With MORE bits, r ≤ 20 (checked) and g ≥ 2^−28 all rounding is
    far below the two units that are added.
    """

    #: The most runs that are bounded together.
    MOST = 64

    def __init__(self, r: Fraction, runs: int = 1) -> None:
        """Take r, and the number of runs."""
        self.r, self.runs, self.largest, self.parts = r, runs, r * runs, max(12, min(200, 640 // runs))
        if not Fraction(1, 10**6) <= r <= 20:
            raise NotCheckableError("losses in a range that is so small, or so large")

    @cache  # noqa: B019
    def corners(self, bits: int) -> tuple[list[int], list[int]]:
        """Return e^(jg) and h_n there, for j from −(n + 1)·parts on."""
        m, one, most = self.parts, 1 << bits, (self.runs + 1) * self.parts
        alphas = [exp(up(self.r * j / m, bits), bits) for j in range(-most, most + 1)]
        values, ratios = [max(0, one - alpha) for alpha in alphas], alphas[most : most + m + 1]
        for n in range(1, self.runs + 1):
            slopes = [(a - b) * one // (ratios[1] - one) for a, b in pairwise(values)]
            inner = range(most - n * m, most + n * m + 1)
            values[inner.start : inner.stop] = [self._supremum(values, slopes, j, ratios, bits) for j in inner]
        return alphas, values

    def _supremum(self, values: list[int], slopes: list[int], j: int, ratios: list[int], bits: int) -> int:
        """Return the supremum over x at one node; values are h_(n−1) at the nodes, slopes u for the cells on their right."""
        growth, whole, m, best = ratios[1], ratios[-1], self.parts, 0
        for i in range(m):
            near, far = j - i - 1, j - i - 1 + m
            u, v = slopes[near], slopes[far]
            c, d = values[near] + u, values[far] + v
            a, b = ratios[i] * (c - d) >> bits, growth * ((whole * u >> bits) - v) >> bits
            most = (whole * c >> bits) - d + (ratios[i] * (growth * (u - v) >> bits) >> bits)
            best = max(best, most - 2 * math.isqrt(max(0, a * b)))
        return min(1 << bits, (best << bits) // (whole - (1 << bits)) + 1)


class Guarantees(Chords):
    """Stated guarantees in both directions: H ≤ δ_i at e^ε_i (Kairouz, Oh & Viswanath 2015).

    By reflection H ≤ 1 − (1 − δ_i)/A at 1/A for A ≥ e^ε_i. A point is moved to a larger α and to a larger value.
    """

    def __init__(self, points: Sequence[tuple[Fraction, Fraction]]) -> None:
        """Take the ε_i and δ_i."""
        self.points = points

    @cache  # noqa: B019
    def corners(self, bits: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return the lower hull of all points."""
        one, points = 1 << bits, [(0, 1 << bits)]
        for epsilon, delta in self.points:
            alpha, value = exp(up(epsilon, bits), bits) + 1, up(delta, bits)
            points += [(alpha, value), (-(-one * one // alpha), one - (one - value) * one // alpha)]
        alphas, values = zip(*sorted(points), strict=True)
        alphas, values = zip(*hull(list(zip(alphas, accumulate(values, min), strict=True))), strict=True)
        return alphas, values


class Renyi(Round):
    """Bounds ξ + aρ on Rényi divergences in both directions: H_α ≤ e^((a−1)(ξ+aρ))·(a−1)^(a−1)/a^a·α^−(a−1) for each order a > 1.

    (Canonne, Kamath & Steinke 2020, arXiv:2004.00010.) Divergences of several mechanisms add up.
    """

    symmetric = hull = True

    def __init__(self, rho: Fraction, xi: Fraction) -> None:
        """Take ρ and ξ."""
        self.rho, self.xi = rho, xi

    def at(self, grid: LossGrid, k: int) -> int:
        """Return the value at one order: any is a bound."""
        bits, less = 2 * grid.bits, Fraction(choices.order(float(self.rho), float(self.xi), k * grid.h))
        exponent = less * (self.xi + (1 + less) * self.rho - Fraction(grid.loss(k), 1 << grid.bits))
        logs = ln(up(less, bits), bits), ln(up(1 + less, bits), bits)
        total = up(exponent, bits) + math.ceil(less * (logs[0] + 2)) - math.floor((1 + less) * (logs[1] - 2))
        return min(1 << grid.bits, (exp(min(0, total), bits) >> grid.bits) + 2)


class Blend(Round):
    """Σ_i w_i·H(P_i‖Q_i): which pair it is, is released, and does not depend on the record."""

    def __init__(self, parts: Sequence[tuple[Fraction, Round]]) -> None:
        """Take the weights, rounded up."""
        if not 1 <= sum(weight for weight, _ in parts) <= 1 + ROUNDED or min(weight for weight, _ in parts) < 0:
            raise NotCheckableError("cases whose probabilities do not add up to 1")
        self.parts, self.symmetric = list(parts), all(part.symmetric for _, part in parts)
        self.hull, self.more_digits = any(part.hull for _, part in parts), max(part.more_digits for _, part in parts)

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the sum of the bounds."""
        return sum((up(weight, grid.bits) * part.value(grid, k, side) >> grid.bits) + 2 for weight, part in self.parts)


class Displaced(Round):
    """A fixed number of draws, where each draw of the record displaces another one (Balle, Barthe & Gaboardi 2018).

    P, Q and M are the laws with the record, with what is in its place, and without draws of either. If it is drawn j times, P
    and M differ by a·j, M and Q by b·j, P and Q by d·j at most. η is the probability of being drawn, and the p_j/η with the
    share of what is lost add up to 1. H_α(P‖Q) is at most each of

    - *joint*: by joint convexity, Σ_(j≥1) p_j/η·H_α of (1−η)N(0) + ηN(aj) against (1−η)N(0) + ηN(bj), or, if a = d, against N(0);
    - if all draws come from one sequence: (1−β)·H_α(Σ p_j N(aj)‖N(0)) + β·Σ_(j≥1) p_j/η·H_α of (1−η)N(0) + ηN(dj) against N(0),
      β = α/(1 + (α − 1)/η); and Σ p_j N(aj) against Σ p_j N(−bj).

    Replace-one has (a, b, d) = (2, 2, 2) on both sides; zero-out (2, 1, 1), and (1, 2, 1) on side 1. p_j, η and β are rounded up:
    each bound grows with them. The least one is a bound, and so is its lower hull, as the profile is convex.
    """

    hull = True

    def __init__(
        self, drawn: Mapping[int, Fraction], lost: Fraction, square: Fraction, *, zeroed: bool, common: bool
    ) -> None:
        """Take p_j for the first j ≥ 1 and the sum of the others, s² of one draw, and what is in the record's place."""
        self.lost, self.common, self.symmetric = lost, common, not zeroed
        self.eta = eta = min(Fraction(1), sum(drawn.values(), lost))

        def blend(a: int, b: int = 0) -> Blend:
            pairs = [(p, MixtureRound({a * j: eta}, square, {b * j: eta} if b else None)) for j, p in drawn.items()]
            return Blend([(p / eta, pair) for p, pair in [*pairs, (lost, DIFFERENT)]])

        def mixture(a: int, b: int = 0) -> MixtureRound:
            p, q = ({times * j: each for j, each in drawn.items()} for times in (a, b))
            return MixtureRound(p, square, q if b else None, lost)

        sides = [(2, 1, 1), (1, 2, 1)] if zeroed else [(2, 2, 2)]
        self.sides = [(blend(a, 0 if a == d else b), blend(d), mixture(a), mixture(a, -b)) for a, b, d in sides]
        # A record that adds 1 is replaced by one that adds −1, as all others do.
        self.attained = None if zeroed else mixture(2)

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the least bound. β errs by the error of 1/η units of α, and one more."""
        one, alpha, eta = 1 << grid.bits, grid.alpha(k), up(self.eta, grid.bits)
        joint, other, alone, both = self.sides[side if len(self.sides) > 1 else 0]
        least = joint.value(grid, k, 0)
        if self.common:
            error = one // eta + 3
            beta = min(one, (alpha << grid.bits) // (one + ((alpha - one) << grid.bits) // eta) + error)
            mean = (one - beta + 2 * error) * alone.value(grid, k, 0) + beta * other.value(grid, k, 0)
            least = min(least, (mean >> grid.bits) + 4, both.value(grid, k, 0))
        return least


class Allocation(Round):
    """One of T rounds at random: (1/T)·Σ_t N(√s_t·e_t) against N(0).

    P/Q is S = (1/T)·Σ Z_t with independent Z_t = e^N(−s/2, s) under Q, so that H_α(P‖Q) = E(S − α)₊ and, since E S = 1, H_α(Q‖P)
    is the reflection. E(Z − x)₊ = G_√s(x). Each Z is replaced by a law on multiples of a step u whose E(Z′ − x)₊ is linear
    between the values of G there, which is larger at every x. It grows further if masses do, if values are raised, and, where
    values are cut down to c, by at most E(value − c)₊, which is counted. Sums of independent numbers keep this order:
    given the others, (· − x)₊ is of this form.
    """

    def __init__(self, shifts: Sequence[tuple[Fraction, int]], small: Fraction) -> None:
        """Take (s, number of rounds) for the squared shifts; `small` is what cutting may add to the profile."""
        self.shifts, self.small, self.total = list(shifts), small, sum(count for _, count in shifts)

    def _one(self, square: Fraction, step: int, grid: LossGrid) -> Law:
        """Return the law of Z at the multiples of the step, with E(Z − last)₊."""
        bits, scale, pair, calls = grid.bits, 10**grid.digits, GaussianRound(square), [1 << grid.bits]
        while calls[-1] > int(self.small * (1 << bits) / 4):
            x = step * len(calls)
            calls.append(pair.bound(ln(x, bits), x, bits))
        falls = [a - b for a, b in pairwise(calls)]
        masses = [step - falls[0], *(a - b for a, b in pairwise(falls)), falls[-1]]
        return Law(0, [-(-max(0, mass) * scale // step) for mass in masses], -(-calls[-1] * scale >> bits))

    @cache  # noqa: B019
    def _built(self, grid: LossGrid) -> tuple[list[int], list[int], int, int, int]:
        """Return sums of masses, and of masses times values, from each value on; the least value; the step; what cutting adds."""
        # Rounding S to multiples of h/√T adds about the variance that rounding losses to the lattice adds to them.
        step = max(1, grid.loss(1) * math.isqrt(self.total))
        spare = int(self.small * 10**grid.digits * self.total / 8)

        def added(a: Law, b: Law, share: int) -> Law:
            masses = coefficients(a.masses, b.masses, grid.digits)
            # What is above a value is cut down to it, which takes the sum of all tails off the mean, in steps.
            tails = list(accumulate(accumulate(reversed(masses[1:])), initial=0))
            top = bisect_right(tails, (share << grid.bits) // step) - 1
            low = bisect_right(list(accumulate(masses[: len(masses) - top - 1])), share // 1000)
            kept = masses[low : len(masses) - top]
            kept[0], kept[-1] = kept[0] + sum(masses[:low]), kept[-1] + sum(masses[len(masses) - top :])
            return Law(a.low + b.low + low, kept, a.infinite + b.infinite - (-tails[top] * step >> grid.bits))

        def run(square: Fraction, count: int) -> Law:
            shares = spare // (2 * count * count.bit_length())
            return repeated(self._one(square, step, grid), count, lambda a, b, times: added(a, b, shares * times))

        law = reduce(lambda a, b: added(a, b, spare), [run(square, count) for square, count in self.shifts])
        above = list(accumulate(reversed(law.masses), initial=0))[::-1]
        values = (mass * (law.low + i) for i, mass in reversed(list(enumerate(law.masses))))
        return above, list(accumulate(values, initial=0))[::-1], law.low, step, law.infinite

    def at(self, grid: LossGrid, k: int) -> int:
        """Return a bound of E(S − α)₊: the sum over the values of S above α, and what was cut."""
        (above, weighted, low, step, added), alpha = self._built(grid), max(0, grid.alpha(k) - 1)
        first = min(max(0, alpha * self.total // step + 1 - low), len(above) - 1)
        gain = weighted[first] * step - alpha * self.total * above[first]
        return int(-(-(gain + (added << grid.bits)) // (10**grid.digits * self.total))) + 1
