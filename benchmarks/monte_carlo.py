"""Sampling speed, side by side in one run: pyaccount and jax_privacy 2.0.0, the same matrix, one thread each.

A sample is a draw from P and its privacy loss. jax_privacy's is `get_privacy_loss_sample`, at the batch size that suits it best
in each setting; for balls in bins its release loops over samples in Python, so a vectorised version of the same computation, as
upstream has it since, competes too. Both contestants take turns; medians are compared. Times never fail the run: it prints
whether each target is met and exits with 0.
"""

# ruff: noqa: E402 - the peer's threads are limited before numpy is imported.

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jax_privacy import batch_selection
from jax_privacy.experimental.monte_carlo import sample_generation
from rich.console import Console
from rich.table import Table
from scipy import linalg, special

from pyaccount import _core

#: In units of the clip norm, for every setting.
NOISE_MULTIPLIER = 1.0
BATCHES = (64, 256, 1024, 2048)
#: A measurement of pyaccount lasts about so long, and of the peer at least so long.
SECONDS = 1.0
#: Two threads against one.
THREADS_TARGET = 1.8


@dataclass(frozen=True)
class Setting:
    """b-min-sep sampling with a warm start, or balls in bins (no participation rate), and a banded square root."""

    iterations: int
    separation: int
    bands: int
    target: float
    rate: float | None = None

    @property
    def label(self) -> str:
        if self.rate is None:
            return f"balls-in-bins, n={self.iterations}, {self.separation} bins, {self.bands} bands"
        return f"b-min-sep, n={self.iterations}, b={self.separation}, {self.bands} bands"

    @property
    def probability(self) -> float:
        """That of joining a round while available."""
        return 1.0 if self.rate is None else 1.0 / (1.0 / self.rate - (self.separation - 1))

    @property
    def coefficients(self) -> np.ndarray:
        lags = np.arange(1, self.bands)
        column = np.concatenate([[1.0], np.cumprod((2 * lags - 1) / (2 * lags))])
        return np.asarray(column / np.linalg.norm(column))

    @property
    def modes(self) -> np.ndarray:
        """The sum of the columns of each bin, one a row."""
        modes = []
        for bin_ in range(self.separation):
            comb = (np.arange(self.iterations) % self.separation == bin_).astype(float)
            modes.append(np.convolve(comb, self.coefficients)[: self.iterations])
        return np.array(modes)


SETTINGS = (
    Setting(1024, 64, 32, 15.0, 0.01),
    Setting(2000, 16, 16, 15.0, 0.01),
    Setting(7200, 256, 256, 8.0, 1e-4),
    Setting(240, 24, 12, 50.0),
)


class Ours:
    """pyaccount in a setting; every call uses fresh shards."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        if setting.rate is None:
            modes = setting.modes / NOISE_MULTIPLIER
            self.mechanism = _core.Sampled.bins((modes @ modes.T).ravel().tolist(), setting.iterations)
            self.parameter = 0.0
        else:
            coefficients = (setting.coefficients / NOISE_MULTIPLIER).tolist()
            self.parameter = setting.probability
            self.mechanism = _core.Sampled.renewal(
                coefficients, setting.iterations, setting.separation, self.parameter, True
            )
        self.first = 0
        self.shards = 1
        while (seconds := self.seconds(1)) < 0.1 * SECONDS:
            self.shards *= 2
        self.shards = max(2, 2 * round(0.5 * self.shards * SECONDS / seconds))

    def seconds(self, threads: int) -> float:
        """Run the shards on so many threads."""
        start = time.perf_counter()
        self.mechanism.simulate(
            "remove",
            self.parameter,
            1.0,
            [(1.0, 1.0, [])],
            edges=None,
            key=(1, 0, 0, 0),
            first=self.first,
            count=self.shards,
            threads=threads,
            time_limit=None,
        )
        elapsed = time.perf_counter() - start
        self.first += self.shards
        return elapsed

    def nanoseconds(self, threads: int) -> float:
        """For one sample."""
        return self.seconds(threads) / (self.shards * _core.SHARD_SIZE) * 1e9


Draw = Callable[[int], object]


def released(setting: Setting) -> Draw:
    """jax_privacy 2.0.0: so many samples of the loss."""
    strategy: Any
    if setting.rate is None:
        strategy = batch_selection.BallsInBinsSampling(iterations=setting.iterations, cycle_length=setting.separation)
    else:
        strategy = batch_selection.BMinSepSampling(
            sampling_prob=setting.probability,
            iterations=setting.iterations,
            min_sep=setting.separation,
            warm_start=True,
        )
    coefficients, rng = setting.coefficients, np.random.default_rng(1)

    def draw(count: int) -> object:
        return sample_generation.get_privacy_loss_sample(
            strategy, NOISE_MULTIPLIER, coefficients, seed=rng, positive_sample=True, num_samples=count
        )

    return draw


def vectorised(setting: Setting) -> Draw:
    """Balls in bins for many samples at once, the modes computed once: what upstream does since (commit 09c2208)."""
    comb = (np.arange(setting.iterations) % setting.separation == 0).astype(float)
    first = np.convolve(comb, setting.coefficients)[: setting.iterations]
    modes = linalg.toeplitz(first, np.zeros(setting.separation))
    squares = (modes**2).sum(axis=0)[:, None]
    weights = np.full(setting.separation, 1.0 / setting.separation)
    rng = np.random.default_rng(1)

    def draw(count: int) -> object:
        means = np.repeat(modes, rng.multinomial(count, weights), axis=1)
        y = rng.normal(loc=means, scale=NOISE_MULTIPLIER)
        exponents = (2.0 * (modes.T @ y) - squares) / (2.0 * NOISE_MULTIPLIER**2)
        return special.logsumexp(exponents, axis=0) - np.log(setting.separation)

    return draw


@dataclass(frozen=True)
class Contest:
    """A peer in a setting."""

    setting: Setting
    peer: str
    build: Callable[[Setting], Draw]


@dataclass(frozen=True)
class Row:
    """Nanoseconds for a sample, by each."""

    contest: Contest
    batch: int
    peer: tuple[float, ...]
    one_thread: tuple[float, ...]
    two_threads: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return statistics.median(self.peer) / statistics.median(self.one_thread)

    @property
    def speedup(self) -> float:
        return statistics.median(self.one_thread) / statistics.median(self.two_threads)

    def record(self) -> dict[str, Any]:
        return {
            "setting": asdict(self.contest.setting),
            "peer": self.contest.peer,
            "peer_batch": self.batch,
            "peer_nanoseconds": self.peer,
            "pyaccount_nanoseconds_one_thread": self.one_thread,
            "pyaccount_nanoseconds_two_threads": self.two_threads,
            "ratio_of_medians": self.ratio,
            "target_ratio": self.contest.setting.target,
            "met": self.ratio >= self.contest.setting.target,
            "two_threads_over_one": self.speedup,
            "two_threads_met": self.speedup >= THREADS_TARGET,
        }


def contests() -> list[Contest]:
    """Every row of the table."""
    rows = [Contest(setting, "jax_privacy 2.0.0", released) for setting in SETTINGS]
    bins = [Contest(setting, "vectorised", vectorised) for setting in SETTINGS if setting.rate is None]
    return rows + bins


def peer_nanoseconds(draw: Draw, batch: int, seconds: float) -> float:
    """For one sample, over as many batches as fit, at least one."""
    done, start = 0, time.perf_counter()
    while True:
        draw(batch)
        done += batch
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return elapsed / done * 1e9


def best_batch(draw: Draw) -> int:
    """The peer's best batch size, by a short run of each after a first one."""
    draw(BATCHES[0])
    return min(BATCHES, key=lambda batch: peer_nanoseconds(draw, batch, 0.2 * SECONDS))


def compete(contest: Contest, repeats: int) -> Row:
    """Both in turn."""
    ours, draw = Ours(contest.setting), contest.build(contest.setting)
    batch = best_batch(draw)
    peer, one, two = [], [], []
    for _ in range(repeats):
        peer.append(peer_nanoseconds(draw, batch, SECONDS))
        one.append(ours.nanoseconds(1))
        two.append(ours.nanoseconds(2))
    return Row(contest, batch, tuple(peer), tuple(one), tuple(two))


def shown(nanoseconds: tuple[float, ...]) -> str:
    """Median and quartiles."""
    low, _, high = statistics.quantiles(nanoseconds, n=4, method="inclusive")
    return f"{statistics.median(nanoseconds):,.0f} ({low:,.0f}–{high:,.0f})"


def print_table(rows: list[Row]) -> None:
    """The times and the verdicts."""
    table = Table(title="Nanoseconds for a sample: median (first–third quartile)", title_justify="left")
    for heading in ("setting", "peer"):
        table.add_column(heading)
    headings = ("batch", "peer", "pyaccount", "ratio", "target", "met", "2 threads", "gain", f"≥ {THREADS_TARGET}×")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        target = row.contest.setting.target
        table.add_row(
            row.contest.setting.label,
            row.contest.peer,
            str(row.batch),
            shown(row.peer),
            shown(row.one_thread),
            f"{row.ratio:.1f}×",
            f"{target:.0f}×",
            "met" if row.ratio >= target else "not met",
            shown(row.two_threads),
            f"{row.speedup:.2f}×",
            "met" if row.speedup >= THREADS_TARGET else "not met",
        )
    Console(width=200).print(table)


def main() -> None:
    """Run every contest and print the table."""
    parser = argparse.ArgumentParser(description="Time pyaccount's sampling beside jax_privacy's.")
    parser.add_argument("--repeats", type=int, default=5, help="repeats of each contest")
    parser.add_argument("--only", default="", help="run only the contests whose setting or peer contains this text")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the raw numbers")
    arguments = parser.parse_args()
    rows = []
    for contest in contests():
        name = f"{contest.setting.label} against {contest.peer}"
        if arguments.only in name:
            print(f"{name} …", file=sys.stderr, flush=True)
            rows.append(compete(contest, max(arguments.repeats, 2)))
    print_table(rows)
    if arguments.json is not None:
        record = {"rows": [row.record() for row in rows]}
        arguments.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
