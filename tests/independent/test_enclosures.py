"""Exponential, logarithm and normal tail of the independent checker, compared with mpmath at 240 digits."""

import random
from collections.abc import Callable, Iterator
from fractions import Fraction

import mpmath
import pytest

from pyaccount.independent import enclosures


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    with mpmath.workprec(800):
        yield


def normal_tail(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


RANGES = [(-12.0, 12.0), (-1e-3, 1e-3), (38.0, 45.0), (-60.0, 60.0)]


def arguments(bits: int) -> list[int]:
    drawn = random.Random(bits)
    near = [round(drawn.uniform(*drawn.choice(RANGES)) * 2**40) << (bits - 40) for _ in range(60)]
    nodes = [(k << bits) // 32 + drawn.randint(-1, 1) for k in range(-40, 40, 3)]
    return [x + drawn.randint(0, 5) for x in near] + nodes


@pytest.mark.parametrize("bits", [64, 130, 400])
@pytest.mark.parametrize(
    ("ours", "exact"), [(enclosures.exp, mpmath.exp), (enclosures.tail, normal_tail)], ids=["exp", "tail"]
)
def test_within_one_unit(ours: Callable[[int, int], int], exact: Callable[[mpmath.mpf], mpmath.mpf], bits: int) -> None:
    for x in arguments(bits):
        assert abs(ours(x, bits) - exact(mpmath.mpf(x) / 2**bits) * 2**bits) <= 1, x


@pytest.mark.parametrize("bits", [64, 130, 400])
def test_logarithms_within_one_unit(bits: int) -> None:
    for x in arguments(bits):
        if x > 0:
            assert abs(enclosures.ln(x, bits) - mpmath.log(mpmath.mpf(x) / 2**bits) * 2**bits) <= 1, x
    huge = 10**80 << bits
    assert abs(enclosures.ln(huge, bits) - mpmath.log(mpmath.mpf(10) ** 80) * 2**bits) <= 1
    assert abs(enclosures.ln(1, bits) + bits * mpmath.log(2) * 2**bits) <= 1


@pytest.mark.parametrize("bits", [64, 400])
@pytest.mark.parametrize("x", [-3000.7, -700.3, -0.75, 0.0, 127.9, 128.1, 700.3, 3000.7])
def test_powers_of_large_numbers_within_one_unit(x: float, bits: int) -> None:
    with mpmath.workprec(8000):
        near = round(x * 2**44)
        exact = mpmath.exp(mpmath.mpf(near) / 2**44) * 2**bits
        found = enclosures.exp(near << (bits - 44), bits)
        assert abs(found - exact) <= 1
        assert (
            abs(enclosures.ln(max(1, found), bits) - mpmath.log(max(1, found) / mpmath.mpf(2) ** bits) * 2**bits) <= 1
        )


@pytest.mark.parametrize("bits", [64, 600])
def test_constants_within_one_unit(bits: int) -> None:
    assert abs(enclosures.ln(2 << bits, bits) - mpmath.log(2) * 2**bits) <= 1
    assert abs(enclosures.root_of_two_pi(bits) - mpmath.sqrt(2 * mpmath.pi) * 2**bits) <= 1


def test_rounding_up() -> None:
    assert enclosures.up(Fraction(1, 3), 10) == 342
    assert enclosures.up(Fraction(1, 2), 10) == 512
    assert enclosures.up(Fraction(-1, 3), 10) == -341
