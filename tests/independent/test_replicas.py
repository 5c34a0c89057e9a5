"""Moments of the likelihood ratio of correlated noise, compared with enumerations of all tuples of patterns."""

import itertools
import math
import random
from fractions import Fraction

import pytest

from pyaccount.independent import moments
from pyaccount.independent.lattice import NotCheckableError
from pyaccount.independent.moments import Chain, MovedColumns, Renewals

Weighted = list[tuple[float, list[int]]]


def equal(first: list[Fraction], square: Fraction, apart: int) -> MovedColumns:
    return MovedColumns(first, square, apart, Fraction(0))


def bound(law: Renewals, columns: MovedColumns, m: int, seconds: float = math.inf) -> Fraction | None:
    return Chain(law, columns, m).moment(seconds)


def patterns(law: Renewals) -> Weighted:
    """Return every pattern of participations with its probability, by the definition of the sampler."""
    n, b, p = law.rounds, law.apart, float(law.p)
    found: dict[tuple[int, ...], float] = {}

    def extend(i: int, joined: tuple[int, ...], weight: float, free_from: int) -> None:
        if i > n:
            found[joined] = found.get(joined, 0.0) + weight
        elif i < free_from:
            extend(i + 1, joined, weight, free_from)
        else:
            extend(i + 1, joined, weight * (1 - p), free_from)
            extend(i + 1, (*joined, i), weight * p, i + b)

    whole = 1 + (b - 1) * p if law.warm else 1.0
    extend(1, (), 1 / whole, 1)
    for waits in range(1, b if law.warm else 1):
        extend(1, (), p / whole, 1 + waits)
    return [(weight, list(joined)) for joined, weight in found.items()]


def moved(law: Renewals, columns: list[list[float]], joined: list[int]) -> list[float]:
    """Return Cx."""
    total = [0.0] * law.rounds
    for i in joined:
        for t, entry in enumerate(columns[i - 1]):
            if i + t <= law.rounds:
                total[i + t - 1] += entry
    return total


def moment(law: Renewals, columns: list[list[float]], square: float, m: int) -> float:
    """Return Z_m as a sum over all m-tuples."""
    every = [(weight, moved(law, columns, joined)) for weight, joined in patterns(law)]
    product = [[square * sum(map(lambda a, b: a * b, x, y)) for _, y in every] for _, x in every]
    return sum(
        math.prod(every[k][0] for k in tuple_)
        * math.exp(sum(product[a][b] for a, b in itertools.combinations(tuple_, 2)))
        for tuple_ in itertools.product(range(len(every)), repeat=m)
    )


def test_patterns_are_a_law() -> None:
    law = Renewals(5, 3, Fraction(1, 5), warm=True)
    assert sum(weight for weight, _ in patterns(law)) == pytest.approx(1, rel=1e-12)
    rate = 0.2 / 1.4
    for i in range(1, 6):
        assert sum(weight for weight, joined in patterns(law) if i in joined) == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_moments_are_sums_over_all_tuples(seed: int) -> None:
    drawn = random.Random(seed)
    b, m = drawn.randint(1, 4), drawn.randint(2, 4 if seed % 3 else 3)
    law = Renewals(drawn.randint(1, 4 if m > 3 else 6), b, Fraction(drawn.randint(1, 9), 10), warm=seed % 2 == 0)
    bands, square = drawn.randint(1, b), Fraction(drawn.randint(1, 8), 4)
    first = [Fraction(drawn.randint(0, 10), 10) for _ in range(bands)]
    columns, listed = equal(first, square, b), [[float(each) for each in first]] * law.rounds
    exact = moment(law, listed, float(square), m)
    above = bound(law, columns, m)
    assert above is not None
    assert exact * (1 - 1e-12) <= float(above) <= exact * (1 + 2e-4)
    # Without time there is a looser bound, or none.
    hurried = bound(law, columns, m, 0.0)
    assert hurried is None or float(hurried) >= exact * (1 - 1e-12)


def test_the_rounds_that_are_equal_are_not_repeated_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    law, first = Renewals(400, 4, Fraction(1, 50), warm=True), [Fraction(4, 5), Fraction(1, 2), Fraction(3, 10)]
    columns = equal(first, Fraction(1, 4), 4)
    short, hurried = bound(law, columns, 3, 0.3), bound(law, columns, 3, 0.0)
    # No factors are so near: every round is a step.
    monkeypatch.setattr(moments, "NEAR", -1.0)
    whole = bound(law, columns, 3)
    assert short is not None
    assert whole is not None
    assert hurried is not None
    assert whole <= short * (1 + Fraction(1, 2**40)) <= hurried * (1 + Fraction(1, 2**40))
    assert short <= whole * (1 + Fraction(1, 10**9))


def second_moment(rounds: int, p: float, products: list[float]) -> float:
    """Return Z_2 of a cold start by all pairs of ages, in doubles; `products` are ⟨c_i, c_(i−k)⟩, in all rounds alike."""
    b, shared = len(products), [*products, 0.0]
    table = dict.fromkeys(itertools.product(range(1, b + 1), repeat=2), 1.0)
    for _ in range(rounds):
        before, table = table, {}
        for x, y in before:
            table[x, y] = 0.0
            for i, j in itertools.product((0, 1), repeat=2):
                if not (i and x < b) and not (j and y < b):
                    chance = math.prod((p if joins else 1 - p) for joins, age in ((i, x), (j, y)) if age == b)
                    moved = shared[0] if i and j else shared[y] * i + shared[x] * j
                    ages = (1 if i else min(b, x + 1)), (1 if j else min(b, y + 1))
                    table[x, y] += chance * math.exp(moved) * before[ages]
    return table[b, b]


def test_a_longer_run_of_equal_rounds_is_one_power() -> None:
    n, p = 100_000, 0.02
    law, square = Renewals(n, 2, Fraction(1, 50), warm=False), Fraction(1, 4)
    found = bound(law, equal([Fraction(4, 5)], square, 2), 2, 2.0)
    assert found is not None
    exact = second_moment(n, p, [0.16, 0.0])
    assert exact * (1 - 1e-9) <= float(found) <= exact * (1 + 1e-6)


def test_what_the_theorem_excludes_is_refused() -> None:
    with pytest.raises(NotCheckableError, match="more bands than the separation"):
        equal([Fraction(1), Fraction(1)], Fraction(1), 1)
    with pytest.raises(NotCheckableError, match="negative"):
        equal([Fraction(1), Fraction(-1, 10)], Fraction(1), 2)
