"""Random compositions of mechanisms for both accountants: a document of ours, and privacy loss distributions of dp_accounting.

A composition has up to eight phases with random kinds, parameters and counts, all from one seed. Both accountants get the same
numbers: a sensitivity of 1, and a record that is set to zero or, for randomized response, replaced, which is one pair in both.
dp_accounting's distributions are pessimistic on a grid of 1e-4 and connect the dots, so that its ε is above the truth.
"""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dp_accounting.pld import privacy_loss_distribution as losses  # type: ignore[import-untyped]
from dp_accounting.pld.common import DifferentialPrivacyParameters  # type: ignore[import-untyped]
from plain_documents import doc

import pyaccount

GRID, MOST_PHASES = 1e-4, 8
#: The relative tolerance of our interval, and the one at which ours is given up as looser.
TOLERANCE, TIGHTEST = 1e-6, 1e-9
#: How much larger an ε may be without being looser.
SAME = 1e-9


@dataclass(frozen=True)
class Phase:
    """One kind of mechanism that is run `count` times."""

    kind: str
    body: dict[str, Any]
    count: int
    peer: Callable[[], Any]

    @property
    def label(self) -> str:
        """The kind and the number of runs."""
        return f"{self.count} × {self.kind}"


@dataclass(frozen=True)
class Composition:
    """Phases that are composed, and δ."""

    phases: tuple[Phase, ...]
    delta: float

    @property
    def label(self) -> str:
        """All phases, and δ."""
        return f"{', '.join(phase.label for phase in self.phases)}; δ = {self.delta:.3g}"

    def document(self, tolerance: float) -> dict[str, Any]:
        """The document, with ε blank and no profile."""
        return doc(
            "name=composition profile=[]",
            delta=self.delta,
            phases=[phase.body for phase in self.phases],
            tolerance=tolerance,
        )

    def theirs(self) -> float:
        """ε by dp_accounting, from above."""
        together = losses.identity()
        for phase in self.phases:
            together = together.compose(phase.peer().self_compose(phase.count))
        return float(together.get_epsilon_for_delta(self.delta))


@dataclass(frozen=True)
class Comparison:
    """What both accountants say of a composition, and the seconds of each; ours of the first tolerance."""

    composition: Composition
    theirs: float
    lower: float
    upper: float
    #: The tolerance at which ours is not looser: the first one over a power of ten; None if there is none.
    tolerance: float | None
    our_seconds: float
    their_seconds: float


def compared(composition: Composition, tolerance: float = TOLERANCE) -> Comparison:
    """Return the comparison of a composition. Ours is asked again, ten times as tightly, while it is looser than theirs."""
    begun = time.perf_counter()
    theirs = composition.theirs()
    their_seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    first = guarantee = pyaccount.certify(composition.document(tolerance)).data.guarantee
    our_seconds = time.perf_counter() - begun
    while guarantee.epsilon > theirs * (1.0 + SAME) and tolerance > 2.0 * TIGHTEST:
        tolerance /= 10.0
        guarantee = pyaccount.certify(composition.document(tolerance)).data.guarantee
    reached = tolerance if guarantee.epsilon <= theirs * (1.0 + SAME) else None
    return Comparison(composition, theirs, first.epsilon_lower, first.epsilon, reached, our_seconds, their_seconds)


def drawn(seed: int) -> Composition:
    """Return the composition of a seed."""
    rng = random.Random(seed)
    phases = tuple(_phase(rng) for _ in range(rng.randint(1, MOST_PHASES)))
    return Composition(phases, 10.0 ** rng.uniform(-9.0, -3.0))


def _phase(rng: random.Random) -> Phase:
    kind = rng.choice(list(_KINDS))
    count = round(10.0 ** rng.uniform(0.0, 2.0))
    # The noise grows with the number of runs, so that the sum of the losses is of the order of one.
    spread = 10.0 ** rng.uniform(-0.3, 0.7) * math.sqrt(count)
    body, peer = _KINDS[kind](rng, spread)
    return Phase(kind, body | {"count": count}, count, peer)


Made = tuple[dict[str, Any], Callable[[], Any]]


def _mechanism(kind: str, **keys: Any) -> dict[str, Any]:
    return {"mechanism": {"kind": kind, **keys}}


def _gaussian(rng: random.Random, spread: float) -> Made:
    return _mechanism("gaussian", sigma=spread), lambda: losses.from_gaussian_mechanism(
        spread, value_discretization_interval=GRID
    )


def _laplace(rng: random.Random, spread: float) -> Made:
    return _mechanism("laplace", scale=spread), lambda: losses.from_laplace_mechanism(
        spread, value_discretization_interval=GRID
    )


def _randomized_response(rng: random.Random, spread: float) -> Made:
    # With so much truth ε of one answer is about 1/spread.
    values, epsilon = rng.randint(2, 6), 1.0 / spread
    noise = values / (math.exp(epsilon) + values - 1.0)
    truth = 1.0 - noise + noise / values
    return _mechanism(
        "randomized-response", values=values, truth_probability=truth
    ), lambda: losses.from_randomized_response(noise, values, value_discretization_interval=GRID)


def _discrete_laplace(rng: random.Random, spread: float) -> Made:
    shift = rng.randint(1, 3)
    parameter = 1.0 / (spread * shift)
    return _mechanism(
        "discrete-laplace", scale=1.0 / parameter, sensitivity=shift
    ), lambda: losses.from_discrete_laplace_mechanism(
        parameter, shift, value_discretization_interval=GRID, use_connect_dots=True
    )


def _discrete_gaussian(rng: random.Random, spread: float) -> Made:
    shift = rng.randint(1, 3)
    sigma = spread * shift
    return _mechanism(
        "discrete-gaussian", sigma=sigma, sensitivity=shift
    ), lambda: losses.from_discrete_gaussian_mechanism(
        sigma, shift, value_discretization_interval=GRID, use_connect_dots=True
    )


def _stated(rng: random.Random, spread: float) -> Made:
    epsilon, delta = 1.0 / spread, 10.0 ** rng.uniform(-14.0, -12.0)
    return _mechanism("stated", epsilon=epsilon, delta=delta), lambda: losses.from_privacy_parameters(
        DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=GRID
    )


def _sampled_gaussian(rng: random.Random, spread: float) -> Made:
    rate, sigma = 10.0 ** rng.uniform(-3.0, -1.0), max(0.6, spread / 5.0)
    body = {"training": {"sampling_probability": rate, "iterations": 1}, "sampler": {"kind": "poisson"}}
    return {**body, "noise": {"multiplier": sigma}}, lambda: losses.from_gaussian_mechanism(
        sigma, value_discretization_interval=GRID, sampling_prob=rate
    )


def _sampled_laplace(rng: random.Random, spread: float) -> Made:
    rate, scale = 10.0 ** rng.uniform(-3.0, -1.0), max(0.3, spread / 5.0)
    sampler = {"kind": "poisson", "sampling_probability": rate}
    return {**_mechanism("laplace", scale=scale), "sampler": sampler}, lambda: losses.from_laplace_mechanism(
        scale, value_discretization_interval=GRID, sampling_prob=rate
    )


_KINDS: dict[str, Callable[[random.Random, float], Made]] = {
    "gaussian": _gaussian,
    "laplace": _laplace,
    "randomized response": _randomized_response,
    "discrete laplace": _discrete_laplace,
    "discrete gaussian": _discrete_gaussian,
    "(ε, δ)": _stated,
    "sampled gaussian": _sampled_gaussian,
    "sampled laplace": _sampled_laplace,
}
