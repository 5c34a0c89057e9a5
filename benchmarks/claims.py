"""Samples and seconds until δ(ε) ≤ δ₀ is proven for b-min-sep sampling, beside jax_privacy 2.0.0 and opake-accounting 0.16.1.

All three get the same mechanism: rounds, separation, probability of joining, the bands of the square root normalised to norm 1, σ
and a warm start. ε, δ₀ and the number of cores are the same too.

- **pyaccount** certifies a document that states σ, ε and δ₀. The samples in the table are those of the accepted tests; the
  seconds are those of the whole certificate, with its pilots and lower ends. The failure probability, δ₀/100, is part of δ₀.
- **jax_privacy** draws a number of plain samples that is fixed in advance and compares their mean with a bar below δ₀. Its
  `minimum_samples_to_calibrate` says how many samples a bar needs. We put the bar where pyaccount estimates δ, so that about half
  of the runs would be accepted. The failure probability is part of δ₀.
- **opake** bounds the whole distribution of the loss: one-sided confidence limits of every order statistic, in both directions,
  hold at once. "opake, defaults" has the default failure probability, 1e-6, which stands beside δ, and the resolution that opake
  chooses for δ₀: the smaller of 1e-5 and δ₀/2. For "opake, q within δ₀" the failure probability is pyaccount's and part of δ₀,
  and we look for the coarsest resolution that proves the claim. opake says how many samples a resolution takes.
  `Estimates.band` predicts what a run proves; the table has the prediction beside what was proved.

All of them prove the upper end in both directions. Numbers that begin with "about" were not run: core seconds are the number of
samples times the pace in core seconds that was measured here, and seconds are those divided by the number of threads. For
jax_privacy, which has no threads, that stands for as many processes.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax_privacy import batch_selection
from jax_privacy.experimental.monte_carlo import delta_calculation, sample_generation
from opake_peer import OPAKE, square_root
from rich.console import Console
from rich.table import Table
from scipy import special

import pyaccount

ROUNDS, RATE = 2_000, 0.01
#: The batch with which jax_privacy is fastest in these settings, of 64, 256, 1024 and 2048.
BATCH = 256
#: Where opake needs more samples than it may draw, a run with this resolution gives the pace.
COARSER = 3e-4
#: Where pyaccount estimates δ, in multiples of ε.
NEARBY = (1.0, 1.05, 1.1, 1.2, 1.4, 1.6)


@dataclass(frozen=True)
class Setting:
    """A mechanism, and what is claimed of it; as many bands as the separation."""

    name: str
    epsilon: float
    delta: float
    separation: int
    sigma: float

    @property
    def label(self) -> str:
        return f"{self.name}: δ({self.epsilon:g}) ≤ {self.delta:g}, σ = {self.sigma:g}"

    @property
    def probability(self) -> float:
        """The probability that an available record joins a round."""
        return 1.0 / (1.0 / RATE - (self.separation - 1))

    def certificate(self, seed: int, threads: int, profile: list[float]) -> pyaccount.Certificate:
        """Certify the claim."""
        document: dict[str, Any] = {
            "pyaccount": 1,
            "name": self.name,
            "privacy": {"adjacency": "zero-out", "epsilon": self.epsilon, "delta": self.delta},
            "training": {"participation_rate": RATE, "iterations": ROUNDS},
            "sampler": {"kind": "b-min-sep", "min_separation": self.separation},
            "matrix": {"kind": "toeplitz", "coefficients": square_root(self.separation)},
            "noise": {"multiplier": self.sigma},
            "accounting": {"profile": profile, "seed": seed},
        }
        return pyaccount.certify(document, threads=threads)


SETTINGS = (
    Setting("b = 64", 8.0, 1e-5, 64, 1.5984),
    Setting("b = 64, more noise", 8.0, 1e-5, 64, 1.7),
    Setting("b = 8", 1.0, 1e-5, 8, 4.13),
    Setting("b = 16", 2.0, 1e-10, 16, 4.55),
)


@dataclass(frozen=True)
class Estimates:
    """ln δ(ε) of a removed record as a parabola through pyaccount's estimates, and the tests' failure probability q."""

    epsilon: float
    curve: np.poly1d
    failure: float

    @property
    def delta(self) -> float:
        return float(np.exp(self.curve(self.epsilon)))

    def band(self, samples: float, failure: float) -> float:
        """Return the δ(ε) that opake's band proves, if the tail of the samples is as expected.

        δ(ε) = ∫₀¹ Pr[L > ε − ln(1 − u)] du, and Pr[L > l] = δ(l) − δ'(l). Each probability is replaced by its upper confidence
        limit after Clopper and Pearson, for small probabilities. Every sample of either direction has an equal share of the
        failure probability.
        """
        share = (np.arange(2_000) + 0.5) / 2_000
        losses = self.epsilon - np.log1p(-share)
        tails = np.exp(self.curve(losses)) * (1.0 - self.curve.deriv()(losses))
        limits = special.gammainccinv(samples * tails + 1.0, failure / (2.0 * samples)) / samples
        return float(limits.mean())


def estimated(setting: Setting, threads: int) -> Estimates:
    """Estimate δ around ε, by a certificate that is not timed."""
    found = setting.certificate(1, threads, [setting.epsilon * factor for factor in NEARBY]).data
    assert found.evidence.sampling is not None
    profile = found.directions.remove.profile
    points = np.array([(point.epsilon, point.delta_estimate) for point in profile if point.delta_estimate])
    curve = np.poly1d(np.polyfit(points[:, 0], np.log(points[:, 1]), 2))
    return Estimates(setting.epsilon, curve, found.evidence.sampling.total_probability)


Row = tuple[str, str, str, str, str, str]
HALF = "accepted in about half of the runs"


def count(samples: float) -> str:
    """Return a number that was extrapolated."""
    return f"about {samples:.1e}".replace("e+0", "e").replace("e+", "e")


def duration(seconds: float) -> str:
    """Return an extrapolated time in a unit that fits."""
    for unit, length in (("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * length:
            return f"about {seconds / length:,.0f} {unit}"
    return f"about {seconds:.0f} s"


def extrapolated(tool: str, samples: float, core: float, threads: int, proven: str = HALF) -> Row:
    """Return the row of a proof that takes so many samples in each direction, and core seconds in all."""
    return tool, count(samples), count(samples), duration(core / threads), duration(core), proven


def clocks() -> tuple[float, float]:
    """Return seconds and core seconds."""
    return time.perf_counter(), time.process_time()


def ours(setting: Setting, threads: int, repeats: int) -> Row:
    """Certify the claim with as many seeds as there are repeats; the row is about the run that took the median time."""
    runs = []
    for seed in range(1, repeats + 1):
        start, core = clocks()
        found = setting.certificate(seed, threads, []).data
        end, last = clocks()
        runs.append((end - start, last - core, found))
    seconds, core, found = sorted(runs, key=lambda run: run[:2])[(repeats - 1) // 2]
    assert found.evidence.sampling is not None
    tests = found.evidence.sampling.tests
    samples = [sum(test.all_samples for test in tests if test.direction == side) for side in ("remove", "add")]
    proven = f"{verdict(found.holds)}; δ ≥ {found.guarantee.delta_lower:.1e}"
    return "pyaccount", f"{samples[0]:,}", f"{samples[1]:,}", f"{seconds:.1f} s", f"{core:.1f} s", proven


def pace(setting: Setting, positive: bool, seconds: float) -> float:
    """Return the core seconds that jax_privacy takes for a sample."""
    strategy = batch_selection.BMinSepSampling(
        sampling_prob=setting.probability, iterations=ROUNDS, min_sep=setting.separation, warm_start=True
    )
    coefficients, rng = np.array(square_root(setting.separation)), np.random.default_rng(1)

    def batch() -> None:
        sample_generation.get_privacy_loss_sample(
            strategy, setting.sigma, coefficients, seed=rng, positive_sample=positive, num_samples=BATCH
        )

    batch()
    done, start = 0, time.process_time()
    while (elapsed := time.process_time() - start) < seconds:
        batch()
        done += BATCH
    return elapsed / done


def plain(setting: Setting, estimates: Estimates, threads: int, seconds: float) -> Row:
    """Return what jax_privacy needs for the claim, by its own formula and at the pace of its samples."""
    samples = delta_calculation.minimum_samples_to_calibrate(estimates.delta, setting.delta)
    core = samples * sum(pace(setting, positive, seconds) for positive in (True, False))
    return extrapolated("jax_privacy", samples, core, threads)


def sampled(setting: Setting, estimates: Estimates, threads: int, most: float) -> list[Row]:
    """Run opake with its default settings, if it may draw so many samples, and return what it needs for the claim."""
    config = OPAKE.DiscretizationConfig(mc_resolution=min(1e-5, setting.delta / 2.0))
    samples = config.resolved_num_mc_samples
    run = config if samples <= most else OPAKE.DiscretizationConfig(mc_resolution=COARSER)
    coefficients = square_root(setting.separation)
    start, core = clocks()
    found = OPAKE.bandmf_b_min_sep_warm_mc_pld(coefficients, ROUNDS, setting.probability, setting.sigma, run)
    upper = found.delta_at(setting.epsilon)
    end, last = clocks()
    taken = (last - core) / run.resolved_num_mc_samples
    expected = estimates.band(samples, config.mc_failure_probability)
    if run is config:
        times = f"{samples:,}", f"{samples:,}", f"{end - start:.0f} s", f"{last - core:.0f} s"
        shown = f"{verdict(upper <= setting.delta)}: δ ≤ {upper:.2e} (predicted: {expected:.2e})"
        default = ("opake, defaults", *times, shown)
    else:
        shown = f"{verdict(expected <= setting.delta)}: δ ≤ about {expected:.2e}"
        default = extrapolated("opake, defaults", samples, taken * samples, threads, shown)
    needed = claimed(setting, estimates)
    return [default, extrapolated("opake, q within δ₀", needed, taken * needed, threads)]


def verdict(accepted: bool) -> str:
    """Return whether the claim was proven, in words."""
    return "accepted" if accepted else "not accepted"


def claimed(setting: Setting, estimates: Estimates) -> int:
    """Return the samples of each direction with which opake's band proves the claim, by bisection of its resolution."""
    target = setting.delta - estimates.failure
    low, high = 1e-6 * setting.delta, setting.delta
    needed = 0
    while high / low > 1.001:
        resolution = (low * high) ** 0.5
        config = OPAKE.DiscretizationConfig(mc_resolution=resolution, mc_failure_probability=estimates.failure)
        samples = config.resolved_num_mc_samples
        if estimates.band(samples, estimates.failure) <= target:
            low, needed = resolution, samples
        else:
            high = resolution
    return needed


def main() -> None:
    """Run every setting and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", default="", help="run only the settings whose label contains this text, such as 'b = 8'"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="runs of pyaccount, each with its own seed; the peers run once"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        help="threads of pyaccount and opake; others are extrapolated to as many cores",
    )
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="seconds of jax_privacy's samples in each direction"
    )
    parser.add_argument("--most", type=float, default=1e7, help="samples that opake draws at most, in each direction")
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)  # opake reads it when it first draws samples
    console = Console(width=190)
    table = Table(title="Samples and seconds until δ(ε) ≤ δ₀ is proven", title_justify="left")
    for heading in ("setting", "tool", "samples, removed", "samples, added", "seconds", "core seconds", "proven"):
        table.add_column(heading, no_wrap=True)
    table.caption = (
        "Every tool checks both directions. The failure probability q is part of δ₀; opake's default is 1e-6 beside δ."
    )
    for setting in SETTINGS:
        if options.only not in setting.label:
            continue
        estimates = estimated(setting, options.threads)
        rows = [
            ours(setting, options.threads, options.repeats),
            plain(setting, estimates, options.threads, options.seconds),
            *sampled(setting, estimates, options.threads, options.most),
        ]
        for place, row in enumerate(rows):
            table.add_row(setting.label if place == 0 else "", *row, end_section=place == len(rows) - 1)
            print(setting.label, *row, sep=" | ", flush=True)
    console.print(table)


if __name__ == "__main__":
    main()
