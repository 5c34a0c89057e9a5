"""Facts that bound privacy (loss, reversal, divergences and what bounds them) are those of the core's profiles, directed."""

import ast
import inspect
import math
import re
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from plain_documents import doc

import pyaccount
from pyaccount import _core, profiles
from pyaccount.filters import filter_of
from pyaccount.profiles import (
    CompositionProfile,
    CopiesProfile,
    DiscreteGaussianProfile,
    DiscreteLaplaceProfile,
    DisplacedProfile,
    ExponentialProfile,
    ExponentialRunsProfile,
    FiniteProfile,
    GaussianProfile,
    GuaranteesProfile,
    LaplaceProfile,
    MixtureProfile,
    PartiesProfile,
    PoissonProfile,
    ProfileKind,
    SelectionProfile,
    ShownProfile,
    SkellamProfile,
    SometimesProfile,
    SubsampledProfile,
    TruncatedPoissonProfile,
    WorstProfile,
    ZcdpProfile,
)

INNER = FiniteProfile((0.9, 0.1), (0.5, 0.5), reverse=False)
PAIRS = [
    GaussianProfile(1.0, 0.7),
    LaplaceProfile(1.0, 3.0),
    DiscreteLaplaceProfile(2, 3.0),
    DiscreteGaussianProfile(2, 1.5),
    ExponentialProfile(0.3),
    ExponentialRunsProfile(0.1, 3),
    GuaranteesProfile(((0.1, 0.0),)),
    GuaranteesProfile(((0.5, 1e-3), (1.0, 1e-6))),
    ZcdpProfile(0.1),
    INNER,
    PoissonProfile(2, 0.1, 1.0, two_sided=False, reverse=False),
    PoissonProfile(1, 1e-7, 1.0, two_sided=False, reverse=True),
    PoissonProfile(1, 0.1, 1.0, two_sided=True, reverse=False),
    MixtureProfile((0.2, 0.8), (0.0, 1.0), 0.9, reverse=False),
    CopiesProfile("with-replacement", 1, 50, 5, 0, 1.0, 1.0, reverse=False),
    TruncatedPoissonProfile(50, 6, 0.1, 1.0, reverse=False),
    SubsampledProfile(INNER, 0.2, reverse=False),
    SometimesProfile(INNER, 0.2),
    SubsampledProfile(CompositionProfile(((INNER, 2),), below=False), 0.2, reverse=False),
    ShownProfile(INNER, 0.01, reverse=False),
    ShownProfile(GaussianProfile(1.0, 0.7), 0.01, reverse=True),
    WorstProfile((ShownProfile(FiniteProfile((1.0,), (1.0,)), 0.01, reverse=False), LaplaceProfile(1.0, 3.0))),
    WorstProfile((LaplaceProfile(1.0, 3.0), GaussianProfile(1.0, 0.7))),
    SkellamProfile(2, 1.5),
    PartiesProfile(2, 0.4, 3),
    PartiesProfile(2, 5.0, 30),
]


@pytest.mark.parametrize("part", PAIRS, ids=lambda part: repr(part)[:40])
def test_a_reversal_is_that_of_the_pair(part: ProfileKind) -> None:
    other = part.reversed()
    assert other is not None
    one, reversal = part.build(), other.build()
    composed = "Composition" in repr(part)
    for epsilon in (-2.0, -0.3, 0.0, 0.05, 0.4, 1.5):
        alpha = math.exp(epsilon)
        least, most = one.delta(epsilon)
        below, above = (1.0 - alpha + alpha * end for end in reversal.delta(-epsilon))
        # Bounds from above of a composition and of its reversal enclose the same profile from one side only.
        slack = 1e-3 if composed else 1e-14 * (1.0 + alpha)
        assert least - slack <= above
        assert below - slack <= most
    assert other.reversed() == part or other == part


def test_what_belongs_to_no_pair_has_no_reversal() -> None:
    assert DisplacedProfile("replaced", "fixed-size", 1, 50, 5, 0, 1.0, reverse=False).reversed() is None
    assert SelectionProfile(INNER, INNER, "geometric", (0.5,), reverse=False).reversed() is None
    # Reversed inside, too: a sample of a pair with two different directions.
    assert PAIRS[16].reversed() == SubsampledProfile(INNER.reversed(), 0.2, reverse=True)


def test_largest_losses_are_exact_where_decimals_give_them() -> None:
    def of(part: ProfileKind) -> Any:
        return part.build().largest_loss()

    tenth = Fraction(1, 10)
    for part, loss in [
        (LaplaceProfile(1.0, 3.0), Fraction(1, 3)),
        (GuaranteesProfile(((0.1, 0.0), (0.05, 1e-3))), tenth),
        (ExponentialProfile(0.1), tenth),
        (ExponentialRunsProfile(0.1, 3), 3 * tenth),
        (DiscreteLaplaceProfile(1, 10.0), tenth),
        (SometimesProfile(ExponentialProfile(0.1), 0.3), tenth),
        (CompositionProfile(((ExponentialProfile(0.1), 3),), below=False), 3 * tenth),
    ]:
        assert of(part) == (loss, loss)
    assert of(GaussianProfile(1.0, 1.0)) is None
    for part, loss in [(INNER, math.log(0.9 / 0.5)), (INNER.reversed(), math.log(0.5 / 0.1))]:
        assert part is not None
        least, most = of(part)
        assert loss - 1e-14 <= least <= loss + 1e-14
        assert loss - 1e-14 <= most <= loss + 1e-14
    # ln(1 − q + q·e^ℓ), and −ln(1 − q + q·e^−ℓ).
    for reverse, mapped in [(False, math.log1p(0.2 * 0.8)), (True, -math.log1p(0.2 * (0.2 - 1.0)))]:
        inner = INNER if not reverse else INNER.reversed()
        assert inner is not None
        least, most = of(SubsampledProfile(inner, 0.2, reverse=reverse))
        assert float(least) == pytest.approx(mapped, rel=1e-13)
        assert float(most) == pytest.approx(mapped, rel=1e-13)


def survey(**privacy: Any) -> dict[str, Any]:
    answers = {"kind": "randomized-response", "values": 2, "truth_probability": 0.9, "empty_record": "uniform"}
    return {
        "pyaccount": 1,
        "name": "survey",
        "privacy": {"adjacency": "zero-out", **privacy},
        "phases": [
            {"mechanism": answers},
            {"mechanism": {"kind": "exponential", "epsilon": 6}},
        ],
    }


def test_the_largest_loss_of_both_directions_bounds_the_guarantee() -> None:
    # An answer is kept with .9 or .1 with the record, and .5 without. The other mechanism chooses between two candidates
    # whose logarithmic odds the record moves by 6, from any place.
    certificate = pyaccount.certify(survey(epsilon="solve", delta=1e-9))
    answers = [(Fraction(1, 10), Fraction(1, 2)), (Fraction(9, 10), Fraction(1, 2))]

    def choices(place: float) -> list[tuple[Fraction, Fraction]]:
        moved, still = Fraction(math.exp(place + 6.0)), Fraction(math.exp(place))
        return [(moved / (1 + moved), still / (1 + still)), (1 / (1 + moved), 1 / (1 + still))]

    def delta(epsilon: float) -> float:
        """Return the largest δ of both orders of the two data sets, over the four outcomes and some places."""
        alpha = Fraction(math.exp(epsilon))
        both = []
        for one, place in product((0, 1), (-12.0, -8.0, -6.43, -3.0, 0.43, 3.0)):
            pairs = [(a[one] * c[one], a[1 - one] * c[1 - one]) for a in answers for c in choices(place)]
            both.append(sum((max(p - alpha * q, Fraction(0)) for p, q in pairs), Fraction(0)))
        return float(max(both))

    assert delta(6.58779) > 0.08
    for epsilon in (0.0, 1.0, 3.0, 6.0, 6.58779, 7.0, 7.5):
        assert certificate.profile.delta(epsilon).upper >= delta(epsilon)
    assert certificate.epsilon >= 7.609
    assert delta(certificate.epsilon) <= 1e-9
    at_zero = pyaccount.certify(survey(epsilon="solve", delta=0)).epsilon
    assert math.log(5.0) + 6.0 <= at_zero <= math.log(5.0) + 6.0 + 1e-12


def log_moment(p: list[float], q: list[float], order: float) -> float:
    return math.log(math.fsum(a**order * b ** (1.0 - order) for a, b in zip(p, q, strict=True))) / (order - 1.0)


@pytest.mark.parametrize(("keep", "values"), [(0.99, 2), (0.05, 10), (0.5, 3)])
def test_filters_charge_randomized_response_for_both_directions(keep: float, values: int) -> None:
    mechanism = {"kind": "randomized-response", "values": values, "truth_probability": keep, "empty_record": "uniform"}
    document = pyaccount.load(doc(name="answers", delta=1e-6, mechanism=mechanism))
    with_record = [keep] + [(1.0 - keep) / (values - 1)] * (values - 1)
    without = [1.0 / values] * values
    orders = [1.0 + 10.0 ** (k / 4.0) for k in range(-12, 9)]
    least = max(
        log_moment(p, q, order) / order for order in orders for p, q in [(with_record, without), (without, with_record)]
    )
    (charged,) = filter_of({"rho": 10.0}).cost(document)
    assert charged >= least
    # δ of N(μ, 1) against N(0, 1) is at least that of the answers, at every loss.
    (square,) = filter_of({"mu": 10.0}).cost(document)
    mu = math.sqrt(square)
    for epsilon in (k / 10.0 for k in range(60)):
        of_gaussian = phi(mu / 2.0 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2.0 - epsilon / mu)
        for p, q in [(with_record, without), (without, with_record)]:
            answers = math.fsum(max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(p, q, strict=True))
            assert of_gaussian >= answers - 1e-12


#: Pairs whose ρ and μ follow from their largest losses, or from a theorem of their own.
CONCENTRATED = [
    # Profiles of bounded range and of stated divergences are the worst of many pairs, and have larger divergences than each.
    *(pair for pair in PAIRS if not isinstance(pair, ExponentialProfile | ExponentialRunsProfile | ZcdpProfile)),
    *(DiscreteLaplaceProfile(steps, scale) for steps, scale in [(1, 1.0), (1, 0.2), (3, 1.0), (10, 4.0), (40, 11.0)]),
    *(LaplaceProfile(1.0, scale) for scale in (0.1, 1.0, 30.0)),
    *(DiscreteGaussianProfile(1, sigma) for sigma in (0.3, 1.0, 4.0)),
    FiniteProfile((0.55, 0.05, 0.4), (0.05, 0.55, 0.4)),
    FiniteProfile((0.5, 0.5), (0.05, 0.95)),
]


def phi(x: float) -> float:
    """Return the standard normal distribution function."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def moment_of(profile: _core.RoundProfile, order: float) -> float:
    """Return E_Q[(P/Q)^a] from lower ends of the profile: 1 + ∫ a(a − 1)t^(a−2)·E_Q[(P/Q − t)_+, or (t − P/Q)_+ below 1] dt."""
    # The steps are short beside the usual loss.
    most = math.asinh(12.0 / profile.delta(0.0)[0])
    places = [profile.delta(0.0)[0] * math.sinh(most * k / 1500.0) for k in range(-1500, 1501)]
    values = []
    for x in places:
        height = profile.delta(x)[0]
        rest = height if x >= 0.0 else max(0.0, height + math.expm1(x))
        values.append(order * (order - 1.0) * math.exp((order - 1.0) * x) * rest)
    steps = (after - before for before, after in pairwise(places))
    return 1.0 + math.fsum(step * (a + b) / 2.0 for step, (a, b) in zip(steps, pairwise(values), strict=True))


@pytest.mark.parametrize("part", CONCENTRATED, ids=lambda part: repr(part)[:60])
def test_the_rho_of_a_pair_is_no_smaller_than_its_divergences_ask_for(part: ProfileKind) -> None:
    profile = part.build()
    rho = profile.concentration()
    if rho is None:
        return
    for order in (1.05, 1.5, 2.0, 3.0, 6.0):
        # The integral is cut off where the losses may go on, and errs by the square of its steps.
        assert math.log(moment_of(profile, order)) / (order - 1.0) <= float(rho) * order * (1.0 + 2e-3) + 1e-9


@pytest.mark.parametrize("part", CONCENTRATED, ids=lambda part: repr(part)[:60])
def test_the_mu_of_a_pair_dominates_its_profile(part: ProfileKind) -> None:
    profile = part.build()
    square = profile.gaussian_square()
    if square is None:
        return
    mu = math.sqrt(square)
    for epsilon in [0.05 * k for k in range(-60, 200)]:
        of_gaussian = phi(mu / 2.0 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2.0 - epsilon / mu)
        assert profile.delta(epsilon)[0] <= of_gaussian + 1e-12


def test_no_other_room_asks_for_the_class_of_a_profile() -> None:
    """What bounds privacy, and what distinguishes classes of profiles, is a method or a field of theirs."""
    package = Path(pyaccount.__file__).parent
    classes = {name for name in dir(profiles) if name.endswith("ProfileKind") and name != "ProfileKind"}
    found = []
    for path in package.rglob("*.py"):
        if path.parent.name == "profiles":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            asked: list[ast.expr] = []
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
                asked = node.args[1:]
            elif isinstance(node, ast.MatchClass):
                asked = [node.cls]
            elif isinstance(node, ast.Compare) and "constructor" in ast.unparse(node):
                found.append(f"{path}:{node.lineno}")
            if any(part in classes for one in asked for part in re.findall(r"\w+", ast.unparse(one))):
                found.append(f"{path}:{node.lineno}")
    assert not found


def test_every_constructor_of_the_core_has_a_class_with_its_arguments() -> None:
    """A class has the arguments of its constructor, in their order; `of` others it has the profiles that these are made of."""
    made = {
        one.constructor: one
        for one in vars(profiles).values()
        if isinstance(one, type) and one is not profiles.ProfileKind and issubclass(one, profiles.ProfileKind)
    }
    names = {name for name, one in vars(_core.RoundProfile).items() if isinstance(one, staticmethod)}
    # Only a test makes profiles of tables.
    assert set(made) == names - {"tabulated"}
    for name, one in made.items():
        wanted = list(inspect.signature(getattr(_core.RoundProfile, name)).parameters)
        if wanted[0] == "curve":
            # All rounds together have a curve, which takes the arguments.
            of_curve = inspect.signature(_core.FixedSizeCurve).parameters
            wanted = [*wanted[1:], *(one for one in of_curve if one not in ("threads", "time_limit"))]
        assert sorted(one.__match_args__) == sorted(wanted), name
