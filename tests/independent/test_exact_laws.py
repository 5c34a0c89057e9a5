"""What the checker draws: laws, likelihood ratios and moments, compared with enumerations, quadratures and high precision."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from pyaccount.independent.samples import normals, process
from pyaccount.independent.samples.bins import Bins
from pyaccount.independent.samples.process import Outcomes, Process, growth
from pyaccount.independent.samples.spaced import SpacedRun

ONE = Fraction(1)
COEFFICIENTS = (Fraction(9, 10), Fraction(1, 2))


def spaced(
    rounds: int, apart: int = 2, *, warm: bool = True, p: Fraction = Fraction(1, 5), sigma: Fraction = ONE
) -> SpacedRun:
    return SpacedRun(rounds, apart, p, warm, COEFFICIENTS[: min(apart, rounds)], sigma)


def patterns(setting: Process) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
    """Yield each pattern of participations with its probability, by walking through the rounds."""
    n = setting.rounds
    if isinstance(setting, Bins):
        for t in range(setting.bins):
            yield Fraction(1, setting.bins), tuple(int(i % setting.bins == t) for i in range(n))
        return
    assert isinstance(setting, SpacedRun)

    def walk(i: int, wait: int, chance: Fraction, x: tuple[int, ...]) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
        if i == n:
            yield chance, x
        elif wait:
            yield from walk(i + 1, wait - 1, chance, (*x, 0))
        else:
            yield from walk(i + 1, 0, chance * (1 - setting.probability), (*x, 0))
            yield from walk(i + 1, setting.apart - 1, chance * setting.probability, (*x, 1))

    whole = 1 + (setting.apart - 1) * setting.probability
    if not setting.warm:
        yield from walk(0, 0, ONE, ())
        return
    yield from walk(0, 0, 1 / whole, ())
    for waiting in range(1, setting.apart):
        yield from walk(0, waiting, setting.probability / whole, ())


def shifts(setting: Process) -> list[tuple[float, np.ndarray]]:
    """Return each pattern's probability and Cx in units of σ."""
    n = setting.rounds
    columns = np.array([float(c / setting.sigma) for c in setting.coefficients])  # type: ignore[attr-defined]
    found = []
    for chance, x in patterns(setting):
        moved = np.zeros(n)
        for i, count in enumerate(x):
            moved[i : i + len(columns)] += count * columns[: n - i]
        found.append((float(chance), moved))
    assert sum(chance for chance, _ in found) == pytest.approx(1.0, rel=1e-12)
    return found


CASES: dict[str, Process] = {
    "warm": spaced(4),
    "cold": spaced(5, warm=False),
    "one round": SpacedRun(1, 1, Fraction(1, 4), True, (ONE,), Fraction(4, 5)),
    "three apart": SpacedRun(5, 3, Fraction(1, 3), True, (ONE, Fraction(1, 2), Fraction(1, 4)), Fraction(3, 2)),
    "bins": Bins(5, 2, (ONE, Fraction(1, 2), Fraction(1, 3)), Fraction(3, 2)),
}


def test_the_staircase_is_above_the_curve_and_the_columns_below_it() -> None:
    sums, lower = normals._staircase()
    scale = normals._SCALE
    with mpmath.workprec(120):
        for k in range(0, len(lower), 37):
            ends = [scale * mpmath.exp(-(mpmath.mpf(at) ** 2) / 2**17) for at in (k, k + 1)]
            assert lower[k] <= ends[1] <= ends[0] <= sums[k + 1] - sums[k] <= ends[0] + 8
        beyond = scale * 256 * mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(mpmath.mpf("8.5") / mpmath.sqrt(2))
        assert beyond <= sums[-1] - sums[-2]
        assert sums[-1] <= 2**64


def test_normal_numbers_are_normal() -> None:
    drawn = normals.normals(60_000, normals.source(5))
    assert drawn is not None
    assert kstest(np.array(drawn) / 2**40, norm.cdf).pvalue > 1e-4
    # The fine digits are uniform as well.
    fine = Counter((z >> 10) % 16 for z in drawn)
    assert chi2.sf(sum((count - 3750) ** 2 / 3750 for count in fine.values()), 15) > 1e-4


def test_cells_at_the_curve_are_accepted_rejected_or_not_known() -> None:
    sums, lower = normals._staircase()
    column = 300
    start, height = column << 32, sums[column + 1] - sums[column]
    middle = normals._SCALE * math.exp(-(((start + (1 << 31)) / 2**40) ** 2) / 2)

    def decided(above: float) -> list[int] | None:
        words = [sums[column] + int(middle + above), 1 << 31, sums[3], 7 | 1 << 63]
        assert lower[column] < middle + above < height
        data = b"".join(word.to_bytes(8, "little") for word in words)
        return normals.normals(1, lambda size: data + bytes(size - len(data)))

    assert decided(-1e6) == [-(start | 1 << 31)]
    assert decided(1e6) == [3 << 32 | 7]
    # The curve falls by some 30,000 units over the part of the column that the 32 bits leave open.
    assert decided(-1e4) is None
    beyond = (sums[-1] - 1).to_bytes(8, "little") + bytes(8)
    assert normals.normals(1, lambda size: beyond + bytes(size - 16)) is None


def test_growth_is_the_exponential() -> None:
    with mpmath.workprec(150):
        for x in (-(70 << 60), -1, 0, 1, (1 << 60) - 1, 3 << 59, 12345678901234567890123, 90 << 60):
            risen, k = growth(x)
            exact = mpmath.exp(mpmath.mpf(x) / 2**60)
            assert abs(mpmath.mpf(risen) * mpmath.mpf(2) ** (k - 60) / exact - 1) < mpmath.mpf(2) ** -36


def test_products_are_those_of_the_columns() -> None:
    columns, n, scale = [5 << 36, 3 << 36, 1 << 34], 6, Fraction(-3, 2)
    noise = [3 << 39, -(7 << 38), 12345, -1, 0, 1 << 40]
    found = Outcomes(n, columns, 4).products(noise, [(2, 2), (6, 1)], scale)
    y = [Fraction(z) for z in noise]
    for i, count in ((2, 2), (6, 1)):
        for j, c in enumerate(columns):
            if i - 1 + j < n:
                y[i - 1 + j] += scale * count * c
    for i in range(n):
        exact = sum((c * y[i + j] for j, c in enumerate(columns) if i + j < n), Fraction(0)) / 2**20
        assert abs(found[i] - exact) <= 1 << 14


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("scale", [ONE, Fraction(-7, 4)])
def test_the_likelihood_ratio_is_that_of_all_patterns(name: str, scale: Fraction) -> None:
    setting = CASES[name]
    outcomes, ratio = Outcomes(setting.rounds, setting.columns, 3), setting.ratio(scale)
    random_bytes = normals.source(11)
    for _ in range(5):
        noise = normals.normals(setting.rounds, random_bytes)
        assert noise is not None
        found = ratio.at(outcomes.products(noise, [(1, 1)], scale))
        y = np.array(noise) / 2**40
        first = np.array([float(c) / 2**40 for c in setting.columns[: setting.rounds]])
        y[: len(first)] += float(scale) * first
        exact = sum(
            chance * math.exp(float(scale) * moved @ y - float(scale) ** 2 * moved @ moved / 2)
            for chance, moved in shifts(setting)
        )
        assert found is not None
        # The coefficients are rounded up to 2^−36, which this enumeration does not do.
        assert abs(found / 2**ratio.bits / exact - 1) < float(ratio.error) + 1e-9
        assert ratio.error < Fraction(1, 10**7)


def moment(setting: Process, m: int) -> float:
    every = shifts(setting)
    return sum(
        math.prod(chance for chance, _ in each)
        * math.exp(sum(a @ b for (_, a), (_, b) in itertools.combinations(each, 2)))
        for each in itertools.product(every, repeat=m)
    )


@pytest.mark.parametrize("name", CASES)
def test_moments_are_those_of_all_tuples(name: str) -> None:
    setting = CASES[name]
    for m in (2, 3):
        tuples, exact = setting.tuples(m), moment(setting, m)
        assert exact * (1 - 1e-12) <= tuples.total / tuples.unit <= exact * (1 + 1e-8)
        assert math.log(exact) - 1e-8 <= float(tuples.log_moment()) <= math.log(exact) + 1e-8


@pytest.mark.parametrize("name", ["warm", "bins", "three apart"])
def test_tuples_have_the_law_of_the_power(name: str) -> None:
    setting, m, count = CASES[name], 2, 6000
    tuples, random_bytes = setting.tuples(m), normals.source(3)
    found = Counter(tuple(sorted(tuples.draw(random_bytes) or ())) for _ in range(count))
    exact: dict[tuple[tuple[int, int], ...], float] = {}
    for (one, x), (other, y) in itertools.product(patterns(setting), repeat=2):
        key = tuple((i + 1, a + b) for i, (a, b) in enumerate(zip(x, y, strict=True)) if a + b)
        a, b = moved(setting, x), moved(setting, y)
        exact[key] = exact.get(key, 0.0) + float(one * other) * math.exp(a @ b)
    whole = sum(exact.values())
    expected = {key: count * weight / whole for key, weight in exact.items()}
    assert set(found) <= set(expected)
    distance = sum((found.get(key, 0) - each) ** 2 / each for key, each in expected.items())
    assert chi2.sf(distance, len(expected) - 1) > 1e-4


def moved(setting: Process, x: tuple[int, ...]) -> np.ndarray:
    columns = np.array([float(c) / 2**40 for c in setting.columns])
    total = np.zeros(setting.rounds)
    for i, count in enumerate(x):
        total[i : i + len(columns)] += count * columns[: setting.rounds - i]
    return total


@pytest.mark.parametrize("name", ["warm", "cold", "three apart"])
def test_patterns_have_their_law(name: str) -> None:
    setting, random_bytes, count = CASES[name], normals.source(8), 4000
    found = Counter(tuple(i for i, _ in setting.pattern(random_bytes) or ()) for _ in range(count))
    expected: dict[tuple[int, ...], float] = {}
    for chance, x in patterns(setting):
        key = tuple(i + 1 for i, each in enumerate(x) if each)
        expected[key] = expected.get(key, 0.0) + float(chance) * count
    assert set(found) <= set(expected)
    distance = sum((found.get(key, 0) - each) ** 2 / each for key, each in expected.items())
    assert chi2.sf(distance, len(expected) - 1) > 1e-4
    never = sum(float(chance) for chance, x in patterns(setting) if not any(x))
    bound = setting.never()
    assert bound is not None
    assert -math.log(never) <= float(bound) * (1 + 1e-12) <= -math.log(never) * (1 + 1e-9)


@pytest.mark.parametrize("name", CASES)
def test_hoelders_bound_is_above_every_sample(name: str) -> None:
    setting, epsilon = CASES[name], 0.7
    every = shifts(setting)
    drawn = np.random.default_rng(4).normal(size=(2000, setting.rounds)) * 2.0
    y = drawn + sum(chance * moved for chance, moved in every) * np.linspace(-6, 6, 2000)[:, None]

    def density(scale: float) -> np.ndarray:
        return sum(chance * np.exp(scale * y @ moved - scale**2 * moved @ moved / 2) for chance, moved in every)

    for scale in (Fraction(-2), Fraction(-1, 2), Fraction(3, 2), Fraction(3)):
        bound = setting.hoelder(scale, None, Fraction(7, 10))
        assert bound is not None
        gain = density(1.0) - math.exp(epsilon) if scale > 0 else 1 - math.exp(epsilon) * density(1.0)
        assert float(np.max(np.maximum(gain, 0) / density(float(scale)))) <= math.exp(bound) * (1 + 1e-9)
    assert setting.hoelder(Fraction(1, 2), None, Fraction(1)) is None


def test_coefficients_are_rounded_up() -> None:
    columns = process.rounded([Fraction(1, 3), ONE], Fraction(7, 5))
    for column, exact in zip(columns, (Fraction(5, 21), Fraction(5, 7)), strict=True):
        assert exact * 2**40 <= column < exact * 2**40 + 16
        assert column % 16 == 0
