"""jax_privacy: its samples of privacy losses, and the events that it hands to dp_accounting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from validating.checks import Check, Range, at_most, document

SAMPLES, SEED = 400_000, 20261123
#: So many standard errors are vouched for: a sound estimate is farther off once in 16,000 times.
ERRORS = 4.0


def jax_privacy() -> list[Check]:
    """Samples where it has them, upper bounds where it composes."""
    return [*sampled(), *composed()]


def sampled() -> list[Check]:
    """δ by the mean of its samples in the worse direction, with their own standard error."""
    from jax_privacy import batch_selection as batches  # an environment of its own

    square_root = [1.0, 0.5, 0.375, 0.3125, 0.2734375, 0.24609375, 0.2255859375, 0.20947265625]
    norm = math.sqrt(sum(value * value for value in square_root))
    bands = [value / norm for value in square_root]
    matrix = {"matrix": {"kind": "banded-square-root", "bands": 8}}

    def renewal(start: str, **more: Any) -> dict[str, Any]:
        training = {"sampling_probability": 0.05, "iterations": 64}
        return {
            "training": training,
            "sampler": {"kind": "b-min-sep", "min_separation": 8, "start": start} | more,
        } | matrix

    def theirs(start: str, **more: Any) -> Any:
        return batches.BMinSepSampling(0.05, 64, 8, warm_start=start == "warm", **more)

    kept = renewal("warm", truncate_to=16)
    kept["training"]["dataset_size"] = 300
    bins = {"training": {"iterations": 64}, "sampler": {"kind": "balls-in-bins", "bins": 16}} | matrix
    cases: list[tuple[str, str, dict[str, Any], Losses]] = [
        *(
            (
                "b-min-sep with a matrix",
                f"b = 8, p = 0.05, 8 bands, σ = 1, n = 64, {start}",
                renewal(start),
                Losses(theirs(start), 1.0, bands),
            )
            for start in ("warm", "cold")
        ),
        (
            "Truncated b-min-sep batches",
            "16 of 300 records kept, b = 8, p = 0.05, 8 bands, σ = 2, n = 64, warm",
            kept,
            Losses(theirs("warm", truncated_batch_size=16), 2.0, bands, 300),
        ),
        (
            "Balls in bins with a matrix",
            "16 bins, 8 bands, σ = 1, n = 64",
            bins,
            Losses(batches.BallsInBinsSampling(64, 16), 1.0, bands),
        ),
    ]
    return [check(*case) for case in cases]


@dataclass(frozen=True)
class Losses:
    """Where its samples of losses come from: its sampler, σ, the bands of C, and the records where some are dropped."""

    strategy: Any
    sigma: float
    bands: list[float]
    size: int | None = None

    def mean(self, epsilon: float, *, positive: bool) -> Range:
        """The mean of (1 − e^(ε − L))₊ over losses L in one direction, and so many standard errors to both sides."""
        import numpy as np  # the page is written without them
        from jax_privacy.experimental.monte_carlo import sample_generation

        losses, _ = sample_generation.get_privacy_loss_sample(
            self.strategy, self.sigma, np.array(self.bands), SEED, positive, num_samples=SAMPLES, dataset_size=self.size
        )
        worth = -np.expm1(np.minimum(epsilon - np.asarray(losses), 0.0))
        error = ERRORS * float(worth.std()) / math.sqrt(SAMPLES)
        return max(0.0, float(worth.mean()) - error), float(worth.mean()) + error


def check(name: str, setting: str, mechanism: dict[str, Any], losses: Losses) -> Check:
    """δ at ε = 1."""
    epsilon = 1.0

    def answer() -> Range:
        return max(losses.mean(epsilon, positive=positive) for positive in (True, False))

    asked = document(mechanism, losses.sigma, epsilon=epsilon, delta="solve", adjacency="zero-out")
    return Check(name, setting, asked, f"jax_privacy, {SAMPLES:,} samples, {ERRORS:g} standard errors", answer)


def composed() -> list[Check]:
    """Its events, with dp_accounting's privacy loss distributions: upper bounds."""
    from dp_accounting import NeighboringRelation  # an environment of its own
    from dp_accounting.pld import PLDAccountant
    from jax_privacy.experimental import accounting

    def bound(event: Any, delta: float, **options: Any) -> Range:
        return at_most(float(PLDAccountant(**options).compose(event).get_epsilon(delta)))

    parts = {"training": {"sampling_probability": 0.1, "iterations": 2000}}
    parts |= {
        "sampler": {"kind": "cyclic-poisson", "partitions": 10},
        "matrix": {"kind": "banded-square-root", "bands": 10},
    }
    kept = {"training": {"sampling_probability": 0.01, "iterations": 2000, "dataset_size": 50_000}}
    kept |= {"sampler": {"kind": "poisson", "truncate_to": 550}}
    event = accounting.amplified_bandmf_event(1.0, 2000, num_bands=10, sampling_prob=0.1)
    cut = accounting.truncated_dpsgd_event(1.0, 2000, sampling_prob=0.01, num_examples=50_000, truncated_batch_size=550)
    return [
        Check(
            "Cyclic Poisson with a matrix",
            "10 parts, p = 0.1, 10 bands, σ = 1, n = 2000",
            document(parts, 1.0, epsilon="solve", delta=1e-6, adjacency="zero-out"),
            "jax_privacy with dp_accounting",
            lambda: bound(event, 1e-6),
        ),
        Check(
            "Truncated Poisson batches",
            "truncated to 550, p = 0.01, N = 50,000, σ = 1, n = 2000",
            document(kept, 1.0, epsilon="solve", delta=1e-6, adjacency="zero-out"),
            "jax_privacy with dp_accounting",
            lambda: bound(cut, 1e-6, neighboring_relation=NeighboringRelation.REPLACE_SPECIAL),
        ),
    ]
