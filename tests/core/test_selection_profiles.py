"""Private selection: the bound on the best run, against every outcome set of small mechanisms in every order."""

import functools
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction

import mpmath
import pytest
from scipy.stats import norm  # type: ignore[import-untyped]
from snapshots import Snapshot

from pyaccount._core import RoundProfile, answer_all

Law = tuple[str, tuple[float, ...]]
#: Probabilities of outcomes under P and Q, from the worst outcome to the best one.
Mechanism = Sequence[tuple[Fraction, Fraction]]

LAWS: list[Law] = [
    ("geometric", (0.25,)),
    ("logarithmic", (0.0625,)),
    ("negative-binomial", (-0.5, 0.015625)),
    ("negative-binomial", (3.0, 0.5)),
    ("poisson", (0.5,)),
    ("poisson", (8.0,)),
    ("binomial", (6, 0.5)),
]
EPSILONS = [-6.0, -2.5, -1.0, -0.4, -0.1, 0.0, 0.05, 0.2, 0.5, 0.9, 1.4, 2.0, 3.0, 4.5, 7.0, 12.0, 30.0]


def generating(law: Law, x: Fraction) -> mpmath.mpf:
    """Return E[x^K] in closed form, at a rational x."""
    return generating_at(law, mpmath.mpf(x.numerator) / x.denominator)


def generating_at(law: Law, value: mpmath.mpf) -> mpmath.mpf:
    """Return E[x^K] in closed form."""
    name, parameters = law
    if name == "poisson":
        return mpmath.exp(parameters[0] * (value - 1))
    if name == "binomial":
        return (1 - parameters[1] + parameters[1] * value) ** int(parameters[0])
    shape, stopping = {"geometric": (1.0, *parameters), "logarithmic": (0.0, *parameters)}.get(name, parameters)
    inside = 1 - (1 - mpmath.mpf(stopping)) * value
    if shape == 0.0:
        return mpmath.log(inside) / mpmath.log(stopping)
    return (inside ** -mpmath.mpf(shape) - 1) / (mpmath.mpf(stopping) ** -mpmath.mpf(shape) - 1)


@functools.cache
def best_of(law: Law, probabilities: tuple[Fraction, ...]) -> list[mpmath.mpf]:
    """Return the law of the best run: the symbol for no run, then each outcome, from P(best ≤ j) = f(F_j)."""
    with mpmath.workdps(40):
        values = [generating(law, Fraction(0))]
        values += [generating(law, sum(probabilities[: j + 1], Fraction(0))) for j in range(len(probabilities))]
    return values[:1] + [after - before for before, after in itertools.pairwise(values)]


def hockey_stick(first: Sequence[mpmath.mpf], second: Sequence[mpmath.mpf], epsilon: float) -> mpmath.mpf:
    """Return the largest P(S) − e^ε Q(S) over all sets S of outcomes, one by one."""
    alpha = mpmath.exp(epsilon)
    sets = itertools.product((False, True), repeat=len(first))
    return max(
        sum((p - alpha * q for p, q, inside in zip(first, second, s, strict=True) if inside), mpmath.mpf(0))
        for s in sets
    )


def exact(law: Law, mechanism: Mechanism, epsilon: float, *, reverse: bool) -> float:
    """Return the profile of the best run of one mechanism in one order."""
    with mpmath.workdps(40):
        one, other = (best_of(law, side) for side in zip(*mechanism, strict=True))
        return float(hockey_stick(other, one, epsilon) if reverse else hockey_stick(one, other, epsilon))


def mechanisms(seed: int) -> Iterator[Mechanism]:
    """Yield mechanisms with three outcomes: ordinary, extreme, and with outcomes that are impossible on one side."""
    source = random.Random(seed)
    for power in (1, 6):
        weights = [[1 + int(10**6 * source.random() ** power) for _ in range(3)] for _ in range(2)]
        yield [(Fraction(p, sum(weights[0])), Fraction(q, sum(weights[1]))) for p, q in zip(*weights, strict=True)]
    yield [(Fraction(1, 50), Fraction(0)), (Fraction(9, 50), Fraction(7, 10)), (Fraction(4, 5), Fraction(3, 10))]
    yield [(Fraction(1, 3), Fraction(1, 3)), (Fraction(2, 3), Fraction(1, 2)), (Fraction(0), Fraction(1, 6))]


def inner(mechanism: Mechanism, *, reverse: bool) -> RoundProfile:
    return RoundProfile.finite([float(p) for p, _ in mechanism], [float(q) for _, q in mechanism], reverse=reverse)


def selected(remove: RoundProfile, add: RoundProfile, law: Law, *, reverse: bool = False) -> RoundProfile:
    return RoundProfile.selection(remove, add, law[0], law[1], reverse=reverse)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_no_order_of_three_outcomes_exceeds_the_bound(law: Law) -> None:
    worst = []
    for mechanism in mechanisms(LAWS.index(law)):
        remove, add = inner(mechanism, reverse=False), inner(mechanism, reverse=True)
        for reverse in (False, True):
            profile = selected(remove, add, law, reverse=reverse)
            for epsilon in EPSILONS:
                largest = max(
                    exact(law, order, epsilon, reverse=reverse) for order in itertools.permutations(mechanism)
                )
                upper = profile.delta(epsilon)[1]
                assert largest <= upper, (law, mechanism, epsilon, reverse)
                if largest > 1e-6 and epsilon >= 0.0:
                    worst.append(upper / largest)
    # The bound is for every mechanism with this profile of one run, not for these outcomes alone.
    assert sorted(worst)[len(worst) // 2] < 2.5


def best_value(law: Law, order: Mechanism, epsilon: float) -> float:
    """Return the hockey stick of the best run in one order, outcome by outcome: no set of outcomes has more."""
    with mpmath.workdps(30):
        one, other = (best_of(law, side) for side in zip(*order, strict=True))
        alpha = mpmath.exp(epsilon)
        return float(sum(max(mpmath.mpf(0), p - alpha * q) for p, q in zip(one, other, strict=True)))


@pytest.mark.parametrize(("law", "attained"), [(LAWS[0], 2.6), (LAWS[1], 2.6), (LAWS[5], 3.5), (LAWS[6], 3.5)], ids=str)
def test_no_pure_mechanism_exceeds_the_bound(law: Law, attained: float) -> None:
    """Binary response at ε = 1, each of its answers divided into two, in every order: the extreme mechanisms of a pure bound."""
    pure = RoundProfile.guarantees([(1.0, 0.0)])
    profile = selected(pure, pure, law)
    ratio = Fraction(271828, 100000)  # below e
    likely = ratio / (1 + ratio)
    for epsilon in (0.0, 0.5, 1.0):
        largest = 0.0
        for high, low in itertools.product([Fraction(k, 5) for k in range(6)], repeat=2):
            masses = [high * likely, (1 - high) * likely, low * (1 - likely), (1 - low) * (1 - likely)]
            outcomes = [(p, p / ratio if k < 2 else p * ratio) for k, p in enumerate(masses)]
            for order in ((0, 1, 2, 3), (2, 0, 1, 3), (0, 2, 1, 3), (2, 3, 0, 1)):
                largest = max(largest, best_value(law, [outcomes[k] for k in order], epsilon))
        upper = profile.delta(epsilon)[1]
        assert largest <= upper < attained * largest, (law, epsilon)


@pytest.mark.parametrize("law", [LAWS[0], LAWS[5]], ids=str)
@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_no_order_of_gaussian_pieces_exceeds_the_bound(law: Law, mu: float) -> None:
    """A Gaussian pair cut into five intervals, in every order: each is a mechanism below the Gaussian profile."""
    run = RoundProfile.gaussian(mu, 1.0)
    profile = selected(run, run, law)
    cuts = [-math.inf, -0.5, 0.6, 1.6, 2.8, math.inf]
    pieces = [
        tuple(Fraction(norm.cdf(right - at) - norm.cdf(left - at)).limit_denominator(10**9) for at in (mu, 0.0))
        for left, right in itertools.pairwise(cuts)
    ]
    sums = [sum((piece[k] for piece in pieces), Fraction(0)) for k in (0, 1)]
    outcomes = [(piece[0] / sums[0], piece[1] / sums[1]) for piece in pieces]
    for epsilon in (0.0, mu, 2.0 * mu):
        largest = max(best_value(law, order, epsilon) for order in itertools.permutations(outcomes))
        # The rational probabilities of the pieces are within 1e-9 of those of the pair.
        assert 0.0 < largest <= profile.delta(epsilon)[1] + 1e-6, (law, mu, epsilon)


@pytest.mark.parametrize(
    ("law", "epsilons"), [(LAWS[0], (4.5, 6.0)), (LAWS[1], (4.5, 6.0)), (LAWS[5], (6.0, 7.0))], ids=str
)
def test_an_order_of_a_gaussian_nearly_attains_the_bound(law: Law, epsilons: tuple[float, ...]) -> None:
    """Large losses are best, but those between two thresholds are worst: what small δ come from."""
    run = RoundProfile.gaussian(1.0, 1.0)
    profile = selected(run, run, law)

    def above(threshold: float, at: float) -> mpmath.mpf:
        return mpmath.ncdf(at - threshold)

    def best_than(middle: mpmath.mpf, top: mpmath.mpf) -> mpmath.mpf:
        return generating_at(law, middle) - generating_at(law, middle - top)

    with mpmath.workdps(30):
        for epsilon in epsilons:
            largest = mpmath.mpf(0)
            for low, high in itertools.product([0.25 * k for k in range(-6, 9)], [0.25 * k for k in range(10, 28)]):
                if low < high:
                    one = best_than(above(low, 1.0), above(high, 1.0))
                    other = best_than(above(low, 0.0), above(high, 0.0))
                    largest = max(largest, one - mpmath.exp(epsilon) * other)
            upper = profile.delta(epsilon)[1]
            assert float(largest) <= upper < 2.0 * float(largest), (law, epsilon)


def test_selections_compose_with_each_other() -> None:
    """The twofold composition of one concrete selection is below that of its bound."""
    law = LAWS[0]
    mechanism = [
        (Fraction(1, 10), Fraction(1, 20)),
        (Fraction(3, 10), Fraction(2, 5)),
        (Fraction(3, 5), Fraction(11, 20)),
    ]
    profile = selected(inner(mechanism, reverse=False), inner(mechanism, reverse=True), law)
    one, other = (best_of(law, side) for side in zip(*mechanism, strict=True))
    for epsilon in (0.0, 0.2, 0.6, 1.0):
        pairs = [(p * u, q * v) for (p, q), (u, v) in itertools.product(zip(one, other, strict=True), repeat=2)]
        largest = float(sum(max(mpmath.mpf(0), p - mpmath.exp(epsilon) * q) for p, q in pairs))
        (answer,) = answer_all([([(profile, 2)], epsilon, None, 1e-4)])
        assert largest <= answer.upper < 1.0


@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0, 3.0])
def test_pure_runs_have_bounded_losses(shape: float) -> None:
    """Liu & Talwar 2019, Papernot & Steinke 2022: (2 + η)ε for every γ, approached where there are many runs."""
    pure = RoundProfile.guarantees([(0.5, 0.0)])
    profile = selected(pure, pure, ("negative-binomial", (shape, 1e-5)))
    assert profile.delta((2.0 + shape) * 0.5 * (1.0 + 1e-12))[1] < 1e-290
    assert profile.delta((1.98 + shape) * 0.5)[1] > 0.0


def test_infinite_losses_grow_with_the_runs() -> None:
    """The mass that one run can have at infinite loss: E[K]·δ bounds that of the best run, and little more is claimed."""
    stated = RoundProfile.guarantees([(0.0, 1e-7)])
    profile = selected(stated, stated, ("geometric", (0.1,)))
    for epsilon in (0.5, 5.0, 50.0):
        lower, upper = profile.delta(epsilon)
        assert 10.0 * 1e-7 * (1.0 - 1e-5) < lower <= upper < 10.0 * 1e-7 * (1.0 + 1e-3)


@pytest.mark.parametrize(
    ("law", "parameters"),
    [
        ("fixed", (5.0,)),
        ("geometric", (0.5, 0.5)),
        ("negative-binomial", (-1.0, 0.5)),
        ("negative-binomial", (1.0, 0.0)),
        ("logarithmic", (1.0,)),
        ("poisson", (0.0,)),
        ("poisson", (math.inf,)),
        ("binomial", (2.5, 0.5)),
        ("binomial", (5, 1.0)),
    ],
)
def test_laws_without_a_bound_are_refused(law: str, parameters: tuple[float, ...], snapshot: Snapshot) -> None:
    run = RoundProfile.gaussian(1.0, 1.0)
    snapshot.raised(RoundProfile.selection, run, run, law, parameters, reverse=False)
