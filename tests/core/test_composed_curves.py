"""Samples weighed with a curve: the curve's bounds, the mean that they estimate, and weight bounds.

The truth is that of the joint mechanism, by quadrature over all of its coordinates at once.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np
import pytest
from log_sums import logsumexp
from made import sampled
from oracle import gaussian_delta
from patterns import Patterns, exact_delta, log_ratio, renewal_patterns
from sampled_tools import estimated, lower_toeplitz
from scipy.special import log_ndtr  # type: ignore[import-untyped]
from scipy.stats import binom
from snapshots import Snapshot

from pyaccount import _core
from pyaccount.execute.engine import Engine
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import tests_of_claims
from pyaccount.execute.sampling.betting_choice import Betting, Claim
from pyaccount.execute.sampling.composed_profile import IGNORED_SHARE, NODES, ComposedProfile, composed_profile
from pyaccount.execute.sampling.jobs import Proposal
from pyaccount.execute.sampling.profile import draw
from pyaccount.execute.sampling.proposals import plain_proposal, with_parameters
from pyaccount.execute.sampling.shards import Sampler
from pyaccount.plan.rounds import Bounds, DirectedBounds, reversed_rounds, tight
from pyaccount.plan.sampled import SampledMechanism, together
from pyaccount.profiles import (
    CopiesProfile,
    DisplacedProfile,
    GaussianProfile,
    LaplaceProfile,
    PoissonProfile,
    ProfileKind,
    Rounds,
)
from pyaccount.profiles.base import Recipe

Array = np.ndarray[Any, np.dtype[np.float64]]


def gaussian_curve(mu: float, x: Array) -> Array:
    """Return H_{e^x} of N(μ, 1) against N(0, 1) for any x, in double precision."""
    return np.asarray(np.exp(log_ndtr(0.5 * mu - x / mu)) - np.exp(x + log_ndtr(-0.5 * mu - x / mu)))


def gaussian_bounds(mu: float) -> DirectedBounds:
    part = GaussianProfile(mu, 1.0)
    return tight(part, part, 1)


def composed(bounds: DirectedBounds, directions: Any = ("remove", "add"), end: float = 1e-12) -> ComposedProfile:
    return composed_profile(Engine(), bounds, directions, end)


def exact(mu: float, x: float) -> float:
    with mp.workdps(60):
        if x >= 0.0:
            return float(gaussian_delta(mp.mpf(mu), mp.mpf(x)))
        return float(1 - mp.exp(x) + mp.exp(x) * gaussian_delta(mp.mpf(mu), mp.mpf(-x)))


@pytest.mark.parametrize("mu", [0.02, 0.3, 1.0, 4.0])
def test_tables_enclose_the_curve_everywhere(mu: float) -> None:
    found = composed(gaussian_bounds(mu))
    curve = found.curves["remove"].core
    assert exact(mu, found.reach) <= curve.tail_mass <= 1.2e-12
    rng = np.random.default_rng(1)
    nodes = (np.arange(2 * NODES + 1) - NODES) * found.spacing
    points = [*rng.uniform(-1.3 * found.reach, 1.3 * found.reach, 600), *nodes[::37], *np.nextafter(nodes[::41], 99.0)]
    for x in (*points, -50.0, 60.0):
        below, above = _core.Inspection.curve(curve, x)
        truth = exact(mu, x) - curve.tail_mass
        assert below <= max(truth, 0.0) * (1.0 + 1e-14)
        assert above >= truth * (1.0 - 1e-14)
        # The bounds are not trivial. D falls by e^{-λh} from node to node, λ ≤ 7/μ + 1 and h ≤ (7μ + μ²/2)/1024, so
        # that λh ≤ 0.1; the upper table misses D by (λh)²/8 of it, the lower by up to three times that.
        if truth > 1e-9:
            assert above - below < 5e-3 * truth


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_tables_enclose_the_curve_though_its_bounds_are_ragged(side: float) -> None:
    """The bounds at the nodes are loose at random, some by far more than neighbouring values differ."""
    mu, n, reach = 1.3, 61, 9.0
    spacing = 2.0 * reach / (n - 1)
    rng = np.random.default_rng(int(side) + 5)
    x = -reach + spacing * np.arange(n)
    truth = np.array([exact(mu, float(one)) for one in x])
    looseness = 10.0 ** rng.uniform(-6.0, -0.5, size=(3, n))
    upper = np.minimum(truth * (1.0 + looseness[0]), 1.0)
    lower = list(
        zip(truth * (1.0 - looseness[1]), np.minimum(truth * (1.0 + looseness[2] * (side > 0)), 1.0), strict=True)
    )
    curve = _core.ComposedCurve(-reach, spacing, upper.tolist(), lower)
    for one in rng.uniform(-1.5 * reach, 1.2 * reach, 1500):
        below, above = _core.Inspection.curve(curve, one)
        expected = exact(mu, float(one)) - curve.tail_mass
        assert below <= max(expected, 0.0) * (1 + 1e-14)
        assert above >= expected * (1 - 1e-14)


def test_curves_of_many_rounds_are_those_of_single_questions(snapshot: Snapshot) -> None:
    part = PoissonProfile(1, 0.02, 1.0, two_sided=False, reverse=False)
    laplace = LaplaceProfile(1.0, 5.0)
    rounds = (Rounds(part, 700), Rounds(laplace, 2))
    engine, epsilons = Engine(), [0.03 * k for k in range(120)]
    ((points, compositions, *_),) = engine.curves([(rounds, epsilons)], 1e-3, 1e-300)
    assert 1 < compositions < 20
    assert all(lower <= upper <= lower * (1.0 + 1.1e-3) for lower, upper in points)
    asked = _core.answer_all(
        [([(part.build(), 700), (laplace.build(), 2)], epsilon, None, 1e-5) for epsilon in epsilons[::34]]
    )
    for (lower, upper), answer in zip(points[::34], asked, strict=True):
        assert lower <= answer.upper
        assert answer.lower <= upper
    # Gaussian rounds have a closed form.
    ((points, *_),) = engine.curves([((Rounds(GaussianProfile(0.5, 1.0), 9),), epsilons)], 1e-3, 1e-300)
    for epsilon, (lower, upper) in zip(epsilons, points, strict=True):
        truth = exact(1.5, epsilon)
        assert lower <= truth <= upper <= (1.0 + 1.1e-3) * truth
    for wrong in ([0.2, 0.1], [-0.1], [math.nan]):
        snapshot.raised(engine.curves, [(rounds, wrong)], 1e-3, 1e-300)


def test_a_curve_is_computed_once() -> None:
    rounds = (Rounds(PoissonProfile(1, 0.02, 1.0, two_sided=False, reverse=False), 20),)
    engine = Engine()
    first = engine.curves([(rounds, [0.1, 1.0])], 1e-2, 1e-300)
    done = engine.compositions
    assert done > 0
    assert engine.curves([(rounds, (0.1, 1.0)), (rounds, [0.1, 1.0])], 1e-2, 1e-300) == first * 2
    assert engine.compositions == done
    # Another tolerance or other values of ε are other questions.
    for epsilons, tolerance in (([0.1, 1.0], 1e-3), ([0.1, 1.1], 1e-2)):
        before = engine.compositions
        assert engine.curves([(rounds, epsilons)], tolerance, 1e-300) != first
        assert engine.compositions > before


def test_a_curve_that_stays_wide_is_not_composed_for_each_of_its_points() -> None:
    # A large model, its batches seldom truncated: no lattice has both the losses of most rounds and of a truncated one.
    records, limit, sigma, rounds = 9_090_909_091, 520_000, 0.614, 100_000
    rate = 517_989 / records
    part = _core.RoundProfile.truncated_poisson(records, limit, rate, sigma, reverse=True)
    epsilons = [0.5 + 0.05 * k for k in range(10)]
    (points, compositions, *_), *_ = _core.curve_all([([(part, rounds)], epsilons, 1e-2, 1e-15)])
    assert compositions <= 4
    for (lower, upper), after in zip(points, [*points[1:], (0.0, 0.0)], strict=True):
        assert after[0] <= lower < upper <= 1.1 * lower


def test_reversals_are_the_other_direction() -> None:
    for part in (
        PoissonProfile(2, 0.1, 1.0, two_sided=False, reverse=False),
        PoissonProfile(2, 0.1, 1.0, two_sided=True, reverse=False),
        CopiesProfile("with-replacement", 1, 50, 10, 0, 2.0, 1.5, reverse=True),
        LaplaceProfile(1.0, 3.0),
        GaussianProfile(1.0, 2.0),
    ):
        reversed_ones = reversed_rounds((Rounds(part, 3),))
        assert reversed_ones is not None
        assert reversed_ones[0].count == 3
        first, second = part.build(), reversed_ones[0].profile.build()
        for epsilon in (0.05, 0.4, 1.1):
            # H_{1/α}(Q‖P) = (H_α(P‖Q) − 1 + α)/α
            forward = _core.Inspection.profile(first, epsilon)[0]
            assert _core.Inspection.profile(second, -epsilon)[0] == pytest.approx(
                1.0 - math.exp(-epsilon) + math.exp(-epsilon) * forward, rel=1e-12
            )
    unknown = DisplacedProfile("replaced", "fixed-size", 1, 50, 10, 0, 1.5, reverse=False)
    assert reversed_rounds((Rounds(unknown, 1),)) is None


def test_a_curve_without_a_known_reversal_still_encloses() -> None:
    """The lower pair's other direction is not known: to the left of 0 there is only the bound by convexity."""
    mu = 0.8
    strange = Bounds((Rounds(GaussianProfile(mu, 1.0), 1),), (Rounds(HalfKnown(mu), 1),))
    known: DirectedBounds = {d: Bounds(strange.upper, strange.upper) for d in ("remove", "add")}
    found = composed(known)
    whole = found.curves["remove"].core
    unknown = {d: Bounds(strange.upper, (Rounds(HalfKnown(mu), 1),)) for d in ("remove", "add")}
    curve = composed(unknown).curves["remove"].core  # type: ignore[arg-type]
    for x in np.linspace(-found.reach, found.reach, 301):
        below, above = _core.Inspection.curve(curve, x)
        assert above == _core.Inspection.curve(whole, x)[1]
        assert below <= _core.Inspection.curve(whole, x)[0] * (1.0 + 1e-6) + 1e-15
        if x < 0.0:
            # D changes by at most as much as x: what the neighbours do not show costs a node or two.
            assert 1.0 - math.exp(x) - 2.0 * found.spacing <= below


@dataclass(frozen=True, slots=True)
class HalfKnown(ProfileKind):
    """A Gaussian profile that does not say which one is its reversal."""

    constructor: ClassVar[str] = "half-known"

    mu: float

    def _made(self) -> _core.RoundProfile:
        return _core.RoundProfile.gaussian(self.mu, 1.0)

    def reversed(self) -> None:
        """Return None: it is not known."""


def test_what_is_no_curve_is_refused(snapshot: Snapshot) -> None:
    for first, spacing, upper, lower in [
        (0.0, 0.1, [0.5], [(0.1, 0.2)]),
        (0.0, 0.0, [0.5, 0.4], [(0.1, 0.2)] * 2),
        (0.0, 0.1, [0.5, 1.4], [(0.1, 0.2)] * 2),
        (0.0, 0.1, [0.5, 0.4], [(math.nan, 0.2)] * 2),
        (-700.0, 0.1, [0.5, 0.4], [(0.1, 0.2)] * 2),
        (0.0, 0.1, [0.5, 0.4], [(0.1, 0.2)]),
    ]:
        snapshot.raised(_core.ComposedCurve, first, spacing, upper, lower)
    snapshot.raised(_core.ComposedCurve, 0.0, 0.1, [0.5, 0.4], [(0.45, 0.5), (0.41, 0.5)])


#: The sampled part: (n, b, p, warm) and the first column of C over σ; the Gaussian phase next to it has μ.
SMALL: dict[str, tuple[tuple[int, int, float, bool], Array]] = {
    "one round": ((1, 1, 0.2, False), np.array([1.1])),
    "two rounds": ((2, 2, 0.3, True), np.array([0.9, 0.5])),
}
MU = 0.7
#: Direction, mean scale, and the factor on the sampler's probability.
PROPOSALS = [
    ("remove", 1.0, 1.0),
    ("remove", 1.5, 1.6),
    ("add", 0.0, 1.0),
    ("add", -0.7, 1.3),
    ("replace", 1.0, 1.0),
    ("replace", 1.4, 1.5),
]
STRETCHED = [proposal for proposal in PROPOSALS if proposal[1] not in (0.0, 1.0)]


def mechanism_of(name: str) -> tuple[SampledMechanism, Patterns, Array]:
    (n, b, p, warm), column = SMALL[name]
    recipe = sampled("renewal", column[:b].tolist(), n, b, p, warm)
    return (
        SampledMechanism(recipe, ("remove", "add"), n, 100.0, p),
        renewal_patterns(n, b, p, warm=warm),
        lower_toeplitz(column, n),
    )


def beside(patterns: Patterns, matrix: Array, mu: float) -> tuple[Patterns, Array]:
    """Return the same mechanism with one more coordinate, in front, whose mean is always μ: the Gaussian phase."""
    rows, weights = patterns
    joint = np.zeros((len(matrix) + 1, len(matrix) + 1))
    joint[0, 0], joint[1:, 1:] = mu, matrix
    return (np.hstack([np.ones((len(rows), 1)), rows]), weights), joint


def product_of(first: tuple[Patterns, Array], second: tuple[Patterns, Array]) -> tuple[Patterns, Array]:
    """Return two independent mechanisms as one: all pairs of patterns, blocks of the matrix."""
    ((rows, weights), matrix), ((others_rows, others_weights), other) = first, second
    joint = np.zeros((len(matrix) + len(other),) * 2)
    joint[: len(matrix), : len(matrix)], joint[len(matrix) :, len(matrix) :] = matrix, other
    pairs = np.array([np.concatenate([a, b]) for a in rows for b in others_rows])
    return (pairs, np.outer(weights, others_weights).ravel()), joint


def curves_for(direction: str, end: float = 1e-9) -> dict[Any, Recipe[_core.ComposedCurve]]:
    mu = 2.0 * MU if direction == "replace" else MU
    return composed(gaussian_bounds(mu), (direction,), end).curves


def sampled_mean(
    mechanism: _core.Sampled, proposal: tuple[str, Any, float], epsilon: float, curve: _core.ComposedCurve | None
) -> tuple[float, float]:
    direction, parameter, stretch = proposal
    cap, generator, rounding = mechanism.bounds(direction, parameter, stretch, epsilon, curve)
    assert 0.0 <= generator < 1e-9
    assert 0.0 < rounding < 1e-9
    return estimated(mechanism, direction, parameter, stretch, epsilon, cap, 200, curve)[:2]


@pytest.mark.parametrize("epsilon", [0.2, 1.5])
@pytest.mark.parametrize("proposal", PROPOSALS, ids=str)
@pytest.mark.parametrize("name", SMALL)
def test_weighed_samples_have_the_mean_of_the_composition(
    name: str, proposal: tuple[str, float, float], epsilon: float
) -> None:
    direction, stretch, factor = proposal
    mechanism, patterns, matrix = mechanism_of(name)
    curve = curves_for(direction)[direction].core
    mean, error = sampled_mean(mechanism.core, (direction, factor * mechanism.plain_parameter, stretch), epsilon, curve)
    truth = exact_delta(*beside(patterns, matrix, MU), direction, epsilon)
    # The table is above D by at most its gap.
    assert abs(mean + curve.tail_mass - truth) <= 5.0 * error + curve.gap * truth
    assert error < 0.05 * truth


@pytest.mark.parametrize("proposal", PROPOSALS, ids=str)
@pytest.mark.parametrize("runs", [1, 2])
def test_several_mechanisms_are_independent_streams(proposal: tuple[str, float, float], runs: int) -> None:
    """One round of each of two samplers, or two runs of one, with and without a Gaussian phase."""
    direction, stretch, factor = proposal
    first = _core.Sampled.renewal([1.1], 1, 1, 0.2, False)
    one = (renewal_patterns(1, 1, 0.2, warm=False), np.array([[1.1]]))
    if runs == 2:
        core, joint = _core.Sampled.together([(first, 2)]), product_of(one, one)
        parameter = [0.2 * factor]
    else:
        two = (renewal_patterns(1, 1, 0.4, warm=False), np.array([[0.6]]))
        core = _core.Sampled.together([(first, 1), (_core.Sampled.renewal([0.6], 1, 1, 0.4, False), 1)])
        joint, parameter = product_of(one, two), [0.2 * factor, 0.4 * factor]
    assert core.plain_parameters == pytest.approx([p / factor for p in parameter])
    for curve, space in ((None, joint), (curves_for(direction)[direction].core, beside(*joint, MU))):
        mean, error = sampled_mean(core, (direction, parameter, stretch), 0.3, curve)
        truth = exact_delta(*space, direction, 0.3)
        floor, gap = (0.0, 0.0) if curve is None else (curve.tail_mass, curve.gap)
        assert abs(mean + floor - truth) <= 5.0 * error + gap * truth
        assert error < 0.1 * truth


def value_of(
    joint: tuple[Patterns, Array], law: Patterns, proposal: tuple[str, float], x: tuple[float, float, float], y: Array
) -> Array:
    """Return w·(D(x) − floor) from its definition; x = (ε, μ, floor)."""
    (direction, stretch), (epsilon, mu, floor) = proposal, x
    patterns, matrix = joint
    means = law[0] @ matrix.T
    exponents = stretch * (y @ means.T) - 0.5 * stretch**2 * (means**2).sum(axis=1)
    log_g = logsumexp(exponents + np.log(law[1]), axis=1)
    log_f = log_ratio(patterns, matrix, y)
    minuend, loss = {
        "remove": lambda: (log_f, log_f),
        "add": lambda: (np.zeros_like(log_f), -log_f),
        "replace": lambda: (log_f, log_f - log_ratio(patterns, matrix, -y)),
    }[direction]()
    return np.asarray(np.exp(minuend - log_g) * np.maximum(gaussian_curve(mu, epsilon - loss) - floor, 0.0))


@pytest.mark.parametrize("epsilon", [0.0, 0.8, 3.0])
@pytest.mark.parametrize("proposal", [*STRETCHED, ("remove", 3.0, 2.0), ("add", -2.5, 0.8)], ids=str)
@pytest.mark.parametrize("names", [("one round",), ("two rounds",), ("one round", "one round")], ids=str)
def test_caps_hold_under_attack(names: tuple[str, ...], proposal: tuple[str, float, float], epsilon: float) -> None:
    """The search uses grids, random points, and climbs from the best points found."""
    direction, stretch, factor = proposal
    parts = [mechanism_of(name) for name in names]
    core = _core.Sampled.together([(part.core, 1) for part, _, _ in parts])
    parameters = [factor * p for p in core.plain_parameters]
    joint, law = (parts[0][1], parts[0][2]), _law(names[0], factor)
    if len(parts) == 2:
        other = (_law(names[1], factor), parts[1][2])
        law = product_of((law, joint[1]), other)[0]
        joint = product_of(joint, (parts[1][1], parts[1][2]))
    curve, mu = curves_for(direction)[direction].core, 2.0 * MU if direction == "replace" else MU
    n = len(joint[1])
    rng = np.random.default_rng(n)
    side = np.linspace(-16.0, 16.0, 6401 if n == 1 else 201)
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*[side] * n)], axis=1)
    points = np.concatenate([grid, 4.0 * rng.normal(size=(20_000, n))])
    cap, _, _ = core.bounds(direction, parameters, stretch, epsilon, curve)
    where = (epsilon, mu, curve.tail_mass)
    for step in (0.0, 0.3, 0.03):
        values = value_of(joint, law, (direction, stretch), where, points)
        assert values.max() <= cap * (1.0 + 1e-9)
        best = points[np.argsort(values)[-200:]]
        points = np.repeat(best, 20, axis=0) + step * rng.normal(size=(4000, n))
    assert values.max() > 0.0


def _law(name: str, factor: float) -> Patterns:
    (n, b, p, warm), _ = SMALL[name]
    return renewal_patterns(n, b, factor * p, warm=warm)


@pytest.mark.parametrize(
    ("direction", "stretch"), [("remove", 1.5), ("remove", 2.5), ("add", -0.5), ("add", -2.0), ("replace", 1.8)]
)
def test_weight_bounds_are_attained_by_a_single_pattern(direction: str, stretch: float) -> None:
    """With one pattern Hölder's inequality is an equality, and only the table's width remains."""
    c, epsilon = 0.9, 0.7
    curve, mu = curves_for(direction)[direction].core, 2.0 * MU if direction == "replace" else MU
    core = _core.Sampled.renewal([c], 1, 1, 1.0, False)
    cap, _, _ = core.bounds(direction, 1.0, stretch, epsilon, curve)
    joint = ((np.ones((1, 1)), np.ones(1)), np.array([[c]]))
    y = np.linspace(-20.0, 20.0, 400_001)[:, None]
    values = value_of(joint, joint[0], (direction, stretch), (epsilon, mu, curve.tail_mass), y)
    assert values.max() <= cap <= values.max() * (1.0 + 2e-3)


def test_what_has_no_cap_says_so(snapshot: Snapshot) -> None:
    curve = curves_for("remove")["remove"].core
    core = _core.Sampled.together([(_core.Sampled.renewal([0.9], 4, 2, 0.3, True), 2)])
    assert core.bounds("remove", [0.4], 1.0, 1.0, curve)[0] == math.inf
    assert core.bounds("remove", [0.3], 1.0, 1.0, curve)[0] == 1.0
    assert core.bounds("remove", [0.3], 0.5, 1.0, curve)[0] == math.inf
    assert core.bounds("add", [0.3], 0.5, 1.0, curve)[0] == math.inf
    snapshot.raised(core.bounds, "remove", [0.3, 0.3], 1.0, 1.0)


def with_curves(name: str, direction: Any) -> tuple[SampledMechanism, float]:
    """Return a mechanism with its Gaussian phase, and its exact δ at ε = 0.9."""
    mechanism, patterns, matrix = mechanism_of(name)
    found = SampledMechanism(
        mechanism.recipe,
        (direction,),
        mechanism.steps,
        100.0,
        mechanism.plain_parameter,
        curves=curves_for(direction, 1e-6),
    )
    return found, exact_delta(*beside(patterns, matrix, MU), direction, 0.9)


def sampler(seed: int) -> Sampler:
    return Sampler(RunOptions(seed=seed, threads=0))


@pytest.mark.parametrize("proposal", PROPOSALS[:4], ids=str)
def test_a_false_claim_is_accepted_no_more_often_than_stated(proposal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A composition just outside the claim is verified, with betting fractions so large that the wealth varies much."""
    monkeypatch.setattr(tests_of_claims, "LEAST_SHARDS", 4)
    monkeypatch.setattr(tests_of_claims, "PATIENCE", 0.0)
    direction, stretch, factor = proposal
    mechanism, truth = with_curves("one round", direction)
    q, runs, one = 0.1, 600, sampler(3)
    where = Proposal(factor * mechanism.plain_parameter, stretch)
    cap = one.limits(mechanism, direction, where, 0.9).weight_bound
    stake = 0.25 / cap
    for share, most in ((0.99, binom.ppf(1 - 1e-6, runs, q)), (1.6, math.inf)):
        claim = Claim(mechanism, 1.0, 0.9, share * truth, math.log(1.0 / q))
        betting = Betting(where, cap, (stake, 0.5 * stake), 1.0)
        count = runs if share < 1.0 else 40
        accepted = sum(tests_of_claims._bet(one, claim, direction, betting).accepted for _ in range(count))
        assert accepted <= most
        # The test can fail: true claims with a margin are mostly accepted.
        assert share < 1.0 or accepted > 30


@pytest.mark.parametrize("proposal", PROPOSALS[:4], ids=str)
def test_curves_off_histograms_cover_the_truth(proposal: Any) -> None:
    direction, stretch, factor = proposal
    mechanism, _ = with_curves("two rounds", direction)
    _, patterns, matrix = mechanism_of("two rounds")
    one, q, runs = sampler(11), 0.1, 60
    where = Proposal(factor * mechanism.plain_parameter, stretch)
    histograms = [draw(one, mechanism, direction, where, 0.9, 1) for _ in range(runs)]
    for epsilon in (0.3, 0.9, 1.6):
        truth = exact_delta(*beside(patterns, matrix, MU), direction, epsilon)
        points = [histogram.point(one, epsilon, q) for histogram in histograms]
        assert sum(point.delta < truth for point in points) <= binom.ppf(1 - 1e-6, runs, q)
        assert sum(point.delta_lower > truth for point in points) <= binom.ppf(1 - 1e-6, runs, q)
        assert np.median([point.delta for point in points]) < 2.0 * truth
        assert np.median([point.delta_lower for point in points]) > 0.3 * truth


def test_threads_and_instruction_sets_change_nothing() -> None:
    """Shards by one thread and by two, and a part alone or composed with nothing else."""
    mechanism, _, _ = mechanism_of("two rounds")
    curve = curves_for("remove")["remove"].core
    alone, again = mechanism.core, _core.Sampled.together([(mechanism.core, 1)])
    key: Any = (5, 2, 1, 0)
    tables = [(0.9, 1.0, [(0.1, 0.5), (0.1, -0.5)])]
    results = [
        core.simulate(
            "remove",
            0.3,
            1.0,
            tables,
            edges=(-8.0, 0.01),
            key=key,
            first=0,
            count=6,
            threads=threads,
            time_limit=None,
            curve=curve,
        )
        for core, threads in ((alone, 1), (alone, 2), (again, 2))
    ]
    assert results[0][0] == results[1][0] == results[2][0]
    histograms = [found for _, found in results if found is not None]
    first, *rest = (_core.Inspection.bins(one)[1] for one in histograms)
    assert rest == [first] * 2


def test_the_floor_is_added_whatever_is_drawn() -> None:
    """If a curve is cut off where D is still a tenth of δ, the rest is added as a constant."""
    mechanism, truth = with_curves("one round", "remove")
    end = 0.1 * truth
    cut = composed(gaussian_bounds(MU), ("remove",), end).curves["remove"]
    assert 0.5 * end < cut.core.tail_mass <= end * 1.3
    mean, error = sampled_mean(mechanism.core, ("remove", mechanism.plain_parameter, 1.0), 0.9, cut.core)
    assert truth - 5.0 * error <= mean + cut.core.tail_mass
    limits = sampler(1).limits(
        SampledMechanism(mechanism.recipe, ("remove",), 1, 100.0, mechanism.plain_parameter, curves={"remove": cut}),
        "remove",
        with_parameters([mechanism.plain_parameter], 1.0),
        0.9,
    )
    assert limits.tail_mass == cut.core.tail_mass
    assert together([(mechanism, 1)]) is mechanism
    assert plain_proposal(mechanism, "remove") == Proposal(mechanism.plain_parameter, 1.0)
    assert IGNORED_SHARE < 1e-3
