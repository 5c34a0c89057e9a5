"""Batches of a fixed number of draws: their laws, and their bounds against all data sets that a search finds."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, product

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np
import oracle
import pytest
from plain_documents import doc
from scipy.special import ndtr  # type: ignore[import-untyped]

import pyaccount
from pyaccount._core import Inspection, RoundProfile, copies
from pyaccount.execute import Engine, Question

Array = np.ndarray
#: How often each record is drawn, with the probability of that outcome.
Draws = dict[tuple[int, ...], Fraction]

SAMPLERS = ["fixed-size", "with-replacement", "must-ow", "must-ww"]
EPSILONS = np.array([-1.0, -0.2, 0.0, 0.3, 1.0, 2.5])


def multiplicities(dataset: int, drawn: Iterable[int]) -> tuple[int, ...]:
    count = Counter(drawn)
    return tuple(count[i] for i in range(dataset))


def uniform(dataset: int, drawn: Iterable[tuple[int, ...]]) -> Draws:
    count = Counter(multiplicities(dataset, d) for d in drawn)
    return {c: Fraction(n, count.total()) for c, n in count.items()}


@cache
def draws(sampler: str, dataset: int, batch: int, subset: int) -> Draws:
    """Return every outcome of a sampler, by enumerating what it does."""
    records = range(dataset)
    if sampler == "fixed-size":
        return uniform(dataset, combinations(records, batch))
    if sampler == "with-replacement":
        return uniform(dataset, product(records, repeat=batch))
    if sampler == "must-ow":
        return uniform(dataset, chain.from_iterable(product(s, repeat=batch) for s in combinations(records, subset)))
    # First b slots with replacement, then m of the slots: with replacement, or without (must-wo).
    law: Counter[tuple[int, ...]] = Counter()
    for slots, ways in Counter(tuple(sorted(s)) for s in product(records, repeat=subset)).items():
        second = product(slots, repeat=batch) if sampler == "must-ww" else combinations(slots, batch)
        for drawn in second:
            law[multiplicities(dataset, drawn)] += ways
    return {c: Fraction(n, law.total()) for c, n in law.items()}


SIZES = [(1, 1, 1), (2, 1, 2), (2, 3, 2), (3, 2, 2), (3, 3, 3), (4, 3, 2), (4, 4, 3), (5, 2, 4), (5, 3, 5)]


@pytest.mark.parametrize(("dataset", "batch", "subset"), SIZES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_laws_by_enumeration(sampler: str, dataset: int, batch: int, subset: int) -> None:
    batch = min(batch, dataset) if sampler == "fixed-size" else batch
    for group in range(1, 2 if sampler.startswith("must") else dataset + 1):
        exact: defaultdict[int, Fraction] = defaultdict(Fraction)
        for count, p in draws(sampler, dataset, batch, subset).items():
            exact[sum(count[:group])] += p
        counts, logs, error = copies(sampler, group, dataset, batch, subset)
        assert counts == sorted(exact)
        assert error < 1e-12
        for j, log in zip(counts, logs, strict=True):
            assert abs(math.exp(log) / float(exact[j]) - 1) <= error + 4e-16


def test_slots_without_replacement_are_with_replacement() -> None:
    for dataset, batch, subset in [(2, 1, 3), (3, 2, 2), (3, 2, 4), (4, 3, 4), (5, 2, 3)]:
        assert draws("must-wo", dataset, batch, subset) == draws("with-replacement", dataset, batch, 0)


def binomial(trials: int, numerator: int, denominator: int) -> list[mp.mpf]:
    p = mp.mpf(numerator) / denominator
    return [mp.binomial(trials, j) * p**j * (1 - p) ** (trials - j) for j in range(trials + 1)]


def law(sampler: str, group: int, dataset: int, batch: int, subset: int) -> list[mp.mpf]:
    """Return the laws as formulas, in high precision."""
    if sampler == "fixed-size":
        return oracle.hypergeometric(group, dataset - group, batch)
    if sampler == "with-replacement":
        return binomial(batch, group, dataset)
    if sampler == "must-ow":
        inside = mp.mpf(subset) / dataset
        weights = [inside * w for w in binomial(batch, 1, subset)]
        return [weights[0] + 1 - inside, *weights[1:]]
    first = binomial(subset, 1, dataset)
    second = [binomial(batch, i, subset) if first[i] > mp.mpf(10) ** -330 else None for i in range(subset + 1)]
    return [mp.fsum(f * s[j] for f, s in zip(first, second, strict=True) if s) for j in range(batch + 1)]


@pytest.mark.parametrize(
    ("sampler", "group", "dataset", "batch", "subset"),
    [
        ("fixed-size", 1, 60_000, 512, 0),
        ("fixed-size", 7, 10**9, 4000, 0),
        ("with-replacement", 1, 10**6, 500, 0),
        ("with-replacement", 5, 97, 300, 0),
        ("must-ow", 1, 10**5, 300, 400),
        ("must-ow", 1, 700, 300, 700),
        ("must-ow", 1, 10**7, 200, 1),
        ("must-ww", 1, 1000, 120, 150),
        ("must-ww", 1, 10**6, 80, 90),
    ],
)
def test_large_laws(sampler: str, group: int, dataset: int, batch: int, subset: int) -> None:
    with mp.workdps(oracle.DIGITS):
        exact = law(sampler, group, dataset, batch, subset)
        counts, logs, error = copies(sampler, group, dataset, batch, subset)
        assert error < 1e-9
        given = dict(zip(counts, logs, strict=True))
        for j, p in enumerate(exact):
            # Ends whose total mass is negligible are moved to the largest number of draws.
            if p > mp.mpf(10) ** -298:
                assert abs(mp.exp(mp.mpf(given[j])) / p - 1) <= error, j
            elif j in given:
                assert given[j] < math.log(1e-290)


# Concrete data sets.


def exponents(y: Array, weights: Array, means: Array) -> tuple[Array, Array]:
    """Return the terms of a density relative to N(0, 1), as multiples of e to the largest logarithm."""
    terms = np.outer(y, means) + (np.log(weights) - means * means / 2)
    largest = terms.max(axis=1, initial=-math.inf)
    return np.exp(terms - largest[:, None]), largest


def log_density(y: Array, weights: Array, means: Array) -> Array:
    terms, largest = exponents(y, weights, means)
    return np.asarray(np.log(terms.sum(axis=1)) + largest)


def density_and_mean(y: Array, weights: Array, means: Array) -> tuple[Array, Array]:
    """Return the logarithm of the density and its derivative."""
    terms, largest = exponents(y, weights, means)
    total = terms.sum(axis=1)
    return np.log(total) + largest, terms @ means / total


def hockey_sticks(p: tuple[Array, Array], q: tuple[Array, Array], epsilons: Array) -> Array:
    """Return H_{e^ε} of two mixtures of unit Gaussians (weights, means), by sign changes on a grid and Newton's method.

    It is the difference of the two measures on a union of intervals; for any such union it is at most the truth.
    """
    (w, a), (v, b) = p, q
    low, high = min(a.min(), b.min()) - 9, max(a.max(), b.max()) + 9
    y = np.linspace(low, high, int((high - low) / 0.09) + 2)
    # From here on densities are relative to N(0, 1), which cancels.
    loss = log_density(y, w, a) - log_density(y, v, b)
    f = loss - epsilons[:, None]
    inside = f > 0
    # All sign changes for all ε together: the k-th ε and the i-th point of the grid.
    k, i = np.nonzero(inside[:, 1:] != inside[:, :-1])
    root = y[i] - f[k, i] * (y[i + 1] - y[i]) / (f[k, i + 1] - f[k, i])
    for _ in range(2):
        (ours, rise), (theirs, other) = density_and_mean(root, w, a), density_and_mean(root, v, b)
        slope, miss = rise - other, ours - theirs - epsilons[k]
        moved = root - miss / np.where(np.abs(slope) > 1e-9, slope, np.inf)
        root = np.where((moved > y[i]) & (moved < y[i + 1]), moved, root)
    tails = ndtr(a - root[:, None]) @ w - np.exp(epsilons[k]) * (ndtr(b - root[:, None]) @ v)
    # An interval begins where the left neighbour is outside; one that begins at −∞ contains everything to its right.
    changes = np.bincount(k, weights=np.where(inside[k, i], -tails, tails), minlength=len(epsilons))
    return np.maximum(0.0, np.where(inside[:, 0], w.sum() - np.exp(epsilons) * v.sum(), 0.0) + changes)


@cache
def table(sampler: str, dataset: int, batch: int, subset: int) -> tuple[Array, Array]:
    every = draws(sampler, dataset, batch, subset)
    return np.array([float(p) for p in every.values()]), np.array(list(every), dtype=float)


class Case:
    """A sampler, its sizes and an adjacency, with data sets and the bounds on all of them."""

    def __init__(self, change: str, sampler: str, sizes: tuple[int, int, int], group: int, sigma: float) -> None:
        dataset, batch, subset = sizes
        self.change, self.group, self.dataset, self.sigma = change, group, dataset, sigma
        self.name = (change, sampler, sizes, group, sigma)
        self.present = table(sampler, *sizes)
        self.absent = table(sampler, dataset - group, batch, subset) if change == "removed" else self.present
        profiles = [
            RoundProfile.copies(sampler, group, *sizes, 2.0, sigma, reverse=reverse)
            if change == "removed" and not sampler.startswith("must")
            else RoundProfile.displaced(
                "zeroed" if change == "zeroed" else "replaced", sampler, group, *sizes, sigma, reverse=reverse
            )
            for reverse in (False, True)
        ]
        self.bounds = np.array([[Inspection.profile(profile, float(e))[0] for e in EPSILONS] for profile in profiles])

    def exact(self, gradients: Array, other: Array) -> Array:
        """Return both directions for one data set and the values that its first records change to."""
        rest = gradients[self.group :]
        if self.change == "replaced":
            rest = np.concatenate([other, rest])
        elif self.change == "zeroed":
            rest = np.concatenate([0 * other, rest])
        p = (self.present[0], self.present[1] @ gradients / self.sigma)
        q = (self.absent[0], self.absent[1] @ rest / self.sigma)
        return np.array([hockey_sticks(p, q, EPSILONS), hockey_sticks(q, p, EPSILONS)])

    def excess(self, gradients: Array, other: Array) -> tuple[float, float]:
        """Return the largest excess over a bound: relative if δ is not tiny, and absolute."""
        excess = self.exact(gradients, other) - self.bounds
        return float((excess / np.maximum(self.bounds, 1e-9)).max()), float(excess.max())


CASES = [
    (change, sampler, sizes, group)
    for change in ("replaced", "zeroed", "removed")
    for sampler in SAMPLERS
    for sizes in [(2, 1, 1), (3, 2, 2), (4, 3, 2), (5, 3, 3)]
    for group in (1, 2)
    if not (group == 2 and (sampler.startswith("must") or sizes[0] == 2))
    # Without the group, some records must be left to draw.
    if not (sampler == "fixed-size" and change == "removed" and sizes[1] > sizes[0] - group)
]


def attempt(case: Case, point: Array) -> float:
    relative, absolute = case.excess(point[: case.dataset], point[case.dataset :])
    assert absolute <= 1e-10, (case.name, point.tolist(), absolute)
    return relative


@pytest.mark.parametrize("change", ["replaced", "zeroed", "removed"])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_no_data_set_exceeds_its_bound(change: str, sampler: str) -> None:
    rng = np.random.default_rng([20261121, SAMPLERS.index(sampler), len(change)])
    for *_, sizes, group in (case for case in CASES if case[:2] == (change, sampler)):
        for sigma in (0.5, 1.0, 2.0):
            case = Case(change, sampler, sizes, group, sigma)
            size = sizes[0] + group
            points = [np.repeat([1.0, s], [group, sizes[0]]) for s in (-1.0, 1.0)]
            points += [np.concatenate([p[:-group], -np.ones(group)]) for p in points]
            points += [rng.choice([-1.0, -1.0, 1.0, 1.0, 0.0, rng.uniform(-1, 1)], size) for _ in range(6)]
            worst, point = max(((attempt(case, start), start) for start in points), key=lambda found: found[0])
            for step in (0.5, 0.2, 0.1, 0.05):
                for _ in range(2):
                    moved = np.clip(point + step * rng.normal(size=size) * (rng.random(size) < 0.5), -1.0, 1.0)
                    if (excess := attempt(case, moved)) > worst:
                        worst, point = excess, moved


def test_data_sets_that_attain_their_bounds() -> None:
    """The search above is effective: where a bound is known to be attained, it attains it up to rounding."""
    against, along = np.array([1.0, -1, -1, -1, -1]), np.ones(5)
    for sigma in (0.5, 1.0, 2.0):
        ahead = EPSILONS >= 0
        for sampler in ("fixed-size", "with-replacement"):
            removed = Case("removed", sampler, (5, 3, 0), 1, sigma)
            assert np.allclose(removed.exact(against, -np.ones(1)), removed.bounds, rtol=1e-9, atol=1e-14)
        replaced, zeroed = (Case(change, "fixed-size", (5, 3, 0), 1, sigma) for change in ("replaced", "zeroed"))
        exact = replaced.exact(against, -np.ones(1))
        assert np.allclose(exact[0, ahead], replaced.bounds[0, ahead], rtol=1e-9, atol=1e-14)
        exact = zeroed.exact(against, np.zeros(1))
        assert np.allclose(exact[0, ahead], zeroed.bounds[0, ahead], rtol=1e-9, atol=1e-14)
        exact = zeroed.exact(along, np.zeros(1))
        assert np.allclose(exact[1, ahead], zeroed.bounds[1, ahead], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("sampler", "dataset", "batch"), [("fixed-size", 100, 5), ("with-replacement", 1000, 10)])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_the_published_pair_is_beaten(sampler: str, dataset: int, batch: int, sigma: float) -> None:
    """Σ p_j N(j) against Σ p_j N(−j) is not an upper bound under replacement: two data sets have a larger δ."""
    trials, p = (1, batch / dataset) if sampler == "fixed-size" else (batch, 1 / dataset)
    published = RoundProfile.poisson(trials, p, sigma, two_sided=True, reverse=False)
    bound = RoundProfile.displaced("replaced", sampler, 1, dataset, batch, 0, sigma, reverse=False)
    counts, logs, _ = copies(sampler, 1, dataset, batch, 0)
    weights = np.exp(logs)
    # The gradients of all other records are −1; that of the record changes from 1 to −1.
    mean = np.array(counts) - (batch - np.array(counts))
    present, absent = (weights, mean / sigma), (np.ones(1), np.array([-batch / sigma]))
    for epsilon in (0.3, 1.0, 2.5):
        (concrete,) = hockey_sticks(present, absent, np.array([epsilon]))
        assert concrete > 1.05 * Inspection.profile(published, epsilon)[0]
        assert concrete <= Inspection.profile(bound, epsilon)[0] * (1 + 1e-9)
    if sigma == 1.0:
        (concrete,) = hockey_sticks(present, absent, np.array([2.5]))
        assert concrete > 5 * Inspection.profile(published, 2.5)[0]


# The best of the three bounds, and its hull.

CONVEX = [
    (change, sizes, sigma)
    for change in ("replaced", "zeroed")
    for sizes, sigma in [((1, 20, 4), 1.0), ((1, 4, 3), 2.0), ((2, 30, 5), 0.8)]
]


def bounds(
    change: str, weights: list[mp.mpf], sigma: mp.mpf, epsilon: mp.mpf, *, remove: bool
) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """Return the bounds by joint convexity, by the blend and by the pair, from their definitions."""
    other = 1 if change == "zeroed" else 2
    drawn = [(w, j / sigma) for j, w in enumerate(weights) if j > 0]
    nothing = [(mp.mpf(1), mp.mpf(0))]

    def shifted(unit: int) -> list[tuple[mp.mpf, mp.mpf]]:
        return [(weights[0], mp.mpf(0)), *((w, unit * c) for w, c in drawn)]

    plus, minus = shifted(2), shifted(-other)
    p, q = (plus, minus) if remove else (minus, plus)
    pair = oracle.mixture_delta(p, q, epsilon, increasing=remove)
    if epsilon < 0:
        joint, blend, _ = bounds(change, weights, sigma, -epsilon, remove=not remove)
        ratio = mp.exp(epsilon)
        return 1 - ratio + ratio * joint, 1 - ratio + ratio * blend, pair
    outer, eta = mp.exp(epsilon), 1 - weights[0]
    alpha = 1 + (outer - 1) / eta
    beta, log = outer / alpha, mp.log(alpha)
    apart = mp.fsum(w * oracle.gaussian_delta(other * c, log) for w, c in drawn)
    joint = apart
    if change == "zeroed" and remove:
        joint = mp.fsum(
            w * oracle.mixture_delta([(mp.mpf(1), 2 * c)], [(1 - beta, mp.mpf(0)), (beta, c)], log) for w, c in drawn
        )
    unit = 1 if change == "zeroed" and not remove else 2
    return joint, (1 - beta) * oracle.mixture_delta(shifted(unit), nothing, epsilon) + beta * apart, pair


@pytest.mark.parametrize(("change", "sizes", "sigma"), CONVEX)
@pytest.mark.parametrize("remove", [True, False])
def test_best_of_three_bounds(change: str, sizes: tuple[int, int, int], sigma: float, remove: bool) -> None:
    group, dataset, batch = sizes
    profile = RoundProfile.displaced(change, "with-replacement", group, dataset, batch, 0, sigma, reverse=not remove)
    with mp.workdps(24):
        weights = binomial(batch, group, dataset)
        for epsilon in (-1.5, -0.1, 0.0, 0.02, 0.4, 1.5, 4.0):
            least = min(bounds(change, weights, mp.mpf(sigma), mp.mpf(epsilon), remove=remove))
            assert Inspection.profile(profile, epsilon)[0] <= least * (1 + 1e-10) + 1e-14, epsilon


def half_line(p: Iterable[tuple[float, float]], q: Iterable[tuple[float, float]], epsilons: Array) -> Array:
    """Return H_{e^ε} for an increasing ratio, for many ε at once."""
    (w, a), (v, b) = (np.array(list(m)).T for m in (p, q))
    low, high = np.full(len(epsilons), -60.0), np.full(len(epsilons), 60.0)

    for _ in range(45):
        y = (low + high) / 2
        above = log_density(y, w, a) - log_density(y, v, b) > epsilons
        low, high = np.where(above, low, y), np.where(above, y, high)
    return np.asarray(ndtr(a - high[:, None]) @ w - np.exp(epsilons) * (ndtr(b - high[:, None]) @ v))


def least_on_grid(change: str, weights: Array, sigma: float, epsilons: Array, *, remove: bool) -> Array:
    """Return the minimum of the three bounds in double precision on a symmetric grid, with ε = 0 in its middle."""
    other, eta = (1 if change == "zeroed" else 2), 1 - weights[0]
    e = epsilons[len(epsilons) // 2 :]
    means = np.arange(len(weights)) / sigma
    alpha = 1 + np.expm1(e) / eta
    beta = np.exp(e) / alpha

    def gaussian(mu: float) -> Array:
        log = np.log(alpha)
        return np.asarray(ndtr(mu / 2 - log / mu) - alpha * ndtr(-mu / 2 - log / mu))

    def opposed(mu: float) -> Array:
        # N(2μ) against (1−β)N(0) + βN(μ): with x = e^{μy} the ratio is above α where a·x² − αβ·b·x − α(1−β) > 0.
        a, b = np.exp(-2 * mu * mu), np.exp(-mu * mu / 2)
        first, last = alpha * beta * b, alpha * (1 - beta)
        y = np.log((first + np.sqrt(first**2 + 4 * a * last)) / (2 * a)) / mu
        return np.asarray(ndtr(2 * mu - y) - alpha * ((1 - beta) * ndtr(-y) + beta * ndtr(mu - y)))

    apart = np.sum([w * gaussian(other * m) for w, m in zip(weights[1:], means[1:], strict=True)], axis=0)
    nothing = [(1.0, 0.0)]
    whole = {u: half_line(zip(weights, u * means, strict=True), nothing, e) for u in (1, 2)}

    def ahead(removing: bool) -> Array:
        if change == "zeroed" and removing:
            joint = np.sum([w * opposed(m) for w, m in zip(weights[1:], means[1:], strict=True)], axis=0)
        else:
            joint = apart
        unit = 1 if change == "zeroed" and not removing else 2
        return np.asarray(np.minimum(joint, (1 - beta) * whole[unit] + beta * apart))

    behind = ahead(not remove)[:0:-1]
    mirrored = np.exp(epsilons[: len(behind)])
    both = np.concatenate([1 - mirrored + mirrored * behind, ahead(remove)])
    # A mirrored mixture has an increasing ratio too.
    p, q = zip(weights, 2 * means, strict=True), zip(weights, -other * means, strict=True)
    if not remove:
        p, q = zip(weights, other * means, strict=True), zip(weights, -2 * means, strict=True)
    return np.asarray(np.minimum(both, half_line(p, q, epsilons)))


def hull_vertices(x: Array, y: Array) -> list[int]:
    kept: list[int] = []
    for k in range(len(x)):
        while len(kept) > 1:
            i, j = kept[-2:]
            if y[j] < y[i] + (y[k] - y[i]) * (x[j] - x[i]) / (x[k] - x[i]):
                break
            kept.pop()
        kept.append(k)
    return kept


@pytest.mark.parametrize(("change", "sizes", "sigma"), CONVEX)
@pytest.mark.parametrize("remove", [True, False])
def test_nothing_below_the_hull(change: str, sizes: tuple[int, int, int], sigma: float, remove: bool) -> None:
    group, dataset, batch = sizes
    profile = RoundProfile.displaced(change, "with-replacement", group, dataset, batch, 0, sigma, reverse=not remove)
    p = group / dataset
    weights = np.array([math.comb(batch, j) * p**j * (1 - p) ** (batch - j) for j in range(batch + 1)])
    coarse = np.linspace(0.01, 6.0, 600)
    positive = coarse
    for width in (0.02, 4e-4):
        epsilons = np.concatenate([-positive[::-1], [0.0], positive])
        kept = hull_vertices(np.exp(epsilons), least_on_grid(change, weights, sigma, epsilons, remove=remove))
        ends = np.flatnonzero(np.diff(kept) > 1)
        near = [abs(epsilons[kept[k]]) + width * np.linspace(-1, 1, 101) for end in ends for k in (end, end + 1)]
        positive = np.unique(np.concatenate([positive, *(part[part > 0] for part in near)]))
    epsilons = np.concatenate([-positive[::-1], [0.0], positive])
    least = least_on_grid(change, weights, sigma, epsilons, remove=remove)
    alpha = np.exp(epsilons)
    kept = hull_vertices(alpha, least)
    hull = np.interp(alpha, alpha[kept], least[kept])
    for epsilon in (*-coarse[::8], *coarse[::8]):
        delta, lower = Inspection.profile(profile, epsilon)[0], hull[np.searchsorted(epsilons, epsilon)]
        assert lower * (1 - 1e-6) - 1e-15 <= delta <= lower * (1 + 1e-6) + 1e-14, (epsilon, delta, lower)


@pytest.mark.parametrize("change", ["replaced", "zeroed"])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_larger_data_sets_have_smaller_bounds(change: str, sampler: str) -> None:
    for group, batch, subset in [(1, 1, 1), (1, 3, 2), (1, 4, 6), (2, 5, 0)]:
        if group == 2 and sampler.startswith("must"):
            continue
        for sigma in (0.5, 2.0):
            for reverse in (False, True):
                before: list[float] = []
                for dataset in (6, 7, 8, 100):
                    profile = RoundProfile.displaced(
                        change, sampler, group, dataset, batch, subset, sigma, reverse=reverse
                    )
                    here = [Inspection.profile(profile, float(e)) for e in (*EPSILONS, 5.0)]
                    for old, (delta, error, *_) in zip(before, here, strict=bool(before)):
                        assert delta <= old * (1 + 1e-12) + error
                    before = [delta for delta, *_ in here]


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_the_best_of_several_bounds_is_as_narrow_as_asked(epsilon: float, tolerance: float) -> None:
    """If all pieces agree up to rounding, in the left tail, last digits may not decide, or no window would end."""
    body = doc(
        "name=groups group_size=4 delta=1e-8 dataset_size=1000 expected_batch_size=10 iterations=100",
        "sampler=fixed-size multiplier=5.0",
    )
    answer = Engine().ask(pyaccount.compile(body).at().bounds(), Question(epsilon, None, tolerance))
    assert answer.within_tolerance
    for found in answer.directions.values():
        assert found.upper_account.upper <= found.upper_account.lower * (1 + 2 * tolerance)
