"""What one round reveals: upper bounds of its profile, in both directions.

H_α(P‖Q) = sup_S P(S) − α·Q(S). Shifts are in units of the noise's standard deviation. *Side* 0 is H_α(P‖Q), where P is the law
with the record, and side 1 is H_α(Q‖P). Bounds are asked for at α = e^ε ≥ 1: below, H_α(P‖Q) = 1 − α + α·H_(1/α)(Q‖P). α
stands as an integer within a unit, and H changes by at most as much.

**Off thresholds.** If P/Q increases, the supremum is at S = {y > t} with P/Q = α at t. Another threshold gives less: the
difference is at most E_Q|P/Q − α| between the two, so at most |P/Q − α| at the threshold that is used. That number is added.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, reduce
from itertools import accumulate, pairwise

from . import choices
from .enclosures import exp, ln, root, tail, up
from .lattice import Law, LossGrid, NotCheckableError, power, product

#: By how much weights that are rounded up may exceed 1 together.
ROUNDED = Fraction(1, 1 << 60)


class Round:
    """A bound on the profile of one round."""

    #: Whether one bound holds for both sides; whether values need not be convex, so that their lower hull is taken.
    symmetric = hull = False
    #: Digits that masses need besides the usual ones; and mass, in the last units, that counts as an infinite loss.
    more_digits = infinite = 0
    #: By how many bits, relatively, both sides may differ at α = 1, where those of a pair are equal; 0 for other bounds.
    precise = 1 << 20
    #: The largest loss, if there is one, and whether the bound is that of two data sets.
    largest: Fraction | None = None
    attained = False

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return an upper bound of the profile at e^(kh), k ≥ 0, with grid.bits bits."""
        raise NotCheckableError("a run whose rounds do not compose, inside of a sample or beside others")

    def reflected(self, grid: LossGrid, k: int) -> int | None:
        """Return H_(1/α)(Q‖P) at α = e^(kh), k ≥ 0, computed by itself, for a bound that is that of a pair; else None."""
        return None

    def beaten(self, grid: LossGrid, k: int, value: int) -> bool:
        """Return whether a set of outputs of two data sets has a larger P − αQ at e^(kh) than the value, if any are known."""
        return False


class GaussianRound(Round):
    """N(s) against N(0): H at e^ε is G_s = Φ(s/2 − ε/s) − e^ε·Φ(−s/2 − ε/s)."""

    symmetric = True

    def __init__(self, square: Fraction) -> None:
        """Take s²; s is rounded up, which is a larger pair."""
        self.square = square

    def at(self, loss: int, alpha: int, bits: int) -> int:
        """Return G_s for any ε and α = e^ε that are given within a unit.

        Tails and α err by a unit. The threshold errs by less than 2/s + 3 units, and P/Q there by 8·(s + 2)·α (module).
        """
        s = root(self.square, bits)
        if not s >> bits // 2:
            raise NotCheckableError("noise that is so large")
        middle = (loss << bits) // s
        p, q = tail(middle - (s >> 1), bits), tail(middle + (s >> 1), bits)
        return min(p + 2, p - (alpha * q >> bits) + 8 * ((s >> bits) + 3) * ((alpha >> bits) + 1))

    def value(self, grid: LossGrid, k: int, side: int = 0) -> int:
        """Return G_s at e^(kh)."""
        return self.at(grid.loss(k), grid.alpha(k), grid.bits)

    def reflected(self, grid: LossGrid, k: int) -> int | None:
        """Return the same at −kh."""
        return self.value(grid, -k)


class MixtureRound(Round):
    """P = Σ_j w_j·N(j·s) against Q = Σ_j v_j·N(j·s), where no shift of P is below one of Q.

    P/Q increases: its derivative has the sign of Σ w_j·v_i·(j − i)·φ_j·φ_i ≥ 0. Weights of j ≠ 0 and s are rounded up, and the
    weight of 0 is what is left: that moves mass of P up and mass of Q down, of which sets {y > t} see more, and s is a factor
    that more noise takes away again. `lost` of P, and of Q if it has shifts, counts as an infinite loss; what is left out only
    raises H.
    """

    def __init__(
        self,
        w: Mapping[int, Fraction],
        square: Fraction,
        v: Mapping[int, Fraction] | None = None,
        lost: Fraction = Fraction(0),
    ) -> None:
        """Take the weights of j ≠ 0 under P and Q, and s²."""
        self.w, self.v, self.square, self.lost, self._last = dict(w), dict(v or {}), square, lost, 0.0
        sums = [sum(each.values(), lost if each else Fraction(0)) for each in (self.w, self.v)]
        least = min(*self.w.values(), *self.v.values(), lost)
        if max(sums) > 1 + lost + ROUNDED or least < 0 or 0 in {*self.w, *self.v}:
            raise NotCheckableError("weights that are not those of a law")
        self.increasing = min((*self.w, *([0] if sums[0] < 1 else []))) >= max((*self.v, *([0] if sums[1] < 1 else [])))
        self.symmetric = self.v == {-j: each for j, each in self.w.items()}

    @cache  # noqa: B019 - a round lives as long as its proof
    def rounded(self, bits: int) -> tuple[int, list[dict[int, int]]]:
        """Return s, and the weights under P and Q."""
        sides = [{j: up(each, bits) for j, each in side.items()} for side in (self.w, self.v)]
        self.infinite = up(self.lost, bits)
        for side in sides:
            side[0] = max(0, (1 << bits) - sum(side.values()) - (self.infinite if side else 0))
        return root(self.square, bits), sides

    def _ratio(self, t: int, bits: int) -> tuple[int, int, int] | None:
        """Return P/Q at t, its derivative, and the error of the first; None where Q is below its error.

        Exponents jst − (js)²/2 less the largest one of Q, which is a factor of both densities, err by 4 units, and e^x by one.
        """
        s, sides = self.rounded(bits)
        exponents = {j: (j * s * t >> bits) - ((j * s) ** 2 >> bits + 1) for j in {*sides[0], *sides[1]}}
        size, sums = max(exponents[j] for j in sides[1]), []
        for side in sides:
            terms = {j: weight * exp(exponents[j] - size, bits) >> bits for j, weight in side.items() if weight}
            total, slope = sum(terms.values()), sum(j * s * term >> bits for j, term in terms.items())
            sums.append((total, slope, 2 * len(terms) + 8 + 4 * (total >> bits)))
        (p, rise, p_error), (q, fall, q_error) = sums
        if q <= q_error:
            return None
        here = (p << bits) // q
        error = (p_error + q_error * ((here >> bits) + 1) << bits) // (q - q_error) + 2
        return here, ((rise << bits) - here * fall) // q, error

    def _threshold(self, alpha: int, bits: int) -> tuple[int, int]:
        """Return t, and a bound of |P/Q − α| there, by Newton's method."""
        t, best = choices.threshold(self, alpha, bits), (alpha + (1 << bits), 0)
        for _ in range(10):
            known = self._ratio(t, bits)
            if known is None:
                break
            here, slope, error = known
            best = min(best, (abs(here - alpha) + error, t))
            if abs(here - alpha) <= error or slope <= 0:
                break
            t -= (here - alpha << bits) // slope
        return best[1], best[0]

    def at(self, alpha: int, bits: int, side: int) -> int:
        """Return a bound at any α > 0 that is given within a unit.

        Masses and α err by 5 units, 3 of them times α. On side 1 the set is {y < t}, P/Q is 1/α at t, and E_P|Q/P − α| between
        two thresholds is α·E_Q|P/Q − 1/α|. Where α, or 1/α, is at most the infimum of P/Q, which is positive if Q is N(0),
        nothing is left but 1 − α, or 0, and the error of 1/α.
        """
        sides = self.rounded(bits)[1]
        if not self.increasing:
            raise NotCheckableError("a pair whose likelihood ratio is not known to increase")
        one, error = 1 << bits, 8 * ((alpha >> bits) + 2) + (self.infinite if self.v or not side else 0)
        ratio = (one * one) // alpha if side else alpha
        if ratio <= (0 if self.v else sides[0][0]) + 2:
            return error if side else one - alpha + error
        t, missed = self._threshold(ratio, bits)
        return self._gain(t, alpha, bits, side) + (alpha * missed >> bits if side else missed) + error

    def _gain(self, t: int, alpha: int, bits: int, side: int) -> int:
        """Return P − αQ of y > t, or Q − αP of y < t."""
        s, sides = self.rounded(bits)
        tails = {j: tail(j * s - t if side else t - j * s, bits) for j in {*sides[0], *sides[1]}}
        p, q = (sum(weight * tails[j] for j, weight in each.items()) >> bits for each in sides)
        return q - (alpha * p >> bits) if side else p - (alpha * q >> bits)

    def beaten(self, grid: LossGrid, k: int, value: int) -> bool:
        """Return whether a neighbouring threshold has more."""
        alpha, bits = grid.alpha(k), grid.bits
        near = (choices.threshold(self, alpha, bits) + step for step in (-(1 << bits - 6), 0, 1 << bits - 6))
        return any(self._gain(t, alpha, bits, 0) > value for t in near)

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the bound at e^(kh)."""
        return self.at(grid.alpha(k), grid.bits, side)

    def reflected(self, grid: LossGrid, k: int) -> int | None:
        """Return H of Q against P at e^(−kh)."""
        return None if self.lost else self.at(grid.alpha(-k), grid.bits, 1)


class FiniteRound(Round):
    """A pair of laws with finitely many outcomes, exact rationals (P, Q); `lost` counts as an infinite loss."""

    attained = True

    def __init__(self, outcomes: Sequence[tuple[Fraction, Fraction]], lost: Fraction = Fraction(0)) -> None:
        """Take the masses of the outcomes."""
        if any(sum(side) != 1 or min(side) < 0 for side in zip(*outcomes, strict=True)):
            raise NotCheckableError("outcomes whose probabilities do not add up to 1")
        self.outcomes, self.lost = sorted(outcomes), lost
        self.symmetric = self.outcomes == sorted((q, p) for p, q in outcomes)

    @cache  # noqa: B019
    def _rounded(self, bits: int) -> list[tuple[int, int]]:
        self.infinite = up(self.lost, bits) + len(self.outcomes)
        return [(up(p, bits), up(q, bits)) for p, q in self.outcomes]

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return Σ (P − αQ)₊ + lost; P is rounded up, and a unit of Q and of α are added."""
        pairs, alpha = self._rounded(grid.bits), grid.alpha(k) - 1
        gains = (pair[side] - (alpha * (pair[1 - side] - 1) >> grid.bits) for pair in pairs)
        return sum(gain for gain in gains if gain > 0) + up(self.lost, grid.bits)

    def reflected(self, grid: LossGrid, k: int) -> int | None:
        """Return H of Q against P at e^(−kh)."""
        return None if self.lost else self.value(grid, -k, 1)


class LaplaceRound(Round):
    """Lap(θ, 1) against Lap(0, 1): H at e^ε is 1 − e^((ε − θ)/2) for 0 ≤ ε ≤ θ, and 0 above."""

    symmetric = True

    def __init__(self, theta: Fraction, *, attained: bool = True) -> None:
        """Take the sensitivity in units of the scale, and whether this pair is that of two data sets."""
        self.largest, self.attained, self.theta = theta, attained, theta

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the profile; an exponent errs by a unit."""
        distance = grid.loss(k) - up(self.theta, grid.bits)
        return max(0, (1 << grid.bits) - exp(distance >> 1, grid.bits) + 3) if distance < 0 else 0


class Ranges(Round):
    """Runs whose losses are each in an interval of length r, and may depend on those before (Dong, Durfee & Rogers 2020).

    h_0(α) = (1 − α)₊ and, with p = (e^r − x)/(e^r − 1), h_n(α) = sup over 1 ≤ x ≤ e^r of p·h_(n−1)(α/x) + (1 − p)·
    h_(n−1)(αe^r/x), on both sides. h_n is convex (a supremum of such functions), so it is below chords between α = e^(jg), g =
    r/parts, and h_(n−1) may be replaced by them. With x = e^(ig)·z, 1 ≤ z ≤ e^g, both arguments are each in one cell, whose
    chords are c − u·e^g/z and d − v·e^g/z. The sum is (K − A·z − B/z)/(e^r − 1), with A = e^(ig)(c − d) and B = e^g(e^r·u − v),
    not negative by convexity, and at most (K − 2√(AB))/(e^r − 1). With 128 further bits, r ≤ 20 (checked) and g ≥ 2^−28 all
    rounding is far below the two units that are added.
    """

    symmetric = True
    #: The most runs that are bounded together.
    MOST = 64

    def __init__(self, r: Fraction, runs: int = 1) -> None:
        """Take r, and the number of runs."""
        self.r, self.runs, self.largest, self.parts = r, runs, r * runs, max(12, min(200, 640 // runs))
        if not Fraction(1, 10**6) <= r <= 20:
            raise NotCheckableError("losses in a range that is so small, or so large")

    @cache  # noqa: B019
    def _nodes(self, bits: int) -> tuple[list[int], list[int]]:
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

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the profile, on a chord between nodes."""
        alphas, values = self._nodes(grid.bits + 128)
        wide = grid.alpha(k) - 1 << 128
        i = bisect_right(alphas, wide) - 1
        if i + 1 >= len(alphas):
            return 0
        fall = (values[i] - values[i + 1]) * (wide - alphas[i]) // (alphas[i + 1] - alphas[i])
        return (values[i] - fall >> 128) + 2


class Guarantees(Round):
    """Stated guarantees in both directions: H ≤ δ_i at e^ε_i (Kairouz, Oh & Viswanath 2015).

    By reflection H ≤ 1 − (1 − δ_i)·e^(−ε_i) at e^(−ε_i). H is convex and does not increase: it is below chords between these
    points, and beyond a point below its value. A point is moved to a larger α and to a larger value.
    """

    symmetric = True

    def __init__(self, points: Sequence[tuple[Fraction, Fraction]]) -> None:
        """Take the ε_i and δ_i."""
        self.points = points
        if len(points) > 100:
            raise NotCheckableError("more than 100 stated guarantees of one mechanism")

    @cache  # noqa: B019
    def _corners(self, bits: int) -> list[tuple[int, int]]:
        self.infinite, one, corners = (
            up(min(delta for _, delta in self.points), bits),
            1 << bits,
            list[tuple[int, int]](),
        )
        for epsilon, delta in self.points:
            inverse = exp(up(-epsilon, bits), bits) + 1
            left = one - ((inverse - 2) * (one - up(delta, bits)) >> bits) + 1
            corners += [(exp(up(epsilon, bits), bits) + 1, up(delta, bits)), (inverse, left)]
        return corners

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the least value of all chords; a unit of α is taken off."""
        alpha, corners = grid.alpha(k) - 1, self._corners(grid.bits)
        chords = (
            v - (v - w) * (alpha - a) // (b - a) for a, v in corners for b, w in corners if a <= alpha < b and v >= w
        )
        return min((*(v for a, v in corners if a <= alpha), *chords, 1 << grid.bits))


class Renyi(Round):
    """Bounds ξ + aρ on Rényi divergences in both directions: H_α ≤ e^((a−1)(ξ+aρ))·(a−1)^(a−1)/a^a·α^−(a−1) for each order a > 1.

    (Canonne, Kamath & Steinke 2020, arXiv:2004.00010.) Divergences of several mechanisms add up.
    """

    symmetric = hull = True

    def __init__(self, rho: Fraction, xi: Fraction) -> None:
        """Take ρ and ξ."""
        self.rho, self.xi = rho, xi

    def value(self, grid: LossGrid, k: int, side: int) -> int:
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

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the sum of the bounds."""
        return sum((up(weight, grid.bits) * part.value(grid, k, side) >> grid.bits) + 2 for weight, part in self.parts)


class Displaced(Round):
    """A fixed number of draws, where each draw of the record displaces another one (Balle, Barthe & Gaboardi 2018).

    P, Q and M are the laws with the record, with what is in its place, and without draws of either. If it is drawn j times, P
    and M differ by a·j, M and Q by b·j, P and Q by d·j at most. With η the probability of being drawn, α = 1 + (α′ − 1)/η and β
    = α′/α, H_α′(P‖Q) = η·H_α(P₁‖(1 − β)M + βQ₁) for α′ ≥ 1, where P₁ and Q₁ are the laws if it is drawn. That is at most each of

    - *joint* if a = d: Σ_(j≥1) p_j·G_(dj)(α), and else Σ p_j·H_α(N(aj)‖(1−β)N(0) + βN(bj)), whose ratio increases;
    - if all draws come from one sequence: (1−β)·H_α′(Σ p_j N(aj)‖N(0)) + β·Σ p_j G_(dj)(α); and Σ p_j N(aj) against Σ p_j N(−bj).

    Replace-one has (a, b, d) = (2, 2, 2) on both sides; zero-out (2, 1, 1), and (1, 2, 1) on side 1. p_j, η, β and shifts are
    rounded up: each bound grows with them. The least one is a bound, and so is its lower hull, as the profile is convex.
    """

    hull, precise = True, 0

    def __init__(
        self, drawn: Mapping[int, Fraction], lost: Fraction, square: Fraction, *, zeroed: bool, common: bool
    ) -> None:
        """Take p_j for the first j ≥ 1 and the sum of the others, s² of one draw, and what is in the record's place."""
        self.drawn, self.lost, self.square, self.common = dict(drawn), lost, square, common
        self.symmetric, self.eta = not zeroed, min(Fraction(1), sum(drawn.values(), lost))
        self.sides = [(2, 1, 1), (1, 2, 1)] if zeroed else [(2, 2, 2)] * 2
        times = {factor: {factor * j: weight for j, weight in drawn.items()} for factor in (-2, -1, 1, 2)}
        # Two data sets: the record adds 1, and others −1; what is in its place adds nothing, or −1 as well.
        self.two = MixtureRound(times[2], square, times[1] if zeroed else None, lost)
        self.alone = [MixtureRound(times[a], square, None, lost) for a, _, _ in self.sides]
        self.both = [MixtureRound(times[a], square, times[-b], lost) for a, b, _ in self.sides]

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the least bound. An error of α of `slack` units changes a bound by as much, and β by a share of it."""
        bits, one, (a, b, d) = grid.bits, 1 << grid.bits, self.sides[side]
        lost, eta, wanted = up(self.lost, bits), up(self.eta, bits), grid.alpha(k)
        alpha, slack, self.infinite = one + (((wanted - one) << bits) // eta if k else 0), one // eta + 2, 2 * lost
        loss, beta = ln(alpha, bits), min(one, (wanted << bits) // alpha + slack)

        def summed(bound_of: Callable[[int], int]) -> int:
            terms = (up(p, bits) * (bound_of(j) + slack) >> bits for j, p in self.drawn.items())
            return sum(terms) + len(self.drawn) + lost

        joint = summed(lambda j: GaussianRound(self.square * (d * j) ** 2).at(loss, alpha, bits))
        single, against = {a: Fraction(1)}, {b: Fraction(beta, one)}
        found = [
            joint if a == d else summed(lambda j: MixtureRound(single, self.square * j * j, against).at(alpha, bits, 0))
        ]
        if self.common:
            alone = (one - beta + 2 * slack) * self.alone[side].value(grid, k, 0)
            found += [(alone + beta * joint >> bits) + 4, self.both[side].value(grid, k, 0)]
        return min(found)

    def beaten(self, grid: LossGrid, k: int, value: int) -> bool:
        """Return whether the two data sets have more."""
        return self.two.beaten(grid, k, value)


class Allocation(Round):
    """One of T rounds at random: (1/T)·Σ_t N(√s_t·e_t) against N(0).

    P/Q is S = (1/T)·Σ Z_t with independent Z_t = e^N(−s/2, s) under Q, so that H_α(P‖Q) = E(S − α)₊ and, since E S = 1, H_α(Q‖P)
    = 1 − α + α·E(S − 1/α)₊. E(Z − x)₊ = G_√s(x). Each Z is replaced by a law on multiples of a step u whose E(Z′ − x)₊ is linear
    between the values of G there, which is larger at every x. It grows further if masses do, if values are raised, and, where
    values are cut down to c, by at most E(value − c)₊. Sums of independent numbers keep this order: given the others, (· − x)₊
    is of this form.
    """

    def __init__(self, shifts: Sequence[tuple[Fraction, int]], small: Fraction) -> None:
        """Take (s, number of rounds) for the squared shifts; `small` is what cutting may add to the profile."""
        self.shifts, self.small, self.total = list(shifts), small, sum(count for _, count in shifts)

    def _one(self, square: Fraction, step: int, grid: LossGrid) -> Law:
        """Return the law of Z at the multiples of the step, with E(Z − last)₊."""
        bits, scale, pair, calls = grid.bits, 10**grid.digits, GaussianRound(square), [1 << grid.bits]
        while calls[-1] > int(self.small * (1 << bits) / 4):
            x = step * len(calls)
            calls.append(pair.at(ln(x, bits), x, bits))
        falls = [a - b for a, b in pairwise(calls)]
        masses = [step - falls[0], *(a - b for a, b in pairwise(falls)), falls[-1]]
        return Law(0, [-(-max(0, mass) * scale // step) for mass in masses], -(-calls[-1] * scale >> bits))

    @cache  # noqa: B019
    def _built(self, grid: LossGrid) -> tuple[list[int], list[int], int, int, int]:
        """Return sums of masses, and of masses times values, from each value on; the least value; the step; what cutting adds."""
        # Rounding S to multiples of h/√T adds about the variance that rounding losses to the lattice adds to them.
        step, spare = max(1, grid.loss(1) * math.isqrt(self.total)), int(self.small * 10**grid.digits * self.total / 8)
        runs = [power(grid, self._one(square, step, grid), count, spare, step) for square, count in self.shifts]
        law = reduce(lambda a, b: product(grid, a, b, spare, step), runs)
        above = list(accumulate(reversed(law.masses), initial=0))[::-1]
        values = (mass * (law.low + i) for i, mass in reversed(list(enumerate(law.masses))))
        return above, list(accumulate(values, initial=0))[::-1], law.low, step, law.infinite

    def _call(self, alpha: int, grid: LossGrid) -> int:
        """Return a bound of E(S − α)₊: the sum over the values of S above α, and what was cut."""
        above, weighted, low, step, added = self._built(grid)
        scale = 10**grid.digits * self.total
        self.infinite = -(-(added << grid.bits) // scale) + 2
        first = min(max(0, alpha * self.total // step + 1 - low), len(above) - 1)
        gain = weighted[first] * step - alpha * self.total * above[first]
        return int(-(-(gain + (added << grid.bits)) // scale)) + 1

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the profile of one side."""
        alpha, one = grid.alpha(k), 1 << grid.bits
        if not side:
            return self._call(alpha - 1, grid)
        return max(0, one - alpha + 2 + ((alpha + 1) * self._call(max(0, grid.alpha(-k) - 1), grid) >> grid.bits) + 2)
