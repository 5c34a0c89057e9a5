"""Groups of records of which a guarantee is stated: against linear programmes, chains of finite laws, and closed forms."""

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, linprog  # type: ignore[import-untyped]
from scipy.stats import norm  # type: ignore[import-untyped]

import pyaccount
from pyaccount import _core
from pyaccount.composing.phases import ProvenPoints
from pyaccount.plan import compiling  # noqa: F401 - the plan is imported before its modules
from pyaccount.plan.mechanisms import groups_of_stated
from pyaccount.plan.mechanisms.groups_of_stated import ProfileOfSteps, profile_of_steps

Points = tuple[tuple[float, float], ...]

PURE: Points = ((1.0, 0.0),)
APPROXIMATE: Points = ((0.7, 1e-3),)
#: The second point is above the hull of the others.
LISTED: Points = ((0.2, 0.1), (0.5, 0.09), (0.7, 0.01), (1.5, 1e-4), (3.0, 0.0))
CASES = [
    (PURE, 2),
    (PURE, 3),
    (APPROXIMATE, 2),
    (APPROXIMATE, 5),
    (LISTED, 2),
    (LISTED, 4),
    (LISTED[:3], 3),
    (((0.0, 0.07),), 3),
]

pytestmark = pytest.mark.usefixtures("without_profiles")


def trade_off(points: Points) -> tuple[Callable[[float], float], list[float]]:
    """Return g(t), the most that an event of probability t can have under a neighbour's law, and all t that may be its kinks."""
    lines = [(1.0, 0.0), *((delta, math.exp(epsilon)) for epsilon, delta in points)]
    lines += [(1.0 - math.exp(-epsilon) * (1.0 - delta), math.exp(-epsilon)) for epsilon, delta in points]
    meet = [(a - b) / (v - u) for (a, u), (b, v) in combinations(lines, 2) if u != v]
    return lambda t: min(delta + slope * t for delta, slope in lines), [t for t in meet if 0.0 < t < 1.0]


def by_programme(points: Points, steps: int, epsilon: float) -> float:
    """Return the largest M_0(A) − e^ε M_k(A) over chains of laws on three outcomes, A one of them."""
    outcomes, laws = 3, steps + 1
    conditions = [(i, i + 1, point) for i in range(steps) for point in points]
    conditions += [(after, before, point) for before, after, point in conditions]
    # The laws, then what each condition has above e^ε: M(x) − e^ε M′(x) ≤ s(x), Σ s ≤ δ.
    size = outcomes * (laws + len(conditions))
    rows, limits = [], []
    for index, (i, j, (at, delta)) in enumerate(conditions):
        slack = outcomes * (laws + index)
        for x in range(outcomes):
            row = np.zeros(size)
            row[[outcomes * i + x, outcomes * j + x, slack + x]] = [1.0, -math.exp(at), -1.0]
            rows.append(row)
            limits.append(0.0)
        total = np.zeros(size)
        total[slack : slack + outcomes] = 1.0
        rows.append(total)
        limits.append(delta)
    sums = np.zeros((laws, size))
    for i in range(laws):
        sums[i, outcomes * i : outcomes * (i + 1)] = 1.0
    goal = np.zeros(size)
    goal[0], goal[outcomes * steps] = -1.0, math.exp(epsilon)
    found = linprog(goal, A_ub=np.array(rows), b_ub=limits, A_eq=sums, b_eq=np.ones(laws), bounds=(0.0, 1.0))
    assert found.status == 0
    return float(-found.fun)


def chain(points: Points, steps: int) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    """Return M_0, …, M_k, M_i[0, t] = g^{∘(k−i)}(t), on the cells of [0, 1] between all kinks of g^{∘k}, and 0 alone."""
    g, kinks = trade_off(points)
    found = {0.0, 1.0}
    for _ in range(steps):
        found.update(kinks)
        # The inverse of g.
        kinks = [t for t in (1.0 - g(1.0 - kink) for kink in kinks) if t > 0.0]
    ends, laws = sorted(found), []
    for _ in range(steps + 1):
        laws.insert(0, np.diff([0.0, *ends]))
        ends = [g(t) for t in ends]
    return laws


def delta_between(p: Any, q: Any, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def read(profile: ProfileOfSteps, epsilon: float) -> tuple[float, float]:
    """Return both ends of the profile."""
    below, above = (_core.RoundProfile.guarantees(points) for points in (profile.below, profile.above))
    return below.delta(epsilon)[0], above.delta(epsilon)[1]


def stated(**mechanism: Any) -> dict[str, Any]:
    return {"mechanism": {"kind": "stated"} | mechanism}


def of_phases(*phases: dict[str, Any], adjacency: str = "replace-one", **privacy: Any) -> Any:
    target = {"adjacency": adjacency, "epsilon": "solve", "delta": 1e-6, "group_size": 2} | privacy
    return pyaccount.certify({"pyaccount": 1, "name": "groups", "privacy": target, "phases": list(phases)}).data


def certified(mechanism: dict[str, Any], count: int = 1, **privacy: Any) -> Any:
    return of_phases(stated(**mechanism) | {"count": count}, **privacy)


@pytest.mark.parametrize(("points", "steps"), CASES)
def test_no_chain_of_laws_reveals_more_and_one_reveals_as_much(points: Points, steps: int) -> None:
    profile = profile_of_steps(points, steps)
    assert profile.whole
    for epsilon in (0.0, 0.1, 0.45, 1.0, 1.3, 2.0, 2.9, 4.0):
        exact = max(0.0, by_programme(points, steps, epsilon))
        below, above = read(profile, epsilon)
        assert below - 1e-9 <= exact <= above + 1e-9
        assert above - below <= 1e-13


@pytest.mark.parametrize(("points", "steps"), CASES)
def test_one_chain_attains_the_profile_at_every_level(points: Points, steps: int) -> None:
    """Each step has every stated guarantee in both directions, and all steps together what the profile says."""
    laws, profile = chain(points, steps), profile_of_steps(points, steps)
    for one, other in pairwise(laws):
        for epsilon, delta in points:
            assert delta_between(one, other, epsilon) <= delta + 1e-12
            assert delta_between(other, one, epsilon) <= delta + 1e-12
    for epsilon in (-1.0, -0.3, 0.0, 0.2, 0.6, 1.4, 2.2, 3.5):
        below, above = read(profile, epsilon)
        for seen in (delta_between(laws[0], laws[-1], epsilon), delta_between(laws[-1], laws[0], epsilon)):
            assert below - 1e-13 <= seen <= above + 1e-13


def test_random_lists_are_attained_by_their_chains() -> None:
    rng = np.random.default_rng(65)
    for _ in range(60):
        size, steps = int(rng.integers(1, 6)), int(rng.integers(2, 7))
        epsilons = [round(float(rng.exponential()), 3) for _ in range(size)]
        points = tuple(
            (one, float(rng.choice([0.0, 10.0 ** -rng.uniform(0.0, 9.0)], p=[0.2, 0.8]))) for one in epsilons
        )
        laws, profile = chain(points, steps), profile_of_steps(points, steps)
        for epsilon in rng.uniform(-1.0, 1.2 * steps * max(0.1, *epsilons), 6):
            below, above = read(profile, epsilon)
            # Probabilities of cells are differences of doubles up to 1, and those of M_k are multiplied by e^ε.
            error = 1e-14 * (1.0 + math.exp(epsilon))
            assert below - error <= delta_between(laws[0], laws[-1], epsilon) <= above + error
            assert above - below <= 1e-12


@pytest.mark.parametrize("epsilon", [1e-10, 0.1, 0.7, 3.0])
@pytest.mark.parametrize("steps", [2, 3, 7, 40])
def test_the_losses_of_pure_guarantees(epsilon: float, steps: int) -> None:
    """n lines of slope e^ε and then k − n of slope e^(−ε) meet the axis at 1 − e^(−(k−n)ε), where the loss is (2n − k)ε."""
    profile = profile_of_steps(((epsilon, 0.0),), steps)
    for n in range((steps + 1) // 2, steps + 1):
        loss = float((2 * n - steps) * Fraction(repr(epsilon)))
        exact = -math.expm1(-(steps - n) * float(Fraction(repr(epsilon))))
        below, above = read(profile, loss)
        assert below <= exact * (1.0 + 1e-15)
        # The loss is a double, and δ falls by at most that much times e^ε t ≤ 1.
        assert exact <= above * (1.0 + 1e-15) + 4e-16 * loss
        assert above - below <= 3e-14 * exact + 4e-16 * loss


def test_groups_of_two_that_have_one() -> None:
    """1 − 1/e, and what the linear programme says at other levels: randomized response at 2 would have .7616 at 0."""
    for privacy, exact in (({"epsilon": 0}, 1.0 - math.exp(-1.0)), ({"epsilon": 1}, 0.4621171573)):
        guarantee = certified({"epsilon": 1}, **privacy, delta="solve").guarantee
        assert guarantee.delta_lower <= exact + 1e-10
        assert guarantee.delta == pytest.approx(exact, abs=1e-10)
        assert guarantee.delta - guarantee.delta_lower < 1e-12
        assert by_programme(PURE, 2, privacy["epsilon"]) == pytest.approx(exact, abs=1e-9)
    # The profile is 1 − 1/e − t(α − 1), t = 1/(e(1 + e)): so 0.1 is at 1 + ln((0.9 − t′)/t′), t′ = 1/(1 + e).
    t = 1.0 / (1.0 + math.e)
    exact = 1.0 + math.log((0.9 - t) / t)
    assert by_programme(PURE, 2, exact) == pytest.approx(0.1, abs=1e-9)
    guarantee = certified({"epsilon": 1}, delta=0.1).guarantee
    assert guarantee.epsilon_lower <= exact <= guarantee.epsilon
    assert guarantee.epsilon == pytest.approx(1.852905101, abs=1e-9)


def test_fifty_runs_of_groups_of_two() -> None:
    """The losses are 0.2, 0 and −0.2, so those of 50 runs are on a lattice, and their law is a power of a polynomial."""
    shown, t = -math.expm1(-0.1), 1.0 / (1.0 + math.exp(0.1))
    # What M_0 has up to the first kink of g∘g, beyond the second, and between.
    first, last = 1.0 - t, math.exp(-0.1) * t
    law = np.array([1.0])
    for _ in range(50):
        law = np.convolve(law, [last, 1.0 - first - last, first])
    assert first - math.exp(0.2) * last == pytest.approx(0.0, abs=1e-15)
    assert first - last == pytest.approx(shown, abs=1e-15)
    losses = 0.2 * np.arange(-50, 51)

    def delta(epsilon: float) -> float:
        return math.fsum(p * -math.expm1(epsilon - loss) for p, loss in zip(law, losses, strict=True) if loss > epsilon)

    exact = brentq(lambda epsilon: delta(epsilon) - 1e-6, 1.0, 9.0, xtol=1e-12)
    assert exact == pytest.approx(6.736978, abs=1e-6)
    guarantee = certified({"epsilon": 0.1}, count=50).guarantee
    assert guarantee.epsilon_lower <= exact <= guarantee.epsilon
    assert guarantee.epsilon - guarantee.epsilon_lower < 1e-5


def test_the_largest_loss_of_a_group() -> None:
    """At δ = 0 it is kε, as a decimal; with a δ, what lies above kε is δ(e^(kε) − 1)/(e^ε − 1)."""
    guarantee = certified({"epsilon": 0.1}, delta=0, group_size=3).guarantee
    assert (guarantee.epsilon_lower, guarantee.epsilon) == (0.3, 0.3)
    for epsilon, delta, steps in ((0.5, 1e-9, 3), (1.0, 1e-300, 2), (0.0, 0.01, 4), (2.0, 1e-5, 5)):
        profile = profile_of_steps(((epsilon, delta),), steps)
        exact = delta * math.fsum(math.exp(n * epsilon) for n in range(steps))
        below, above = read(profile, steps * epsilon + 1e-9)
        assert below <= exact * (1.0 + 1e-15) <= above * (1.0 + 4e-15)
        assert above <= below * (1.0 + 3e-14)
    # Nothing is left of (0.5, 0.4) for three.
    assert profile_of_steps(((0.5, 0.4),), 3).above == ((1.5, 1.0),)
    assert profile_of_steps(((0.0, 0.0),), 3) == (((0.0, 0.0),), ((0.0, 0.0),), True)


@pytest.mark.parametrize("points", [PURE, APPROXIMATE, LISTED, ((1e-3, 1e-9),)])
def test_fewer_orbits_loosen_both_ends(points: Points, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 9
    whole = profile_of_steps(points, steps)
    monkeypatch.setattr(groups_of_stated, "MOST_STEPS", steps)
    one = profile_of_steps.__wrapped__(points, steps)
    assert one.whole is (points is PURE)
    for epsilon in np.linspace(-2.0, 10.0, 49):
        (least, most), (below, above) = read(one, epsilon), read(whole, epsilon)
        assert least <= below * (1.0 + 1e-14)
        assert above <= most * (1.0 + 1e-14)
    assert read(one, 0.0)[0] > 0.0


def test_many_points_and_many_records_are_bounded_by_work() -> None:
    points = tuple((0.01 * n, math.exp(-0.01 * n - 0.0005 * n * n)) for n in range(1, 401))
    counted = profile_of_steps(points, 1000)
    assert not counted.whole
    assert len(counted.above) <= 2 * groups_of_stated.MOST_STEPS + 1
    large = profile_of_steps(((1e-3, 1e-9),), 10_000)
    assert large.whole
    below, above = read(large, 5.0)
    assert below <= above <= below * (1.0 + 1e-13)


#: What a record adds to where the mechanism is in its chain of three laws.
MOVES = {"x": 1, "y": -1, "z": 0}


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out"])
def test_two_steps_are_attained_by_a_mechanism_with_the_stated_guarantee(adjacency: str) -> None:
    """Every step from data sets of at most three records has the guarantee, and x that becomes y has that of two steps."""
    epsilon, delta = 0.8, 1e-3
    laws = chain(((epsilon, delta),), 2)

    def released(data: Counter[str]) -> Any:
        return laws[min(2, max(0, 1 - sum(MOVES[record] * count for record, count in data.items())))]

    sets = [Counter(data) for size in range(4) for data in product("xyz", repeat=size)]
    for data in sets:
        for record in set(data):
            without = data - Counter([record])
            neighbour = without if adjacency == "add-remove" else without + Counter("z")
            for pair in ((data, neighbour), (neighbour, data)):
                assert delta_between(released(pair[0]), released(pair[1]), epsilon) <= delta + 1e-12
    seen = max(
        delta_between(released(data), released(data - Counter("x") + Counter("y")), 1.0) for data in sets if data["x"]
    )
    made = certified(
        {"epsilon": epsilon, "delta": delta, "adjacency": adjacency}, group_size=1, epsilon=1.0, delta="solve"
    )
    assert made.guarantee.delta_lower == pytest.approx(seen, rel=1e-12)
    assert made.guarantee.delta_lower <= made.guarantee.delta <= made.guarantee.delta_lower * (1.0 + 1e-12)
    (reduction,) = made.reductions
    assert (reduction.tight, reduction.lower_end) == (True, None)


def test_groups_that_are_replaced_take_two_steps_each() -> None:
    two = certified({"epsilon": 0.3, "adjacency": "zero-out"}, group_size=2, delta=0.01).guarantee
    four = certified({"epsilon": 0.3}, group_size=4, delta=0.01).guarantee
    assert (two.epsilon_lower, two.epsilon) == (four.epsilon_lower, four.epsilon)


def test_the_least_delta_of_two_steps_is_where_the_profile_ends() -> None:
    """Not the least δ(1 + e^ε): the second step may be another point's."""
    points = ((1.0, 1e-5), (3.0, 1e-6))
    ends = profile_of_steps(points, 2).above[-1][1]
    assert ends == pytest.approx(1e-5 + math.e * 1e-6, rel=1e-12)
    for known in (points, LISTED, APPROXIMATE, PURE, ((0.1, 0.6),)):
        least = ProvenPoints(known, 0.0, verified=False).least_delta(2)
        assert least == pytest.approx(profile_of_steps(known, 2).above[-1][1], rel=1e-12)


@pytest.mark.parametrize(
    ("law", "generating"),
    [
        ({"kind": "geometric", "stopping_probability": 0.3}, lambda x: 0.3 * x / (1.0 - 0.7 * x)),
        ({"kind": "poisson", "mean": 1.7}, lambda x: math.exp(1.7 * (x - 1.0))),
    ],
)
def test_the_best_run_of_a_group(law: dict[str, Any], generating: Callable[[float], float]) -> None:
    """The best of K runs of the chain, by each order of its outcomes and by random scores, is between both ends or below."""
    first, *_, last = chain(APPROXIMATE, 2)
    orders = [np.arange(len(first)), np.arange(len(first))[::-1], np.random.default_rng(2).permutation(len(first))]
    none = generating(0.0)

    def best(p: Any, order: Any) -> Any:
        sums = np.array([generating(min(1.0, x)) for x in np.cumsum(p[order])])
        return np.concatenate([[none], np.diff(sums, prepend=none)])

    for epsilon in (0.0, 0.5, 1.2, 2.0):
        phase = {"select": law, "phases": [stated(epsilon=0.7, delta=1e-3)]}
        guarantee = of_phases(phase, adjacency="zero-out", epsilon=epsilon, delta="solve").guarantee
        for p, q in ((first, last), (last, first)):
            for order in orders:
                assert delta_between(best(p, order), best(q, order), epsilon) <= guarantee.delta * (1.0 + 1e-9)
            # The scores are independent of the outcomes.
            assert guarantee.delta_lower == pytest.approx((1.0 - none) * delta_between(p, q, epsilon), rel=1e-3)


def test_a_group_in_disjoint_parts_of_stated_guarantees() -> None:
    """Two records in one part or spread over both, beside a guarantee for all data: the worst case is attained by the chains."""
    parts, common = ((0.9, 1e-4), (0.6, 1e-2)), (0.3, 0.0)

    def pair(point: tuple[float, float], records: int) -> tuple[Any, Any]:
        laws = chain((point,), records)
        return laws[0], laws[-1]

    def together(*pairs: tuple[Any, Any]) -> tuple[Any, Any]:
        p = q = np.ones(1)
        for one, other in pairs:
            p, q = np.outer(p, one).ravel(), np.outer(q, other).ravel()
        return p, q

    spread = [[pair(parts[0], 2)], [pair(part, 1) for part in parts], [pair(parts[1], 2)]]
    phase = {"parallel": [stated(epsilon=epsilon, delta=delta) for epsilon, delta in parts]}
    for epsilon in (0.2, 0.9, 1.6):
        exact = max(delta_between(*together(*one, pair(common, 2)), epsilon) for one in spread)
        guarantee = of_phases(
            phase, stated(epsilon=common[0]), adjacency="add-remove", epsilon=epsilon, delta="solve"
        ).guarantee
        assert guarantee.delta_lower <= exact * (1.0 + 1e-9)
        assert exact <= guarantee.delta * (1.0 + 1e-9)
        assert guarantee.delta - guarantee.delta_lower <= 1e-3 * exact


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_groups_of_several_kinds_attain_their_composition(adjacency: str) -> None:
    """A chain, and Gaussian divergences with ρ, whose sum moves by as much for each record of the group."""
    mu, k = 0.4, 3
    made = of_phases(
        stated(epsilon=0.5), stated(mu=mu), adjacency=adjacency, group_size=k, epsilon=1.0, delta="solve"
    ).guarantee
    laws = chain(((0.5, 0.0),), k)

    def gaussian(epsilon: float) -> float:
        size = k * mu
        return float(norm.cdf(size / 2 - epsilon / size) - math.exp(epsilon) * norm.cdf(-size / 2 - epsilon / size))

    # Σ_x P(x) δ(ε − ln P(x)/Q(x)).
    cells = [(p, q) for p, q in zip(laws[0], laws[-1], strict=True) if p > 0.0]
    exact = math.fsum(p * gaussian(1.0 - math.log(p / q)) for p, q in cells)
    assert made.delta_lower <= exact * (1.0 + 1e-9)
    assert exact <= made.delta * (1.0 + 1e-9)
    assert made.delta - made.delta_lower <= 1e-3 * exact


@pytest.mark.parametrize("kind", ["discrete_gaussian", "discrete_laplace"])
@pytest.mark.parametrize("scale", [0.2, 0.5, 1.0, 2.0])
def test_a_group_that_changes_different_numbers_reveals_no_more(kind: str, scale: float) -> None:
    """The pair of a group moves one number by its whole change; records may also change one number each."""
    # What is beyond 40 scales is below 1e-17.
    x = np.arange(-80, 81, dtype=float)
    law = np.exp(-(x**2) / (2.0 * scale**2) if kind == "discrete_gaussian" else -np.abs(x) / scale)
    law /= law.sum()

    def moved(*steps: int) -> tuple[Any, Any]:
        p = q = np.ones(1)
        for step in steps:
            p, q = np.outer(p, np.pad(law, (step, 0))).ravel(), np.outer(q, np.pad(law, (0, step))).ravel()
        return p, q

    for spread in ((1, 1), (2, 1)):
        profile = getattr(_core.RoundProfile, kind)(sum(spread), scale)
        for epsilon in np.linspace(0.0, 12.0, 49):
            seen = delta_between(*moved(*spread), epsilon)
            assert seen <= profile.delta(epsilon)[1] * (1.0 + 1e-9) + 1e-15 * math.exp(epsilon)
