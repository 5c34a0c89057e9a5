"""Tests from mixtures of proposals: within their proven bounds, unbiased, and with their stated error probability."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact_documents import Truth
from exact_mixtures import Mixture, hockey_stick, nothing
from log_sums import logsumexp
from made import sampled
from plain_documents import doc
from sampled_tools import bin_law, lower_toeplitz, renewal_law
from scipy.optimize import minimize
from snapshots import Snapshot

import pyaccount
from pyaccount import _core
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import betting_choice
from pyaccount.execute.sampling.betting_choice import Claim, choose_betting
from pyaccount.execute.sampling.estimates import Effort, Estimator
from pyaccount.execute.sampling.jobs import SHARD, Bet, BetTable, Component, Proposal
from pyaccount.execute.sampling.proposals import mixed, plain_proposal, whole_units
from pyaccount.execute.sampling.shards import Sampler, Stream
from pyaccount.execute.sampling.tests_of_claims import run_betting_tests
from pyaccount.plan.sampled import SampledMechanism

Array = np.ndarray
N, B, RATE = 4, 2, 0.3
COLUMN = np.array([1.0, 0.5])


def sampler(seed: int = 3) -> Sampler:
    return Sampler(RunOptions(seed=seed, threads=0))


class Law:
    """A mixture Σ w N(mean, I) of a few normal laws."""

    def __init__(self, means: Array, log_weights: Array) -> None:
        self.means, self.constants = means, log_weights - 0.5 * (means**2).sum(axis=1)

    def log_density(self, y: Array) -> Array:
        """Return ln of the density relative to N(0, I)."""
        return np.asarray(logsumexp(self.constants + y @ self.means.T, axis=1))


class Renewal:
    """A mechanism small enough to enumerate: patterns, their weights, and means in units of σ."""

    def __init__(self, sigma: float, *, warm: bool) -> None:
        law = renewal_law(N, B, RATE, warm=warm)
        self.exact = Mixture.of(law, lower_toeplitz(COLUMN, N) / sigma)
        self.rounds = np.array(list(law), dtype=float)
        self.weights = np.array(list(law.values()))
        self.matrix = lower_toeplitz(COLUMN, N) / sigma
        self.means = self.rounds @ self.matrix.T
        self.warm = warm
        self.recipe = sampled("renewal", list(COLUMN / sigma), N, B, RATE, warm)
        self.core = self.recipe.core
        self.mean = self.weights @ self.means
        self.own = Law(self.means, np.log(self.weights))
        self._laws: dict[tuple[Component, str], Law] = {}

    def mechanism(self) -> SampledMechanism:
        return SampledMechanism(self.recipe, ("remove", "add"), N, 100.0, RATE)

    def law(self, one: Component, direction: str) -> Law:
        """Return M_k, from the definitions of scaled laws and of tilts."""
        if (one, direction) not in self._laws:
            self._laws[one, direction] = self._law(one, direction)
        return self._laws[one, direction]

    def _law(self, one: Component, direction: str) -> Law:
        if one.parameters:
            law = renewal_law(N, B, one.parameters[0], warm=self.warm)
            weights = np.array([law.get(tuple(map(int, row)), 0.0) for row in self.rounds])
            # A stationary start under another probability has that law's own weights.
            return Law(one.number * self.means, np.log(weights))
        shift = one.number * self.mean
        if direction == "add":
            return Law(shift[None, :], np.zeros(1))
        tilted = np.log(self.weights) + self.means @ shift
        return Law(self.means + shift, tilted - logsumexp(tilted))

    def value(self, components: list[Component], y: Array, direction: str, epsilon: float) -> Array:
        """Return V at these outcomes."""
        own = self.own.log_density(y)
        numerator, loss = (np.zeros(len(y)), -own) if direction == "add" else (own, own)
        if direction == "replace":
            loss = own - self.own.log_density(-y)
        logs = [math.log(one.units / 128) + self.law(one, direction).log_density(y) for one in components]
        return np.asarray(np.exp(numerator - logsumexp(logs, axis=0)) * np.maximum(-np.expm1(epsilon - loss), 0.0))


def components(direction: str, *, anchored: bool) -> list[Component]:
    """Return plain samples, a scaled law if it is to bound the rest, and tilts."""
    sign, stretch = (-1.0, -1.5) if direction == "add" else (1.0, 2.0)
    tilts = [Component(20, (), 1.5 * sign), Component(28, (), 4.0 * sign)]
    if anchored:
        return [Component(8, (), 0.0), Component(72, (0.5,), stretch), *tilts]
    return [Component(80, (), 0.0), *tilts]


@pytest.mark.nightly(
    but=[
        f"{at}-{start}" for at in ("remove-3.0", "add-0.4") for start in ("plain-cold", "plain-warm", "stretched-warm")
    ]
    + ["remove-0.5-stretched-warm", "replace-1.0-plain-warm", "replace-1.0-stretched-cold"]
)
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("anchored", [False, True], ids=["plain", "stretched"])
@pytest.mark.parametrize(("direction", "epsilon"), [("remove", 0.5), ("remove", 3.0), ("add", 0.4), ("replace", 1.0)])
def test_no_sample_is_above_the_bound(direction: Any, epsilon: float, *, anchored: bool, warm: bool) -> None:
    """The largest V over outcomes, found by search from many starts, is below the bound and close to it."""
    one = Renewal(0.8, warm=warm)
    parts = components(direction, anchored=anchored)
    cap, _, _ = one.core.defensive_bounds(direction, [(c.units, c.parameters, c.number) for c in parts], epsilon)
    rng = np.random.default_rng(7)
    starts = np.concatenate([rng.normal(size=(300, N)) * 4.0, one.means * 3.0, -one.means * 3.0])
    best = starts[np.argsort(-one.value(parts, starts, direction, epsilon))[:6]]

    def negative(y: Array) -> float:
        return -float(one.value(parts, y[None, :], direction, epsilon)[0])

    largest = max(-minimize(negative, start, method="Nelder-Mead", options={"maxiter": 600}).fun for start in best)
    assert largest <= cap
    assert largest > 0.2 * cap
    # The bound is divided by the share of the component that bounds the samples.
    alone = Proposal(0.5, parts[1].number) if anchored else plain_proposal(one.mechanism(), direction)
    single = sampler().limits(one.mechanism(), direction, alone, epsilon).weight_bound
    assert cap <= single * 128 / (72 if anchored else 80) * (1.0 + 1e-9)


@pytest.mark.parametrize("anchored", [False, True], ids=["plain", "stretched"])
@pytest.mark.parametrize(("direction", "epsilon"), [("remove", 0.5), ("remove", 4.0), ("add", 0.4), ("replace", 2.0)])
def test_means_are_delta(direction: Any, epsilon: float, *, anchored: bool) -> None:
    one = Renewal(0.8, warm=True)
    parts = components(direction, anchored=anchored)
    p = one.exact
    q = p.mirrored if direction == "replace" else nothing(N)
    truth = hockey_stick(*((q, p) if direction == "add" else (p, q)), epsilon)
    proposal = Proposal(0.5, parts[1].number, (), tuple(parts))
    sums = sampler().run(one.mechanism(), direction, proposal, [BetTable(epsilon, 1e9)], Stream("verification", 256, 1))
    values = np.array([shard[0].value for shard in sums]) / SHARD
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - truth) < 4.0 * error
    assert error < 0.03 * truth


def test_bins_are_as_unbiased_and_as_bounded() -> None:
    """One bin for each of three rounds: δ by quadrature, and V by its definition at outcomes near and far."""
    matrix = np.tril(np.full((3, 3), 0.7)) + 0.3 * np.eye(3)
    law = bin_law(3, 3)
    modes = np.array(list(law), dtype=float) @ matrix.T
    recipe = sampled("bins", (modes @ modes.T).ravel().tolist(), 3)
    core, mechanism = recipe.core, SampledMechanism(recipe, ("remove", "add"), 3, 100.0, 0.0)
    parts = (Component(8, (), 0.0), Component(56, (0.2,), 2.0), Component(64, (), 1.5))
    proposal, epsilon = Proposal(0.2, 2.0, (), parts), 2.0
    sums = sampler().run(mechanism, "remove", proposal, [BetTable(epsilon, 1e9)], Stream("verification", 256, 1))
    values = np.array([shard[0].value for shard in sums]) / SHARD
    truth = hockey_stick(Mixture.of(law, matrix), nothing(3), epsilon)
    assert abs(values.mean() - truth) < 4.0 * values.std(ddof=1) / math.sqrt(len(values))
    cap, _, _ = core.defensive_bounds("remove", [(c.units, c.parameters, c.number) for c in parts], epsilon)
    rng = np.random.default_rng(1)
    y = np.concatenate([rng.normal(size=(20_000, 3)) * scale + shift for scale in (1.0, 3.0) for shift in modes])
    squares = (modes**2).sum(axis=1)
    own = logsumexp(y @ modes.T - 0.5 * squares, axis=1, b=np.full(3, 1 / 3))
    weights = np.exp(0.2 * squares) / np.exp(0.2 * squares).sum()
    stretched = logsumexp(y @ (2.0 * modes).T - 2.0 * squares, axis=1, b=weights)
    mean = modes.mean(axis=0)
    tilted = np.exp(1.5 * modes @ mean) / np.exp(1.5 * modes @ mean).sum()
    moved = modes + 1.5 * mean
    tilt = logsumexp(y @ moved.T - 0.5 * (moved**2).sum(axis=1), axis=1, b=tilted)
    mixture = logsumexp([own, stretched, tilt], axis=0, b=np.array([[8], [56], [64]]) / 128)
    values = np.exp(own - mixture) * np.maximum(-np.expm1(epsilon - own), 0.0)
    assert 0.3 * cap < values.max() <= cap


def test_a_claim_that_is_just_true_is_seldom_refuted() -> None:
    """The wealth against the true claim "δ(ε) ≥ δ(ε)" reaches 1/q in at most a share q of the runs."""
    one = Renewal(0.8, warm=True)
    epsilon = 2.0
    truth = hockey_stick(one.exact, nothing(N), epsilon)
    proposal = Proposal(0.5, 2.0, (), tuple(components("remove", anchored=True)))
    drawing = sampler(5)
    cap = drawing.limits(one.mechanism(), "remove", proposal, epsilon).weight_bound
    runs, q, reached = 400, 0.1, 0
    for candidate in range(runs):
        stakes = tuple(Bet(truth, share / (cap - truth)) for share in (0.02, 0.1, 0.5, 0.95))
        sums = drawing.run(
            one.mechanism(),
            "remove",
            proposal,
            [BetTable(epsilon, cap, stakes)],
            Stream("verification", 12, candidate + 1),
        )
        capital = np.exp(np.cumsum([shard[0].log_wealth for shard in sums], axis=0)).mean(axis=1)
        reached += bool(capital.max() >= 1.0 / q)
    # 400 draws of probability 0.1 exceed 58 with probability 2e-3. Bets do win sometimes.
    assert 0 < reached <= 58


def close(mechanism: SampledMechanism, epsilon: float, above: float) -> Claim:
    """Return a claim this far above δ(ε), relatively, with q a hundredth of it."""
    delta = above * max(
        Estimator(sampler()).at(mechanism, direction, epsilon, Effort(shards=256)).value
        for direction in mechanism.directions
    )
    return Claim(mechanism, 1.0, epsilon, delta, math.log(100.0 / delta))


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consider mixtures even if a test takes few samples, and disable the special tests, which would take fewer."""
    monkeypatch.setattr(betting_choice, "MIXED_FROM", 0.0)
    for special in ("_powered_betting", "_clipped_betting"):
        monkeypatch.setattr(betting_choice, special, lambda *_: None)


@pytest.mark.usefixtures("eager")
def test_tests_close_to_the_truth_take_fewer_samples() -> None:
    """In a run of many rounds with rare participations a mixture is expected to take far fewer samples, and does."""
    column = np.cumprod([1.0, *((2.0 * j - 1.0) / (2.0 * j) for j in range(1, 8))]) / 2.0
    mechanism = SampledMechanism(
        sampled("renewal", list(column), 200, 8, 0.02, True), ("remove", "add"), 200, 100.0, 0.02
    )
    epsilon = 1.0
    claim = close(mechanism, epsilon, 1.06)
    one = sampler()
    estimates = {side: Estimator(one).at(mechanism, side, epsilon) for side in mechanism.directions}
    found = choose_betting(one, claim, "remove", estimates["remove"])
    assert found is not None
    assert found.proposal.components
    assert sum(part.units for part in found.proposal.components) == _core.SHARD_UNITS
    betting_choice.MIXED_FROM = math.inf
    alone = choose_betting(one, claim, "remove", estimates["remove"])
    assert alone is not None
    assert not alone.proposal.components
    assert found.expected_samples < 0.75 * alone.expected_samples
    betting_choice.MIXED_FROM = 0.0
    tests = run_betting_tests(one, claim, estimates)
    assert [test.accepted for test in tests] == [True, True]
    test = next(test for test in tests if test.direction == "remove")
    assert test.proposal.components
    assert test.samples < 3.0 * found.expected_samples
    assert test.standard_error is not None
    assert abs(test.mean - estimates["remove"].value) < 0.05 * claim.delta
    # Samples for other uses come from the proposal that bounds the samples.
    assert not test.proposal.single.components


DOCUMENT: dict[str, Any] = doc(
    "name=mixture epsilon=1 delta=1e-3 sampling_probability=0.02 iterations=200 sampler=b-min-sep",
    "min_separation=8 start=warm matrix=banded-square-root bands=8 multiplier=1.4 seed=7 profile=[]",
)


@pytest.mark.usefixtures("eager", "drawn_once")
def test_certificates_record_the_mixture_and_are_recomputed(tmp_path: Path) -> None:
    near = close(pyaccount.compile(DOCUMENT).at().mechanism(), 1.0, 1.08).delta
    made = pyaccount.certify(DOCUMENT | {"privacy": DOCUMENT["privacy"] | {"delta": near}})
    sampling = made.data.evidence.sampling
    assert sampling is not None
    mixtures = [test.proposal.mixture for test in sampling.tests if test.proposal.mixture]
    assert mixtures
    for mixture in mixtures:
        assert sum(part.share for part in mixture) == 1.0
        assert all((part.tilt is None) == bool(part.parameters) == (part.mean_scale is not None) for part in mixture)
        assert any(part.tilt == 0.0 for part in mixture)
    path = tmp_path / "mixture.cert.json"
    made.save(path)
    assert pyaccount.verify(path)
    assert " in a mixture with " in made.to_html()
    assert f" in a mixture with {len(mixtures[0]) - 1} others" in made.to_text()


@pytest.mark.parametrize("users", [False, True], ids=["records", "users"])
def test_where_columns_overlap_plain_samples_bound_the_tilts(*, users: bool, tmp_path: Path) -> None:
    """The density of a tilt relative to P is known, that of P is not: V has the mean of the upper loss."""
    sampler_of: dict[str, Any] = {"kind": "b-min-sep", "min_separation": 2, "start": "warm"}
    if users:
        sampler_of |= {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "single"}
    document = doc(
        "name=overlapping epsilon=1.5 delta=1e-3 sampling_probability=0.25 iterations=3 matrix=blt",
        "scales=[0.4] decays=[0.8] multiplier=1.1",
        sampler=sampler_of,
    )
    truth = Truth(document, tmp_path)
    mechanism, one, epsilon = pyaccount.compile(document).at().mechanism(), sampler(), 0.6
    assert mechanism.enclosed
    for direction in mechanism.directions:
        estimate = Estimator(one).at(mechanism, direction, epsilon)
        usual = plain_proposal(mechanism, direction)
        components = mixed(mechanism, direction, usual, estimate.components, 64)
        assert components is not None
        assert not any(part.parameters for part in components)
        proposal = Proposal(usual.parameter, usual.mean_scale, (), components)
        assert one.limits(mechanism, direction, proposal, epsilon).weight_bound == pytest.approx(2.0, rel=1e-8)
        sums = one.run(mechanism, direction, proposal, [BetTable(epsilon, 2.0)], Stream("verification", 256, 9))
        values = np.array([shard[0].value for shard in sums]) / SHARD
        enclosure = truth.enclosure(direction, epsilon)
        assert enclosure is not None
        assert (
            abs(values.mean() - enclosure[1]) < 4.0 * values.std(ddof=1) / math.sqrt(len(values)) + 1e-4 * enclosure[1]
        )


@pytest.mark.parametrize("bins", [False, True], ids=["b-min-sep", "balls-in-bins"])
def test_truncated_batches_have_mixtures_of_scaled_laws(*, bins: bool, tmp_path: Path) -> None:
    """Only the bound of plain samples is known. With these in the mixture, samples from any law are bounded."""
    document = doc(
        "name=few delta=1e-3 dataset_size=4 iterations=2 sampler=balls-in-bins bins=2 truncate_to=1",
        "matrix=banded-square-root bands=2 multiplier=1.2",
    )
    if not bins:
        document["training"] = {"dataset_size": 4, "sampling_probability": 0.3, "iterations": 2}
        document["sampler"] = {"kind": "b-min-sep", "min_separation": 2, "start": "cold", "truncate_to": 1}
    truth = Truth(document, tmp_path)
    plan = pyaccount.compile(document)
    mechanism, one = plan.at().mechanism(), sampler()
    epsilon = 1.5
    for direction in mechanism.directions:
        estimate = Estimator(one).at(mechanism, direction, epsilon)
        components = mixed(mechanism, direction, plain_proposal(mechanism, direction), estimate.components, 64)
        assert components is not None
        proposal = Proposal(
            *plain_proposal(mechanism, direction).parameters, plain_proposal(mechanism, direction).mean_scale
        )
        proposal = Proposal(proposal.parameter, proposal.mean_scale, (), components)
        assert one.limits(mechanism, direction, proposal, epsilon).weight_bound == pytest.approx(2.0, rel=1e-8)
        sums = one.run(mechanism, direction, proposal, [BetTable(epsilon, 2.0)], Stream("verification", 256, 9))
        values = np.array([shard[0].value for shard in sums]) / SHARD
        error = values.std(ddof=1) / math.sqrt(len(values))
        assert abs(values.mean() - truth.delta(direction, epsilon)) < 4.0 * error


@pytest.mark.parametrize(
    "parts", [[(127, (), 0.0)], [(64, (0.5,), 2.0), (64, (), 0.0)], [(64, (), 0.0), (64, (2.0,), 2.0)]]
)
def test_what_is_no_mixture_is_refused(parts: Any, snapshot: Snapshot) -> None:
    core = Renewal(0.8, warm=True).core
    snapshot.raised(core.defensive_bounds, "remove", parts, 1.0)


def test_units_are_whole_and_in_proportion() -> None:
    for weights in ([1.0], [1.0, 1.0, 1.0], [5.0, 0.1, 0.1], [0.0, 1.0]):
        units = whole_units(weights, 40)
        assert sum(units) == 40
        assert min(units) >= 1
        assert all(a <= b or c >= d for (a, c), (b, d) in pairwise(zip(weights, units, strict=True)))
