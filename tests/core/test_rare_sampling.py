"""Records that very rarely take part: one round against high precision, many against an inverse transform."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq  # type: ignore[import-untyped]

from pyaccount import _core


def one_round(probability: float, noise_multiplier: float, *, reverse: bool) -> _core.RoundProfile:
    return _core.RoundProfile.poisson(1, probability, noise_multiplier, two_sided=False, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("noise_multiplier", [0.2, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("probability", [9e-6, 1e-9])
def test_one_round_is_right_to_a_share_of_its_probability(
    probability: float, noise_multiplier: float, reverse: bool
) -> None:
    profile = one_round(probability, noise_multiplier, reverse=reverse)
    with mpmath.workdps(60):
        p, c = mpmath.mpf(probability), 1 / mpmath.mpf(noise_multiplier)
        for share in (
            -1e5,
            -2,
            -1,
            -1 + 1e-13,
            -1 + 1e-6,
            -0.9,
            -0.5,
            0,
            0.5,
            0.9,
            1 - 1e-9,
            1,
            1 + 1e-12,
            3,
            100,
            1e5,
        ):
            epsilon = share * probability
            exact = exact_delta(mpmath.mpf(epsilon), p, c, reverse=reverse)
            delta, error, _, _ = _core.Inspection.profile(profile, epsilon)
            assert abs(delta - exact) <= error
            assert error <= 1e-11 * max(float(exact), 1e-3 * probability) + 1e-11 * probability


def exact_delta(epsilon: mpmath.mpf, p: mpmath.mpf, c: mpmath.mpf, *, reverse: bool) -> mpmath.mpf:
    """Return δ from the two tails of P and Q, without any formula of the code under test."""
    alpha = mpmath.exp(epsilon)
    ratio = ((1 / alpha if reverse else alpha) - (1 - p)) / p
    if ratio <= 0:
        return mpmath.mpf(0) if reverse else 1 - alpha
    y = mpmath.log(ratio) / c + c / 2
    if reverse:
        return mpmath.ncdf(y) - alpha * ((1 - p) * mpmath.ncdf(y) + p * mpmath.ncdf(y - c))
    return (1 - p) * mpmath.ncdf(-y) + p * mpmath.ncdf(c - y) - alpha * mpmath.ncdf(-y)


#: Nodes in each panel, of outcomes and of the inverse transform.
DEGREE, STEPS = 24, 80


def quadrature(low: float, high: float, panel: float, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss–Legendre nodes and weights in panels of about this width."""
    nodes, weights = np.polynomial.legendre.leggauss(degree)
    count = math.ceil((high - low) / panel)
    half = 0.5 * (high - low) / count
    starts = low + 2.0 * half * np.arange(count)
    return (starts[:, None] + half * (nodes + 1.0)).ravel(), np.tile(half * weights, count)


@dataclass(frozen=True)
class Rounds:
    """A number of equal rounds, of which those with an outcome above a threshold are treated separately.

    If rare losses are far above all others, no tilt makes an inverse transform accurate: at a small one nearly all of
    the integral cancels, at a large one only the rare losses matter. If no round has one, the best tilt is large, and
    nothing cancels; if one has, the rest hardly matters. The case of two such rounds is left out: it is at most
    `missing` of δ.
    """

    count: int
    probability: float
    noise_multiplier: float
    reverse: bool
    threshold: float

    @property
    def shift(self) -> float:
        return 1.0 / self.noise_multiplier

    @cached_property
    def outcomes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return nodes below the threshold: the loss, and the density of Q with the weight of the node."""
        y, weights = quadrature(-12.0, self.threshold, 0.5, DEGREE)
        loss = np.log1p(self.probability * np.expm1(self.shift * y - 0.5 * self.shift**2))
        return loss, weights * np.exp(-0.5 * y * y) / math.sqrt(2.0 * math.pi)

    def log_moments(self, real: np.ndarray) -> np.ndarray:
        """Return ln E_Q [f^s; y below the threshold] of one round, f the ratio of remove: E (f^s − 1) by quadrature."""
        loss, density = self.outcomes
        return np.log1p(np.expm1(np.outer(real, loss)) @ density - upper_tail(self.threshold))

    def turned_log_moments(self, real: float, imaginary: np.ndarray) -> np.ndarray:
        """Return it at complex s of one real part: f^s − 1 = (g − 1) − 2g sin² h + 2ig sin h cos h, modulus g, angle 2h."""
        loss, density = self.outcomes
        less_one = np.expm1(real * loss)
        sizes = 2.0 * (1.0 + less_one) * density
        half = np.outer(0.5 * imaginary, loss)
        sines = np.sin(half)
        turned = (sines * np.cos(half)) @ sizes
        return np.log1p(less_one @ density - (sines * sines) @ sizes + 1j * turned - upper_tail(self.threshold))

    def tilt(self, epsilon: float) -> float:
        """Return the point on the real line at which the integrand is least."""
        a = np.geomspace(1e-3, 1e9, 600)
        with np.errstate(over="ignore", invalid="ignore"):
            moments = self.log_moments(-a if self.reverse else a + 1.0)
            values = np.nan_to_num(self.exponents(moments, epsilon, a), nan=np.inf, posinf=np.inf)
        return float(a[np.argmin(values)])

    def exponents(self, log_moments: np.ndarray, epsilon: float, a: np.ndarray) -> np.ndarray:
        """Return ln of E e^{aL} e^{−aε} / (a(a + 1)), L the loss of all rounds: ln f under P (s = a + 1) or −ln f under Q."""
        return self.count * log_moments - a * epsilon - np.log(a * (a + 1.0))

    def none_beyond(self, epsilons: Sequence[float], share_of_tilt: float) -> list[float]:
        """Return δ(ε) below the threshold: (1/π) ∫ Re e^{exponent(a + iu)} du at any tilt a > 0, here the first ε's."""
        tilt = share_of_tilt * self.tilt(epsilons[0])
        nodes, weights = np.polynomial.legendre.leggauss(STEPS)
        edges = tilt * np.concatenate([[0.0], 0.01 * 2.0 ** np.arange(0.0, 40.0, 0.25)])
        totals, peaks = np.zeros(len(epsilons)), np.full(len(epsilons), -math.inf)
        for low, high in itertools.pairwise(edges):
            u = low + 0.5 * (high - low) * (nodes + 1.0)
            moments = self.turned_log_moments(-tilt if self.reverse else tilt + 1.0, -u if self.reverse else u)
            exponents = np.array([self.exponents(moments, epsilon, tilt + 1j * u) for epsilon in epsilons])
            totals += 0.5 * (high - low) * (np.exp(exponents).real @ weights)
            highest = exponents.real.max(axis=1)
            peaks = np.maximum(peaks, highest)
            if np.all(highest < peaks - 42.0):
                break
        return [float(total) / math.pi for total in totals]

    def one_beyond(self, epsilon: float) -> float:
        """Return P − e^ε Q of one outcome above the threshold, where the ratio is as good as surely above e^ε."""
        drawn = upper_tail(self.threshold - self.shift)
        q = upper_tail(self.threshold)
        p = (1.0 - self.probability) * q + self.probability * drawn
        others = self.count - 1
        return self.count * (p * math.exp(others * math.log1p(-p)) - math.exp(epsilon + others * math.log1p(-q)) * q)

    def missing(self) -> float:
        p = upper_tail(self.threshold - self.shift) * self.probability + upper_tail(self.threshold)
        return 0.5 * (self.count * p) ** 2


def upper_tail(x: float) -> float:
    return float(mpmath.ncdf(-mpmath.mpf(x)))


def exact_profile(rounds: Rounds, epsilons: Sequence[float], share_of_tilt: float = 1.0) -> list[float]:
    """Return δ(ε) of all rounds, independently of every lattice and cell."""
    below = rounds.none_beyond(epsilons, share_of_tilt)
    # In the other direction, high outcomes have no positive loss.
    beyond = [0.0 if rounds.reverse else rounds.one_beyond(epsilon) for epsilon in epsilons]
    return [one + other for one, other in zip(below, beyond, strict=True)]


#: The outcome beyond which rounds are treated separately has a loss of about three to six times the answer.
CASES = [
    (Rounds(10**6, 1e-6, 0.5, False, 6.9), 1e-6),
    (Rounds(10**6, 1e-7, 0.5, False, 7.0), 1e-7),
    (Rounds(10**6, 1e-7, 0.5, True, 12.0), 1e-7),
    (Rounds(10**6, 1e-9, 0.5, False, 7.2), 1e-9),
    (Rounds(10**6, 1e-9, 1.0, False, 10.5), 1e-12),
]
NAMES = ["1e-6", "1e-7", "1e-7 added", "1e-9", "1e-9 and more noise"]


def epsilon_of(rounds: Rounds, delta: float, tolerance: float) -> _core.ProvenInterval:
    profile = one_round(rounds.probability, rounds.noise_multiplier, reverse=rounds.reverse)
    return _core.answer_all([([(profile, rounds.count)], None, delta, tolerance)], threads=2)[0]


@pytest.mark.nightly(but=["1e-6", "1e-7 added", "1e-9 and more noise"])
@pytest.mark.parametrize(("rounds", "delta"), CASES, ids=NAMES)
def test_an_interval_is_as_narrow_as_asked_for_and_holds_the_truth(rounds: Rounds, delta: float) -> None:
    found = epsilon_of(rounds, delta, 1e-4)
    assert (1.0 - 1e-4) * found.upper <= found.lower <= found.upper
    # δ decreases in ε.
    at_lower, at_upper = exact_profile(rounds, (found.lower, found.upper))
    assert at_upper <= delta * (1.0 + 1e-7)
    assert at_lower + rounds.missing() >= delta * (1.0 - 1e-7)


@pytest.mark.nightly(but=["1e-6", "1e-7 added"])
@pytest.mark.parametrize(("rounds", "delta"), CASES, ids=NAMES)
def test_the_oracle_depends_neither_on_its_tilt_nor_on_its_threshold(rounds: Rounds, delta: float) -> None:
    about = epsilon_of(rounds, delta, 0.3)
    epsilon = brentq(lambda e: exact_profile(rounds, (e,))[0] - delta, 0.9 * about.lower, 1.1 * about.upper, rtol=1e-2)
    (usual,) = exact_profile(rounds, (epsilon,))
    (nearer,) = exact_profile(rounds, (epsilon,), 0.7)
    (further,) = exact_profile(replace(rounds, threshold=rounds.threshold + 0.2), (epsilon,))
    assert nearer == pytest.approx(usual, rel=1e-7)
    assert further == pytest.approx(nearer, rel=1e-7, abs=rounds.missing())


#: Few rounds, small tails, large losses: one lattice cannot represent all losses.
ENDS = {
    "many, added": (Rounds(10**6, 1e-9, 0.5, True, 14.0), 1e-16),
    "ten of much noise": (Rounds(10, 9e-6, 10.0, False, 14.0), 1e-20),
}


@pytest.mark.parametrize(("rounds", "delta"), ENDS.values(), ids=ENDS)
def test_ends_are_as_narrow_as_asked_for_and_hold_the_truth(rounds: Rounds, delta: float) -> None:
    found = epsilon_of(rounds, delta, 1e-3)
    assert found.within_tolerance
    assert (1.0 - 1e-3) * found.upper <= found.lower <= found.upper
    at_lower, at_upper = exact_profile(rounds, (found.lower, found.upper))
    assert at_upper <= delta * (1.0 + 1e-6)
    assert at_lower + rounds.missing() >= delta * (1.0 - 1e-6)


@pytest.mark.parametrize("epsilon", [0.12, 0.25, 1.0, 8.0])
@pytest.mark.parametrize("count", [2, 1000, 10**6])
def test_one_large_loss_makes_delta(count: int, epsilon: float) -> None:
    probability, noise_multiplier = 1e-9, 0.5
    profile = one_round(probability, noise_multiplier, reverse=False)
    (found,) = _core.answer_all([([(profile, count)], epsilon, None, 1e-3)], threads=2)
    assert found.within_tolerance
    assert (1.0 - 1e-3) * found.upper <= found.lower <= found.upper
    # δ is that of any one round, except for the events in which two rounds have a loss that matters: 1e-3 of it if all
    # other losses, which are 0 on average, had their whole spread of 7e-6 at a hazard of 38 for each nat.
    with mpmath.workdps(60):
        exact = float(
            count
            * exact_delta(mpmath.mpf(epsilon), mpmath.mpf(probability), 1 / mpmath.mpf(noise_multiplier), reverse=False)
        )
    # The quadrature over two rounds' outcomes ends below those that lose 8.
    if count == 2 and epsilon <= 1.0:
        exact = float(of_two_rounds(epsilon, probability, noise_multiplier, reverse=False))
    assert (1.0 - 5e-4) * exact <= found.lower
    assert found.upper <= (1.0 + 5e-4) * exact
    (back,) = _core.answer_all([([(profile, count)], None, exact, 1e-3)], threads=2)
    assert back.within_tolerance
    assert back.lower * (1.0 - 1e-4) <= epsilon <= back.upper * (1.0 + 1e-4)


def test_losses_that_no_nat_holds_are_bounded() -> None:
    # δ of these rounds falls by some 10⁶ nats with each nat of ε.
    rounds = Rounds(10**6, 1e-9, 1.0, False, 10.5)
    found = epsilon_of(rounds, 1e-16, 1e-3)
    assert found.within_tolerance
    at_lower, at_upper = exact_profile(rounds, (found.lower, found.upper))
    assert at_upper <= 1e-16 * (1.0 + 1e-6)
    assert at_lower + rounds.missing() >= 1e-16 * (1.0 - 1e-6)


def test_rounds_that_lose_a_lot_or_nearly_nothing_compose() -> None:
    # Twenty rounds or so lose 45 nats each, the others −0.01; losses beyond the threshold have a probability of 1e-44.
    rounds, delta = Rounds(2000, 0.01, 0.1, False, 24.0), 1e-5
    found = epsilon_of(rounds, delta, 1e-3)
    assert found.within_tolerance
    assert (1.0 - 1e-3) * found.upper <= found.lower <= found.upper
    at_lower, at_upper = rounds.none_beyond((found.lower, found.upper), 1.0)
    assert at_upper <= delta * (1.0 + 1e-6)
    assert at_lower >= delta * (1.0 - 1e-6)
    # A lattice for these losses is short.
    assert 0 < found.transform_length <= 2**17


def of_two_rounds(epsilon: float, probability: float, noise_multiplier: float, *, reverse: bool) -> mpmath.mpf:
    """Return δ of two rounds: the second one's at what the first leaves of ε, by quadrature over the first's outcome."""
    with mpmath.workdps(40):
        p, c = mpmath.mpf(probability), 1 / mpmath.mpf(noise_multiplier)
        total = mpmath.mpf(0)
        # Where the first outcome alone has the loss ε, δ of the second bends within a loss of about p.
        turn = float((mpmath.log((mpmath.exp(epsilon) / (1 - p) - 1 + p) / p) + c * c / 2) / c) if not reverse else 0.0
        edges = sorted(
            {*np.arange(-14.0, 15.5, 0.5), *(turn + s * 2.0**-k for s in (-1, 1) for k in range(1, 19)), turn}
        )
        panels = [quadrature(low, high, high - low, 10) for low, high in itertools.pairwise(edges)]
        nodes, weights = (np.concatenate(one) for one in zip(*panels, strict=True))
        for y, weight in zip(nodes, weights, strict=True):
            ratio = 1 - p + p * mpmath.exp(c * y - c * c / 2)
            loss = -mpmath.log(ratio) if reverse else mpmath.log(ratio)
            drawn = mpmath.npdf(y) * (1 if reverse else ratio)
            total += weight * drawn * exact_delta(epsilon - loss, p, c, reverse=reverse)
        return total


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("noise_multiplier", [1.0, 10.0])
def test_two_rounds_are_resolved_where_their_losses_are(noise_multiplier: float, reverse: bool) -> None:
    rounds, delta = Rounds(2, 9e-6, noise_multiplier, reverse, math.inf), 1e-20
    found = epsilon_of(rounds, delta, 1e-3)
    assert found.within_tolerance
    assert (1.0 - 1e-3) * found.upper <= found.lower <= found.upper
    at_lower, at_upper = (
        of_two_rounds(end, rounds.probability, noise_multiplier, reverse=reverse) for end in (found.lower, found.upper)
    )
    assert at_upper <= delta * (1.0 + 1e-4)
    assert at_lower >= delta * (1.0 - 1e-4)
