"""Moments of the likelihood ratio of correlated noise, compared with enumerations of all tuples of patterns."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import pytest

from pyaccount.independent.replicas import EqualColumns, MovedColumns, Renewals, ReplicaRecursion
from pyaccount.independent.shapes import NotCheckableError

Weighted = list[tuple[float, list[int]]]


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
    if drawn.random() < 0.5:
        first = [Fraction(drawn.randint(0, 10), 10) for _ in range(bands)]
        columns, listed = EqualColumns(first, square, b), [[float(each) for each in first]] * law.rounds
    else:
        several = [[Fraction(drawn.randint(0, 10), 10) for _ in range(bands)] for _ in range(law.rounds)]
        columns, listed = MovedColumns(several, square, b), [[float(each) for each in column] for column in several]
    exact = moment(law, listed, float(square), m)
    above, below = ReplicaRecursion(law, columns, m).moment(), ReplicaRecursion(law, columns, m, up=False).moment()
    assert above is not None
    assert below is not None
    assert below.value <= above.value
    assert float(above.value) == pytest.approx(exact, rel=2e-4)
    assert float(below.value) == pytest.approx(exact, rel=2e-4)
    # Without time there is a looser bound, or none.
    hurried = ReplicaRecursion(law, columns, m).moment(0.0)
    assert hurried is None or float(hurried.value) >= exact * (1 - 1e-12)


def test_the_rounds_that_are_equal_are_not_repeated_one_by_one() -> None:
    law, first = Renewals(400, 4, Fraction(1, 50), warm=True), [Fraction(4, 5), Fraction(1, 2), Fraction(3, 10)]
    columns, listed = EqualColumns(first, Fraction(1, 4), 4), MovedColumns([first] * 400, Fraction(1, 4), 4)
    short = ReplicaRecursion(law, columns, 3).moment(0.3)
    whole, below = ReplicaRecursion(law, listed, 3).moment(), ReplicaRecursion(law, columns, 3, up=False).moment()
    hurried = ReplicaRecursion(law, columns, 3).moment(0.0)
    assert short is not None
    assert whole is not None
    assert below is not None
    assert hurried is not None
    assert whole.repeated == 0
    assert hurried.repeated > 300
    assert (
        below.value <= whole.value <= short.value * (1 + Fraction(1, 2**40)) <= hurried.value * (1 + Fraction(1, 2**40))
    )
    assert whole.value <= below.value * (1 + Fraction(1, 10**9))


def test_a_longer_run_of_equal_rounds_is_one_power() -> None:
    law, first = Renewals(100_000, 3, Fraction(1, 50), warm=False), [Fraction(4, 5), Fraction(1, 2)]
    above = ReplicaRecursion(law, EqualColumns(first, Fraction(1, 4), 3), 2).moment(2.0)
    below = ReplicaRecursion(law, EqualColumns(first, Fraction(1, 4), 3), 2, up=False).moment(2.0)
    assert above is not None
    assert below is not None
    assert above.repeated > 90_000
    assert below.value <= above.value <= below.value * (1 + Fraction(1, 1000))
    # What two replicas gain per round is known: only those that are both free, and the products 0.89/4 and 0.4/4 matter.
    assert 1 < above.growth < 1 + 0.0004 * (math.exp(0.2225) - 1) * 1.1 + 2 * 0.0004 * (math.exp(0.1) - 1) * 1.1


def test_what_the_theorem_excludes_is_refused() -> None:
    with pytest.raises(NotCheckableError, match="more bands than the separation"):
        EqualColumns([Fraction(1), Fraction(1)], Fraction(1), 1)
    with pytest.raises(NotCheckableError, match="negative"):
        EqualColumns([Fraction(1), Fraction(-1, 10)], Fraction(1), 2)
    with pytest.raises(NotCheckableError, match="negative"):
        MovedColumns([[Fraction(1)], [Fraction(-1)]], Fraction(1), 2)
