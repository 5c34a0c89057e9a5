"""Extreme mechanisms: the largest losses, the smallest tails, and rounds that lose nearly the same."""

import math

import mpmath
import pytest

from pyaccount import _core
from pyaccount.profiles import PoissonProfile


def epsilon_of(
    profile: _core.RoundProfile, delta: float, count: int = 1, tolerance: float = 1e-3
) -> _core.ProvenInterval:
    return _core.answer_all([([(profile, count)], None, delta, tolerance)], threads=2)[0]


def delta_of(profile: _core.RoundProfile, epsilon: float, count: int = 1) -> _core.ProvenInterval:
    return _core.answer_all([([(profile, count)], epsilon, None, 1e-2)], threads=2)[0]


@pytest.mark.parametrize("delta", [1e-5, 1e-200])
@pytest.mark.parametrize("shift", [1e-3, 1.0, 59.0, 61.0, 1e4, 1e8, 3e10, 1e16])
def test_a_gaussian_mechanism_has_a_closed_form_at_any_size(shift: float, delta: float) -> None:
    found = epsilon_of(_core.RoundProfile.gaussian(shift, 1.0), delta)
    assert found.within_tolerance
    with mpmath.workdps(60):
        c = mpmath.mpf(shift)

        def exact(epsilon: float) -> mpmath.mpf:
            t, x = mpmath.mpf(epsilon) / c - c / 2, mpmath.mpf(epsilon) / c + c / 2
            # e^ε Φ(−x) = φ(t) M(x), and for large x the Mills ratio is between 1/x and 1/x − 1/x³.
            second = mpmath.exp(epsilon) * mpmath.ncdf(-x) if x < 1e6 else mpmath.npdf(t) / x
            return mpmath.ncdf(-t) - second

        assert exact(found.upper) <= delta * (1 + 1e-9)
        assert exact(found.lower) >= delta * (1 - 1e-9)
        assert found.upper <= found.lower * (1 + 1e-6)


@pytest.mark.parametrize(("count", "noise_multiplier"), [(10**6, 0.5), (1000, 0.25), (10, 1.0), (1, 0.1)])
def test_rounds_without_a_rare_record_lose_no_more_than_its_probability(count: int, noise_multiplier: float) -> None:
    probability = 1e-9
    profile = _core.RoundProfile.poisson(1, probability, noise_multiplier, two_sided=False, reverse=True)
    most = -count * math.log1p(-probability)
    assert delta_of(profile, 1.01 * most, count).upper <= 1e-100
    for delta in (1e-16, 1e-30):
        assert epsilon_of(profile, delta, count).upper <= 1.01 * most


@pytest.mark.parametrize("epsilon", [20.0, 50.0, 300.0])
def test_what_sums_tell_of_secret_participation_is_known_in_the_tail(epsilon: float) -> None:
    # One round, in which two records are drawn with probability 0.51 each.
    shift, p = 1.0 / 0.6, mpmath.mpf(0.51)
    profile = _core.RoundProfile.summed_outputs([[shift]], 2, 0.51, 2, reverse=False, warm=False)
    delta, error, _, _ = _core.Inspection.profile(profile, epsilon)
    with mpmath.workdps(60):
        weights = [(1 - p) ** 2, 2 * p * (1 - p), p**2]

        def tail(y: mpmath.mpf) -> mpmath.mpf:
            return sum(w * mpmath.ncdf(j * shift - y) for j, w in enumerate(weights))

        def loss(y: mpmath.mpf) -> mpmath.mpf:
            return mpmath.log(sum(w * mpmath.exp(j * shift * y - (j * shift) ** 2 / 2) for j, w in enumerate(weights)))

        y = mpmath.findroot(lambda y: loss(y) - epsilon, epsilon / (2 * shift) + shift)
        exact = tail(y) - mpmath.exp(epsilon) * mpmath.ncdf(-y)
        assert abs(delta - exact) <= error
        assert error <= 1e-9 * exact + 1e-290


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("noise_multiplier", [1e-2, 0.3, 30.0])
@pytest.mark.parametrize("probability", [1e-12, 0.5])
@pytest.mark.parametrize("count", [1, 7])
def test_no_answer_is_infinite_or_not_a_number(
    probability: float, noise_multiplier: float, reverse: bool, count: int
) -> None:
    profile = _core.RoundProfile.poisson(1, probability, noise_multiplier, two_sided=False, reverse=reverse)
    answers = [epsilon_of(profile, delta, count, 1e-2) for delta in (1e-6, 1e-20)]
    answers.append(delta_of(profile, 1.0, count))
    for answer in answers:
        assert 0.0 <= answer.lower <= answer.upper < math.inf
        assert all(math.isfinite(value) for value in answer.budget.values())


@pytest.mark.parametrize("delta", [0.31105, 0.311, 0.3105])
def test_epsilon_just_below_delta_at_zero_takes_no_fine_lattice(delta: float) -> None:
    """Where ε is near zero it need not be known to a fraction of itself: only about as well as δ is."""
    profile = PoissonProfile(1, 0.02, 1.0, two_sided=False, reverse=False).build()
    found = epsilon_of(profile, delta, count=1000, tolerance=1e-4)
    assert found.within_tolerance
    assert delta_of(profile, found.upper, 1000).lower <= delta <= delta_of(profile, found.lower, 1000).upper
    # On a lattice that resolves this ε it was more than 2³⁰ cells, and no interval of this width came out.
    assert found.work < 1 << 23
